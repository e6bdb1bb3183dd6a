//! Test only: random records, and a small world in which owners come, work, crash and go in any order.

use baton_core::{
    BatchId, Epoch, Marker, Offset, OutputMode, OwnerId, PartitionOffsets, Position, Receipt, Rng, SinkRef,
    SourceName, Timestamp, TopicPartition, WriteId,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use uuid::Uuid;

use crate::protocol::{Action, Body, End, Event, Fact, FenceReason, Log, NewFence, Owner, Record, step};
use crate::{HandOver, JobShape, OwnerInfo, PlanDraft, Planned, PositionReason};

fn uuid() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

fn position() -> impl Strategy<Value = Position> {
    let offsets = btree_map(("[a-z]{1,4}", 0..5_i32), any::<i64>(), 0..6).prop_map(|map| {
        map.into_iter()
            .map(|((topic, partition), offset)| (TopicPartition::new(topic, partition), Offset(offset)))
            .collect::<PartitionOffsets>()
    });
    btree_map("[a-z_]{1,6}", offsets, 0..3).prop_map(|map| {
        map.into_iter()
            .map(|(name, offsets)| (SourceName::new(&name).expect("a name"), offsets))
            .collect()
    })
}

fn shape() -> impl Strategy<Value = JobShape> {
    (
        ".{0,8}",
        btree_map("[a-z]{1,6}", ".{0,8}", 0..3),
        ".{0,20}",
        vec(".{0,8}", 0..3),
    )
        .prop_map(|(job, sources, sql, schema)| JobShape {
            job,
            sources: sources
                .into_iter()
                .map(|(name, text)| (SourceName::new(&name).expect("a name"), text))
                .collect(),
            sql,
            schema,
            sink: "console".into(),
            output_mode: OutputMode::Update,
        })
}

fn body() -> impl Strategy<Value = Body> {
    let reason = prop::sample::select(vec![
        FenceReason::Fresh,
        FenceReason::Released,
        FenceReason::Expired,
        FenceReason::Forced,
        FenceReason::Reclaim,
    ]);
    let moved = prop::sample::select(vec![
        PositionReason::Start,
        PositionReason::Rewind,
        PositionReason::Gap,
        PositionReason::Import,
        PositionReason::Export,
    ]);
    prop_oneof![
        (
            reason,
            ".{0,8}",
            any::<u32>(),
            prop::option::of(".{0,4}"),
            shape()
        )
            .prop_map(|(reason, host, pid, replaces, shape)| Body::Fence {
                reason,
                host,
                pid,
                replaces,
                shape
            }),
        (position(), moved).prop_map(|(next, reason)| Body::Position { next, reason }),
        (any::<u64>(), position(), position(), ".{0,8}").prop_map(|(batch, from, until, sink)| Body::Plan {
            batch: BatchId(batch),
            from,
            until,
            sink: SinkRef(sink),
        }),
        (any::<u64>(), uuid(), any::<u64>(), ".{0,8}").prop_map(|(batch, plan, rows, note)| Body::Commit {
            batch: BatchId(batch),
            plan: WriteId(plan),
            receipt: Receipt { rows, note },
        }),
        (
            prop::option::of(any::<u64>()),
            prop::option::of(position()),
            prop::option::of(uuid())
        )
            .prop_map(|(after, next, successor)| Body::Release {
                after: after.map(BatchId),
                next,
                successor: successor.map(OwnerId),
            }),
    ]
}

/// Records that say anything, in any order.
pub(crate) fn records(count: Range<usize>) -> impl Strategy<Value = Vec<Record>> {
    let gaps = (
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
        prop::option::of(any::<u64>()),
    );
    let handover =
        prop::option::of(
            (".{0,6}", gaps).prop_map(|(from, (first, gap, excess, rest))| HandOver {
                from,
                to: "v2".to_owned(),
                last_batch: rest,
                first_batch: first,
                commit_gap: gap,
                excess_gap: excess,
                max_delay: rest,
            }),
        );
    let record = (
        any::<u64>(),
        uuid(),
        uuid(),
        any::<i64>(),
        ".{0,6}",
        body(),
        handover,
    )
        .prop_map(|(epoch, write_id, owner, at, version, body, handover)| Record {
            seq: 0,
            epoch: Epoch(epoch),
            write_id: WriteId(write_id),
            owner: OwnerId(owner),
            at: Timestamp(at),
            version,
            body,
            handover,
        });
    vec(record, count)
}

/// A log that owners wrote, crashes and hand-overs included; one item per slot.
pub(crate) fn slots(deeds: usize) -> impl Strategy<Value = Vec<Vec<Record>>> {
    (any::<u64>(), vec(deed(), 0..deeds)).prop_map(|(seed, deeds)| {
        let mut world = World::new(seed);
        deeds.into_iter().for_each(|deed| world.perform(deed));
        world.slots
    })
}

/// Something that may happen next, whether it fits or not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    Start {
        version: u8,
        force: bool,
    },
    Crash,
    LoseLock,
    LookAtSink,
    Position,
    Plan,
    Permit,
    Publish,
    Commit {
        next: bool,
    },
    AskHandOver {
        version: u8,
    },
    Withdraw,
    Abandon,
    Release,
    /// A process that lost the checkpoint wakes up and publishes what it had a permit for.
    ZombiePublishes,
    /// The successor that a release named does not come.
    GiveUpOnSuccessor,
}

pub(crate) fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (0..3_u8, prop::bool::weighted(0.2)).prop_map(|(version, force)| Deed::Start { version, force }),
        1 => Just(Deed::Crash),
        1 => Just(Deed::LoseLock),
        4 => Just(Deed::LookAtSink),
        3 => Just(Deed::Position),
        6 => Just(Deed::Plan),
        6 => Just(Deed::Permit),
        6 => Just(Deed::Publish),
        8 => any::<bool>().prop_map(|next| Deed::Commit { next }),
        2 => (0..3_u8).prop_map(|version| Deed::AskHandOver { version }),
        1 => Just(Deed::Withdraw),
        1 => Just(Deed::Abandon),
        3 => Just(Deed::Release),
        2 => Just(Deed::ZombiePublishes),
        1 => Just(Deed::GiveUpOnSuccessor),
    ]
}

/// Storage, a sink that can refuse, and at most one process that has the lock.
pub(crate) struct World {
    pub(crate) slots: Vec<Vec<Record>>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) ends: Vec<End>,
    rng: Rng,
    owner: Option<Process>,
    /// Permits of processes that have lost the checkpoint.
    zombies: Vec<(Epoch, Planned)>,
    sink_epoch: Epoch,
    marker: Marker,
    candidate: Option<OwnerInfo>,
    gone: bool,
    clock: i64,
}

struct Process {
    state: Owner,
    id: OwnerId,
    version: String,
    permit: Option<Planned>,
    published: Option<Planned>,
    looked: bool,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            slots: Vec::new(),
            facts: Vec::new(),
            ends: Vec::new(),
            rng: Rng::seeded(seed),
            owner: None,
            zombies: Vec::new(),
            sink_epoch: Epoch(0),
            marker: Marker::Nothing,
            candidate: None,
            gone: false,
            clock: 0,
        }
    }

    pub(crate) fn perform(&mut self, deed: Deed) {
        self.clock += 10;
        match deed {
            Deed::Start { version, force } => self.start(version, force),
            Deed::Crash => self.bury(),
            Deed::LoseLock => self.drive(Event::LockLost("the directory was replaced".into())),
            Deed::LookAtSink => self.look_at_sink(),
            Deed::Position => {
                if let Some(next) = self.log().map(|log| at(log.next(), 3)) {
                    self.drive(Event::PositionDue(next, PositionReason::Gap));
                }
            }
            Deed::Plan => {
                if let Some(draft) = self
                    .log()
                    .filter(|log| log.next().is_some())
                    .map(|log| draft(log.next()))
                {
                    self.drive(Event::PlanDue(draft));
                }
            }
            // A process that has not looked at the sink does not run batches; that is its engine's part.
            Deed::Permit => {
                let ready = self.owner.as_ref().filter(|owner| owner.looked);
                let unasked = ready.filter(|owner| {
                    owner
                        .state
                        .log()
                        .pending()
                        .is_some_and(|p| !owner.state.is_publishing(p.write_id))
                });
                if let Some(plan) = unasked
                    .and_then(|owner| owner.state.log().pending())
                    .map(|p| p.write_id)
                {
                    self.drive(Event::PermitAsked(plan));
                }
            }
            Deed::Publish => {
                if let Some((epoch, permit)) = self
                    .owner
                    .as_mut()
                    .and_then(|owner| Some((owner.state.epoch(), owner.permit.take()?)))
                {
                    self.publish(epoch, permit);
                }
            }
            Deed::Commit { next } => {
                if let Some(planned) = self.owner.as_mut().and_then(|owner| owner.published.take()) {
                    let next = next.then(|| draft(Some(&planned.until)));
                    self.drive(Event::SinkCommitted(planned.write_id, Receipt::default(), next));
                }
            }
            Deed::AskHandOver { version } => {
                let candidate = OwnerInfo {
                    id: OwnerId(self.rng.uuid()),
                    host: "h".into(),
                    pid: 1,
                    version: format!("v{version}"),
                    epoch: None,
                    since: Timestamp(self.clock),
                };
                self.candidate.get_or_insert(candidate.clone());
                self.drive(Event::HandOverAsked(candidate));
            }
            Deed::Withdraw => {
                if let Some(candidate) = self.candidate.take() {
                    self.drive(Event::HandOverWithdrawn(candidate.id));
                }
            }
            Deed::Abandon => self.drive(Event::AbandonAsked("somebody".into())),
            Deed::Release => {
                let successor = self
                    .owner
                    .as_ref()
                    .and_then(|owner| owner.state.successor())
                    .map(|info| info.id);
                let idle = self
                    .owner
                    .as_ref()
                    .is_some_and(|owner| owner.permit.is_none() && owner.published.is_none());
                if idle {
                    self.drive(Event::ReleaseAsked(successor));
                }
            }
            Deed::ZombiePublishes => {
                if let Some((epoch, planned)) = self.zombies.pop() {
                    self.publish(epoch, planned);
                }
            }
            Deed::GiveUpOnSuccessor => self.gone = true,
        }
    }

    fn log(&self) -> Option<&Log> {
        self.owner.as_ref().map(|owner| owner.state.log())
    }

    fn start(&mut self, version: u8, force: bool) {
        if self.owner.is_some() {
            if !force {
                return;
            }
            self.bury();
        }
        let named = self
            .candidate
            .take()
            .filter(|candidate| candidate.version == format!("v{version}"));
        let id = named.map_or_else(|| OwnerId(self.rng.uuid()), |candidate| candidate.id);
        self.owner = Some(Process {
            state: Owner::candidate(id, true),
            id,
            version: format!("v{version}"),
            permit: None,
            published: None,
            looked: false,
        });
        self.drive(Event::Acquired);
        let log = Log::replay(self.slots.iter().flatten());
        let fence = NewFence {
            host: "h".into(),
            pid: 1,
            shape: JobShape::default(),
            forced: force,
            successor_is_gone: std::mem::take(&mut self.gone),
        };
        self.drive(Event::LogRead(Box::new(log), Box::new(fence)));
        if self.log().is_some_and(|log| log.next().is_none()) {
            self.drive(Event::PositionDue(at(None, 0), PositionReason::Start));
        }
    }

    fn look_at_sink(&mut self) {
        let Some(epoch) = self.owner.as_ref().map(|owner| owner.state.epoch()) else {
            return;
        };
        self.sink_epoch = self.sink_epoch.max(epoch);
        self.facts.push(Fact::SinkFenced(epoch));
        self.facts.push(Fact::MarkerRead(epoch, self.marker.clone()));
        let marker = self.marker.clone();
        if let Some(owner) = &mut self.owner {
            owner.looked = true;
            owner.permit = None;
            owner.published = None;
        }
        self.drive(Event::MarkerRead(marker));
    }

    fn publish(&mut self, epoch: Epoch, planned: Planned) {
        if epoch < self.sink_epoch {
            return;
        }
        self.marker = marker(&planned, epoch);
        self.facts.push(Fact::Published {
            batch: planned.batch,
            epoch,
            plan: planned.write_id,
        });
        if let Some(owner) = self.owner.as_mut().filter(|owner| owner.state.epoch() == epoch) {
            owner.published = Some(planned);
        }
    }

    /// The process is gone, but what it sent may still be on its way.
    fn bury(&mut self) {
        if let Some(Process {
            state,
            permit: Some(permit),
            ..
        }) = self.owner.take()
        {
            self.zombies.push((state.epoch(), permit));
        }
    }

    fn drive(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let Some(mut owner) = self.owner.take() else {
                return;
            };
            let (state, actions) = step(owner.state, event);
            owner.state = state;
            let mut gone = false;
            for action in actions {
                match action {
                    Action::Append(bodies) => {
                        let records = self.stamp(&owner, bodies);
                        assert_eq!(
                            owner.state.log().check(&records),
                            Ok(()),
                            "refused before it was written"
                        );
                        self.facts.extend(records.iter().cloned().map(appended));
                        self.slots.push(records.clone());
                        events.push(Event::Appended(records));
                    }
                    Action::CommitSink(planned) => owner.permit = Some(planned),
                    Action::Adopt(planned) => owner.published = Some(planned),
                    Action::Halt { found, expected } => panic!("halt: {found}, {expected}"),
                    Action::Gap(gap) => panic!("{gap:?}"),
                    Action::Exit(end) => self.ends.push(end),
                    Action::Unlock => gone = true,
                    _ => {}
                }
            }
            self.owner = Some(owner);
            if gone {
                self.bury();
            }
        }
    }

    fn stamp(&self, owner: &Process, bodies: Vec<Body>) -> Vec<Record> {
        bodies
            .into_iter()
            .map(|body| Record {
                seq: self.slots.len() as u64,
                epoch: owner.state.epoch(),
                write_id: WriteId(self.rng.uuid()),
                owner: owner.id,
                at: Timestamp(self.clock),
                version: owner.version.clone(),
                body,
                handover: None,
            })
            .collect()
    }
}

/// A record that became durable.
pub(crate) fn appended(record: Record) -> Fact {
    Fact::Appended(Arc::new(record))
}

fn marker(planned: &Planned, epoch: Epoch) -> Marker {
    Marker::At {
        batch: planned.batch,
        epoch,
        plan: planned.write_id,
    }
}

/// `by` records behind `before`.
pub(crate) fn at(before: Option<&Position>, by: i64) -> Position {
    let partition = TopicPartition::new("t", 0);
    let name = SourceName::new("s").expect("a name");
    let before = before
        .and_then(|p| p.source(&name))
        .and_then(|o| o.of(&partition))
        .map_or(0, |o| o.0);
    let mut offsets = PartitionOffsets::new();
    offsets.set(partition, Offset(before + by));
    [(name, offsets)].into_iter().collect()
}

/// The next five records.
pub(crate) fn draft(next: Option<&Position>) -> PlanDraft {
    PlanDraft {
        from: at(next, 0),
        until: at(next, 5),
        sink: SinkRef("sink".into()),
    }
}
