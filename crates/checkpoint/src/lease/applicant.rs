//! Who wants a checkpoint, wherever it lies: how patient it is, and what it says on the way.

use baton_core::{BatchId, OwnerId, Position};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

use super::acquire::describe;
use super::directory::host;
use super::wire::Answer;
use crate::protocol::NewFence;
use crate::{
    AcquireEvent, AcquireOptions, Candidate, Deps, Error, IfOwned, JobShape, OnDrainTimeout, OwnerInfo,
    Result,
};

/// How long a successor that was named outranks everybody else.
const SUCCESSOR: Duration = Duration::from_secs(5);

/// How often a wait that goes on is said again.
const REMINDER: Duration = Duration::from_secs(30);

/// How long an owner may take to say who it is.
const ANSWER: Duration = Duration::from_millis(700);

/// How long a plain start waits for an owner that is just leaving, or for a successor that is just coming.
pub(super) const MOMENT: Duration = Duration::from_secs(1);

/// A candidate on its way.
pub(super) struct Applicant {
    pub(super) path: PathBuf,
    pub(super) me: OwnerInfo,
    pub(super) deps: Deps,
    pub(super) candidate: Candidate,
    pub(super) options: AcquireOptions,
    events: mpsc::Sender<AcquireEvent>,
    /// What it does about an owner now; a take-over may become a wait.
    pub(super) mode: IfOwned,
    /// When it started, on the monotonic clock.
    started: Duration,
    /// Who owns the checkpoint, as far as somebody says.
    pub(super) holder: Option<OwnerInfo>,
    /// Since when the owner has been asked to hand over.
    asked: Option<Duration>,
    pub(super) accepted: bool,
    /// When waiting was said last.
    said: Option<Duration>,
    /// The successor that a release named, and since when it has been waited for.
    successor: Option<(OwnerId, Duration)>,
    /// The owner was ended by us.
    pub(super) forced: bool,
    pub(super) compared: bool,
}

impl Applicant {
    pub(super) fn new(
        path: &Path,
        candidate: Candidate,
        options: AcquireOptions,
        deps: &Deps,
        events: mpsc::Sender<AcquireEvent>,
    ) -> Self {
        let me = OwnerInfo {
            id: candidate.owner,
            host: host(),
            pid: std::process::id(),
            version: candidate.version.clone(),
            epoch: None,
            since: deps.clock.now(),
        };
        Self {
            path: path.to_owned(),
            me,
            deps: deps.clone(),
            mode: options.if_owned,
            candidate,
            options,
            events,
            started: deps.clock.elapsed(),
            holder: None,
            asked: None,
            accepted: false,
            said: None,
            successor: None,
            forced: false,
            compared: false,
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.deps.clock.elapsed()
    }

    /// How long it has been on its way.
    pub(super) fn waited(&self) -> Duration {
        self.now().saturating_sub(self.started)
    }

    pub(super) fn tell(&self, event: AcquireEvent) {
        drop(self.events.try_send(event));
    }

    /// What its fence says.
    pub(super) fn fence(&self) -> NewFence {
        NewFence {
            host: self.me.host.clone(),
            pid: self.me.pid,
            shape: self.candidate.shape.clone(),
            forced: self.forced,
            // Looked at just before.
            successor_is_gone: true,
        }
    }

    /// Compares our job with the one that the checkpoint knows.
    pub(super) fn compare(&mut self, old: &JobShape) -> Result<()> {
        if std::mem::replace(&mut self.compared, true) {
            return Ok(());
        }
        let found = self.candidate.shape.compare(old);
        if !found.refusals.is_empty() && !self.options.accept_changes {
            return Err(Error::Incompatible {
                path: self.path.clone(),
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
    pub(super) fn is_gone(&mut self, successor: OwnerId, is_dead: bool) -> bool {
        let now = self.now();
        let since = match self.successor {
            Some((id, since)) if id == successor => since,
            _ => {
                self.successor = Some((successor, now));
                now
            }
        };
        is_dead || now.saturating_sub(since) >= SUCCESSOR
    }

    /// Lets a successor go first, for a while.
    pub(super) async fn hold_back(&mut self, who: &str, pause: Duration) -> Result<()> {
        let waited = self
            .successor
            .map_or(Duration::ZERO, |(_, since)| self.now().saturating_sub(since));
        if self.mode == IfOwned::Fail && waited >= MOMENT {
            return Err(self.held(format!("{who}, to whom it is being handed over")));
        }
        if self.mode != IfOwned::Fail {
            self.say_waiting(&format!("it is being handed over to {who}"));
        }
        self.check_wait_timeout(who)?;
        self.deps.clock.sleep(pause).await;
        Ok(())
    }

    pub(super) fn held(&self, holder: String) -> Error {
        Error::Held {
            path: self.path.clone(),
            holder,
        }
    }

    /// The owner is being asked to hand over, from now on.
    pub(super) fn asks(&mut self) {
        self.asked = Some(self.now());
        self.accepted = false;
    }

    /// Takes what the owner says.
    pub(super) fn hear(&mut self, answer: Answer) -> Result<()> {
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
                    path: self.path.clone(),
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

    fn accept(&self, batch: Option<BatchId>, end: Position) {
        self.tell(AcquireEvent::Accepted { batch, end });
    }

    /// Says whom we wait for, at once and then every 30 s.
    pub(super) fn say_waiting(&mut self, why: &str) {
        let now = self.now();
        if self.said.is_none_or(|said| now.saturating_sub(said) >= REMINDER) {
            self.said = Some(now);
            self.tell(AcquireEvent::Waiting {
                holder: self.holder.clone(),
                why: why.to_owned(),
            });
        }
    }

    /// Whether to go on waiting for an owner; `pid` is its process, if somebody knows.
    ///
    /// # Errors
    /// When the time is over. After [`Error::DrainTimeout`] the request is to be withdrawn.
    pub(super) fn check_patience(&mut self, pid: Option<u32>) -> Result<()> {
        // An owner that does not say who it is, is waited for all the same.
        if self.mode == IfOwned::Wait && self.waited() >= ANSWER {
            self.say_waiting("it is owned");
        }
        if self.mode == IfOwned::Wait {
            return self.check_wait_timeout(&self.describe_holder(pid));
        }
        let since = self.asked.unwrap_or(self.started);
        if self.now().saturating_sub(since) < self.options.drain_timeout {
            return Ok(());
        }
        match self.options.on_drain_timeout {
            OnDrainTimeout::Force => {
                self.mode = IfOwned::Force;
                Ok(())
            }
            OnDrainTimeout::GiveUp => Err(Error::DrainTimeout {
                path: self.path.clone(),
                holder: self.describe_holder(pid),
                waited: format!("{:?}", self.options.drain_timeout),
            }),
        }
    }

    fn check_wait_timeout(&self, holder: &str) -> Result<()> {
        match self.options.wait_timeout {
            Some(timeout) if self.waited() >= timeout && self.mode == IfOwned::Wait => {
                Err(Error::WaitTimeout {
                    path: self.path.clone(),
                    holder: holder.to_owned(),
                    waited: format!("{timeout:?}"),
                })
            }
            _ => Ok(()),
        }
    }

    fn describe_holder(&self, pid: Option<u32>) -> String {
        match &self.holder {
            Some(holder) => holder.to_string(),
            None => describe(None, pid),
        }
    }

    pub(super) fn has_forced(&mut self, holder: OwnerInfo) {
        self.forced = true;
        self.tell(AcquireEvent::Forced { holder });
    }
}
