use baton_core::{BatchId, Epoch, OwnerId, Position, Receipt, SinkRef, Timestamp, WriteId};
use proptest::prelude::*;
use std::path::Path;
use uuid::Uuid;

use super::super::moves::{moves, total};
use super::{RepairError, RewindTo};
use crate::PositionReason;
use crate::protocol::{Body, Record};

fn position(json: &str) -> Position {
    serde_json::from_str(json).expect("a position")
}

#[track_caller]
fn check(next: &str, to: &str, expected: Result<&str, &str>) {
    let next = position(next);
    let found = RewindTo::offsets(to).and_then(|to| to.resolve(Path::new("/c"), &[], &next, None));
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, position(expected), "{to}"),
        (Err(RepairError::Offsets { reason }), Err(part)) => assert!(reason.contains(part), "{to}: {reason}"),
        (found, _) => panic!("{to}: {found:?}, expected {expected:?}"),
    }
}

const ONE: &str = r#"{"m":{"t":{"0":10,"1":20}}}"#;
const TWO: &str = r#"{"a":{"t":{"0":10}},"b":{"t":{"0":5},"u":{"0":7}}}"#;

#[test]
fn offsets_are_named_in_sparks_form_or_with_their_source_and_others_stay() {
    check(ONE, r#"{"t":{"0":4}}"#, Ok(r#"{"m":{"t":{"0":4,"1":20}}}"#));
    check(ONE, r#"{"m":{"t":{"1":4}}}"#, Ok(r#"{"m":{"t":{"0":10,"1":4}}}"#));
    check(
        TWO,
        r#"{"u":{"0":9}}"#,
        Ok(r#"{"a":{"t":{"0":10}},"b":{"t":{"0":5},"u":{"0":9}}}"#),
    );
    check(
        TWO,
        r#"{"a":{"t":{"0":1}},"b":{"t":{"0":2}},"u":{"0":3}}"#,
        Ok(r#"{"a":{"t":{"0":1}},"b":{"t":{"0":2},"u":{"0":3}}}"#),
    );
}

#[test]
fn what_cannot_be_meant_is_refused_in_words() {
    check(ONE, r#"{"t":{"0":-2}}"#, Err("-2 (earliest) for t-0"));
    check(ONE, r#"{"t":{"0":-1}}"#, Err("-1 (latest) for t-0"));
    check(ONE, r#"{"t":{"0":-7}}"#, Err("-7 for t-0 is below 0"));
    check(ONE, r#"{"t":{"2":1}}"#, Err("no t-2; it has m/t-0, m/t-1"));
    check(ONE, r#"{"x":{"t":{"0":1}}}"#, Err("no t-0 of source `x`"));
    check(TWO, r#"{"t":{"0":1}}"#, Err("the sources `a` and `b`"));
    check(ONE, r#"{"t":{"0":1,"0":2}}"#, Err("t-0 is named twice"));
    check(
        ONE,
        r#"{"t":{"0":1},"m":{"t":{"0":1}}}"#,
        Err("t-0 is named twice"),
    );
    check(
        ONE,
        r#"{"t":{"00":1}}"#,
        Err("`00` of topic `t` is no partition number"),
    );
    check(ONE, r#"{"t":{"x":1}}"#, Err("`x` of topic `t`"));
    check(ONE, r#"{"t":{"0":"1"}}"#, Err("t-0 has a text"));
    check(ONE, r#"{"t":{"0":1.5}}"#, Err("not whole"));
    check(
        ONE,
        r#"{"t":{"0":99999999999999999999}}"#,
        Err("t-0 has a number"),
    );
    check(ONE, r#"{"t":{"0":[1]}}"#, Err("a list"));
    check(
        ONE,
        r#"{"m":{"t":{"0":1},"u":3}}"#,
        Err("`u` of source `m` has the number 3"),
    );
    for empty in ["{}", r#"{"t":{}}"#, r#"{"m":{"t":{}}}"#] {
        check(ONE, empty, Err("no partition"));
    }
    for garbage in ["", "4000", "null", "[]", "{t:0}", "\"earliest\""] {
        check(ONE, garbage, Err("write {\"topic\""));
    }
}

fn record(seq: u64, body: Body) -> Record {
    Record {
        seq,
        epoch: Epoch(1),
        write_id: WriteId(Uuid::nil()),
        owner: OwnerId(Uuid::nil()),
        at: Timestamp(0),
        version: "v1".into(),
        body,
        handover: None,
    }
}

/// Batches 3, 4 and 5, the last one planned only; partition 1 comes with batch 4, partition 2 with batch 5.
fn log() -> Vec<Record> {
    let plan = |seq, batch, from: &str, until: &str| {
        let (from, until) = (position(from), position(until));
        let sink = SinkRef::default();
        record(
            seq,
            Body::Plan {
                batch: BatchId(batch),
                from,
                until,
                sink,
            },
        )
    };
    let commit = |seq, batch| {
        let (plan, receipt) = (WriteId(Uuid::nil()), Receipt::default());
        record(
            seq,
            Body::Commit {
                batch: BatchId(batch),
                plan,
                receipt,
            },
        )
    };
    let moved = position(r#"{"m":{"t":{"0":12}}}"#);
    vec![
        plan(10, 3, r#"{"m":{"t":{"0":0}}}"#, r#"{"m":{"t":{"0":10}}}"#),
        commit(11, 3),
        record(
            12,
            Body::Position {
                next: moved,
                reason: PositionReason::Gap,
            },
        ),
        plan(
            13,
            4,
            r#"{"m":{"t":{"0":12,"1":7}}}"#,
            r#"{"m":{"t":{"0":20,"1":9}}}"#,
        ),
        commit(14, 4),
        plan(
            15,
            5,
            r#"{"m":{"t":{"0":20,"1":9,"2":3}}}"#,
            r#"{"m":{"t":{"0":30,"1":9,"2":4}}}"#,
        ),
    ]
}

#[test]
fn after_a_batch_means_where_it_ended_and_where_later_partitions_began() {
    let next = position(r#"{"m":{"t":{"0":30,"1":9,"2":4,"3":1}}}"#);
    let after = |batch, committed| {
        RewindTo::AfterBatch(BatchId(batch)).resolve(Path::new("/c"), &log(), &next, committed)
    };
    let expected = position(r#"{"m":{"t":{"0":10,"1":7,"2":3,"3":1}}}"#);
    assert_eq!(after(3, Some(BatchId(5))), Ok(expected));
    let expected = position(r#"{"m":{"t":{"0":20,"1":9,"2":3,"3":1}}}"#);
    assert_eq!(after(4, Some(BatchId(5))), Ok(expected));
    let kept = |found: Result<Position, RepairError>| match found {
        Err(RepairError::NoSuchBatch { kept, .. }) => kept,
        other => panic!("{other:?}"),
    };
    assert_eq!(kept(after(2, Some(BatchId(4)))), "it has batches 3 to 4");
    assert_eq!(
        kept(after(5, Some(BatchId(4)))),
        "it has batches 3 to 4",
        "planned is not ended"
    );
    assert_eq!(kept(after(4, Some(BatchId(3)))), "it has batch 3 only");
    assert_eq!(kept(after(u64::MAX, None)), "it has no committed batch yet");
}

#[test]
fn each_partition_says_what_is_read_again_and_what_is_skipped() {
    let from = position(r#"{"a":{"t":{"0":4100,"1":100,"2":5}},"b":{"t":{"0":1}}}"#);
    let to = position(r#"{"a":{"t":{"0":4000,"1":150,"2":5}},"b":{"t":{"0":0}}}"#);
    let found = moves(&from, &to);
    let shown: Vec<String> = found
        .iter()
        .map(|m| {
            format!(
                "{}/{}-{} {} {} {} {}",
                m.source, m.topic, m.partition, m.from, m.to, m.again, m.skipped
            )
        })
        .collect();
    assert_eq!(
        shown,
        ["a/t-0 4100 4000 100 0", "a/t-1 100 150 0 50", "b/t-0 1 0 1 0"]
    );
    assert_eq!(
        (total(&found, |m| m.again), total(&found, |m| m.skipped)),
        (101, 50)
    );
    assert_eq!(moves(&from, &from), []);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,40}", json in r#"[{}\[\]":,0-9tm.e-]{0,40}"#) {
        for text in [text, json] {
            if let Ok(to) = RewindTo::offsets(&text) {
                drop(to.resolve(Path::new("/c"), &[], &position(ONE), None));
            }
        }
    }

    #[test]
    fn only_what_is_named_moves(offsets in proptest::collection::vec((0..2_i32, 0..i64::MAX), 1..3)) {
        let before = position(ONE);
        for (partition, offset) in offsets {
            let to = RewindTo::offsets(&format!(r#"{{"t":{{"{partition}":{offset}}}}}"#)).expect("offsets");
            let after = to.resolve(Path::new("/c"), &[], &before, None).expect("known");
            let moved = moves(&before, &after);
            prop_assert!(moved.iter().all(|m| m.partition == partition && m.to.0 == offset), "{:?}", moved);
            prop_assert!(moved.len() <= 1 && after.0.len() == before.0.len());
        }
    }
}
