//! Waiting, taking over, forcing, giving up.

use baton_core::{BatchId, Epoch, Receipt};
use std::time::Duration;

use super::support::{Lab, batch, next, options, ready};
use crate::protocol::FenceReason;
use crate::testing::{at, draft};
use crate::{AcquireEvent, AcquireOptions, Error, IfOwned, OnDrainTimeout, Request, inspect, show};

#[tokio::test(flavor = "multi_thread")]
async fn a_take_over_continues_at_the_exact_next_offset() {
    let lab = Lab::new();
    let mut old = lab.owner("v1", 2).await;
    let running = old.plan(draft(next(&old).as_ref())).await.expect("it is durable");
    let mut seeking = lab.seek("v2", options(IfOwned::Takeover));
    let Some(Request::HandOver { candidate }) = old.requests().recv().await else {
        panic!("it is asked")
    };
    assert_eq!(candidate.version, "v2");
    let (batch_number, end) = seeking
        .event(|event| match event {
            AcquireEvent::Accepted { batch, end } => Some((*batch, end.clone())),
            _ => None,
        })
        .await;
    assert_eq!(
        (batch_number, end),
        (Some(BatchId(2)), at(None, 15)),
        "said before the batch is done"
    );
    lab.sleep(60).await;
    assert!(!seeking.task.is_finished(), "the old one is at work");
    drop(old.permit(&running).await.expect("it is ours"));
    old.commit(running, &Receipt::default(), None)
        .await
        .expect("it is durable");
    let committed_at = inspect(&lab.location(), &lab.deps)
        .await
        .expect("a status")
        .last_commit_at;
    old.release(Some(candidate.id)).await.expect("nothing is pending");
    let mut new = seeking.done().await.expect("it was named");
    assert_eq!(new.epoch(), Epoch(2));
    assert_eq!(new.recovery().next, Some(at(None, 15)));
    let before = new.recovery().handed_over_by.clone().expect("a hand-over");
    assert_eq!(
        (before.owner.version.as_str(), before.last_batch),
        ("v1", Some(BatchId(2)))
    );
    assert_eq!(before.committed_at, committed_at);
    assert!(before.median_interval.is_some());
    ready(&mut new).await;
    batch(&mut new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_goes_away_withdraws() {
    let lab = Lab::new();
    let mut owner = lab.owner("v1", 1).await;
    let seeking = lab.seek("v2", options(IfOwned::Takeover));
    assert!(matches!(
        owner.requests().recv().await,
        Some(Request::HandOver { .. })
    ));
    seeking.task.abort();
    assert_eq!(owner.requests().recv().await, Some(Request::HandOverWithdrawn));
    batch(&mut owner).await;
    let second = lab.seek("v3", options(IfOwned::Takeover));
    let Some(Request::HandOver { candidate }) = owner.requests().recv().await else {
        panic!("it is asked")
    };
    assert_eq!(candidate.version, "v3");
    owner.release(Some(candidate.id)).await.expect("idle");
    second.done().await.expect("it was named");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_starts_when_the_owner_releases_or_dies_and_status_shows_it() {
    for dies in [false, true] {
        let lab = Lab::new();
        let owner = lab.owner("v1", 1).await;
        let mut seeking = lab.seek("v2", options(IfOwned::Wait));
        let holder = seeking
            .event(|event| match event {
                AcquireEvent::Waiting { holder, .. } => Some(holder.clone()),
                _ => None,
            })
            .await;
        assert_eq!(holder.expect("it says").version, "v1");
        let status = inspect(&lab.location(), &lab.deps).await.expect("a status");
        assert_eq!(status.standby.expect("one").version, "v2");
        if dies {
            drop(owner);
        } else {
            owner.release(None).await.expect("idle");
        }
        let start = lab.deps.clock.elapsed();
        let lease = seeking.done().await.expect("it is free");
        assert!(lab.deps.clock.elapsed() - start < Duration::from_millis(500));
        assert_eq!(lease.recovery().handed_over_by, None, "nobody handed over");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_take_over_outranks_those_who_waited_longer() {
    let lab = Lab::new();
    let mut owner = lab.owner("v1", 1).await;
    let waiters: Vec<_> = (0..4)
        .map(|n| lab.seek(&format!("w{n}"), options(IfOwned::Wait)))
        .collect();
    lab.sleep(60).await;
    let taker = lab.seek("v2", options(IfOwned::Takeover));
    let Some(Request::HandOver { candidate }) = owner.requests().recv().await else {
        panic!("it is asked")
    };
    owner.release(Some(candidate.id)).await.expect("idle");
    let lease = taker.done().await.expect("it was named");
    assert_eq!((lease.epoch(), lease.owner().version.as_str()), (Epoch(2), "v2"));
    waiters.iter().for_each(|waiter| waiter.task.abort());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_does_not_come_is_not_waited_for_for_ever() {
    let lab = Lab::new();
    let owner = lab.owner("v1", 1).await;
    // Nobody with this id exists.
    owner
        .release(Some(lab.candidate("v2").owner))
        .await
        .expect("idle");
    let plain = lab.acquire("v3").await.expect_err("it is promised to somebody");
    assert!(matches!(plain, Error::Held { .. }), "{plain}");
    let start = lab.deps.clock.elapsed();
    let lease = lab
        .seek("v3", options(IfOwned::Wait))
        .done()
        .await
        .expect("nobody comes");
    let waited = lab.deps.clock.elapsed() - start;
    assert!(
        waited > Duration::from_secs(4) && waited < Duration::from_secs(7),
        "{waited:?}"
    );
    assert_eq!(lease.epoch(), Epoch(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_under_an_orchestrator_that_restarts_everything_do_not_ping_pong() {
    let lab = Lab::new();
    let mut first = lab.owner("v1", 1).await;
    let taker = lab.seek("v2", options(IfOwned::Takeover));
    let Some(Request::HandOver { candidate }) = first.requests().recv().await else {
        panic!("it is asked")
    };
    first.release(Some(candidate.id)).await.expect("idle");
    let mut second = taker.done().await.expect("it was named");
    for version in ["v1", "v2"] {
        // Restarted, because it exited with 0; or a second replica.
        let mut again = lab.seek(version, options(IfOwned::Takeover));
        let reason = again
            .event(|event| match event {
                AcquireEvent::Degraded { reason } => Some(reason.clone()),
                _ => None,
            })
            .await;
        assert!(!reason.is_empty());
        again
            .event(|event| matches!(event, AcquireEvent::Waiting { .. }).then_some(()))
            .await;
        assert!(
            second.requests().try_recv().is_err(),
            "{version} does not disturb"
        );
        again.task.abort();
    }
    let third = lab.seek("v3", options(IfOwned::Takeover));
    assert!(matches!(
        second.requests().recv().await,
        Some(Request::HandOver { .. })
    ));
    third.task.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_a_time_out_and_a_wait_that_times_out_name_the_owner() {
    let lab = Lab::new();
    let mut candidate = lab.candidate("v1");
    candidate.handover = false;
    let (events, _) = tokio::sync::mpsc::channel(1);
    let stubborn = crate::acquire(&lab.location(), candidate, Default::default(), &lab.deps, events).await;
    let error = lab
        .seek("v2", options(IfOwned::Takeover))
        .done()
        .await
        .expect_err("refused");
    assert!(
        matches!(error, Error::TakeoverRefused { .. }) && error.to_string().contains("v1 (pid"),
        "{error}"
    );
    drop(stubborn);

    let mut slow = lab.owner("v1", 1).await;
    let impatient = AcquireOptions {
        drain_timeout: Duration::from_millis(150),
        ..options(IfOwned::Takeover)
    };
    let error = lab.seek("v2", impatient).done().await.expect_err("too slow");
    assert!(
        matches!(error, Error::DrainTimeout { .. }) && error.to_string().contains("v1 (pid"),
        "{error}"
    );
    assert!(matches!(
        slow.requests().recv().await,
        Some(Request::HandOver { .. })
    ));
    assert_eq!(slow.requests().recv().await, Some(Request::HandOverWithdrawn));

    let brief = AcquireOptions {
        wait_timeout: Some(Duration::from_millis(100)),
        ..options(IfOwned::Wait)
    };
    let error = lab.seek("v2", brief).done().await.expect_err("it does not end");
    assert!(
        matches!(error, Error::WaitTimeout { .. }) && error.to_string().contains("v1 (pid"),
        "{error}"
    );
    batch(&mut slow).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn force_makes_an_owner_yield_and_leaves_its_batch_to_be_run_again() {
    let lab = Lab::new();
    let mut old = lab.owner("v1", 1).await;
    let running = old.plan(draft(next(&old).as_ref())).await.expect("it is durable");
    let mut seeking = lab.seek("v2", options(IfOwned::Force));
    let holder = seeking
        .event(|event| match event {
            AcquireEvent::Forced { holder } => Some(holder.clone()),
            _ => None,
        })
        .await;
    assert_eq!(holder.version, "v1");
    let mut new = seeking.done().await.expect("it is free");
    assert_eq!(old.requests().recv().await, Some(Request::Stop { now: false }));
    let error = old.permit(&running).await.expect_err("not any more");
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
    let error = old.release(None).await.expect_err("not any more");
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
    assert_eq!(new.recovery().pending.as_ref().map(|p| p.batch), Some(BatchId(1)));
    ready(&mut new).await;
    let shown = show(&lab.location(), &lab.deps).await.expect("a log");
    let fences: Vec<_> = shown
        .records
        .iter()
        .filter(|record| record["kind"] == "fence")
        .collect();
    assert_eq!(fences[1]["reason"], FenceReason::Forced.as_str());
    assert_eq!(fences[1]["replaces"], "v1");
}

#[tokio::test(flavor = "multi_thread")]
async fn force_waits_for_a_publication_and_never_kills_itself() {
    let lab = Lab::new();
    let mut old = lab.owner("v1", 1).await;
    let running = old.plan(draft(next(&old).as_ref())).await.expect("it is durable");
    let permit = old.permit(&running).await.expect("it is ours");
    let error = lab
        .seek("v2", options(IfOwned::Force))
        .done()
        .await
        .expect_err("the sink is at work");
    assert!(matches!(error, Error::ForceFailed { .. }), "{error}");
    drop(permit);
    let seeking = lab.seek("v2", options(IfOwned::Force));
    lab.sleep(100).await;
    old.commit(running, &Receipt::default(), None)
        .await
        .expect_err("committed, and given up");
    let new = seeking.done().await.expect("it is free");
    assert_eq!(
        new.recovery().last_committed,
        Some(BatchId(1)),
        "what was published is committed"
    );
    assert_eq!(new.recovery().pending, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_time_out_may_be_followed_by_force() {
    let lab = Lab::new();
    let _slow = lab.owner("v1", 1).await;
    let determined = AcquireOptions {
        drain_timeout: Duration::from_millis(100),
        on_drain_timeout: OnDrainTimeout::Force,
        ..options(IfOwned::Takeover)
    };
    let lease = lab.seek("v2", determined).done().await.expect("it yields");
    assert_eq!(lease.epoch(), Epoch(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_does_not_fit_is_refused_before_anybody_is_asked() {
    let lab = Lab::new();
    let mut owner = lab.owner("v1", 1).await;
    for mode in [IfOwned::Takeover, IfOwned::Wait, IfOwned::Force] {
        let mut other = lab.candidate("v2");
        other.shape.job = "another".into();
        let (events, _) = tokio::sync::mpsc::channel(1);
        let error = crate::acquire(&lab.location(), other, options(mode), &lab.deps, events).await;
        let error = error.expect_err("another job");
        assert!(
            matches!(error, Error::Incompatible { .. }) && error.to_string().contains("another"),
            "{error}"
        );
    }
    assert!(owner.requests().try_recv().is_err());
    owner.release(None).await.expect("idle");
    let mut other = lab.candidate("v2");
    other.shape.job = "another".into();
    let (events, mut heard) = tokio::sync::mpsc::channel(4);
    let accept = AcquireOptions {
        accept_changes: true,
        ..AcquireOptions::default()
    };
    crate::acquire(&lab.location(), other, accept, &lab.deps, events)
        .await
        .expect("accepted");
    assert!(
        matches!(heard.recv().await, Some(AcquireEvent::Difference { refusals, .. }) if refusals.len() == 1)
    );
}
