//! Owning a checkpoint.

use baton_core::{CheckpointId, CommitPermit, Epoch, Marker, OwnerId, Position, Receipt, WriteId};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::mpsc;

use super::ground::{Entry, NotWritten};
use super::server::Server;
use super::shared::{Over, Shared};
use crate::protocol::{Action, Body, End, Event, Record, Violation};
use crate::{
    Error, HandOver, OwnerInfo, PlanDraft, Planned, PositionReason, Recovery, Report, Request, Result, Resume,
};

/// The right to a checkpoint, as long as it lives.
///
/// Every method feeds the protocol's state machine and carries out what it decides. The lease ends by
/// [`Lease::release`], which leaves the checkpoint clean, or by being dropped, which leaves it as it is: the next owner
/// resumes from the log. Either way the lock is free afterwards.
#[derive(Debug)]
pub struct Lease {
    shared: Arc<Shared>,
    recovery: Recovery,
    requests: mpsc::Receiver<Request>,
    server: Option<Server>,
    /// What the hand-over to us cost, until a record carries it.
    handover: Option<HandOver>,
    /// The first slot from which all are kept.
    floor: u64,
    keep: u64,
}

impl Lease {
    /// A lease whose fence is not written yet.
    pub(super) fn new(shared: Arc<Shared>, requests: mpsc::Receiver<Request>, floor: u64, keep: u64) -> Self {
        let recovery = shared.look(|owner| owner.log().recovery(shared.checkpoint));
        Self {
            shared,
            recovery,
            requests,
            server: None,
            handover: None,
            floor,
            keep,
        }
    }

    /// The fence is durable: from now on it may be spoken to.
    pub(super) fn takes_office(&mut self) {
        self.recovery = self
            .shared
            .look(|owner| owner.log().recovery(self.shared.checkpoint));
        self.server = Server::start(&self.shared);
        self.shared.publish();
    }

    /// The checkpoint.
    #[must_use]
    pub fn checkpoint(&self) -> CheckpointId {
        self.shared.checkpoint
    }

    /// The fencing token: each owner's is the one before plus one.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.shared.look(crate::protocol::Owner::epoch)
    }

    /// What was found in the log when it was claimed.
    #[must_use]
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Writes down where the next batch starts. On a fresh checkpoint this comes before the first poll: otherwise a
    /// crash before batch 0 would resolve `latest` again and lose what came in between.
    ///
    /// # Errors
    /// [`Error::Fenced`] if the checkpoint is no longer ours, [`Error::Misuse`] while a batch is planned, or what the
    /// store says.
    ///
    /// # Cancel safety
    /// Whether the record is durable is not known; the lease is of no more use.
    pub async fn record_position(&mut self, next: Position, reason: PositionReason) -> Result<()> {
        self.perform(Event::PositionDue(next, reason)).await.map(drop)
    }

    /// Writes a batch down before it runs (B1). Partitions that have no part in it are added, so that the plan says of
    /// each where it stands.
    ///
    /// # Errors
    /// [`Error::Discontinuous`] if it does not start where the log says, [`Error::Fenced`] if the checkpoint is no
    /// longer ours, [`Error::Misuse`] while another is planned or before a position is recorded, or what the store says.
    ///
    /// # Cancel safety
    /// Whether the record is durable is not known; the lease is of no more use.
    pub async fn plan(&mut self, draft: PlanDraft) -> Result<Planned> {
        let actions = self.perform(Event::PlanDue(draft)).await?;
        planned_of(actions).ok_or_else(|| misuse("a plan was not taken"))
    }

    /// Decides how to go on, given what the sink says it has published (R4, R5). The sink must have been fenced with
    /// this epoch before its marker was read.
    ///
    /// # Errors
    /// [`Error::Halt`] if sink and log contradict each other, [`Error::Fenced`] if the checkpoint is no longer ours.
    pub fn resume(&mut self, marker: Marker) -> Result<Resume> {
        let mut resume = None;
        let actions = self.shared.step(Event::MarkerRead(marker));
        if actions.iter().any(|action| matches!(action, Action::Halt { .. })) {
            // An owner that was replaced meanwhile knows an old log: that explains everything.
            self.confirm()?;
        }
        for action in self.settle(actions)? {
            resume = Some(match action {
                Action::Idle => Resume::Idle,
                Action::Run(planned) => Resume::Rerun(planned),
                Action::Adopt(planned) => Resume::Adopt(planned),
                _ => continue,
            });
        }
        resume.ok_or_else(|| misuse("the lease has no answer"))
    }

    /// Looks whether the checkpoint is still ours.
    ///
    /// # Errors
    /// [`Error::Fenced`] if it is not.
    pub fn confirm(&mut self) -> Result<()> {
        let lost = if self.shared.ground.is_in_place() {
            match self.shared.look(|owner| owner.end().cloned()) {
                None => return Ok(()),
                Some(end) => vec![Action::Exit(end)],
            }
        } else {
            self.shared.step(self.replaced())
        };
        self.settle(lost).map(drop)
    }

    /// Gives the right to publish a planned batch (B4), after a last look whether the checkpoint is still ours. Nothing
    /// should come between this and the publication.
    ///
    /// Asking again for the same batch before [`Lease::resume`] only confirms: the caller owes that it publishes under
    /// the second permit only after it has asked the sink what became of the first.
    ///
    /// # Errors
    /// [`Error::Fenced`] if it is not ours, [`Error::Misuse`] if the batch is not the planned one, or is adopted.
    ///
    /// # Cancel safety
    /// Nothing is changed before the last look is over.
    pub async fn permit(&mut self, planned: &Planned) -> Result<CommitPermit> {
        self.confirm()?;
        let free = self.shared.look(|owner| owner.log().free());
        if let Some(by) = self.shared.ground.look_again(free).await? {
            let lost = self.shared.step(Event::LockLost(by));
            self.settle(lost)?;
        }
        let plan = planned.write_id;
        if !self.shared.look(|owner| owner.is_publishing(plan)) {
            let actions = self.shared.step(Event::PermitAsked(plan));
            self.settle(actions)?;
        }
        Ok(crate::protocol::permit(self.checkpoint(), planned, self.epoch()))
    }

    /// Writes down that a batch is published (B5), and the next one's plan where it is due already: one synced write.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the batch had no permit and was not adopted; otherwise as [`Lease::plan`].
    ///
    /// # Cancel safety
    /// Whether the record is durable is not known; the lease is of no more use.
    pub async fn commit(
        &mut self,
        planned: Planned,
        receipt: &Receipt,
        next: Option<PlanDraft>,
    ) -> Result<Option<Planned>> {
        let committed = Event::SinkCommitted(planned.write_id, receipt.clone(), next);
        let actions = self.perform(committed).await?;
        self.shared.committed.send_replace(Some(planned.batch));
        Ok(planned_of(actions))
    }

    /// Leaves the checkpoint clean, to `successor` if somebody has asked for it.
    ///
    /// # Errors
    /// [`Error::Misuse`] while a batch is planned, [`Error::Fenced`] if the checkpoint is no longer ours, or what the
    /// store says. The lock is free in any case.
    ///
    /// # Cancel safety
    /// The lease is dropped; the release may be in the log or not.
    pub async fn release(mut self, successor: Option<OwnerId>) -> Result<()> {
        self.perform(Event::ReleaseAsked(successor)).await?;
        // Only now: whoever hears it finds the lock free.
        self.shared.over.send_replace(Over::Released);
        if let Some(server) = self.server.take() {
            server.finish(&self.shared.deps.clock).await;
        }
        Ok(())
    }

    /// Looks whether the checkpoint is still ours, and leaves everything as it is: the lock stays until
    /// [`Lease::confirm`] or [`Lease::surrender`] gives it up. For whoever has to end something first.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.shared.ground.is_in_place() && self.shared.look(|owner| owner.end().is_none())
    }

    /// Who wants the checkpoint at once. Only a guard is asked: a job gives it up by itself, between two batches.
    #[must_use]
    pub fn wanted_by(&self) -> Option<String> {
        self.shared.wanted_by()
    }

    /// Ends a guard's ownership once what it ran has ended: gives the checkpoint up to whoever takes it by force, or finds
    /// that it is lost already, or releases it to `successor`.
    ///
    /// # Errors
    /// [`Error::Fenced`] in the first two cases; otherwise as [`Lease::release`].
    ///
    /// # Cancel safety
    /// As [`Lease::release`].
    pub async fn surrender(mut self, successor: Option<OwnerId>) -> Result<()> {
        if let Some(by) = self.wanted_by() {
            self.perform(Event::AbandonAsked(by)).await?;
        }
        self.confirm()?;
        self.release(successor).await
    }

    /// A copy of the lock for a child to inherit: while one lives that has it the checkpoint stays locked, even if this
    /// process is killed. Close it when the child has been started.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn inheritable_lock(&self) -> io::Result<OwnedFd> {
        self.shared.ground.inheritable()
    }

    /// Lets the next record that is written carry what the hand-over to this owner cost. Writes nothing by itself.
    pub fn note_hand_over(&mut self, handover: HandOver) {
        self.handover = Some(handover);
    }

    /// What others ask of this owner. While a hand-over request waits, the candidate has its answer already; the job
    /// finishes its batch and calls [`Lease::release`] with the candidate's id.
    pub const fn requests(&mut self) -> &mut mpsc::Receiver<Request> {
        &mut self.requests
    }

    /// Says something for `status`. Never waits.
    pub fn report(&self, report: Report) {
        self.shared.report(report);
        self.shared.publish();
    }

    /// Feeds an event, and carries out what follows until nothing does. Returns what is left for the caller.
    pub(super) async fn perform(&mut self, event: Event) -> Result<Vec<Action>> {
        let mut queue = VecDeque::from(self.shared.step(event));
        let mut left = Vec::new();
        while let Some(action) = queue.pop_front() {
            match action {
                Action::Append(bodies) => queue.extend(self.append(bodies).await?),
                Action::Unlock => {
                    self.shared.ground.close(|| self.last_hint()).await;
                }
                other => left.push(other),
            }
        }
        self.settle(left)
    }

    async fn append(&mut self, bodies: Vec<Body>) -> Result<Vec<Action>> {
        if !self.shared.ground.is_in_place() {
            return Ok(self.shared.step(self.replaced()));
        }
        let records = self.stamp(bodies);
        if let Err(Violation { id, reason }) = self.shared.look(|owner| owner.log().check(&records)) {
            // In production the job ends with an error before anything is written; a test should not get that far.
            debug_assert!(false, "{id}: {reason}");
            tracing::error!(invariant = id, reason, "baton_invariant_violations_total");
            drop(self.shared.step(Event::AppendFailed(format!("{id}: {reason}"))));
            self.shared.ground.close_soon();
            return Err(Error::Invariant {
                invariant: id,
                reason,
            });
        }
        let commits = records
            .iter()
            .any(|record| matches!(record.body, Body::Commit { .. }));
        let (retired, floor) = if commits {
            let (floor, keep) = (self.floor, self.keep);
            self.shared.change(|owner| owner.log_mut().retire(floor, keep))
        } else {
            (Vec::new(), self.floor)
        };
        let entry = Entry {
            seq: records.first().map_or(0, |record| record.seq),
            records: &records,
            retired,
            floor,
        };
        match self.shared.ground.append(entry).await {
            Ok(()) => {
                self.floor = floor;
                let actions = self.shared.step(Event::Appended(records));
                self.shared.publish();
                Ok(actions)
            }
            // Whoever took the checkpoint closed it before we came.
            Err(_) if self.shared.look(|owner| owner.end().is_some()) => Ok(self
                .shared
                .look(|owner| owner.end().cloned())
                .map(Action::Exit)
                .into_iter()
                .collect()),
            Err(NotWritten::Lost(by)) => Ok(self.shared.step(Event::AppendLost(by))),
            Err(NotWritten::Failed(error)) => {
                drop(self.shared.step(Event::AppendFailed(error.to_string())));
                Err(error)
            }
        }
    }

    fn stamp(&mut self, bodies: Vec<Body>) -> Vec<Record> {
        let mut handover = self.handover.take();
        let deps = &self.shared.deps;
        let (seq, epoch) = self.shared.look(|owner| (owner.log().free(), owner.epoch()));
        let at = deps.clock.now();
        let names = |body: &Body| seq == 0 && matches!(body, Body::Fence { .. });
        bodies
            .into_iter()
            .map(|body| Record {
                seq,
                epoch,
                // The first record of all names the checkpoint: shared storage needs no other place for that.
                write_id: WriteId(if names(&body) {
                    self.shared.checkpoint.0
                } else {
                    deps.rng.uuid()
                }),
                owner: self.shared.me.id,
                at,
                version: self.shared.me.version.clone(),
                body,
                handover: handover.take(),
            })
            .collect()
    }

    /// Turns decisions against us into errors, and passes on what is for the job.
    fn settle(&self, actions: Vec<Action>) -> Result<Vec<Action>> {
        let path = || self.shared.ground.path().to_owned();
        let mut left = Vec::new();
        let mut failed = None;
        for action in actions {
            match action {
                Action::Unlock => self.shared.ground.close_soon(),
                Action::Tell(request) => self.shared.tell(request),
                Action::Exit(End::Released) => {}
                Action::Exit(End::Fenced(reason)) => failed = Some(Error::Fenced { path: path(), reason }),
                Action::Exit(End::Poisoned(reason)) => failed = Some(Error::Store { path: path(), reason }),
                Action::Exit(End::HeldBack(_)) => failed = Some(misuse("a lease was made for somebody else")),
                Action::Reject(what) => failed = Some(misuse(what)),
                Action::Halt { found, expected } => {
                    failed = Some(Error::Halt {
                        path: path(),
                        found,
                        expected,
                    });
                }
                Action::Gap(gap) => {
                    failed = Some(Error::Discontinuous {
                        path: path(),
                        batch: gap.batch,
                        partition: gap.partition,
                        found: gap.found,
                        expected: gap.expected,
                    });
                }
                other => left.push(other),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(left),
        }
    }

    fn replaced(&self) -> Event {
        let path = self.shared.ground.path().display();
        Event::LockLost(format!("`{path}` was moved or replaced by another directory"))
    }

    fn last_hint(&self) -> Vec<u8> {
        let expected = self.shared.look(|owner| {
            let named = owner.log().released().and_then(|released| released.successor);
            owner
                .successor()
                .filter(|candidate| Some(candidate.id) == named)
                .cloned()
        });
        self.shared.hint(expected)
    }

    /// As if the process stood still: it does not renew any more.
    #[cfg(all(test, feature = "object-store"))]
    pub(super) fn sleeps_for_tests(&mut self) {
        self.server = None;
    }

    #[cfg(test)]
    pub(super) fn shared_for_tests(&self) -> &Shared {
        &self.shared
    }

    /// This owner, as it describes itself.
    #[must_use]
    pub fn owner(&self) -> &OwnerInfo {
        &self.shared.me
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The server ends after this: whoever hears the line break finds the lock free.
        self.shared.ground.close_now();
    }
}

fn planned_of(actions: Vec<Action>) -> Option<Planned> {
    actions.into_iter().find_map(|action| match action {
        Action::Run(planned) => Some(planned),
        _ => None,
    })
}

fn misuse(what: &str) -> Error {
    Error::Misuse {
        what: what.to_owned(),
    }
}
