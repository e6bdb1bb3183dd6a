//! A process around [`step`]: carries out what it decides, one interaction at a time.

use baton_core::{Epoch, Marker, OwnerId, Position, Receipt, Timestamp, WriteId};
use std::sync::Arc;
use uuid::Uuid;

use crate::Bounds;
use crate::flaw::Flaw;
use crate::source::{at, draft};
use crate::world::{Life, Message, SinkKind, What, World};
use baton_checkpoint::protocol::{Action, Body, End, Event, Fact, NewFence, Owner, Record, step};
use baton_checkpoint::{JobShape, OwnerInfo, Planned, PositionReason};

/// A process, or the place where one ran.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Instance {
    pub(crate) life: Life,
    /// Which copy of the checkpoint it was pointed at.
    pub(crate) store: usize,
    pub(crate) duty: Duty,
    owner: Option<Box<Owner>>,
    write: Option<Write>,
    token: u8,
    /// A marker that was read too early.
    seen: Option<Marker>,
    /// How often the sink has been asked again.
    troubles: u8,
    stopping: bool,
    pub(crate) has_asked: bool,
    /// Where an owner said that its last batch would end.
    guess: Option<Position>,
    floor: u64,
}

/// What it does next, as soon as nothing is being written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Duty {
    Down,
    Claim,
    Init,
    Look,
    /// Waits for the sink's answer.
    Published(Planned),
    /// The sink did not answer, or refused.
    Trouble,
    Commit(Planned),
    Nothing,
}

/// A slot that is being written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Write {
    message: Message,
    seq: u64,
    id: WriteId,
    unknown: bool,
    retried: bool,
}

impl Instance {
    pub(crate) fn new(life: Life, store: usize) -> Self {
        Self {
            life,
            store,
            duty: Duty::Claim,
            owner: Some(Box::new(Owner::candidate(id(life), true))),
            write: None,
            token: 0,
            seen: None,
            troubles: 0,
            stopping: false,
            has_asked: false,
            guess: None,
            floor: 0,
        }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.owner.as_ref().map_or(Epoch(0), |owner| owner.epoch())
    }

    /// Claimed, and may be spoken to.
    pub(crate) fn is_owner(&self) -> bool {
        !matches!(self.duty, Duty::Down | Duty::Claim)
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.write.is_some()
    }

    pub(crate) fn awaits_write(&self) -> bool {
        self.write.as_ref().is_some_and(|write| !write.unknown)
    }

    pub(crate) fn has_unknown_write(&self) -> bool {
        self.write.as_ref().is_some_and(|write| write.unknown)
    }

    pub(crate) fn can_stop(&self) -> bool {
        self.is_owner() && !self.stopping
    }

    pub(crate) fn successor(&self) -> Option<OwnerId> {
        let successor = self.owner.as_ref()?.successor()?;
        Some(successor.id)
    }

    pub(crate) fn crash(&mut self) {
        let (life, store) = (self.life, self.store);
        *self = Self::new(life, store);
        self.owner = None;
        self.duty = Duty::Down;
    }
}

pub(crate) fn id(life: Life) -> OwnerId {
    let (instance, number) = (life.instance as u128, u128::from(life.number));
    OwnerId(Uuid::from_u128(instance << 8 | number))
}

fn info(life: Life) -> OwnerInfo {
    OwnerInfo {
        id: id(life),
        host: String::new(),
        pid: 0,
        version: version(life),
        epoch: None,
        since: Timestamp(0),
    }
}

fn version(life: Life) -> String {
    format!("v{}", life.instance)
}

impl World {
    // ---- what may happen to an instance ----

    /// It got the lock, or believes that the lease has expired, or was told to use force.
    pub(crate) fn claim(&mut self, bounds: &Bounds, i: usize) {
        self.feed(bounds, i, Event::Acquired);
    }

    pub(crate) fn ask(&mut self, bounds: &Bounds, candidate: usize, owner: usize) {
        self.instances[candidate].has_asked = true;
        let info = info(self.instances[candidate].life);
        for action in self.feed(bounds, owner, Event::HandOverAsked(info)) {
            if let Action::Accept { end, .. } = action {
                self.instances[candidate].guess = Some(end);
            }
        }
    }

    pub(crate) fn withdraw(&mut self, bounds: &Bounds, owner: usize) {
        if let Some(id) = self.instances[owner].successor() {
            self.feed(bounds, owner, Event::HandOverWithdrawn(id));
        }
    }

    pub(crate) fn stop(&mut self, bounds: &Bounds, i: usize) {
        self.instances[i].stopping = true;
        self.go_on(bounds, i);
    }

    pub(crate) fn time_out(&mut self, i: usize) {
        let instance = &mut self.instances[i];
        match &mut instance.write {
            Some(write) => write.unknown = true,
            None => instance.duty = Duty::Trouble,
        }
    }

    /// Whether a write of unknown outcome succeeded is read from the log.
    pub(crate) fn read_back(&mut self, bounds: &Bounds, i: usize) {
        let Some(mut write) = self.instances[i].write.take() else {
            return;
        };
        let store = self.instances[i].store;
        let found = match bounds.flaw {
            // It does not look, it only tries again.
            Some(Flaw::NoReadBack) if write.unknown => None,
            _ => self.stores[store].holds(write.seq, write.id),
        };
        match found {
            Some(true) => self.written(bounds, i, &write.message),
            Some(false) => drop(self.feed(bounds, i, Event::AppendLost(String::new()))),
            None if write.retried => drop(self.feed(bounds, i, Event::AppendFailed(String::new()))),
            None => {
                (write.unknown, write.retried) = (false, true);
                self.send(write.message.clone());
                self.instances[i].write = Some(write);
            }
        }
    }

    pub(crate) fn init(&mut self, bounds: &Bounds, i: usize) {
        let epoch = self.instances[i].epoch();
        if bounds.flaw == Some(Flaw::MarkerBeforeInit) && self.instances[i].seen.is_none() {
            self.instances[i].seen = Some(self.sink.marker());
            return;
        }
        let token = self.sink.init(transactional_id(bounds, epoch));
        self.instances[i].token = token;
        // What older producers have under way can only be refused now.
        let is_alone = |of: Epoch| bounds.flaw != Some(Flaw::EpochInTransactionalId) || of == epoch;
        let refused = |message: &Message| matches!(&message.what, What::Publish { token: old, epoch: of, .. } if *old < token && is_alone(*of));
        if self.sink.kind == SinkKind::Transactional {
            for message in self.network.extract_if(.., |message| refused(message)) {
                let sender = &mut self.instances[message.by.instance];
                if sender.life == message.by && matches!(sender.duty, Duty::Published(_)) {
                    sender.duty = Duty::Trouble;
                }
            }
        }
        self.note(i, Fact::SinkFenced(epoch));
        self.instances[i].duty = Duty::Look;
        if let Some(marker) = self.instances[i].seen.take() {
            self.look_at(bounds, i, marker);
        }
    }

    pub(crate) fn look(&mut self, bounds: &Bounds, i: usize) {
        let marker = self.sink.marker();
        self.look_at(bounds, i, marker);
    }

    fn look_at(&mut self, bounds: &Bounds, i: usize, mut marker: Marker) {
        self.note(i, Fact::MarkerRead(self.instances[i].epoch(), marker.clone()));
        let pending = self.instances[i]
            .owner
            .as_ref()
            .and_then(|owner| owner.log().pending());
        if let (Some(Flaw::AdoptAny), Some(pending), Marker::At { batch, plan, .. }) =
            (bounds.flaw, pending, &mut marker)
            && *batch == pending.batch
        {
            *plan = pending.write_id;
        }
        self.feed(bounds, i, Event::MarkerRead(marker));
    }

    /// After a refusal only the log can tell.
    pub(crate) fn recheck(&mut self, bounds: &Bounds, i: usize) {
        if self.is_fenced(i) {
            self.feed(bounds, i, Event::LockLost(String::new()));
            return;
        }
        let instance = &mut self.instances[i];
        if instance.troubles == bounds.troubles {
            instance.crash();
        } else {
            instance.troubles += 1;
            instance.duty = Duty::Init;
        }
    }

    fn is_fenced(&self, i: usize) -> bool {
        let instance = &self.instances[i];
        self.stores[instance.store].log().epoch() > instance.epoch()
    }

    pub(crate) fn commit(&mut self, bounds: &Bounds, i: usize, with_next: bool) {
        let Duty::Commit(planned) = self.instances[i].duty.clone() else {
            return;
        };
        let next = (with_next && bounds.flaw != Some(Flaw::TwoInFlight)).then(|| draft(Some(&planned.until)));
        self.instances[i].duty = Duty::Nothing;
        self.feed(
            bounds,
            i,
            Event::SinkCommitted(planned.write_id, Receipt::default(), next),
        );
        if with_next && bounds.flaw == Some(Flaw::TwoInFlight) {
            let body = plan(&planned, 0);
            self.smuggle(i, body, 1);
        }
    }

    // ---- answers of servers ----

    /// A server carries a message out; whether its answer is heard is another matter.
    pub(crate) fn apply(&mut self, bounds: &Bounds, message: Message, heard: bool) {
        let i = message.by.instance;
        let listens = self.instances[i].life == message.by && self.instances[i].duty != Duty::Down;
        match &message.what {
            What::Append {
                records,
                retired,
                floor,
            } => {
                let created = self.stores[message.store].create(records, retired, *floor);
                let awaited = self.instances[i]
                    .write
                    .as_ref()
                    .is_some_and(|write| write.message == message && !write.unknown);
                if !(listens && awaited) {
                    return;
                }
                if !heard {
                    self.time_out(i);
                } else if created {
                    self.instances[i].write = None;
                    self.written(bounds, i, &message);
                } else if bounds.flaw == Some(Flaw::NoReadBack) {
                    if self.stores[message.store].holds(records[0].seq, records[0].write_id) == Some(true) {
                        self.wrong = Some("an owner takes its own record for somebody else's");
                    }
                    self.instances[i].write = None;
                    self.feed(bounds, i, Event::AppendLost(String::new()));
                } else {
                    self.read_back(bounds, i);
                }
            }
            What::Publish {
                token,
                epoch,
                planned,
            } => {
                let done = self
                    .sink
                    .publish(transactional_id(bounds, *epoch), *token, *epoch, planned);
                if done {
                    let published = Fact::Published {
                        batch: planned.batch,
                        epoch: *epoch,
                        plan: planned.write_id,
                    };
                    self.stores[message.store].facts.push(published);
                }
                let awaited = self.instances[i].duty == Duty::Published(planned.clone());
                if listens && awaited {
                    self.instances[i].duty = if done && heard {
                        Duty::Commit(planned.clone())
                    } else {
                        Duty::Trouble
                    };
                }
            }
        }
    }

    fn written(&mut self, bounds: &Bounds, i: usize, message: &Message) {
        if let What::Append { records, floor, .. } = &message.what {
            let is_fence = matches!(records[0].body, Body::Fence { .. });
            let store = &self.stores[message.store];
            // A slow candidate may create a slot that was written and retired since it read the log. Whoever has a fence
            // looks once more: nothing may lie above it.
            if is_fence && records[0].seq < store.floor && bounds.flaw != Some(Flaw::NoLookAboveFence) {
                drop(self.feed(bounds, i, Event::AppendLost(String::new())));
                return;
            }
            self.instances[i].floor = *floor;
            self.feed(bounds, i, Event::Appended(records.to_vec()));
        }
    }

    // ---- the engine's part ----

    /// Feeds an event and carries out what follows; returns what is left.
    fn feed(&mut self, bounds: &Bounds, i: usize, event: Event) -> Vec<Action> {
        let Some(owner) = self.instances[i].owner.take() else {
            return Vec::new();
        };
        let (owner, actions) = step(*owner, event);
        self.instances[i].owner = Some(Box::new(owner));
        let mut left = Vec::new();
        for action in actions {
            match action {
                Action::ReadLog => {
                    let store = &self.stores[self.instances[i].store];
                    self.instances[i].floor = store.floor;
                    let fence = NewFence {
                        host: String::new(),
                        pid: 0,
                        shape: JobShape::default(),
                        forced: false,
                        successor_is_gone: true,
                    };
                    let read = Event::LogRead(Box::new(store.log()), Box::new(fence));
                    self.feed(bounds, i, read);
                }
                Action::Append(bodies) => self.append(bounds, i, bodies),
                Action::FenceSink(_) => self.instances[i].duty = Duty::Init,
                Action::Run(planned) => self.publish(bounds, i, planned),
                Action::CommitSink(planned) => {
                    self.instances[i].duty = Duty::Published(planned.clone());
                    let instance = &self.instances[i];
                    let what = What::Publish {
                        token: instance.token,
                        epoch: instance.epoch(),
                        planned,
                    };
                    let (by, store) = (instance.life, instance.store);
                    self.send(Message { by, store, what });
                }
                Action::Adopt(planned) => self.instances[i].duty = Duty::Commit(planned),
                Action::Idle => self.instances[i].duty = Duty::Nothing,
                Action::Halt { .. } => {
                    // A zombie's log is old, which explains everything; only an owner's contradiction is one.
                    self.halted |= !self.is_fenced(i);
                    self.instances[i].crash();
                }
                Action::Exit(End::Released | End::Fenced(_) | End::Poisoned(_) | End::HeldBack(_)) => {
                    self.instances[i].crash();
                }
                Action::Gap(_) => self.wrong = Some("a plan was to leave a gap"),
                Action::Reject(_) => self.wrong = Some("the engine did what the protocol rejects"),
                Action::ReadMarker | Action::Unlock | Action::Tell(_) => {}
                other => left.push(other),
            }
        }
        self.go_on(bounds, i);
        left
    }

    /// Does what is due where nobody needs to be waited for.
    fn go_on(&mut self, bounds: &Bounds, i: usize) {
        let instance = &self.instances[i];
        let Some(owner) = instance.owner.as_ref().filter(|_| instance.write.is_none()) else {
            return;
        };
        let log = owner.log();
        let leaves = instance.stopping || owner.successor().is_some();
        if let (Duty::Published(planned), Some(Flaw::ReleaseBeforeCommit), true) =
            (&instance.duty, bounds.flaw, leaves)
        {
            let release = Body::Release {
                after: None,
                next: Some(planned.from.clone()),
                successor: instance.successor(),
            };
            return self.smuggle(i, release, 0);
        }
        if instance.duty != Duty::Nothing {
            return;
        }
        let event = match log.next() {
            None if bounds.flaw == Some(Flaw::PollBeforePosition) => {
                let body = Body::Plan {
                    batch: log.next_batch(),
                    from: at(None, 0),
                    until: at(None, 5),
                    sink: draft(None).sink,
                };
                return self.smuggle(i, body, 0);
            }
            None => Event::PositionDue(at(None, 0), PositionReason::Start),
            Some(_) if leaves => Event::ReleaseAsked(instance.successor()),
            Some(next) if log.next_batch().0 < bounds.batches => match (&instance.guess, bounds.flaw) {
                (Some(guess), Some(Flaw::PrefetchPosition)) if guess != next => {
                    let body = Body::Plan {
                        batch: log.next_batch(),
                        from: guess.clone(),
                        until: at(Some(guess), 5),
                        sink: draft(None).sink,
                    };
                    return self.smuggle(i, body, 0);
                }
                _ => Event::PlanDue(draft(Some(next))),
            },
            Some(_) => return,
        };
        self.feed(bounds, i, event);
    }

    fn publish(&mut self, bounds: &Bounds, i: usize, planned: Planned) {
        let id = planned.write_id;
        match bounds.flaw {
            Some(Flaw::AnotherRange) if planned.epoch != self.instances[i].epoch() => {
                let body = Body::Plan {
                    batch: planned.batch,
                    from: planned.from.clone(),
                    until: at(Some(&planned.until), 1),
                    sink: planned.sink,
                };
                self.smuggle(i, body, 0);
            }
            Some(Flaw::CommitBeforeSink) => {
                self.feed(bounds, i, Event::PermitAsked(id));
                self.instances[i].duty = Duty::Nothing;
                self.feed(bounds, i, Event::SinkCommitted(id, Receipt::default(), None));
            }
            _ => drop(self.feed(bounds, i, Event::PermitAsked(id))),
        }
    }

    fn append(&mut self, bounds: &Bounds, i: usize, bodies: Vec<Body>) {
        let records = self.stamp(i, bodies, 0);
        let instance = &mut self.instances[i];
        let Some(owner) = &instance.owner else { return };
        if bounds.flaw.is_none() && owner.log().check(&records).is_err() {
            self.wrong = Some("a record was to be written that breaks a rule");
        }
        if bounds.flaw == Some(Flaw::NoFence) && matches!(records[0].body, Body::Fence { .. }) {
            drop(self.feed(bounds, i, Event::Appended(records)));
            return;
        }
        let mut floor = instance.floor;
        let mut retired = Vec::new();
        if matches!(records[0].body, Body::Commit { .. }) {
            let before = floor;
            (retired, floor) = owner.log().clone().retire(floor, 1);
            if bounds.flaw == Some(Flaw::CollectedFence) {
                retired = (before..floor).collect();
            }
        }
        let (seq, id) = (records[0].seq, records[0].write_id);
        let message = Message {
            by: instance.life,
            store: instance.store,
            what: What::Append {
                records: Arc::new(records),
                retired,
                floor,
            },
        };
        instance.write = Some(Write {
            message: message.clone(),
            seq,
            id,
            unknown: false,
            retried: false,
        });
        self.send(message);
    }

    /// Writes what the protocol did not ask for.
    fn smuggle(&mut self, i: usize, body: Body, ahead: u64) {
        let records = self.stamp(i, vec![body], ahead);
        let (by, store, floor) = (
            self.instances[i].life,
            self.instances[i].store,
            self.instances[i].floor,
        );
        let what = What::Append {
            records: Arc::new(records),
            retired: Vec::new(),
            floor,
        };
        self.send(Message { by, store, what });
    }

    fn stamp(&self, i: usize, bodies: Vec<Body>, ahead: u64) -> Vec<Record> {
        let instance = &self.instances[i];
        let (life, epoch) = (instance.life, instance.epoch());
        let seq = instance.owner.as_ref().map_or(0, |owner| owner.log().free()) + ahead;
        let record = |(number, body): (u128, Body)| Record {
            seq,
            epoch,
            // Written once by one life: that is what makes it a name.
            write_id: WriteId(Uuid::from_u128(
                id(life).0.as_u128() << 64 | u128::from(seq) << 8 | number,
            )),
            owner: id(life),
            at: Timestamp(0),
            version: version(life),
            body,
            handover: None,
        };
        (0..).zip(bodies).map(record).collect()
    }

    fn note(&mut self, i: usize, fact: Fact) {
        let store = self.instances[i].store;
        self.stores[store].facts.push(fact);
    }
}

/// The plan that follows `planned`.
fn plan(planned: &Planned, by: i64) -> Body {
    Body::Plan {
        batch: planned.batch.next(),
        from: planned.until.clone(),
        until: at(Some(&planned.until), 5 + by),
        sink: planned.sink.clone(),
    }
}

fn transactional_id(bounds: &Bounds, epoch: Epoch) -> u64 {
    if bounds.flaw == Some(Flaw::EpochInTransactionalId) {
        epoch.0
    } else {
        0
    }
}
