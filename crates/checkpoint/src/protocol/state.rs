//! What an owner does next.

use baton_core::{BatchId, Epoch, Marker, OwnerId, Position, Receipt, SinkRef, WriteId};

use super::batch::{self, Discontinuity};
use super::claim::{Claim, Claimant, Refusal, answer_takeover, claim};
use super::log::Log;
use super::record::{Body, Record};
use crate::{JobShape, OwnerInfo, PlanDraft, Planned, PositionReason, Request};

/// One process that wants, has or had a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    id: OwnerId,
    /// Whether it honours take-over requests.
    handover: bool,
    epoch: Epoch,
    log: Log,
    phase: Phase,
    /// The plan that a permit is out for, or that was adopted: only this one may be committed.
    published: Option<WriteId>,
    /// A permit is out: the sink may be publishing at this moment.
    publishing: bool,
    /// Who has asked for the checkpoint.
    candidate: Option<OwnerInfo>,
    /// Who wants the checkpoint at once, as soon as nothing is being published.
    abandon: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Candidate,
    Reading,
    Appending,
    Owner,
    Ended(End),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Somebody else is to be the owner.
    HeldBack(OwnerId),
    /// It released.
    Released,
    /// It lost the checkpoint; why.
    Fenced(String),
    /// Whether its last record is durable is not known; why.
    Poisoned(String),
}

/// What a fence says of its writer, and what the candidate knows.
#[derive(Clone, Debug)]
pub struct NewFence {
    /// Its machine.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// Its job.
    pub shape: JobShape,
    /// Whether it ended the owner before.
    pub forced: bool,
    /// Whether a named successor is gone, or has not come in time.
    pub successor_is_gone: bool,
}

/// What happens to an owner.
#[derive(Clone, Debug)]
pub enum Event {
    /// It got the lock.
    Acquired,
    /// The log was read (R1).
    LogRead(Box<Log>, Box<NewFence>),
    /// The records are durable.
    Appended(Vec<Record>),
    /// Somebody else has the slot.
    AppendLost(String),
    /// Whether the records are durable is not known.
    AppendFailed(String),
    /// The sink was fenced and asked (R2, R3).
    MarkerRead(Marker),
    /// A position is to be written down.
    PositionDue(Position, PositionReason),
    /// A batch is to be planned (B1).
    PlanDue(PlanDraft),
    /// A batch is ready to be published (B4).
    PermitAsked(WriteId),
    /// A batch is published, or adopted; the next one may be due already (B5).
    SinkCommitted(WriteId, Receipt, Option<PlanDraft>),
    /// Somebody asks for a hand-over.
    HandOverAsked(OwnerInfo),
    /// And has gone.
    HandOverWithdrawn(OwnerId),
    /// Somebody asks for an end.
    StopAsked {
        /// Without finishing the running batch.
        now: bool,
    },
    /// Somebody asks to be given the checkpoint at once; who, in words.
    AbandonAsked(String),
    /// The batch is done, and so is the owner.
    ReleaseAsked(Option<OwnerId>),
    /// The lock is no longer what it was; how.
    LockLost(String),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the log.
    ReadLog,
    /// Write these into the first free slot, in one go.
    Append(Vec<Body>),
    /// Shut older epochs out of this place of the sink; `None`: of the job's own.
    FenceSink(Option<SinkRef>),
    /// Ask the sink what it has.
    ReadMarker,
    /// Run this batch.
    Run(Planned),
    /// Commit this batch, its output is there.
    Adopt(Planned),
    /// Nothing is pending.
    Idle,
    /// The sink and the log contradict each other.
    Halt {
        /// What the sink says.
        found: String,
        /// What the log has.
        expected: String,
    },
    /// The batch may be published.
    CommitSink(Planned),
    /// Tell the candidate that it will be given the checkpoint.
    Accept {
        /// The running batch.
        batch: Option<BatchId>,
        /// Where the next one will start.
        end: Position,
    },
    /// Tell the candidate that it will not.
    Refuse(Refusal),
    /// Tell the job.
    Tell(Request),
    /// Close the log and let go of the lock.
    Unlock,
    /// It is over.
    Exit(End),
    /// A plan would leave a gap or repeat records.
    Gap(Discontinuity),
    /// This does not fit; a bug of the caller.
    Reject(&'static str),
}

impl Owner {
    /// A process that wants a checkpoint.
    #[must_use]
    pub fn candidate(id: OwnerId, handover: bool) -> Self {
        Self {
            id,
            handover,
            epoch: Epoch(0),
            log: Log::default(),
            phase: Phase::Candidate,
            published: None,
            publishing: false,
            candidate: None,
            abandon: None,
        }
    }

    /// The log as this owner knows it.
    #[must_use]
    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// Mutable, for retention.
    #[cfg(feature = "rocksdb")]
    pub(crate) const fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    /// Its fencing token.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether a permit for this plan is out.
    #[must_use]
    pub fn is_publishing(&self, plan: WriteId) -> bool {
        self.publishing && self.published == Some(plan) && self.phase == Phase::Owner
    }

    /// Who has asked for the checkpoint.
    #[must_use]
    pub const fn successor(&self) -> Option<&OwnerInfo> {
        self.candidate.as_ref()
    }

    /// How it ended, if it has.
    #[must_use]
    pub const fn end(&self) -> Option<&End> {
        match &self.phase {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }
}

/// Decides what an owner does about an event. Pure: same state and event, same answer.
#[must_use]
pub fn step(mut owner: Owner, event: Event) -> (Owner, Vec<Action>) {
    let actions = owner.take(event);
    (owner, actions)
}

impl Owner {
    fn take(&mut self, event: Event) -> Vec<Action> {
        if let Phase::Ended(end) = &self.phase {
            return match event {
                // Messages may always be late.
                Event::HandOverAsked(_) => vec![Action::Refuse(Refusal::Leaving)],
                Event::HandOverWithdrawn(_) | Event::StopAsked { .. } | Event::AbandonAsked(_) => Vec::new(),
                _ => vec![Action::Exit(end.clone())],
            };
        }
        match event {
            Event::Acquired if self.phase == Phase::Candidate => {
                self.phase = Phase::Reading;
                vec![Action::ReadLog]
            }
            Event::LogRead(log, fence) if self.phase == Phase::Reading => self.claim(*log, *fence),
            Event::Appended(records) if self.phase == Phase::Appending => self.appended(&records),
            Event::AppendLost(why) => self.ends(End::Fenced(why)),
            Event::AppendFailed(why) => self.ends(End::Poisoned(why)),
            Event::LockLost(why) => self.ends(End::Fenced(why)),
            Event::MarkerRead(marker) if self.phase == Phase::Owner => self.resume(&marker),
            Event::PositionDue(next, reason) if self.phase == Phase::Owner => match self.log.pending() {
                Some(_) => vec![Action::Reject(
                    "a position was to be recorded while a batch is planned",
                )],
                None => self.append(vec![Body::Position { next, reason }]),
            },
            Event::PlanDue(draft) if self.phase == Phase::Owner => self.plan(draft),
            Event::PermitAsked(plan) if self.phase == Phase::Owner => self.permit(plan),
            Event::SinkCommitted(plan, receipt, next) if self.phase == Phase::Owner => {
                self.commit(plan, receipt, next)
            }
            Event::ReleaseAsked(successor) if self.phase == Phase::Owner => match self.log.pending() {
                Some(_) => vec![Action::Reject("a release was asked for while a batch is planned")],
                None => self.append(vec![Body::Release {
                    after: self.log.committed().map(|committed| committed.batch),
                    next: self.log.next().cloned(),
                    successor,
                }]),
            },
            Event::HandOverAsked(candidate) => self.hand_over(candidate),
            Event::HandOverWithdrawn(id) => {
                if self
                    .candidate
                    .as_ref()
                    .is_some_and(|candidate| candidate.id == id)
                {
                    self.candidate = None;
                    vec![Action::Tell(Request::HandOverWithdrawn)]
                } else {
                    Vec::new()
                }
            }
            Event::StopAsked { now } => vec![Action::Tell(Request::Stop { now })],
            Event::AbandonAsked(by) => {
                self.abandon = Some(by);
                self.yield_if_asked()
            }
            _ if self.phase == Phase::Appending => {
                // Only one append is ever in flight: whether an abandoned one is durable is not known.
                self.ends(End::Poisoned(
                    "a write was abandoned while it was under way".to_owned(),
                ))
            }
            _ => vec![Action::Reject(
                "the lease was used before the checkpoint was owned",
            )],
        }
    }

    fn claim(&mut self, log: Log, fence: NewFence) -> Vec<Action> {
        let NewFence {
            host,
            pid,
            shape,
            forced,
            successor_is_gone,
        } = fence;
        let candidate = Claimant {
            id: self.id,
            forced,
            successor_is_gone,
        };
        match claim(&log, candidate) {
            Claim::Fence { reason, replaces } => {
                self.epoch = log.epoch().next();
                self.log = log;
                self.append(vec![Body::Fence {
                    reason,
                    host,
                    pid,
                    replaces,
                    shape,
                }])
            }
            Claim::HoldBack { successor } => {
                self.log = log;
                self.ends(End::HeldBack(successor))
            }
        }
    }

    fn append(&mut self, bodies: Vec<Body>) -> Vec<Action> {
        self.phase = Phase::Appending;
        vec![Action::Append(bodies)]
    }

    fn ends(&mut self, end: End) -> Vec<Action> {
        self.phase = Phase::Ended(end.clone());
        vec![Action::Unlock, Action::Exit(end)]
    }

    fn appended(&mut self, records: &[Record]) -> Vec<Action> {
        self.phase = Phase::Owner;
        let mut actions = Vec::new();
        for record in records {
            self.log.apply(record);
            match &record.body {
                // No candidate ever fences a sink: only now is the epoch ours.
                Body::Fence { .. } => {
                    let at = self.log.pending().map(|pending| pending.sink.clone());
                    actions.extend([Action::FenceSink(at), Action::ReadMarker]);
                }
                Body::Position { .. } => {}
                Body::Plan { .. } => actions.extend(self.log.pending().cloned().map(Action::Run)),
                Body::Commit { .. } => {
                    self.published = None;
                    self.publishing = false;
                }
                Body::Release { .. } => return self.ends(End::Released),
            }
        }
        actions.extend(self.yield_if_asked());
        actions
    }

    fn resume(&mut self, marker: &Marker) -> Vec<Action> {
        // Whatever was being published is decided: the marker was read after the sink was fenced.
        self.published = None;
        self.publishing = false;
        let action = batch::resume(&self.log, marker);
        if let Action::Adopt(planned) = &action {
            self.published = Some(planned.write_id);
        }
        let mut actions = vec![action];
        actions.extend(self.yield_if_asked());
        actions
    }

    fn plan(&mut self, draft: PlanDraft) -> Vec<Action> {
        if self.log.pending().is_some() {
            return vec![Action::Reject("a batch was to be planned while another is")];
        }
        let Some(next) = self.log.next() else {
            return vec![Action::Reject(
                "a batch was to be planned before a position was recorded",
            )];
        };
        match batch::plan(self.log.next_batch(), next, draft) {
            Ok(body) => self.append(vec![body]),
            Err(gap) => vec![Action::Gap(gap)],
        }
    }

    fn permit(&mut self, plan: WriteId) -> Vec<Action> {
        match self.log.pending() {
            // Adopted, or the first one's outcome is not known before the sink has been asked.
            Some(_) if self.published == Some(plan) => {
                vec![Action::Reject(
                    "a second permit was asked for a batch before the sink was asked",
                )]
            }
            Some(pending) if pending.write_id == plan => {
                let planned = pending.clone();
                self.published = Some(plan);
                self.publishing = true;
                vec![Action::CommitSink(planned)]
            }
            _ => vec![Action::Reject(
                "a permit was asked for a batch that is not planned",
            )],
        }
    }

    fn commit(&mut self, plan: WriteId, receipt: Receipt, next: Option<PlanDraft>) -> Vec<Action> {
        let Some(pending) = self.log.pending().filter(|pending| pending.write_id == plan) else {
            return vec![Action::Reject("a batch was to be committed that is not planned")];
        };
        if self.published != Some(plan) {
            return vec![Action::Reject("a batch was to be committed that had no permit")];
        }
        // Whoever wants the checkpoint at once does not wait for one more batch.
        let next = next.filter(|_| self.abandon.is_none());
        match batch::commit(pending, receipt, next) {
            Ok(bodies) => self.append(bodies),
            Err(gap) => vec![Action::Gap(gap)],
        }
    }

    fn hand_over(&mut self, candidate: OwnerInfo) -> Vec<Action> {
        if let Some(first) = self.candidate.as_ref().filter(|first| first.id != candidate.id) {
            return vec![Action::Refuse(Refusal::OtherCandidate(first.to_string()))];
        }
        if let Err(refusal) = answer_takeover(&self.log, &candidate.version, self.handover) {
            return vec![Action::Refuse(refusal)];
        }
        let pending = self.log.pending();
        let end = pending.map(|pending| &pending.until).or(self.log.next());
        let accept = Action::Accept {
            batch: pending.map(|pending| pending.batch),
            end: end.cloned().unwrap_or_default(),
        };
        self.candidate = Some(candidate.clone());
        vec![accept, Action::Tell(Request::HandOver { candidate })]
    }

    /// Gives the checkpoint up, unless something is being published or written at this moment.
    fn yield_if_asked(&mut self) -> Vec<Action> {
        match self.abandon.take() {
            Some(by) if !self.publishing && self.phase == Phase::Owner => {
                let mut actions = self.ends(End::Fenced(format!("{by} took it with --if-owned force")));
                actions.push(Action::Tell(Request::Stop { now: false }));
                actions
            }
            asked => {
                self.abandon = asked;
                Vec::new()
            }
        }
    }
}
