//! What an observer sees of a query: whether it moves, what it waits for, how far it is behind.

use baton_core::SourceName;
use baton_engine::{Outcome, QueryEvent, Trigger};
use baton_testkit::ScriptedSource;
use std::time::Duration;

use crate::support::{Lab, within};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_batch_whose_sink_takes_no_rows_stands_still_until_it_does() {
    let lab = Lab::new(ScriptedSource::earliest("t", 1));
    lab.source.push(0, "1");
    lab.sink.stall();
    let mut run = lab.run(Trigger::Default);
    let observer = run.query.observer();
    within(async {
        while !lab.sink.calls().contains(&"begin") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // The rows that are on their way move it once more.
    for _ in 0..1_000 {
        lab.clock.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    let stuck = observer.vitals();
    assert!(stuck.still >= 5 * MINUTE, "{stuck:?}");
    assert_eq!(stuck.doing, "Processing new data");
    lab.sink.resume();
    run.batch().await;
    assert!(observer.vitals().still < MINUTE, "{:?}", observer.vitals());
    run.query.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_rest_until_the_next_trigger_is_no_standstill_but_one_beyond_it_is() {
    let lab = Lab::new(ScriptedSource::latest("t", 1));
    let mut run = lab.run(Trigger::ProcessingTime(60 * MINUTE));
    run.started().await;
    let observer = run.query.observer();
    run.event_in_time(|event| matches!(event, QueryEvent::Idle { .. }).then_some(()))
        .await;
    lab.clock.sleeping().await;
    let before = observer.vitals().still;
    lab.clock.advance(40 * MINUTE);
    assert_eq!(
        (before, observer.vitals().still),
        (Duration::ZERO, Duration::ZERO)
    );
    // The loop is due and has not run yet: from here on it counts.
    lab.clock.advance(25 * MINUTE);
    assert!(observer.vitals().still >= 4 * MINUTE, "{:?}", observer.vitals());
    run.query.stop().await.expect("a clean end");
}

#[tokio::test]
async fn an_outage_is_seen_with_its_source_and_length_and_gone_when_it_is_over() {
    let lab = Lab::new(ScriptedSource::latest("t", 1));
    let mut run = lab.run(Trigger::Default);
    run.started().await;
    let observer = run.query.observer();
    assert!(observer.vitals().away.is_none());
    lab.source.set_down(true);
    run.event_in_time(|event| match event {
        QueryEvent::SourceWaiting { since, .. } if *since >= MINUTE => Some(()),
        _ => None,
    })
    .await;
    let vitals = observer.vitals();
    let away = vitals.away.expect("it is away");
    assert_eq!(away.source, SourceName::new("messages").expect("a name"));
    assert!(away.lasting >= MINUTE, "{away:?}");
    assert!(
        vitals.still < MINUTE,
        "a loop that asks again moves: {:?}",
        vitals.still
    );
    lab.source.set_down(false);
    run.event_in_time(|event| matches!(event, QueryEvent::SourceBack { .. }).then_some(()))
        .await;
    assert!(observer.vitals().away.is_none());
    run.query.stop().await.expect("a clean end");
}

#[tokio::test]
async fn an_observer_sees_the_start_the_lag_and_the_end_and_keeps_nothing_running() {
    let lab = Lab::new(ScriptedSource::latest("t", 2));
    let mut run = lab.run(Trigger::Default);
    let observer = run.query.observer();
    assert!(!observer.vitals().has_started);
    run.started().await;
    assert!(observer.vitals().has_started && observer.vitals().end.is_none());
    lab.source.push(1, "1");
    run.batch().await;
    let lag = observer.vitals().lag.expect("it has looked");
    let of_source = lag
        .source(&SourceName::new("messages").expect("a name"))
        .expect("its source");
    assert_eq!(
        (of_source.len(), of_source.get("t", 1).map(|lag| lag.0)),
        (2, Some(0))
    );
    let query = run.query.clone();
    drop(run);
    query.request_stop();
    let end = within(query.await_termination()).await;
    assert_eq!(end.expect("a clean end"), Outcome::Stopped);
    let vitals = observer.vitals();
    assert!(!vitals.is_stopping && matches!(vitals.end, Some(Ok(Outcome::Stopped))));
}
