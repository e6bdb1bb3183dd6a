//! From a candidate to an owner.

use baton_core::{OwnerId, Position};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

use super::directory::{Directory, Tenant, host, is_alive};
use super::marker::{Marker, read_hint};
use super::office::Lease;
use super::read::look;
use super::shared::Shared;
use super::wire::{Answer, Ask, Call, Peer};
use crate::protocol::{Event, NewFence, Owner};
use crate::status::{Hint, State, Status};
use crate::store::{Keeper, verify};
use crate::{
    AcquireEvent, AcquireOptions, Candidate, Deps, Error, IfOwned, JobShape, Location, OnDrainTimeout,
    OwnerInfo, Result,
};

/// How often the lock is tried. Blocking in `flock` would wake candidates in an order that nobody chose.
const POLL: Duration = Duration::from_millis(20);

/// How long a plain start waits for an owner that is just leaving, or for a successor that is just coming.
const MOMENT: Duration = Duration::from_secs(1);

/// How long an owner may take to say who it is.
const ANSWER: Duration = Duration::from_millis(700);

/// How long a successor that was named outranks everybody else.
const SUCCESSOR: Duration = Duration::from_secs(5);

/// How often a wait that goes on is said again.
const REMINDER: Duration = Duration::from_secs(30);

/// Gets the checkpoint, creating it where there is none.
///
/// All checks that can fail have been done by the caller: when an owner is asked to hand over it will. What happens on
/// the way goes to `events`; a receiver that is gone or full misses some.
///
/// # Errors
/// Of kind `Held` if somebody else has it and keeps it, `Invalid` if the directory or the job does not fit, `Corrupt`
/// if the log cannot be trusted, naming what is damaged.
///
/// # Cancel safety
/// Dropping the future withdraws what it asked for: the owner goes on.
pub async fn acquire(
    location: &Location,
    candidate: Candidate,
    options: AcquireOptions,
    deps: &Deps,
    events: mpsc::Sender<AcquireEvent>,
) -> Result<Lease> {
    let mut seeker = Seeker::new(location, candidate, options, deps, events)?;
    loop {
        if seeker.directory.try_lock()? {
            if let Some(lease) = seeker.claim().await? {
                return Ok(lease);
            }
        } else {
            seeker.wait().await?;
        }
    }
}

/// A candidate on its way.
pub(super) struct Seeker {
    pub(super) directory: Arc<Directory>,
    pub(super) me: OwnerInfo,
    pub(super) deps: Deps,
    candidate: Candidate,
    options: AcquireOptions,
    events: mpsc::Sender<AcquireEvent>,
    /// What it does about an owner now; a take-over may become a wait.
    mode: IfOwned,
    /// When it started, on the monotonic clock.
    started: Duration,
    /// The owner it talks to.
    peer: Option<Box<Peer>>,
    /// Who owns the checkpoint, as far as somebody says.
    holder: Option<OwnerInfo>,
    /// Since when the owner has been asked to hand over.
    asked: Option<Duration>,
    accepted: bool,
    /// When waiting was said last.
    said: Option<Duration>,
    /// The successor that a release named, and since when it has been waited for.
    successor: Option<(OwnerId, Duration)>,
    /// The owner was ended by us.
    pub(super) forced: bool,
    compared: bool,
}

impl Seeker {
    fn new(
        location: &Location,
        candidate: Candidate,
        options: AcquireOptions,
        deps: &Deps,
        events: mpsc::Sender<AcquireEvent>,
    ) -> Result<Self> {
        let tenant = if options.guard { Tenant::Guard } else { Tenant::Job };
        let directory = Directory::create(location.path(), tenant)?;
        // Somebody else's directory is refused whoever has its lock.
        directory.content()?;
        let me = OwnerInfo {
            id: candidate.owner,
            host: host(),
            pid: std::process::id(),
            version: candidate.version.clone(),
            epoch: None,
            since: deps.clock.now(),
        };
        Ok(Self {
            directory: Arc::new(directory),
            me,
            deps: deps.clone(),
            mode: options.if_owned,
            candidate,
            options,
            events,
            started: deps.clock.elapsed(),
            peer: None,
            holder: None,
            asked: None,
            accepted: false,
            said: None,
            successor: None,
            forced: false,
            compared: false,
        })
    }

    fn now(&self) -> Duration {
        self.deps.clock.elapsed()
    }

    fn tell(&self, event: AcquireEvent) {
        drop(self.events.try_send(event));
    }

    // ---- with the lock ----

    /// Claims the checkpoint whose lock we have. `None`: the lock was given up again, for a reason that passes.
    async fn claim(&mut self) -> Result<Option<Lease>> {
        if !self.directory.is_in_place() {
            // Removed or replaced while we waited: that lock is worth nothing.
            self.directory = Arc::new(Directory::create(self.directory.path(), self.directory.tenant())?);
            return Ok(None);
        }
        let (marker, fresh) = match Marker::read(&self.directory)? {
            Some(marker) => (marker, marker.creating),
            None => {
                self.directory.make_home()?;
                let marker = Marker::new(baton_core::CheckpointId(self.deps.rng.uuid()));
                marker.write(&self.directory)?;
                (marker, true)
            }
        };
        let id = marker.checkpoint_id;
        let hint = read_hint(&self.directory, id).filter(|_| !fresh);
        if let Some(successor) = hint
            .as_ref()
            .and_then(|hint| hint.successor.as_ref())
            .map(|info| info.id)
            && successor != self.me.id
            && !self.forced
            && !self.is_gone(successor, hint.as_ref())
        {
            // The log decides, but opening it would make the successor wait.
            self.directory.unlock();
            return self.hold_back(successor, hint.as_ref()).await.map(|()| None);
        }
        let opened = Keeper::open(Arc::clone(&self.directory), fresh.then_some(id)).await;
        let (keeper, found) = opened.map_err(|failure| failure.about(&self.directory.home()))?;
        let acknowledged = hint.as_ref().and_then(|hint| hint.seq);
        let contents = verify(&self.directory.home(), id, found, acknowledged)?;
        let log = contents.log();
        if let Some(old) = log.shape() {
            self.compare(old)?;
        }
        if let Some(successor) = log.released().and_then(|released| released.successor)
            && successor != self.me.id
            && !self.forced
            && !self.is_gone(successor, hint.as_ref())
        {
            drop(keeper);
            return self.hold_back(successor, hint.as_ref()).await.map(|()| None);
        }

        let (sender, requests) = mpsc::channel(16);
        let mut me = self.me.clone();
        me.since = self.deps.clock.now();
        me.epoch = Some(log.epoch().next());
        let shared = Arc::new(Shared::new(
            Arc::clone(&self.directory),
            id,
            me,
            self.deps.clone(),
            keeper,
            sender,
            Owner::candidate(self.me.id, self.candidate.handover),
        ));
        let fence = NewFence {
            host: self.me.host.clone(),
            pid: self.me.pid,
            shape: self.candidate.shape.clone(),
            forced: self.forced,
            // Looked at just above.
            successor_is_gone: true,
        };
        let mut lease = Lease::new(
            shared,
            requests,
            contents.floor,
            self.options.min_batches_to_retain,
        );
        lease.perform(Event::Acquired).await?;
        lease
            .perform(Event::LogRead(Box::new(log), Box::new(fence)))
            .await?;
        if fresh {
            let ready = Marker {
                creating: false,
                ..marker
            };
            ready.write(&self.directory)?;
        }
        lease.takes_office();
        Ok(Some(lease))
    }

    /// Compares our job with the one that the checkpoint knows.
    fn compare(&mut self, old: &JobShape) -> Result<()> {
        if std::mem::replace(&mut self.compared, true) {
            return Ok(());
        }
        let found = self.candidate.shape.compare(old);
        if !found.refusals.is_empty() && !self.options.accept_changes {
            return Err(Error::Incompatible {
                path: self.directory.path().to_owned(),
                difference: found.refusals.join("; "),
            });
        }
        if !found.is_empty() {
            self.tell(AcquireEvent::Difference {
                notes: found.notes,
                refusals: found.refusals,
            });
        }
        Ok(())
    }

    /// Whether a successor that a release named will not come: it is dead, or has had its time.
    fn is_gone(&mut self, successor: OwnerId, hint: Option<&Hint>) -> bool {
        let now = self.now();
        let since = match self.successor {
            Some((id, since)) if id == successor => since,
            _ => {
                self.successor = Some((successor, now));
                now
            }
        };
        let info = hint.and_then(|hint| hint.expects(successor));
        let is_dead = info.is_some_and(|info| info.host == self.me.host && !is_alive(info.pid));
        is_dead || now.saturating_sub(since) >= SUCCESSOR
    }

    async fn hold_back(&mut self, successor: OwnerId, hint: Option<&Hint>) -> Result<()> {
        let expected = hint.and_then(|hint| hint.expects(successor));
        let who = expected.map_or_else(|| successor.to_string(), ToString::to_string);
        let waited = self
            .successor
            .map_or(Duration::ZERO, |(_, since)| self.now().saturating_sub(since));
        if self.mode == IfOwned::Fail && waited >= MOMENT {
            return Err(self.held(format!("{who}, to whom it is being handed over")));
        }
        if self.mode != IfOwned::Fail {
            self.say_waiting(&format!("it is being handed over to {who}"));
        }
        self.check_wait_timeout(&who)?;
        self.deps.clock.sleep(POLL).await;
        Ok(())
    }

    // ---- without the lock ----

    /// Waits until it is worth trying the lock again.
    async fn wait(&mut self) -> Result<()> {
        if !self.directory.is_in_place() {
            self.directory = Arc::new(Directory::create(self.directory.path(), self.directory.tenant())?);
            self.peer = None;
            return Ok(());
        }
        if self.mode == IfOwned::Fail {
            return self.fail().await;
        }
        if !self.compared {
            // Before anybody is disturbed.
            if let Some(shape) = look(&self.directory)
                .await?
                .and_then(|look| look.contents.log().shape().cloned())
            {
                self.compare(&shape)?;
            }
        }
        if self.mode == IfOwned::Force {
            return self.force().await;
        }
        if self.peer.is_none() {
            self.call().await?;
        }
        let heard = match &mut self.peer {
            None => {
                self.deps.clock.sleep(POLL).await;
                None
            }
            Some(peer) => {
                tokio::select! {
                    biased;
                    heard = peer.ears.hear::<Answer>() => Some(heard),
                    () = self.deps.clock.sleep(POLL) => None,
                }
            }
        };
        match heard {
            None => {}
            // It has ended, whatever way.
            Some(None | Some(Answer::Released)) => {
                self.peer = None;
                return Ok(());
            }
            Some(Some(answer)) => self.hear(answer)?,
        }
        self.check_patience().await
    }

    /// A plain start: says who has it, and ends.
    async fn fail(&mut self) -> Result<()> {
        let waited = self.now().saturating_sub(self.started);
        let (status, answered) = self.holders_status().await;
        let leaves = matches!(&status, Some(status) if status.state != State::Running);
        // One that has just claimed it opens its socket next.
        if (leaves || !answered) && waited < MOMENT {
            self.deps.clock.sleep(POLL).await;
            return Ok(());
        }
        let mut holder = describe(status.as_ref(), self.directory.lock_holder());
        if !answered && status.is_some() {
            holder.push_str(", which does not answer (--if-owned force ends it)");
        }
        Err(self.held(holder))
    }

    fn held(&self, holder: String) -> Error {
        Error::Held {
            path: self.directory.path().to_owned(),
            holder,
        }
    }

    /// The owner's status, by itself or by the file it left; and whether it was by itself.
    pub(super) async fn holders_status(&self) -> (Option<Status>, bool) {
        if let Call::Connected(mut peer) = Peer::call(&self.directory).await
            && let Some(Answer::Status { status }) = peer.ask(&Ask::Status, ANSWER, &self.deps.clock).await
        {
            return (Some(*status), true);
        }
        let marker = Marker::read(&self.directory).ok().flatten();
        let hint = marker.and_then(|marker| read_hint(&self.directory, marker.checkpoint_id));
        // What a dead owner left says nothing of the living one.
        let living = hint.filter(|hint| {
            let pid = hint.status.owner.as_ref().map(|owner| owner.pid);
            self.directory
                .lock_holder()
                .is_none_or(|holder| pid == Some(holder))
        });
        (living.map(|hint| hint.status), false)
    }

    /// Calls the owner, and says what we want.
    async fn call(&mut self) -> Result<()> {
        let Call::Connected(mut peer) = Peer::call(&self.directory).await else {
            return Ok(());
        };
        let candidate = self.me.clone();
        let request = Ask::Request {
            candidate,
            mode: self.mode,
        };
        if peer.mouth.say(&request).await.is_ok() {
            if self.mode == IfOwned::Takeover {
                self.asked = Some(self.now());
                self.accepted = false;
            }
            self.peer = Some(peer);
        }
        Ok(())
    }

    fn hear(&mut self, answer: Answer) -> Result<()> {
        match answer {
            Answer::Waiting { holder } => {
                self.holder = Some(holder);
                self.say_waiting("it is owned");
            }
            Answer::Accepted { holder, batch, end } => {
                self.holder = Some(holder.clone());
                if !std::mem::replace(&mut self.accepted, true) {
                    self.tell(AcquireEvent::Asked { holder });
                    self.accept(batch, end);
                }
            }
            Answer::Refused {
                holder,
                reason,
                wait: true,
            } => {
                self.holder = Some(holder);
                self.mode = IfOwned::Wait;
                self.asked = None;
                self.tell(AcquireEvent::Degraded {
                    reason: reason.clone(),
                });
                self.say_waiting(&reason);
            }
            Answer::Refused {
                holder,
                reason,
                wait: false,
            } => {
                return Err(Error::TakeoverRefused {
                    path: self.directory.path().to_owned(),
                    holder: holder.to_string(),
                    reason,
                });
            }
            Answer::Status { .. }
            | Answer::SinkDone { .. }
            | Answer::Released
            | Answer::Stopping
            | Answer::Unknown => {}
        }
        Ok(())
    }

    fn accept(&self, batch: Option<baton_core::BatchId>, end: Position) {
        self.tell(AcquireEvent::Accepted { batch, end });
    }

    /// Says whom we wait for, at once and then every 30 s.
    fn say_waiting(&mut self, why: &str) {
        let now = self.now();
        if self.said.is_none_or(|said| now.saturating_sub(said) >= REMINDER) {
            self.said = Some(now);
            self.tell(AcquireEvent::Waiting {
                holder: self.holder.clone(),
                why: why.to_owned(),
            });
        }
    }

    async fn check_patience(&mut self) -> Result<()> {
        let now = self.now();
        // An owner that does not say who it is, is waited for all the same.
        if self.mode == IfOwned::Wait && now.saturating_sub(self.started) >= ANSWER {
            self.say_waiting("it is owned");
        }
        if self.mode == IfOwned::Wait {
            let holder = self.describe_holder();
            return self.check_wait_timeout(&holder);
        }
        let since = self.asked.unwrap_or(self.started);
        if now.saturating_sub(since) < self.options.drain_timeout {
            return Ok(());
        }
        match self.options.on_drain_timeout {
            OnDrainTimeout::Force => {
                self.mode = IfOwned::Force;
                Ok(())
            }
            OnDrainTimeout::GiveUp => {
                if let Some(peer) = &mut self.peer {
                    drop(peer.mouth.say(&Ask::Cancel).await);
                }
                Err(Error::DrainTimeout {
                    path: self.directory.path().to_owned(),
                    holder: self.describe_holder(),
                    waited: format!("{:?}", self.options.drain_timeout),
                })
            }
        }
    }

    fn check_wait_timeout(&self, holder: &str) -> Result<()> {
        let waited = self.now().saturating_sub(self.started);
        match self.options.wait_timeout {
            Some(timeout) if waited >= timeout && self.mode == IfOwned::Wait => Err(Error::WaitTimeout {
                path: self.directory.path().to_owned(),
                holder: holder.to_owned(),
                waited: format!("{timeout:?}"),
            }),
            _ => Ok(()),
        }
    }

    fn describe_holder(&self) -> String {
        match &self.holder {
            Some(holder) => holder.to_string(),
            None => describe(None, self.directory.lock_holder()),
        }
    }

    pub(super) fn has_forced(&mut self, holder: OwnerInfo) {
        self.forced = true;
        self.peer = None;
        self.tell(AcquireEvent::Forced { holder });
    }
}

/// An owner in words, with its last batch.
pub(super) fn describe(status: Option<&Status>, pid: Option<u32>) -> String {
    let Some((status, owner)) = status.and_then(|status| Some((status, status.owner.as_ref()?))) else {
        return match pid {
            Some(pid) => format!("the process with pid {pid}, which does not say who it is"),
            None => "another process, which does not say who it is".to_owned(),
        };
    };
    match status.last_committed_batch {
        Some(batch) => format!("{owner}, last batch {batch}"),
        None => format!("{owner}, no batch yet"),
    }
}
