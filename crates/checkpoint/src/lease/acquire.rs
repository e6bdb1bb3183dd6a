//! From a candidate to an owner.

use baton_core::OwnerId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

use super::applicant::{Applicant, MOMENT};
use super::directory::{Directory, Tenant, is_alive};
use super::ground::Ground;
use super::marker::{Marker, read_hint};
use super::office::Lease;
use super::read::look;
use super::shared::Shared;
use super::wire::{Answer, Ask, Call, Peer};
use crate::protocol::{Event, Owner};
use crate::status::{Hint, State, Status};
use crate::store::{Keeper, verify};
use crate::{AcquireEvent, AcquireOptions, Candidate, Deps, Error, IfOwned, Location, OwnerInfo, Result};

/// How often the lock is tried. Blocking in `flock` would wake candidates in an order that nobody chose.
const POLL: Duration = Duration::from_millis(20);

/// How long an owner may take to say who it is.
const ANSWER: Duration = Duration::from_millis(700);

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
    #[cfg(feature = "object-store")]
    if let Some(place) = location.place() {
        return Box::pin(super::remote::acquire(place, candidate, options, deps, events)).await;
    }
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

/// A candidate for a directory.
pub(super) struct Seeker {
    pub(super) directory: Arc<Directory>,
    pub(super) applicant: Applicant,
    /// The owner it talks to.
    peer: Option<Box<Peer>>,
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
        Ok(Self {
            directory: Arc::new(directory),
            applicant: Applicant::new(location.path(), candidate, options, deps, events),
            peer: None,
        })
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
                let marker = Marker::new(baton_core::CheckpointId(self.applicant.deps.rng.uuid()));
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
            && successor != self.applicant.me.id
            && !self.applicant.forced
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
            self.applicant.compare(old)?;
        }
        if let Some(successor) = log.released().and_then(|released| released.successor)
            && successor != self.applicant.me.id
            && !self.applicant.forced
            && !self.is_gone(successor, hint.as_ref())
        {
            drop(keeper);
            return self.hold_back(successor, hint.as_ref()).await.map(|()| None);
        }

        let (sender, requests) = mpsc::channel(16);
        let mut me = self.applicant.me.clone();
        me.since = self.applicant.deps.clock.now();
        me.epoch = Some(log.epoch().next());
        let shared = Arc::new(Shared::new(
            Ground::Local(Arc::clone(&self.directory), keeper),
            id,
            me,
            self.applicant.deps.clone(),
            sender,
            Owner::candidate(self.applicant.me.id, self.applicant.candidate.handover),
        ));
        let fence = self.applicant.fence();
        let mut lease = Lease::new(
            shared,
            requests,
            contents.floor,
            self.applicant.options.min_batches_to_retain,
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

    /// Whether a successor that a release named will not come.
    fn is_gone(&mut self, successor: OwnerId, hint: Option<&Hint>) -> bool {
        let info = hint.and_then(|hint| hint.expects(successor));
        let is_dead = info.is_some_and(|info| info.host == self.applicant.me.host && !is_alive(info.pid));
        self.applicant.is_gone(successor, is_dead)
    }

    async fn hold_back(&mut self, successor: OwnerId, hint: Option<&Hint>) -> Result<()> {
        let expected = hint.and_then(|hint| hint.expects(successor));
        let who = expected.map_or_else(|| successor.to_string(), ToString::to_string);
        self.applicant.hold_back(&who, POLL).await
    }

    // ---- without the lock ----

    /// Waits until it is worth trying the lock again.
    async fn wait(&mut self) -> Result<()> {
        if !self.directory.is_in_place() {
            self.directory = Arc::new(Directory::create(self.directory.path(), self.directory.tenant())?);
            self.peer = None;
            return Ok(());
        }
        if self.applicant.mode == IfOwned::Fail {
            return self.fail().await;
        }
        if !self.applicant.compared {
            // Before anybody is disturbed.
            if let Some(shape) = look(&self.directory)
                .await?
                .and_then(|look| look.contents.log().shape().cloned())
            {
                self.applicant.compare(&shape)?;
            }
        }
        if self.applicant.mode == IfOwned::Force {
            return self.force().await;
        }
        if self.peer.is_none() {
            self.call().await?;
        }
        let heard = match &mut self.peer {
            None => {
                self.applicant.deps.clock.sleep(POLL).await;
                None
            }
            Some(peer) => {
                tokio::select! {
                    biased;
                    heard = peer.ears.hear::<Answer>() => Some(heard),
                    () = self.applicant.deps.clock.sleep(POLL) => None,
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
            Some(Some(answer)) => self.applicant.hear(answer)?,
        }
        self.check_patience().await
    }

    /// A plain start: says who has it, and ends.
    async fn fail(&mut self) -> Result<()> {
        let waited = self.applicant.waited();
        let (status, answered) = self.holders_status().await;
        let leaves = matches!(&status, Some(status) if status.state != State::Running);
        // One that has just claimed it opens its socket next.
        if (leaves || !answered) && waited < MOMENT {
            self.applicant.deps.clock.sleep(POLL).await;
            return Ok(());
        }
        let mut holder = describe(status.as_ref(), self.directory.lock_holder());
        if !answered && status.is_some() {
            holder.push_str(", which does not answer (--if-owned force ends it)");
        }
        Err(self.applicant.held(holder))
    }

    /// The owner's status, by itself or by the file it left; and whether it was by itself.
    pub(super) async fn holders_status(&self) -> (Option<Status>, bool) {
        if let Call::Connected(mut peer) = Peer::call(&self.directory).await
            && let Some(Answer::Status { status }) =
                peer.ask(&Ask::Status, ANSWER, &self.applicant.deps.clock).await
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
        let candidate = self.applicant.me.clone();
        let request = Ask::Request {
            candidate,
            mode: self.applicant.mode,
        };
        if peer.mouth.say(&request).await.is_ok() {
            if self.applicant.mode == IfOwned::Takeover {
                self.applicant.asks();
            }
            self.peer = Some(peer);
        }
        Ok(())
    }

    async fn check_patience(&mut self) -> Result<()> {
        let outcome = self.applicant.check_patience(self.directory.lock_holder());
        if matches!(outcome, Err(Error::DrainTimeout { .. }))
            && let Some(peer) = &mut self.peer
        {
            drop(peer.mouth.say(&Ask::Cancel).await);
        }
        outcome
    }

    pub(super) fn has_forced(&mut self, holder: OwnerInfo) {
        self.peer = None;
        self.applicant.has_forced(holder);
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
