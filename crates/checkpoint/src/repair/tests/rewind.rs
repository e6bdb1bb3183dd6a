//! Moving the position.

use baton_core::{BatchId, Epoch, ErrorKind, Position};

use super::support::{Lab, contents};
use crate::testing::at;
use crate::{Error, RepairError, RewindTo, rewind};

fn to(json: &str) -> RewindTo {
    RewindTo::offsets(json).expect("offsets")
}

fn after(batch: u64) -> RewindTo {
    RewindTo::AfterBatch(BatchId(batch))
}

#[track_caller]
fn refusal<T: std::fmt::Debug>(found: Result<T, Error>, kind: ErrorKind) -> RepairError {
    match found {
        Err(error) if error.kind() == kind => match error {
            Error::Repair(refused) => refused,
            other => panic!("{other}"),
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_batch_starts_where_the_named_one_ended_and_has_the_next_number() {
    let lab = Lab::released(4).await;
    let seen = rewind(&lab.location(), &after(1), &lab.deps)
        .await
        .expect("it can be moved")
        .expect("it is there");
    assert_eq!((seen.again, seen.skipped), (10, 0));
    assert_eq!((seen.from.clone(), seen.to.clone()), (at(None, 20), at(None, 10)));
    assert_eq!(
        (seen.last_committed_batch, seen.next_batch),
        (Some(BatchId(3)), BatchId(4))
    );
    assert_eq!(
        lab.next(&lab.location()).await,
        Some(at(None, 20)),
        "only looked at"
    );

    assert_eq!(
        seen.perform(false, &lab.deps).await.expect("moved"),
        Some(Epoch(2))
    );
    let records = lab.records(&lab.location()).await;
    let kinds: Vec<(&str, u64)> = records[records.len() - 3..]
        .iter()
        .map(|record| {
            let kind = record["kind"].as_str().expect("a kind");
            (kind, record["epoch"].as_u64().expect("a number"))
        })
        .collect();
    assert_eq!(kinds, [("fence", 2), ("position", 2), ("release", 2)]);
    assert_eq!(records[records.len() - 2]["reason"], "rewind");
    assert_eq!(records[records.len() - 3]["version"], "baton checkpoint rewind");

    let lease = lab.owner(1).await;
    assert_eq!(
        (lease.epoch(), lease.recovery().last_committed),
        (Epoch(3), Some(BatchId(3)))
    );
    drop(lease);
    let records = lab.records(&lab.location()).await;
    let plan = records
        .iter()
        .rev()
        .find(|record| record["kind"] == "plan")
        .expect("a plan");
    assert_eq!(
        (&plan["batchId"], &plan["start"]["s"]["t"]["0"]),
        (&4.into(), &10.into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_died_between_batches_leaves_a_position_that_can_be_moved() {
    let lab = Lab::new();
    drop(lab.owner(2).await);
    let seen = rewind(&lab.location(), &to(r#"{"t":{"0":3}}"#), &lab.deps).await;
    let seen = seen.expect("it can be moved").expect("it is there");
    assert_eq!(
        seen.perform(false, &lab.deps).await.expect("moved"),
        Some(Epoch(2))
    );
    assert_eq!(lab.next(&lab.location()).await, Some(at(None, 3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_batch_is_not_left_behind() {
    let lab = Lab::interrupted(2).await;
    let before = contents(&lab.path());
    let refused = rewind(&lab.location(), &after(0), &lab.deps).await;
    let refused = refusal(refused, ErrorKind::Failed);
    assert!(
        matches!(
            refused,
            RepairError::Pending {
                batch: BatchId(2),
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(contents(&lab.path()), before, "nothing was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_skipped_unless_that_is_said() {
    let lab = Lab::released(2).await;
    let before = contents(&lab.path());
    let seen = rewind(&lab.location(), &to(r#"{"s":{"t":{"0":14}}}"#), &lab.deps).await;
    let seen = seen.expect("it can be moved").expect("it is there");
    assert_eq!((seen.again, seen.skipped), (0, 4));
    let refused = refusal(seen.perform(false, &lab.deps).await, ErrorKind::Invalid);
    assert!(
        matches!(refused, RepairError::Skips { skipped: 4, .. }),
        "{refused}"
    );
    assert_eq!(contents(&lab.path()), before, "nothing was changed");
    seen.perform(true, &lab.deps).await.expect("said");
    assert_eq!(lab.next(&lab.location()).await, Some(at(None, 14)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_to_where_it_stands_writes_nothing() {
    let lab = Lab::released(2).await;
    let before = contents(&lab.path());
    let seen = rewind(&lab.location(), &after(1), &lab.deps).await;
    let seen = seen.expect("it can be moved").expect("it is there");
    assert_eq!(seen.partitions, []);
    assert_eq!(seen.perform(false, &lab.deps).await.expect("nothing to do"), None);
    assert_eq!(contents(&lab.path()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_named_and_not_disturbed() {
    let lab = Lab::released(2).await;
    let seen = rewind(&lab.location(), &after(0), &lab.deps).await;
    let seen = seen.expect("it can be moved").expect("it is there");
    let mut lease = lab.owner(0).await;
    for refused in [
        rewind(&lab.location(), &after(0), &lab.deps).await.map(drop),
        seen.perform(false, &lab.deps).await.map(drop),
    ] {
        let refused = refusal(refused, ErrorKind::Held);
        let RepairError::Owned { holder, command, .. } = &refused else {
            panic!("{refused}");
        };
        assert!(
            holder.contains("v1 (pid") && holder.contains("last batch 1"),
            "{holder}"
        );
        assert_eq!(*command, "rewind");
    }
    lease.confirm().expect("it is still the owner's");
    assert!(
        lease.requests().try_recv().is_err(),
        "nobody asked it for anything"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_what_is_done_or_nothing_is() {
    let lab = Lab::released(3).await;
    let seen = rewind(&lab.location(), &after(0), &lab.deps).await;
    let seen = seen.expect("it can be moved").expect("it is there");
    lab.owner(1).await.release(None).await.expect("idle");
    let refused = refusal(seen.perform(false, &lab.deps).await, ErrorKind::Unavailable);
    assert!(matches!(refused, RepairError::Changed { .. }), "{refused}");
    assert_eq!(
        lab.next(&lab.location()).await,
        Some(at(None, 20)),
        "it stays where it is"
    );
    let mut lease = lab.own(&lab.location()).await;
    lease
        .plan(crate::testing::draft(Some(&at(None, 20))))
        .await
        .expect("it is durable");
    drop(lease);
    let refused = refusal(seen.perform(false, &lab.deps).await, ErrorKind::Unavailable);
    assert!(matches!(refused, RepairError::Changed { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_nothing_yet_nothing_is_moved() {
    let lab = Lab::new();
    let found = rewind(&lab.location(), &after(0), &lab.deps).await;
    assert!(found.expect("no error").is_none() && !lab.path().exists());
    lab.own(&lab.location()).await.release(None).await.expect("idle");
    let refused = refusal(
        rewind(&lab.location(), &after(0), &lab.deps).await,
        ErrorKind::Failed,
    );
    assert!(matches!(refused, RepairError::NoPosition { .. }), "{refused}");
    let position: Option<Position> = lab.next(&lab.location()).await;
    assert_eq!(position, None);
}
