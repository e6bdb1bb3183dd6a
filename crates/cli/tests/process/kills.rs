//! SIGKILL at any moment.

use baton_testkit::Signal;
use baton_testkit::realtime::{pause, poll_until};
use std::time::Duration;

use crate::lab::{BOUND, Lab, each, rounds};

#[test]
fn kills_at_random_moments_lose_nothing_and_repeat_only_what_the_log_names() {
    let Some(lab) = Lab::open("kills") else { return };
    let topic = lab.topic(3);
    let flow = lab.kafka.flow(&topic, 3, 1000).expect("messages flow");
    let job = lab.job(&topic);
    for round in 0..rounds(15, 200) {
        let mut process = lab.run(&job, &[]);
        pause(Duration::from_millis(lab.below(2000)));
        let running = process.is_running().expect("its state can be read");
        assert!(running, "round {round}: it ended by itself: {}", process.stderr());
        process.kill().expect("it can be killed");
    }
    let last = lab.run(&job, &[]);
    lab.committed(&job, 1);
    let sent = flow.finish().expect("all were stored");
    lab.caught_up(&job, &sent);
    last.signal(Signal::TERM).expect("it runs");
    lab.status_when(&job, "released", |status| status["state"] == "released");
    let verdict = lab.verdict(&job);
    assert_eq!(
        verdict.committed,
        sent.values().sum::<u64>(),
        "nothing is missing"
    );
}

#[test]
fn a_kill_before_the_first_batch_loses_nothing_under_latest() {
    let Some(lab) = Lab::open("position") else { return };
    let topic = lab.topic(2);
    lab.kafka.send_numbered(&topic, 2, 0, 5).expect("all were stored");
    let job = lab.job(&topic).latest();
    let mut first = lab.run(&job, &[]);
    poll_until("the start is in the log", BOUND, || {
        let show = lab.baton(&[
            "checkpoint",
            "show",
            crate::lab::text(&job.checkpoint),
            "--output",
            "json",
        ]);
        show.stdout.contains("\"position\"").then_some(())
    })
    .expect("Position comes before the first batch");
    first.kill().expect("it can be killed");
    lab.kafka.send_numbered(&topic, 2, 5, 7).expect("all were stored");
    let second = lab.run(&job, &[]);
    lab.caught_up(&job, &each(2, 12));
    drop(second);
    let verdict = lab.verdict(&job);
    assert_eq!(
        (verdict.committed, verdict.repeated),
        (14, 0),
        "what came between is there, what was before is not"
    );
}
