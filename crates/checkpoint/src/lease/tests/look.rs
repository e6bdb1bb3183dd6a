//! Status, stop, show, preview.

use baton_core::{BatchId, Receipt};
use std::time::Duration;

use super::support::{Lab, batch, next, ready};
use crate::testing::{at, draft};
use crate::{Report, Request, State, StopOutcome, inspect, preview, show, stop};

#[tokio::test(flavor = "multi_thread")]
async fn status_tells_the_truth_before_during_and_after() {
    let lab = Lab::new();
    let status = || async { inspect(&lab.location(), &lab.deps).await.expect("a status") };
    assert_eq!(status().await.state, State::Empty);
    assert_eq!(
        preview(&lab.location(), &lab.deps)
            .await
            .expect("nothing")
            .map(|r| r.checkpoint),
        None
    );
    let mut lease = lab.owner("v1", 2).await;
    lease.report(Report {
        lag: Some(at(None, 7)),
        last_error: Some("slow".into()),
    });
    let running = status().await;
    assert_eq!((running.state, running.responding), (State::Running, Some(true)));
    assert_eq!(running.owner.as_ref(), Some(lease.owner()));
    assert_eq!(
        (running.last_planned_batch, running.last_committed_batch),
        (Some(BatchId(1)), Some(BatchId(1)))
    );
    assert_eq!(running.offsets, Some(at(None, 10)));
    assert_eq!(
        (running.lag.clone(), running.last_error.as_deref()),
        (Some(at(None, 7)), Some("slow"))
    );
    let planned = lease
        .plan(draft(next(&lease).as_ref()))
        .await
        .expect("it is durable");
    assert_eq!(status().await.last_planned_batch, Some(planned.batch));
    let seen = preview(&lab.location(), &lab.deps)
        .await
        .expect("readable")
        .expect("there");
    assert_eq!(
        (seen.last_committed, seen.pending.map(|p| p.batch)),
        (Some(BatchId(1)), Some(planned.batch))
    );
    drop(lease);
    let interrupted = status().await;
    assert_eq!(
        (interrupted.state, interrupted.owner, interrupted.responding),
        (State::Interrupted, None, None)
    );
    assert_eq!(interrupted.offsets, Some(at(None, 10)));
    assert_eq!(interrupted.last_error.as_deref(), Some("slow"));
    let mut lease = lab.acquire("v1").await.expect("it is free");
    ready(&mut lease).await;
    lease.release(None).await.expect("idle");
    let released = status().await;
    assert_eq!(
        (released.state, released.owner, released.offsets),
        (State::Released, None, Some(at(None, 15)))
    );
}

#[tokio::test]
async fn status_serialises_as_the_interface_says() {
    let lab = Lab::new();
    let lease = lab.owner("v1", 1).await;
    let status = inspect(&lab.location(), &lab.deps).await.expect("a status");
    let json = serde_json::to_value(&status).expect("it serialises");
    let keys: Vec<&str> = json
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "checkpoint",
        "checkpointId",
        "job",
        "state",
        "owner",
        "standby",
        "lastPlannedBatch",
        "lastCommittedBatch",
        "lastCommitAt",
        "offsets",
        "lag",
        "lagAt",
        "responding",
        "lastError",
    ];
    assert_eq!(keys, expected);
    let owner: Vec<&str> = json["owner"]
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(owner, ["id", "host", "pid", "version", "epoch", "since"]);
    assert_eq!(json["state"], "running");
    assert_eq!(json["checkpoint"], lab.path().to_str().expect("a plain path"));
    let since = json["owner"]["since"].as_str().expect("a stamp");
    assert!(since.len() == 24 && since.ends_with('Z'), "{since}");
    drop(lease);
}

#[tokio::test(flavor = "multi_thread")]
async fn show_reads_the_log_while_it_is_owned_and_shared_slots_have_one_number() {
    let lab = Lab::new();
    let mut lease = lab.owner("v1", 0).await;
    let first = lease
        .plan(draft(next(&lease).as_ref()))
        .await
        .expect("it is durable");
    drop(lease.permit(&first).await.expect("it is ours"));
    let more = draft(Some(&first.until));
    let second = lease
        .commit(first, &Receipt::default(), Some(more))
        .await
        .expect("it is durable")
        .expect("due");
    assert_eq!(second.batch, BatchId(1));
    let shown = show(&lab.location(), &lab.deps).await.expect("a log");
    let kinds: Vec<(u64, &str)> = shown
        .records
        .iter()
        .map(|record| {
            (
                record["seq"].as_u64().expect("a number"),
                record["kind"].as_str().expect("a kind"),
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            (0, "fence"),
            (1, "position"),
            (2, "plan"),
            (3, "commit"),
            (3, "plan")
        ]
    );
    let plan = &shown.records[4];
    assert_eq!(
        (&plan["batchId"], &plan["version"], &plan["epoch"]),
        (&1.into(), &"v1".into(), &1.into())
    );
    assert_eq!(plan["start"]["s"]["t"]["0"], 5);
    assert_eq!(plan["end"]["s"]["t"]["0"], 10);
    assert_eq!(shown.checkpoint_id, Some(lease.checkpoint()));
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_beside_a_busy_owner_never_see_damage() {
    let lab = Lab::new();
    let mut lease = lab.owner("v1", 1).await;
    let (location, deps) = (lab.location(), lab.deps.clone());
    let reader = tokio::spawn(async move {
        let mut seen = 0;
        for _ in 0..40 {
            let shown = show(&location, &deps).await.expect("a whole log");
            assert_eq!(shown.damage, None);
            let records = shown.records.len();
            assert!(records > 0);
            seen = records.max(seen);
            preview(&location, &deps).await.expect("a whole log");
        }
        seen
    });
    while !reader.is_finished() {
        batch(&mut lease).await;
    }
    assert!(reader.await.expect("it ends well") > 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_batches_are_retired_and_fences_are_kept() {
    let lab = Lab::new();
    for _ in 0..3 {
        let options = crate::AcquireOptions {
            min_batches_to_retain: 4,
            ..Default::default()
        };
        let mut lease = lab.seek("v1", options).done().await.expect("free");
        ready(&mut lease).await;
        for _ in 0..20 {
            batch(&mut lease).await;
        }
    }
    let shown = show(&lab.location(), &lab.deps).await.expect("a log");
    let count = |kind: &str| {
        shown
            .records
            .iter()
            .filter(|record| record["kind"] == kind)
            .count()
    };
    assert_eq!((count("fence"), count("commit")), (3, 5));
    let lease = lab.acquire("v1").await.expect("it is whole");
    assert_eq!(lease.recovery().last_committed, Some(BatchId(59)));
    assert_eq!(lease.recovery().next, Some(at(None, 300)));
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_returns_when_the_owner_has_released() {
    let lab = Lab::new();
    let wait = Duration::from_secs(5);
    assert_eq!(
        stop(&lab.location(), false, wait, &lab.deps)
            .await
            .expect("nobody"),
        StopOutcome::NotRunning
    );
    let mut lease = lab.owner("v1", 1).await;
    let (location, deps) = (lab.location(), lab.deps.clone());
    let stopping = tokio::spawn(async move { stop(&location, false, wait, &deps).await });
    assert_eq!(lease.requests().recv().await, Some(Request::Stop { now: false }));
    lab.sleep(30).await;
    assert!(!stopping.is_finished());
    lease.release(None).await.expect("idle");
    assert_eq!(
        stopping.await.expect("it ends").expect("it released"),
        StopOutcome::Released
    );
    let mut lease = lab.acquire("v1").await.expect("it is free at once");
    assert_eq!(
        stop(&lab.location(), true, wait, &lab.deps).await.expect("told"),
        StopOutcome::Told
    );
    assert_eq!(lease.requests().recv().await, Some(Request::Stop { now: true }));
    let error = stop(&lab.location(), false, Duration::from_millis(50), &lab.deps)
        .await
        .expect_err("it goes on");
    assert!(error.to_string().contains("v1 (pid"), "{error}");
}
