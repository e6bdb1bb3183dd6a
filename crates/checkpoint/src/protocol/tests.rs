use super::invariants::{check_all, check_log};
use super::*;
use crate::testing::{Deed, World, appended, at, deed, draft};
use crate::{JobShape, OwnerInfo, PositionReason, Request};
use baton_core::{BatchId, Epoch, Marker, OwnerId, Receipt, Timestamp, WriteId};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use uuid::Uuid;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_happens_in_whatever_order_no_rule_is_broken(seed in any::<u64>(), deeds in prop::collection::vec(deed(), 0..120)) {
        let mut world = World::new(seed);
        for deed in deeds {
            world.perform(deed);
            prop_assert_eq!(check_all(&world.facts), Ok(()), "after {:?}", deed);
        }
    }

    #[test]
    fn retired_slots_change_nothing_that_matters(slots in crate::testing::slots(80), keep in 1..4_u64) {
        let mut log = Log::default();
        let mut kept = std::collections::BTreeMap::new();
        let mut floor = 0;
        for slot in &slots {
            slot.iter().for_each(|record| log.apply(record));
            kept.insert(slot[0].seq, slot.clone());
            let (retired, new) = log.retire(floor, keep);
            floor = new;
            for seq in retired {
                kept.remove(&seq);
            }
        }
        let records: Vec<Record> = kept.into_values().flatten().collect();
        let short = Log::replay(&records);
        let id = baton_core::CheckpointId(Uuid::nil());
        let (short_recovery, recovery) = (short.recovery(id), log.recovery(id));
        prop_assert_eq!(short_recovery.next, recovery.next);
        prop_assert_eq!(short_recovery.pending, recovery.pending);
        prop_assert_eq!(short_recovery.last_committed, recovery.last_committed);
        prop_assert_eq!((short.epoch(), short.tail(), short.replaced()), (log.epoch(), log.tail(), log.replaced()));
        let facts: Vec<Fact> = records.into_iter().map(appended).collect();
        prop_assert_eq!(check_log(&facts), Ok(()));
    }
}

/// The property above must not hold for lack of events.
#[test]
fn the_world_of_the_property_is_a_lively_one() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut commits, mut adopted, mut handed_over, mut fenced, mut reran, mut held_back) =
        (0, 0, 0, 0, 0, 0);
    for seed in 0..200 {
        let mut world = World::new(seed);
        for _ in 0..120 {
            let deed: Deed = deed().new_tree(&mut runner).expect("a deed").current();
            world.perform(deed);
        }
        let mut log = Log::default();
        for record in world.slots.iter().flatten() {
            match &record.body {
                Body::Commit { .. } => {
                    commits += 1;
                    let published_by = world.facts.iter().find_map(|fact| match fact {
                        Fact::Published { batch, epoch, .. }
                            if Some(*batch) == log.pending().map(|p| p.batch) =>
                        {
                            Some(*epoch)
                        }
                        _ => None,
                    });
                    adopted += usize::from(published_by.is_some_and(|epoch| epoch != record.epoch));
                    reran += usize::from(log.pending().is_some_and(|p| p.epoch != record.epoch));
                }
                Body::Fence {
                    replaces: Some(_), ..
                } => handed_over += 1,
                _ => {}
            }
            log.apply(record);
        }
        fenced += world
            .ends
            .iter()
            .filter(|end| matches!(end, End::Fenced(_)))
            .count();
        held_back += world
            .ends
            .iter()
            .filter(|end| matches!(end, End::HeldBack(_)))
            .count();
    }
    for (what, count) in [
        ("commits", commits),
        ("adopted", adopted),
        ("handed over", handed_over),
        ("fenced", fenced),
        ("reran", reran),
        ("held back", held_back),
    ] {
        assert!(count > 10, "{what}: {count}");
    }
}

fn id(n: u128) -> OwnerId {
    OwnerId(Uuid::from_u128(n))
}

fn record(seq: u64, epoch: u64, body: Body) -> Record {
    Record {
        seq,
        epoch: Epoch(epoch),
        write_id: WriteId(Uuid::from_u128(
            u128::from(seq) * 10 + u128::from(matches!(body, Body::Plan { .. })),
        )),
        owner: id(u128::from(epoch)),
        at: Timestamp(1_000 * i64::try_from(seq).expect("small")),
        version: format!("v{epoch}"),
        body,
        handover: None,
    }
}

fn fence(replaces: Option<&str>) -> Body {
    Body::Fence {
        reason: FenceReason::Released,
        host: "h".into(),
        pid: 7,
        replaces: replaces.map(str::to_owned),
        shape: JobShape::default(),
    }
}

fn start() -> Body {
    Body::Position {
        next: at(None, 0),
        reason: PositionReason::Start,
    }
}

fn plan(batch: u64, from: i64, until: i64) -> Body {
    Body::Plan {
        batch: BatchId(batch),
        from: at(None, from),
        until: at(None, until),
        sink: draft(None).sink,
    }
}

fn commit(batch: u64, plan_seq: u64) -> Body {
    Body::Commit {
        batch: BatchId(batch),
        plan: WriteId(Uuid::from_u128(u128::from(plan_seq) * 10 + 1)),
        receipt: Receipt::default(),
    }
}

fn release(successor: Option<OwnerId>) -> Body {
    Body::Release {
        after: None,
        next: Some(at(None, 0)),
        successor,
    }
}

fn log(bodies: Vec<(u64, Body)>) -> Vec<Record> {
    (0..)
        .zip(bodies)
        .map(|(seq, (epoch, body))| record(seq, epoch, body))
        .collect()
}

#[track_caller]
fn breaks(rule: &str, bodies: Vec<(u64, Body)>) {
    let facts: Vec<Fact> = log(bodies).into_iter().map(appended).collect();
    let broken = invariants::LOG
        .iter()
        .filter(|(_, holds)| holds(&facts).is_err())
        .map(|(id, _)| *id);
    assert!(
        broken.clone().any(|id| id == rule),
        "{:?}",
        broken.collect::<Vec<_>>()
    );
    let whole = check_log(&facts[..facts.len() - 1]);
    assert_eq!(whole, Ok(()), "only the last record is wrong");
}

#[test]
fn i1_an_epoch_that_falls_is_found() {
    breaks("I1", vec![(1, fence(None)), (2, fence(None)), (1, start())]);
}

#[test]
fn i2_an_epoch_without_its_fence_and_a_second_writer_are_found() {
    breaks("I2", vec![(1, fence(None)), (2, start())]);
    breaks("I2", vec![(1, fence(None)), (3, fence(None))]);
    let mut two = log(vec![(1, fence(None)), (1, start())]);
    two[1].owner = id(99);
    let facts: Vec<Fact> = two.into_iter().map(appended).collect();
    assert_eq!(check_log(&facts).map_err(|v| v.id), Err("I2"));
}

#[test]
fn i3_a_gap_a_repetition_and_a_skipped_number_are_found() {
    let upto = |last: Body| {
        vec![
            (1, fence(None)),
            (1, start()),
            (1, plan(0, 0, 5)),
            (1, commit(0, 2)),
            (1, last),
        ]
    };
    breaks("I3", upto(plan(1, 6, 9)));
    breaks("I3", upto(plan(1, 4, 9)));
    breaks("I3", upto(plan(2, 5, 9)));
    breaks("I3", upto(plan(0, 5, 9)));
    breaks("I3", vec![(1, fence(None)), (1, plan(0, 0, 5))]);
}

#[test]
fn i4_commits_without_twice_or_of_another_plan_are_found() {
    breaks("I4", vec![(1, fence(None)), (1, start()), (1, commit(0, 1))]);
    breaks(
        "I4",
        vec![
            (1, fence(None)),
            (1, start()),
            (1, plan(0, 0, 5)),
            (1, commit(0, 9)),
        ],
    );
    breaks(
        "I4",
        vec![
            (1, fence(None)),
            (1, start()),
            (1, plan(0, 0, 5)),
            (1, commit(0, 2)),
            (1, commit(0, 2)),
        ],
    );
    breaks(
        "I4",
        vec![
            (1, fence(None)),
            (1, start()),
            (1, plan(0, 0, 5)),
            (1, plan(1, 5, 6)),
        ],
    );
}

#[test]
fn i5_i6_i7_a_sink_that_repeats_or_is_not_looked_at_is_found() {
    let published = |batch, epoch| Fact::Published {
        batch: BatchId(batch),
        epoch: Epoch(epoch),
        plan: WriteId(Uuid::nil()),
    };
    let looked = |epoch| {
        [
            Fact::SinkFenced(Epoch(epoch)),
            Fact::MarkerRead(Epoch(epoch), Marker::Nothing),
        ]
    };
    let history = |last: Fact| [looked(1).to_vec(), vec![published(0, 1), last]].concat();
    assert_eq!(check_all(&history(published(0, 1))).map_err(|v| v.id), Err("I5"));
    assert_eq!(check_all(&history(published(1, 2))).map_err(|v| v.id), Err("I7"));
    let marker = Marker::At {
        batch: BatchId(9),
        epoch: Epoch(1),
        plan: WriteId(Uuid::nil()),
    };
    let mut facts: Vec<Fact> = log(vec![(1, fence(None)), (1, start()), (1, plan(0, 0, 5))])
        .into_iter()
        .map(appended)
        .collect();
    facts.push(Fact::MarkerRead(Epoch(1), marker));
    assert_eq!(check_all(&facts).map_err(|v| v.id), Err("I6"));
}

#[test]
fn i9_a_release_too_early_and_a_record_after_it_are_found() {
    breaks(
        "I9",
        vec![
            (1, fence(None)),
            (1, start()),
            (1, plan(0, 0, 5)),
            (1, release(None)),
        ],
    );
    breaks("I9", vec![(1, fence(None)), (1, release(None)), (1, start())]);
}

#[test]
fn i10_an_old_epoch_above_a_fence_and_a_slot_out_of_order_are_found() {
    breaks("I10", vec![(1, fence(None)), (2, fence(None)), (1, start())]);
    let mut swapped = log(vec![(1, fence(None)), (1, start())]);
    swapped[0].seq = 5;
    let facts: Vec<Fact> = swapped.into_iter().map(appended).collect();
    assert!(
        invariants::LOG
            .iter()
            .any(|(id, holds)| *id == "I10" && holds(&facts).is_err())
    );
}

fn owned() -> Owner {
    let (owner, _) = step(Owner::candidate(id(1), true), Event::Acquired);
    let new = NewFence {
        host: "h".into(),
        pid: 7,
        shape: JobShape::default(),
        forced: false,
        successor_is_gone: false,
    };
    let (owner, actions) = step(owner, Event::LogRead(Box::default(), Box::new(new)));
    assert!(matches!(&actions[..], [Action::Append(bodies)] if bodies[0].kind() == "fence"));
    let (owner, actions) = step(owner, Event::Appended(vec![record(0, 1, fence(None))]));
    assert_eq!(
        actions,
        [Action::FenceSink(None), Action::ReadMarker],
        "the sink only after the fence is durable"
    );
    step(owner, Event::Appended(vec![])).0
}

fn append(owner: Owner, body: Body) -> Owner {
    let event = match body.clone() {
        Body::Position { next, reason } => Event::PositionDue(next, reason),
        Body::Plan {
            from, until, sink, ..
        } => Event::PlanDue(crate::PlanDraft { from, until, sink }),
        other => panic!("{other:?}"),
    };
    let seq = owner.log().free();
    let (owner, actions) = step(owner, event);
    assert_eq!(actions, [Action::Append(vec![body.clone()])]);
    step(owner, Event::Appended(vec![record(seq, 1, body)])).0
}

fn candidate(n: u128, version: &str) -> OwnerInfo {
    OwnerInfo {
        id: id(n),
        host: "h".into(),
        pid: 8,
        version: version.into(),
        epoch: None,
        since: Timestamp(0),
    }
}

#[test]
fn nothing_is_planned_without_a_position() {
    let (_, actions) = step(owned(), Event::PlanDue(draft(None)));
    assert!(matches!(actions[..], [Action::Reject(_)]));
}

#[test]
fn nothing_is_committed_without_a_permit() {
    let owner = append(append(owned(), start()), plan(0, 0, 5));
    let write_id = owner.log().pending().expect("planned").write_id;
    let (owner, actions) = step(owner, Event::SinkCommitted(write_id, Receipt::default(), None));
    assert!(matches!(actions[..], [Action::Reject(_)]));
    let (owner, _) = step(owner, Event::PermitAsked(write_id));
    let (owner, actions) = step(owner, Event::PermitAsked(write_id));
    assert!(
        matches!(actions[..], [Action::Reject(_)]),
        "one permit publishes once"
    );
    let (_, actions) = step(
        owner,
        Event::SinkCommitted(write_id, Receipt::default(), Some(draft(Some(&at(None, 5))))),
    );
    assert!(
        matches!(&actions[..], [Action::Append(bodies)] if bodies.len() == 2),
        "one slot for both"
    );
}

#[test]
fn a_plan_says_of_every_partition_where_it_stands() {
    let owner = append(owned(), start());
    let nothing = crate::PlanDraft {
        from: at(None, 0)
            .0
            .keys()
            .map(|name| (name.clone(), Default::default()))
            .collect(),
        until: Default::default(),
        sink: draft(None).sink,
    };
    let (_, actions) = step(owner.clone(), Event::PlanDue(nothing));
    assert_eq!(actions, [Action::Append(vec![plan(0, 0, 0)])]);
    let (_, actions) = step(owner, Event::PlanDue(draft(Some(&at(None, 1)))));
    assert!(matches!(&actions[..], [Action::Gap(gap)] if gap.found == 1 && gap.expected == 0));
}

#[test]
fn a_take_over_is_accepted_once_and_may_be_withdrawn() {
    let owner = append(append(owned(), start()), plan(0, 0, 5));
    let (owner, actions) = step(owner, Event::HandOverAsked(candidate(2, "v2")));
    let accept = Action::Accept {
        batch: Some(BatchId(0)),
        end: at(None, 5),
    };
    assert_eq!(
        actions,
        [
            accept,
            Action::Tell(Request::HandOver {
                candidate: candidate(2, "v2")
            })
        ]
    );
    let (owner, actions) = step(owner, Event::HandOverAsked(candidate(3, "v3")));
    assert!(matches!(
        actions[..],
        [Action::Refuse(Refusal::OtherCandidate(_))]
    ));
    let (owner, actions) = step(owner, Event::HandOverWithdrawn(id(3)));
    assert_eq!(actions, [], "not the one who was accepted");
    let (owner, actions) = step(owner, Event::HandOverWithdrawn(id(2)));
    assert_eq!(actions, [Action::Tell(Request::HandOverWithdrawn)]);
    assert_eq!(owner.successor(), None);
}

#[test]
fn versions_do_not_replace_each_other_for_ever() {
    let records = log(vec![
        (1, fence(None)),
        (1, release(Some(id(2)))),
        (2, fence(Some("v1"))),
    ]);
    let log = Log::replay(&records);
    assert_eq!(answer_takeover(&log, "v1", true), Err(Refusal::Replaced));
    assert_eq!(answer_takeover(&log, "v2", true), Err(Refusal::SameVersion));
    assert_eq!(answer_takeover(&log, "v3", true), Ok(()));
    assert_eq!(answer_takeover(&log, "v3", false), Err(Refusal::Policy));
    assert!(Refusal::Replaced.degrades() && !Refusal::Policy.degrades());
}

#[test]
fn a_take_over_outranks_a_waiter_until_it_does_not_come() {
    let released = Log::replay(&log(vec![(1, fence(None)), (1, release(Some(id(2))))]));
    let claims = |n, gone| {
        claim(
            &released,
            Claimant {
                id: id(n),
                forced: false,
                successor_is_gone: gone,
            },
        )
    };
    assert_eq!(claims(3, false), Claim::HoldBack { successor: id(2) });
    let as_named = Claim::Fence {
        reason: FenceReason::Released,
        replaces: Some("v1".into()),
    };
    assert_eq!(claims(2, false), as_named);
    let as_next = Claim::Fence {
        reason: FenceReason::Released,
        replaces: None,
    };
    assert_eq!(claims(3, true), as_next, "nobody was replaced");
    let crashed = Log::replay(&log(vec![(1, fence(None)), (1, start())]));
    let expired = Claim::Fence {
        reason: FenceReason::Expired,
        replaces: None,
    };
    assert_eq!(
        claim(
            &crashed,
            Claimant {
                id: id(3),
                forced: false,
                successor_is_gone: false
            }
        ),
        expired
    );
}

#[test]
fn an_owner_that_is_forced_out_yields_at_once_but_never_while_it_publishes() {
    let owner = append(append(owned(), start()), plan(0, 0, 5));
    let write_id = owner.log().pending().expect("planned").write_id;
    let (idle, actions) = step(owner.clone(), Event::AbandonAsked("v2".into()));
    assert!(matches!(
        &actions[..],
        [
            Action::Unlock,
            Action::Exit(End::Fenced(_)),
            Action::Tell(Request::Stop { now: false })
        ]
    ));
    let (_, actions) = step(idle, Event::PermitAsked(write_id));
    assert!(
        matches!(&actions[..], [Action::Exit(End::Fenced(_))]),
        "no permit after that"
    );

    let (owner, actions) = step(owner, Event::PermitAsked(write_id));
    assert!(matches!(actions[..], [Action::CommitSink(_)]));
    let (owner, actions) = step(owner, Event::AbandonAsked("v2".into()));
    assert_eq!(actions, [], "the sink may be at work");
    let (owner, actions) = step(
        owner,
        Event::SinkCommitted(write_id, Receipt::default(), Some(draft(Some(&at(None, 5))))),
    );
    assert!(
        matches!(&actions[..], [Action::Append(bodies)] if bodies.len() == 1),
        "but no further batch"
    );
    let (_, actions) = step(owner, Event::Appended(vec![record(3, 1, commit(0, 2))]));
    assert_eq!(actions[0], Action::Unlock);
}

#[test]
fn a_write_that_was_abandoned_under_way_poisons_the_lease() {
    let (owner, _) = step(owned(), Event::PositionDue(at(None, 0), PositionReason::Start));
    let (_, actions) = step(owner, Event::PlanDue(draft(None)));
    assert!(matches!(
        &actions[..],
        [Action::Unlock, Action::Exit(End::Poisoned(_))]
    ));
}

#[track_caller]
fn resumes(records: Vec<Record>, marker: Marker, expected: &str) {
    let (owner, _) = step(Owner::candidate(id(9), true), Event::Acquired);
    let new = NewFence {
        host: "h".into(),
        pid: 7,
        shape: JobShape::default(),
        forced: false,
        successor_is_gone: true,
    };
    let (owner, _) = step(
        owner,
        Event::LogRead(Box::new(Log::replay(&records)), Box::new(new)),
    );
    let (owner, _) = step(
        owner,
        Event::Appended(vec![record(records.len() as u64, 2, fence(None))]),
    );
    let (_, actions) = step(owner, Event::MarkerRead(marker.clone()));
    let found = format!("{:?}", actions[0]);
    assert!(found.starts_with(expected), "{marker:?}: {found}");
}

#[test]
fn the_truth_table_of_resume_holds() {
    let at_batch = |batch, plan_seq: u64| Marker::At {
        batch: BatchId(batch),
        epoch: Epoch(1),
        plan: WriteId(Uuid::from_u128(u128::from(plan_seq) * 10 + 1)),
    };
    let committed = || {
        log(vec![
            (1, fence(None)),
            (1, start()),
            (1, plan(0, 0, 5)),
            (1, commit(0, 2)),
        ])
    };
    let planned = || [committed(), vec![record(4, 1, plan(1, 5, 9))]].concat();
    let first = || log(vec![(1, fence(None)), (1, start()), (1, plan(0, 0, 5))]);
    resumes(committed(), Marker::Untracked, "Idle");
    resumes(committed(), at_batch(0, 2), "Idle");
    resumes(committed(), at_batch(1, 2), "Halt");
    resumes(planned(), Marker::Untracked, "Run");
    resumes(planned(), at_batch(0, 2), "Run");
    resumes(planned(), at_batch(1, 4), "Adopt");
    resumes(planned(), at_batch(1, 2), "Halt");
    resumes(planned(), at_batch(2, 4), "Halt");
    resumes(planned(), Marker::Nothing, "Halt");
    resumes(first(), Marker::Nothing, "Run");
    resumes(first(), at_batch(0, 2), "Adopt");
}
