mod support;

use baton_core::{Epoch, OwnerId, Receipt};
use std::time::Duration;

use self::support::{batch, next, ready, run};
use crate::lease::tests::support::options;
use crate::testing::draft;
use crate::{AcquireEvent, AcquireOptions, Error, IfOwned, Request, State, StopOutcome};

#[test]
fn a_plain_start_is_refused_as_soon_as_the_owner_is_seen_to_live() {
    run(async |lab| {
        let mut owner = lab.owner("v1", 3).await;
        let began = lab.elapsed();
        let error = lab.acquire("v2").await.expect_err("it is owned");
        assert!(
            matches!(&error, Error::Held { holder, .. } if holder.contains("v1")),
            "{error}"
        );
        let waited = lab.elapsed() - began;
        assert!(waited < Duration::from_secs(3), "{waited:?}");
        batch(&mut owner).await;
    });
}

#[test]
fn of_two_first_starts_one_wins() {
    run(async |lab| {
        let (one, two) = tokio::join!(lab.acquire("v1"), lab.acquire("v2"));
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
        let winner = one.or(two).expect("one of them");
        assert_eq!(winner.epoch(), Epoch(1));
    });
}

#[test]
fn a_take_over_goes_on_at_the_exact_next_record() {
    run(async |lab| {
        let mut old = lab.owner("v1", 3).await;
        let running = old.plan(draft(next(&old).as_ref())).await.expect("durable");
        let mut new = lab.seek("v2", options(IfOwned::Takeover));
        let Some(Request::HandOver { candidate }) = old.requests().recv().await else {
            panic!("it is asked")
        };
        let end = new
            .event(|event| match event {
                AcquireEvent::Accepted { end, .. } => Some(end.clone()),
                _ => None,
            })
            .await;
        assert_eq!(end, running.until);
        drop(old.permit(&running).await.expect("it is ours"));
        old.commit(running, &Receipt::default(), None)
            .await
            .expect("durable");
        let released = lab.elapsed();
        old.release(Some(candidate.id)).await.expect("it can");
        let mut new = new.done().await.expect("it is its turn");
        let waited = lab.elapsed() - released;
        assert!(waited <= Duration::from_millis(100), "{waited:?}");
        assert_eq!(new.epoch(), Epoch(2));
        assert_eq!(new.recovery().next.as_ref(), Some(&end));
        ready(&mut new).await;
        batch(&mut new).await;
    });
}

#[test]
fn a_waiter_starts_when_the_owner_releases_and_when_it_dies() {
    run(async |lab| {
        let owner = lab.owner("v1", 2).await;
        let waiter = lab.seek("v2", options(IfOwned::Wait));
        lab.sleep(5_000).await;
        owner.release(None).await.expect("it can");
        let released = lab.elapsed();
        let owner = waiter.done().await.expect("it is free");
        let waited = lab.elapsed() - released;
        assert!(waited <= Duration::from_secs(3), "{waited:?}");

        let waiter = lab.seek("v3", options(IfOwned::Wait));
        lab.sleep(5_000).await;
        drop(owner);
        let died = lab.elapsed();
        let owner = waiter.done().await.expect("nobody lives");
        let waited = lab.elapsed() - died;
        let lease = AcquireOptions::default().lease;
        assert!(
            waited >= lease && waited <= lease + Duration::from_secs(5),
            "{waited:?}"
        );
        assert_eq!(owner.epoch(), Epoch(3));
    });
}

#[test]
fn a_dead_owners_place_is_taken_by_a_plain_start_after_its_lease() {
    run(async |lab| {
        drop(lab.owner("v1", 1).await);
        let owner = lab.acquire("v1").await.expect("nobody lives");
        assert_eq!(owner.epoch(), Epoch(2));
    });
}

#[test]
fn an_idle_owner_that_was_replaced_by_force_finds_out_by_itself() {
    run(async |lab| {
        let mut old = lab.owner("v1", 2).await;
        let new = lab
            .seek("v2", options(IfOwned::Force))
            .done()
            .await
            .expect("by force");
        assert_eq!(new.epoch(), Epoch(2));
        assert_eq!(old.requests().recv().await, Some(Request::Stop { now: false }));
        let error = old.confirm().expect_err("it is another's");
        assert!(
            matches!(&error, Error::Fenced { reason, .. } if reason.contains("v2")),
            "{error}"
        );
    });
}

#[test]
fn a_busy_owner_that_was_replaced_can_write_nothing_more() {
    run(async |lab| {
        let mut old = lab.owner("v1", 2).await;
        let new = lab
            .seek("v2", options(IfOwned::Force))
            .done()
            .await
            .expect("by force");
        let error = old.plan(draft(next(&old).as_ref())).await.expect_err("too late");
        assert!(
            matches!(&error, Error::Fenced { reason, .. } if reason.contains("epoch 2")),
            "{error}"
        );
        assert_eq!(next(&new), next(&old));
    });
}

#[test]
fn an_owner_that_slept_looks_before_it_publishes() {
    run(async |lab| {
        let mut old = lab.owner("v1", 2).await;
        let planned = old.plan(draft(next(&old).as_ref())).await.expect("durable");
        old.sleeps_for_tests();
        let mut new = lab
            .seek("v2", options(IfOwned::Wait))
            .done()
            .await
            .expect("it is silent");
        let error = old.permit(&planned).await.expect_err("it is another's");
        assert!(matches!(error, Error::Fenced { .. }), "{error}");
        ready(&mut new).await;
    });
}

#[test]
fn an_owner_that_only_slept_goes_on() {
    run(async |lab| {
        let mut old = lab.owner("v1", 2).await;
        let planned = old.plan(draft(next(&old).as_ref())).await.expect("durable");
        old.sleeps_for_tests();
        lab.sleep(60_000).await;
        drop(old.permit(&planned).await.expect("nobody wanted it"));
        old.commit(planned, &Receipt::default(), None)
            .await
            .expect("durable");
    });
}

#[test]
fn a_successor_that_does_not_come_is_waited_for_only_so_long() {
    run(async |lab| {
        let owner = lab.owner("v1", 2).await;
        let waiter = lab.seek("v2", options(IfOwned::Wait));
        lab.sleep(2_000).await;
        owner
            .release(Some(OwnerId(lab.deps.rng.uuid())))
            .await
            .expect("it can");
        let released = lab.elapsed();
        let owner = waiter.done().await.expect("nobody comes");
        let waited = lab.elapsed() - released;
        assert!(
            waited >= Duration::from_secs(5) && waited <= Duration::from_secs(9),
            "{waited:?}"
        );
        assert_eq!(owner.epoch(), Epoch(2));
    });
}

#[test]
fn a_candidate_that_goes_away_is_forgotten() {
    run(async |lab| {
        let mut owner = lab.owner("v1", 1).await;
        let seeking = lab.seek("v2", options(IfOwned::Takeover));
        assert!(matches!(
            owner.requests().recv().await,
            Some(Request::HandOver { .. })
        ));
        seeking.task.abort();
        assert_eq!(owner.requests().recv().await, Some(Request::HandOverWithdrawn));
        batch(&mut owner).await;
    });
}

#[test]
fn letters_to_an_owner_before_are_not_opened() {
    run(async |lab| {
        let mut owner = lab.owner("v1", 1).await;
        let seeking = lab.seek("v2", options(IfOwned::Takeover));
        assert!(matches!(
            owner.requests().recv().await,
            Some(Request::HandOver { .. })
        ));
        // Both die at once.
        seeking.task.abort();
        drop(owner);
        let mut next = lab.acquire("v3").await.expect("after the lease");
        lab.sleep(20_000).await;
        assert!(next.requests().try_recv().is_err(), "nobody asks it for anything");
    });
}

#[test]
fn a_refused_take_over_waits() {
    run(async |lab| {
        let owner = lab.owner("v1", 1).await;
        let mut same = lab.seek("v1", options(IfOwned::Takeover));
        same.event(|event| matches!(event, AcquireEvent::Degraded { .. }).then_some(()))
            .await;
        owner.release(None).await.expect("it can");
        assert_eq!(same.done().await.expect("it is free").epoch(), Epoch(2));
    });
}

#[test]
fn an_owner_that_does_not_drain_is_left_alone_after_the_timeout() {
    run(async |lab| {
        let mut owner = lab.owner("v1", 1).await;
        let planned = owner.plan(draft(next(&owner).as_ref())).await.expect("durable");
        let options = AcquireOptions {
            drain_timeout: Duration::from_secs(4),
            ..options(IfOwned::Takeover)
        };
        let error = lab
            .seek("v2", options)
            .done()
            .await
            .expect_err("it takes too long");
        assert!(matches!(error, Error::DrainTimeout { .. }), "{error}");
        assert!(matches!(
            owner.requests().recv().await,
            Some(Request::HandOver { .. })
        ));
        assert_eq!(owner.requests().recv().await, Some(Request::HandOverWithdrawn));
        drop(owner.permit(&planned).await.expect("it is ours"));
        owner
            .commit(planned, &Receipt::default(), None)
            .await
            .expect("durable");
    });
}

#[test]
fn old_slots_go_and_a_later_start_finds_the_same() {
    run(async |lab| {
        let mut owner = lab.owner("v1", 0).await;
        for _ in 0..300 {
            batch(&mut owner).await;
        }
        lab.sleep(3_000).await;
        let slots = lab.objects("log").await;
        assert!(slots < 450, "{slots} slots of 602 are left");
        assert_eq!(lab.objects("snapshot").await, 1);
        let position = next(&owner);
        owner.release(None).await.expect("it can");
        let later = lab.acquire("v2").await.expect("it is free");
        assert_eq!(next(&later), position);
        assert_eq!(later.epoch(), Epoch(2));
    });
}

#[test]
fn from_outside_it_is_seen_how_it_is() {
    run(async |lab| {
        assert_eq!(lab.status().await.state, State::Empty);
        let mut owner = lab.owner("v1", 2).await;
        let status = lab.status().await;
        assert_eq!((status.state, status.responding), (State::Running, Some(true)));
        assert_eq!(status.owner.map(|owner| owner.version).as_deref(), Some("v1"));
        let shown = crate::show(&lab.location, &lab.deps).await.expect("a log");
        assert_eq!(shown.checkpoint_id, Some(owner.checkpoint()));
        assert_eq!(shown.records.len(), 6, "{:?}", shown.records);
        let (location, deps) = (lab.location.clone(), lab.deps.clone());
        let stopping =
            tokio::spawn(async move { crate::stop(&location, false, Duration::from_secs(30), &deps).await });
        assert_eq!(owner.requests().recv().await, Some(Request::Stop { now: false }));
        owner.release(None).await.expect("it can");
        let stopped = stopping.await.expect("no panic").expect("it was stopped");
        assert_eq!(stopped, StopOutcome::Released);
        assert_eq!(lab.status().await.state, State::Released);
        let again = crate::stop(&lab.location, false, Duration::from_secs(3), &lab.deps).await;
        assert_eq!(again.expect("nobody is there"), StopOutcome::NotRunning);
    });
}

#[test]
fn a_dead_owner_is_unknown_first_and_interrupted_later() {
    run(async |lab| {
        drop(lab.owner("v1", 2).await);
        assert_eq!(lab.status().await.state, State::Unknown);
        lab.sleep(20_000).await;
        let status = lab.status().await;
        assert_eq!((status.state, status.owner), (State::Interrupted, None));
    });
}
