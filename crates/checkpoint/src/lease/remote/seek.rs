//! From a candidate to an owner, where nobody can be called and nothing locked.
//!
//! | way to the fence | when |
//! |---|---|
//! | C1, C2 | the log is empty, or its last owner released: to this candidate, to nobody, or to one that does not come |
//! | C4 | renewal counter and log stood still for the whole lease, on this candidate's own clock |
//! | C5 | force |
//!
//! All are safe: a fence in the first free slot is what the old owner's next append runs into. Only what is lost differs:
//! the batch that a living owner runs.

use baton_core::{CheckpointId, OwnerId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

use super::{Asked, DRIFT, Ledger, REFRESH, checked};
use crate::lease::acquire::describe;
use crate::lease::applicant::Applicant;
use crate::lease::ground::Ground;
use crate::lease::office::Lease;
use crate::lease::shared::Shared;
use crate::lease::wire::{Answer, Ask};
use crate::object::observer::{Look, Seen, Span, Verdict};
use crate::object::slot::Budget;
use crate::object::{Letter, Loaded, Mailbox, ObjectLog, Observer, Place, Register, Renewal, probe};
use crate::protocol::{Body, Event, Log, Owner};
use crate::status::{State, Status};
use crate::{AcquireEvent, AcquireOptions, Candidate, Deps, Error, IfOwned, Result};

/// How often the next slot is looked at once an owner has agreed to hand over.
const DRAINING: Duration = Duration::from_millis(50);

/// How often an answer is looked for.
const ANSWERS: Duration = Duration::from_millis(250);

/// How often a plain start looks whether the owner is alive.
const ALIVE: Duration = Duration::from_millis(500);

/// A waiting candidate that asks for nothing says less often that it is there.
pub(super) const IDLE_REFRESH: Duration = Duration::from_secs(20);

/// Gets the checkpoint; see [`crate::acquire`].
pub(in crate::lease) async fn acquire(
    place: &Place,
    candidate: Candidate,
    options: AcquireOptions,
    deps: &Deps,
    events: mpsc::Sender<AcquireEvent>,
) -> Result<Lease> {
    if options.guard {
        return Err(Error::Location {
            text: place.to_string(),
            reason: "is on shared storage, where no other program can be guarded yet; give a local path"
                .to_owned(),
        });
    }
    probe(place, deps).await?;
    let mut seeker = Seeker::new(place, candidate, options, deps, events);
    let outcome = seeker.run().await;
    if seeker.number > 0 {
        // Whoever does not wait any more takes its letter back; one that is left is forgotten by itself.
        drop(seeker.mailbox.clear(seeker.applicant.me.id).await);
    }
    outcome
}

struct Seeker {
    applicant: Applicant,
    place: Place,
    reader: ObjectLog,
    register: Register,
    mailbox: Mailbox,
    /// The log as it was read last.
    view: Option<View>,
    watch: Option<Watch>,
    /// Our newest letter, and when it was sent.
    number: u64,
    posted: Option<(Duration, IfOwned)>,
    /// When something was looked at last that needs no hurry.
    looked: Option<Duration>,
}

/// What the log says.
struct View {
    id: Option<CheckpointId>,
    loaded: Loaded,
    log: Log,
}

/// The owner as it is watched.
struct Watch {
    observer: Observer,
    /// The first renewal that was seen; another one means that somebody lives.
    first: Option<(OwnerId, u64)>,
    lives: bool,
    expired: bool,
}

/// What the log says of a claim.
enum Standing {
    Free,
    Promised(OwnerId),
    Owned,
}

impl Seeker {
    fn new(
        place: &Place,
        candidate: Candidate,
        options: AcquireOptions,
        deps: &Deps,
        events: mpsc::Sender<AcquireEvent>,
    ) -> Self {
        Self {
            applicant: Applicant::new(place.path(), candidate, options, deps, events),
            place: place.clone(),
            reader: ObjectLog::new(place.clone(), deps.clone(), Budget::default()),
            register: Register::new(place.clone(), deps.clone()),
            mailbox: Mailbox::new(place.clone(), deps.clone()),
            view: None,
            watch: None,
            number: 0,
            posted: None,
            looked: None,
        }
    }

    async fn run(&mut self) -> Result<Lease> {
        loop {
            let mut view = match self.view.take() {
                Some(view) => view,
                None => self.load().await?,
            };
            match self.standing(&view) {
                Standing::Free => {
                    if let Some(lease) = self.claim(view).await? {
                        return Ok(lease);
                    }
                    // Somebody was faster: read again.
                    self.watch = None;
                }
                Standing::Promised(successor) => {
                    if !self.follow(&mut view).await? {
                        self.applicant
                            .hold_back(&successor.to_string(), DRAINING * 4)
                            .await?;
                    }
                    self.view = Some(view);
                }
                Standing::Owned => self.view = self.wait(view).await?,
            }
        }
    }

    /// Reads the log.
    async fn load(&mut self) -> Result<View> {
        let loaded = self.reader.load().await?;
        let id = checked(&self.place, &loaded)?;
        let log = Log::replay(loaded.records());
        if let Some(shape) = log.shape() {
            self.applicant.compare(shape)?;
        }
        if let Some(watch) = &mut self.watch
            && watch.expired
            && !watch.observer.is_at(log.free())
        {
            // It has gone on after all.
            self.watch = None;
        }
        Ok(View { id, loaded, log })
    }

    /// Takes the next slot into the view, if there is one. No answer is none.
    async fn follow(&mut self, view: &mut View) -> Result<bool> {
        let (seq, records) = match self.reader.read_next(view.log.free()).await {
            Ok(Some(slot)) => slot,
            Ok(None) => return Ok(false),
            Err(Error::Store { reason, .. }) => {
                tracing::debug!(reason, "the next slot could not be looked at");
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        view.log
            .check(&records)
            .map_err(|violation| Error::DamagedRecord {
                path: self.place.path().to_owned(),
                seq,
                reason: format!("it breaks {violation}"),
            })?;
        for record in &records {
            view.log.apply(record);
        }
        let Loaded { floor, slots, .. } = &mut view.loaded;
        slots.push((seq, records));
        let keep = self.applicant.options.min_batches_to_retain;
        let (retired, kept_from) = view.log.retire(*floor, keep);
        slots.retain(|(seq, _)| retired.binary_search(seq).is_err());
        *floor = kept_from;
        Ok(true)
    }

    fn standing(&mut self, view: &View) -> Standing {
        let expired = self.watch.as_ref().is_some_and(|watch| watch.expired);
        if view.log.owner().is_none() || self.applicant.forced {
            return Standing::Free;
        }
        match view.log.released() {
            None if expired => Standing::Free,
            None => Standing::Owned,
            Some(released) => match released.successor {
                Some(successor)
                    if successor != self.applicant.me.id && !self.applicant.is_gone(successor, false) =>
                {
                    Standing::Promised(successor)
                }
                _ => Standing::Free,
            },
        }
    }

    /// Writes the fence. `None`: somebody else was faster.
    async fn claim(&mut self, view: View) -> Result<Option<Lease>> {
        let View { id, loaded, log } = view;
        let applicant = &self.applicant;
        let deps = applicant.deps.clone();
        let id = id.unwrap_or_else(|| CheckpointId(deps.rng.uuid()));
        let (sender, requests) = mpsc::channel(16);
        let mut me = applicant.me.clone();
        me.since = deps.clock.now();
        me.epoch = Some(log.epoch().next());
        let floor = loaded.floor;
        let ledger = Ledger::new(self.place.clone(), deps.clone(), applicant.options.lease, loaded);
        let machine = Owner::candidate(applicant.me.id, applicant.candidate.handover);
        let shared = Arc::new(Shared::new(
            Ground::Remote(Box::new(ledger)),
            id,
            me,
            deps,
            sender,
            machine,
        ));
        let mut lease = Lease::new(shared, requests, floor, applicant.options.min_batches_to_retain);
        lease.perform(Event::Acquired).await?;
        let fence = applicant.fence();
        match lease
            .perform(Event::LogRead(Box::new(log), Box::new(fence)))
            .await
        {
            Ok(_) => {
                lease.takes_office();
                Ok(Some(lease))
            }
            Err(Error::Fenced { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until it is worth looking at the log again: with it where it was followed, without it where it is to be read
    /// anew.
    async fn wait(&mut self, mut view: View) -> Result<Option<View>> {
        self.applicant.holder = view.log.owner().cloned();
        if self.watch.is_none() {
            return self.begin_to_watch(view).await;
        }
        match self.applicant.mode {
            IfOwned::Fail => self.fail(view).await,
            IfOwned::Force => {
                let holder = view.log.owner().cloned();
                if let Some(holder) = holder {
                    self.applicant.has_forced(holder);
                }
                // As new as it can be: each slot that is missing costs an attempt.
                Ok(None)
            }
            IfOwned::Wait => {
                self.post().await;
                self.applicant.check_patience(None)?;
                self.applicant.deps.clock.sleep(Observer::PACE).await;
                Ok((!self.look().await?).then_some(view))
            }
            IfOwned::Takeover => {
                self.post().await;
                self.check_patience().await?;
                if self.applicant.accepted {
                    if self.follow(&mut view).await? {
                        return Ok(Some(view));
                    }
                } else if let Ok(Some(letter)) =
                    self.mailbox.read_answer::<Answer>(self.applicant.me.id).await
                {
                    self.applicant.hear(letter.message)?;
                    if self.applicant.accepted {
                        // From here on it is followed slot by slot.
                        return Ok(None);
                    }
                }
                let pause = if self.applicant.accepted {
                    DRAINING
                } else {
                    ANSWERS
                };
                self.applicant.deps.clock.sleep(pause).await;
                let now = self.applicant.now();
                if self
                    .looked
                    .is_none_or(|at| now.saturating_sub(at) >= Observer::PACE)
                {
                    self.looked = Some(now);
                    if self.look().await? {
                        return Ok(None);
                    }
                }
                Ok(Some(view))
            }
        }
    }

    async fn begin_to_watch(&mut self, view: View) -> Result<Option<View>> {
        let renewal = self.register.look().await.ok().flatten();
        let theirs = renewal.as_ref().map_or(0, |renewal| renewal.lease_ms);
        let lease = self.applicant.options.lease.max(Duration::from_millis(theirs));
        self.watch = Some(Watch {
            observer: Observer::new(lease, DRIFT, view.log.free()),
            first: renewal
                .as_ref()
                .map(|renewal| (renewal.owner.id, renewal.counter)),
            lives: false,
            expired: false,
        });
        Ok(Some(view))
    }

    /// A plain start: ends as soon as the owner is seen to live, and takes its place where it does not.
    async fn fail(&mut self, view: View) -> Result<Option<View>> {
        if self.watch.as_ref().is_some_and(|watch| watch.lives) {
            let mut status = Status::empty(self.place.to_string());
            status.owner = view.log.owner().cloned();
            status.last_committed_batch = view.log.committed().map(|committed| committed.batch);
            return Err(self.applicant.held(describe(Some(&status), None)));
        }
        self.applicant.deps.clock.sleep(ALIVE).await;
        Ok((!self.look().await?).then_some(view))
    }

    /// One look at the owner. Whether the log is to be read anew.
    async fn look(&mut self) -> Result<bool> {
        let Some(watch) = &mut self.watch else {
            return Ok(true);
        };
        let clock = &self.applicant.deps.clock;
        let asked = clock.elapsed();
        let mut moved = false;
        let seen = match watch.observer.look() {
            Look::Register => self.register.look().await.map(|renewal| {
                moved = renewal.as_ref().is_some_and(has_released);
                let known = renewal
                    .as_ref()
                    .map(|renewal| (renewal.owner.id, renewal.counter));
                watch.lives |= !moved && known.is_some() && known != watch.first;
                Seen::Register(renewal.map(|renewal| (renewal.owner.id, renewal.counter, renewal.free)))
            }),
            Look::Slot(free) => self.reader.read_next(free).await.map(|found| {
                let bodies = found
                    .iter()
                    .flat_map(|(_, records)| records)
                    .map(|record| &record.body);
                for body in bodies {
                    moved |= matches!(body, Body::Release { .. } | Body::Fence { .. });
                    watch.lives = true;
                }
                watch.lives &= !moved;
                Seen::Free(found.is_none())
            }),
        };
        let answered = clock.elapsed();
        match seen {
            Ok(seen) => {
                let verdict = watch.observer.saw(seen, Span { asked, answered });
                watch.expired = verdict == Verdict::Expired;
                Ok(moved || watch.expired)
            }
            Err(Error::Store { reason, .. }) => {
                tracing::warn!(reason, "the checkpoint's owner could not be looked at");
                watch.observer.missed();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Says what we want, and again from time to time that we still do.
    async fn post(&mut self) {
        let (now, mode) = (self.applicant.now(), self.applicant.mode);
        let refresh = if mode == IfOwned::Takeover {
            REFRESH
        } else {
            IDLE_REFRESH
        };
        if self
            .posted
            .is_some_and(|(at, said)| said == mode && now.saturating_sub(at) < refresh)
        {
            return;
        }
        if mode == IfOwned::Takeover && self.posted.is_none() {
            self.applicant.asks();
        }
        self.number += 1;
        let candidate = self.applicant.me.clone();
        let letter: Asked = Letter::new(self.number, Ask::Request { candidate, mode });
        match self.mailbox.post(self.applicant.me.id, &letter).await {
            Ok(()) => self.posted = Some((now, mode)),
            Err(error) => tracing::debug!(%error, "the owner could not be asked"),
        }
    }

    async fn check_patience(&mut self) -> Result<()> {
        let outcome = self.applicant.check_patience(None);
        if matches!(outcome, Err(Error::DrainTimeout { .. })) {
            let letter: Asked = Letter::new(self.number + 1, Ask::Cancel);
            drop(self.mailbox.post(self.applicant.me.id, &letter).await);
            // Not cleared at once: it has to be read.
            self.number = 0;
        }
        outcome
    }
}

/// Whether an owner said that it has left.
fn has_released(renewal: &Renewal) -> bool {
    serde_json::from_value::<Status>(renewal.status.clone())
        .is_ok_and(|status| status.state == State::Released)
}
