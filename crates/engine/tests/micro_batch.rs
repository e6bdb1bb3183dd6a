//! The loop, on a real checkpoint, with scripted sources, a sink that remembers, and a clock that is told.

mod support;
mod vitals;

use baton_checkpoint::IfOwned;
use baton_core::ErrorKind;
use baton_engine::{AbandonReason, Outcome, QueryEvent, Trigger};
use baton_testkit::ScriptedSource;
use std::time::Duration;
use support::{Lab, within};

fn numbered(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

fn push(source: &ScriptedSource, partition: i32, range: std::ops::Range<u32>) {
    for n in range {
        source.push(partition, &n.to_string());
    }
}

#[tokio::test]
async fn there_is_no_batch_without_new_data_and_an_idle_event_every_ten_seconds() {
    let lab = Lab::new(ScriptedSource::latest("t", 2));
    let mut run = lab.run(Trigger::Default);
    for ten in 1..=3 {
        let since = run
            .event_in_time(|event| match event {
                QueryEvent::Idle { since } => Some(*since),
                QueryEvent::BatchDone(_) => panic!("a batch without data"),
                _ => None,
            })
            .await;
        assert_eq!(since.as_secs(), ten * 10);
    }
    assert_eq!(run.query.stop().await.expect("a clean end"), Outcome::Stopped);
    assert_eq!(lab.kinds().await, ["fence", "position", "release"]);
}

#[tokio::test]
async fn rows_leave_in_the_batch_that_read_them_in_order_of_partition() {
    let lab = Lab::new(ScriptedSource::latest("t", 2));
    let mut run = lab.run(Trigger::Default);
    run.started().await;
    push(&lab.source, 1, 10..12);
    push(&lab.source, 0, 0..3);
    assert_eq!(run.batch().await, 0);
    assert_eq!(lab.sink.values(), ["0", "1", "2", "10", "11"]);
    push(&lab.source, 0, 3..4);
    assert_eq!(run.batch().await, 1);
    assert_eq!(lab.sink.published().len(), 2);
    let progress = run.query.last_progress().expect("two batches");
    assert_eq!(
        (
            progress.num_input_rows,
            progress.sink.num_output_rows,
            progress.epoch
        ),
        (1, 1, 1)
    );
    run.query.stop().await.expect("a clean end");
}

#[tokio::test]
async fn the_start_position_is_durable_before_the_first_poll_and_a_crash_before_batch_0_loses_nothing() {
    let lab = Lab::new(ScriptedSource::latest("t", 1));
    push(&lab.source, 0, 0..5);
    lab.source.hold_plans();
    let mut run = lab.run(Trigger::Default);
    // Were the poll first, this would never come.
    run.event(|event| matches!(event, QueryEvent::StartsAt(_)).then_some(()))
        .await;
    assert_eq!(lab.kinds().await, ["fence", "position"]);
    run.query.stop_now().await.expect("an end");
    push(&lab.source, 0, 5..8);
    lab.source.release_plans();
    let mut run = lab.run(Trigger::Default);
    run.batch().await;
    assert_eq!(
        lab.sink.values(),
        numbered(5..8),
        "`latest` was resolved once, at the first start"
    );
    run.query.stop().await.expect("a clean end");
}

#[tokio::test]
async fn processing_time_fires_at_once_then_on_multiples_and_says_when_it_falls_behind() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    push(&lab.source, 0, 0..1);
    let mut run = lab.run(Trigger::ProcessingTime(Duration::from_secs(1)));
    run.event(|event| matches!(event, QueryEvent::BatchDone(_)).then_some(()))
        .await;
    assert_eq!(
        within(lab.clock.sleeping()).await,
        Duration::from_millis(700),
        "the next multiple of a second"
    );

    push(&lab.source, 0, 1..2);
    lab.source.stall();
    lab.clock.advance(Duration::from_millis(700));
    within(async {
        while lab.sink.calls().iter().filter(|call| **call == "begin").count() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    lab.clock.advance(Duration::from_millis(2_500));
    lab.source.resume();
    let overrun = run
        .event(|event| match event {
            QueryEvent::Overrun(overrun) => Some(*overrun),
            _ => None,
        })
        .await;
    assert_eq!((overrun.took, overrun.missed), (Duration::from_millis(2_500), 1));
    // The late trigger fires at once, finds nothing, and the ticks are where they were.
    assert_eq!(within(lab.clock.sleeping()).await, Duration::from_millis(500));
    run.query.stop().await.expect("a clean end");
}

#[tokio::test]
async fn once_takes_everything_in_one_batch_whatever_the_limit() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1).with_limit(2));
    push(&lab.source, 0, 0..7);
    let run = lab.run(Trigger::Once);
    assert_eq!(run.end().await.expect("a clean end"), Outcome::Done);
    assert_eq!(lab.sink.published(), [(0, 1, numbered(0..7))]);
}

#[tokio::test]
async fn once_with_an_uncommitted_batch_runs_that_one_alone() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    push(&lab.source, 0, 0..2);
    abandon_first_batch(&lab).await;
    push(&lab.source, 0, 2..5);
    let run = lab.run(Trigger::Once);
    assert_eq!(run.end().await.expect("a clean end"), Outcome::Done);
    assert_eq!(lab.sink.values(), numbered(0..2), "new data stays unread");
}

#[tokio::test]
async fn available_now_freezes_its_end_and_runs_batches_under_the_limit() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1).with_limit(2));
    push(&lab.source, 0, 0..5);
    lab.sink.stall();
    let mut run = lab.run(Trigger::AvailableNow);
    run.event(|event| matches!(event, QueryEvent::StartsAt(_)).then_some(()))
        .await;
    within(async {
        while !lab.sink.calls().contains(&"begin") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    push(&lab.source, 0, 5..9);
    lab.sink.resume();
    assert_eq!(run.end().await.expect("a clean end"), Outcome::Done);
    let sizes: Vec<usize> = lab
        .sink
        .published()
        .iter()
        .map(|(_, _, rows)| rows.len())
        .collect();
    assert_eq!(
        sizes,
        [2, 2, 1],
        "what came after the start is left for the next one"
    );
}

#[tokio::test]
async fn available_now_with_nothing_to_do_is_done_at_once() {
    let lab = Lab::new(ScriptedSource::latest("t", 1));
    assert_eq!(
        lab.run(Trigger::AvailableNow).end().await.expect("a clean end"),
        Outcome::Done
    );
    assert!(lab.sink.published().is_empty());
}

#[tokio::test]
async fn available_now_finishes_the_uncommitted_batch_first() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    push(&lab.source, 0, 0..2);
    abandon_first_batch(&lab).await;
    push(&lab.source, 0, 2..5);
    assert_eq!(
        lab.run(Trigger::AvailableNow).end().await.expect("a clean end"),
        Outcome::Done
    );
    let batches: Vec<Vec<String>> = lab
        .sink
        .published()
        .into_iter()
        .map(|(_, _, rows)| rows)
        .collect();
    assert_eq!(batches, [numbered(0..2), numbered(2..5)]);
}

/// Plans batch 0 and gives it up.
async fn abandon_first_batch(lab: &Lab) {
    lab.source.stall();
    let run = lab.run(Trigger::Default);
    within(async {
        while !lab.sink.calls().contains(&"begin") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let outcome = within(run.query.stop_now()).await.expect("no failure");
    assert_eq!(outcome, Outcome::Interrupted);
    lab.source.resume();
}

#[tokio::test]
async fn a_stop_finishes_the_running_batch_and_releases() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    push(&lab.source, 0, 0..2);
    lab.source.stall();
    let mut run = lab.run(Trigger::Default);
    within(async {
        while !lab.sink.calls().contains(&"begin") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    run.query.request_stop();
    run.event(|event| matches!(event, QueryEvent::Stopping).then_some(()))
        .await;
    assert!(run.query.is_active(), "the batch is not done");
    lab.source.resume();
    assert_eq!(
        within(run.query.await_termination()).await.expect("a clean end"),
        Outcome::Stopped
    );
    assert_eq!(lab.sink.values(), numbered(0..2));
    assert_eq!(lab.kinds().await.last().map(String::as_str), Some("release"));
}

#[tokio::test]
async fn a_stop_whose_time_has_passed_abandons_the_batch_and_the_next_start_runs_the_same_range() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    push(&lab.source, 0, 0..2);
    lab.source.stall();
    let mut run = lab.run(Trigger::Default);
    within(async {
        while !lab.sink.calls().contains(&"begin") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    run.query.request_stop();
    let why = run
        .event_in_time(|event| match event {
            QueryEvent::Abandoned { why, .. } => Some(*why),
            _ => None,
        })
        .await;
    assert_eq!(why, AbandonReason::StopTimeout);
    assert_eq!(run.end().await.expect("no failure"), Outcome::Interrupted);
    assert!(lab.sink.values().is_empty());

    push(&lab.source, 0, 2..5);
    lab.source.resume();
    let mut run = lab.run(Trigger::Default);
    let replayed = run
        .event_in_time(|event| match event {
            QueryEvent::Replaying { batch, .. } => Some(batch.0),
            _ => None,
        })
        .await;
    assert_eq!(replayed, 0);
    assert_eq!((run.batch().await, run.batch().await), (0, 1));
    assert_eq!(
        lab.sink.published(),
        [(0, 2, numbered(0..2)), (1, 2, numbered(2..5))]
    );
    run.query.stop().await.expect("a clean end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sink_that_blocks_its_thread_does_not_delay_a_stop_but_keeps_the_ownership() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    push(&lab.source, 0, 0..2);
    let blocked = lab.sink.block_thread();
    let run = lab.run(Trigger::Default);
    // A stop that comes between `begin` and the write would end the call before it blocks.
    within(async {
        while !lab.sink.blocks_thread() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    run.query.request_stop_now();
    assert_eq!(run.end().await.expect("no failure"), Outcome::Interrupted);
    let refused = lab
        .run(Trigger::Default)
        .end()
        .await
        .expect_err("the call is still at work");
    assert_eq!(refused.kind(), ErrorKind::Held);
    drop(blocked);
    within(async {
        loop {
            let mut run = lab.run(Trigger::Default);
            if run.starts().await.is_ok() {
                run.batch().await;
                return;
            }
        }
    })
    .await;
    assert_eq!(
        lab.sink.published(),
        [(0, 2, numbered(0..2))],
        "the blocked call published nothing"
    );
}

#[tokio::test]
async fn a_source_that_is_away_is_waited_for_and_never_ends_the_query() {
    let lab = Lab::new(ScriptedSource::latest("t", 1));
    let mut run = lab.run(Trigger::Default);
    run.started().await;
    lab.source.set_down(true);
    let error = run
        .event_in_time(|event| match event {
            QueryEvent::SourceWaiting { error, since, .. } if since.as_secs() >= 60 => Some(error.clone()),
            _ => None,
        })
        .await;
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, "E0201"));
    assert!(
        run.query.status().message.contains("the scripted broker is away"),
        "{:?}",
        run.query.status()
    );
    push(&lab.source, 0, 0..3);
    lab.source.set_down(false);
    let after = run
        .event_in_time(|event| match event {
            QueryEvent::SourceBack { after, .. } => Some(*after),
            _ => None,
        })
        .await;
    assert!(after.as_secs() >= 60);
    run.batch().await;
    assert_eq!(lab.sink.values(), numbered(0..3));
    run.query.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_source_that_goes_away_inside_a_batch_delays_that_batch_and_repeats_nothing() {
    let lab = Lab::new(ScriptedSource::earliest("t", 2));
    push(&lab.source, 0, 0..3);
    push(&lab.source, 1, 3..6);
    lab.source.stall();
    let mut run = lab.run(Trigger::Default);
    within(async {
        while !lab.sink.calls().contains(&"begin") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    lab.source.set_down(true);
    lab.source.resume();
    run.event_in_time(|event| matches!(event, QueryEvent::SourceWaiting { .. }).then_some(()))
        .await;
    lab.source.set_down(false);
    run.batch().await;
    assert_eq!(lab.sink.published(), [(0, 1, numbered(0..6))]);
    assert!(lab.sink.calls().contains(&"abort"));
    run.query.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_stop_while_the_source_is_away_ends_at_once_when_no_batch_is_planned() {
    let lab = Lab::new(ScriptedSource::latest("t", 1));
    let mut run = lab.run(Trigger::Default);
    run.started().await;
    lab.source.set_down(true);
    run.event_in_time(|event| matches!(event, QueryEvent::SourceWaiting { .. }).then_some(()))
        .await;
    assert_eq!(
        within(run.query.stop()).await.expect("a clean end"),
        Outcome::Stopped
    );
}

#[tokio::test]
async fn lost_records_are_written_down_as_a_gap_and_told() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    push(&lab.source, 0, 0..2);
    let mut run = lab.run(Trigger::Default);
    run.batch().await;
    push(&lab.source, 0, 2..9);
    lab.source.expire(0, 6);
    let lost = run
        .event_in_time(|event| match event {
            QueryEvent::Gap { gap, .. } => Some((gap.lost.range.from().0, gap.lost.range.until().0)),
            _ => None,
        })
        .await;
    assert_eq!(lost, (2, 6));
    run.batch().await;
    assert_eq!(lab.sink.values(), ["0", "1", "6", "7", "8"]);
    run.query.stop().await.expect("a clean end");
    let kinds = lab.kinds().await;
    let commit = kinds.iter().position(|kind| kind == "commit 0").expect("batch 0");
    assert_eq!(kinds[commit + 1..commit + 3], ["position", "plan 1"]);
}

#[tokio::test]
async fn data_that_cannot_be_read_ends_the_query_publishes_nothing_and_stays_planned() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    push(&lab.source, 0, 0..3);
    lab.source.fail_at(0, 1);
    for _ in 0..2 {
        let error = lab
            .run(Trigger::Default)
            .end()
            .await
            .expect_err("record 1 cannot be read");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Failed, "E0299"));
    }
    assert!(lab.sink.published().is_empty());
    let plans = lab
        .kinds()
        .await
        .iter()
        .filter(|kind| kind.starts_with("plan"))
        .count();
    assert_eq!(plans, 1, "the second start ran the same plan");
}

#[tokio::test]
async fn a_sink_that_answers_again_gets_the_batch_and_one_that_does_not_ends_the_query() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    push(&lab.source, 0, 0..2);
    lab.sink.fail_commit(ErrorKind::Unavailable, false);
    let mut run = lab.run(Trigger::Default);
    run.batch().await;
    assert_eq!(lab.sink.published(), [(0, 1, numbered(0..2))]);
    for _ in 0..5 {
        lab.sink.fail_commit(ErrorKind::Unavailable, false);
    }
    push(&lab.source, 0, 2..3);
    let error = run.end().await.expect_err("five failures are enough");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, "E0432"));
}

#[tokio::test]
async fn a_batch_that_a_sink_published_and_did_not_confirm_is_adopted() {
    let mut lab = Lab::new(ScriptedSource::earliest("t", 1));
    lab.sink = lab.sink.clone().tracking();
    push(&lab.source, 0, 0..2);
    lab.sink.fail_commit(ErrorKind::Unavailable, true);
    let mut run = lab.run(Trigger::Default);
    let adopted = run
        .event_in_time(|event| match event {
            QueryEvent::Adopted { batch } => Some(batch.0),
            _ => None,
        })
        .await;
    assert_eq!(adopted, 0);
    push(&lab.source, 0, 2..3);
    run.batch().await;
    assert_eq!(lab.sink.values(), numbered(0..3), "nothing twice");
    run.query.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_refused_claim_is_held_and_leaves_the_checkpoint_released() {
    let lab = Lab::new(ScriptedSource::latest("t", 1));
    lab.source.refuse_claims_for("another job");
    let error = lab
        .run(Trigger::Default)
        .end()
        .await
        .expect_err("the group is taken");
    assert_eq!(error.kind(), ErrorKind::Held);
    assert!(
        !lab.source
            .calls()
            .iter()
            .any(|call| call == "plan" || call == "start"),
        "nothing was polled"
    );
    assert_eq!(lab.kinds().await.last().map(String::as_str), Some("release"));
}

#[tokio::test]
async fn the_position_is_told_to_the_outside_when_the_query_leaves() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    push(&lab.source, 0, 0..4);
    lab.run(Trigger::AvailableNow).end().await.expect("a clean end");
    let published = lab.source.published().expect("something");
    assert_eq!(published.to_json(), r#"{"t":{"0":4}}"#);
}

#[tokio::test]
async fn a_second_plain_start_is_refused_as_held() {
    let lab = Lab::new(ScriptedSource::latest("t", 1));
    let run = lab.run(Trigger::Default);
    run.started().await;
    let error = lab
        .run(Trigger::Default)
        .end()
        .await
        .expect_err("the first owns it");
    assert_eq!(error.kind(), ErrorKind::Held);
    within(run.query.stop()).await.expect("a clean end");
}

#[tokio::test]
async fn a_candidate_takes_over_after_the_running_batch_and_goes_on_at_the_exact_next_offset() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1).with_limit(3));
    push(&lab.source, 0, 0..3);
    let mut first = lab.run_in_real_time(lab.spec(Trigger::Default));
    first
        .event(|event| matches!(event, QueryEvent::BatchDone(_)).then_some(()))
        .await;

    // The old owner is inside a batch when it is asked.
    lab.source.stall();
    push(&lab.source, 0, 3..9);
    within(async {
        while lab.sink.calls().iter().filter(|call| **call == "begin").count() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut spec = lab.spec(Trigger::Default);
    spec.version = "v2".to_owned();
    spec.ownership.if_owned = IfOwned::Takeover;
    let mut second = lab.run_in_real_time(spec);
    first
        .event(|event| matches!(event, QueryEvent::HandOverRequested { .. }).then_some(()))
        .await;
    lab.source.resume();
    let end = within(first.query.await_termination())
        .await
        .expect("a clean end");
    assert!(matches!(end, Outcome::HandedOver { .. }), "{end:?}");

    let line = second
        .event(|event| match event {
            QueryEvent::HandedOver(line) => Some(line.clone()),
            _ => None,
        })
        .await;
    assert_eq!((line.from.as_str(), line.to.as_str()), ("v1", "v2"));
    assert_eq!(line.last_batch.map(|last| last + 1), Some(line.first_batch));
    assert!(line.commit_gap < 1_000, "{line:?}");
    within(second.query.stop()).await.expect("a clean end");
    assert_eq!(lab.sink.values(), numbered(0..9), "no gap, no duplicate");
    let epochs: Vec<u64> = lab.sink.published().iter().map(|(_, epoch, _)| *epoch).collect();
    assert!(epochs.is_sorted() && epochs.contains(&2), "{epochs:?}");
}

#[tokio::test]
async fn a_candidate_that_cannot_run_does_not_disturb_the_owner() {
    let lab = Lab::new(ScriptedSource::latest("t", 1));
    let mut first = lab.run_in_real_time(lab.spec(Trigger::Default));
    first.started().await;
    let mut spec = lab.spec(Trigger::Default);
    spec.version = "v2".to_owned();
    spec.ownership.if_owned = IfOwned::Takeover;
    spec.sql = "SELECT no_such_column FROM messages".to_owned();
    let second = lab.run_in_real_time(spec);
    let error = within(second.query.await_termination())
        .await
        .expect_err("the column does not exist");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    push(&lab.source, 0, 0..1);
    first
        .event(|event| match event {
            QueryEvent::HandOverRequested { .. } => panic!("the owner was asked"),
            QueryEvent::BatchDone(_) => Some(()),
            _ => None,
        })
        .await;
    within(first.query.stop()).await.expect("a clean end");
}

#[tokio::test]
async fn batches_that_are_due_share_a_slot_with_the_commit_before_them() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1).with_limit(1));
    push(&lab.source, 0, 0..4);
    lab.run(Trigger::AvailableNow).end().await.expect("a clean end");
    let records = lab.records().await;
    let seq = |kind: &str, batch: u64| {
        let found = records
            .iter()
            .find(|record| record["kind"] == kind && record["batchId"] == batch);
        found.map(|record| record["seq"].as_u64().expect("a sequence number"))
    };
    for batch in 0..3 {
        assert_eq!(seq("commit", batch), seq("plan", batch + 1), "batch {batch}");
    }
}
