//! Ends that were asked for: idle, inside a batch, twice, from outside, without a broker, without a topic.

use baton_testkit::realtime::{now, pause, poll_until};
use baton_testkit::{PrivateBroker, Process, Signal};
use std::process::ChildStdout;
use std::time::Duration;

use crate::lab::{BOUND, Job, Lab, each, text};

/// Rows that fill more than a pipe.
const BIG: u64 = 20_000;

/// A job whose first batch is printed into a pipe that nobody reads: it stays inside that batch.
fn inside_a_batch(lab: &Lab, ownership: &str) -> (Job, Process, ChildStdout) {
    let topic = lab.topic(1);
    lab.kafka
        .send_numbered(&topic, 1, 0, BIG)
        .expect("all were stored");
    let job = lab.job(&topic).ownership(ownership);
    let (process, pipe) = lab.run_unread(&job, &[]);
    lab.status_when(&job, "batch 0 is planned", |status| {
        status["lastPlannedBatch"] == 0
    });
    // Until the pipe is full; earlier is as good a moment for the signal.
    pause(Duration::from_millis(500));
    (job, process, pipe)
}

#[test]
fn an_idle_job_stops_within_a_second() {
    let Some(lab) = Lab::open("idle") else { return };
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let topic = lab.topic(1);
        let job = lab.job(&topic);
        let mut process = lab.run(&job, &[]);
        lab.owned_by(&job, "v1");
        pause(Duration::from_millis(300));
        let start = now();
        process.signal(signal).expect("it runs");
        assert_eq!(
            process.wait_exit(BOUND).expect("it stops"),
            0,
            "{}",
            process.stderr()
        );
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{signal:?} took {:?}",
            start.elapsed()
        );
        assert_eq!(lab.status(&job)["state"], "released");
    }
}

#[test]
fn a_stop_inside_a_slow_batch_finishes_and_commits_it() {
    let Some(lab) = Lab::open("slow") else { return };
    let (job, mut process, pipe) = inside_a_batch(&lab, "stopTimeout = \"30 seconds\"");
    process.signal(Signal::TERM).expect("it runs");
    pause(Duration::from_secs(1));
    assert!(
        process.is_running().expect("its state can be read"),
        "it is inside the batch"
    );
    assert!(lab.status(&job)["lastCommittedBatch"].is_null());
    lab.drain(&process, pipe);
    assert_eq!(
        process.wait_exit(BOUND).expect("it stops"),
        0,
        "{}",
        process.stderr()
    );
    assert_eq!(lab.status(&job)["state"], "released");
    lab.exactly_once(&job, &each(1, BIG));
}

#[test]
fn a_batch_that_keeps_every_core_busy_hears_a_second_signal_too() {
    let Some(lab) = Lab::open("busy") else { return };
    let topic = lab.topic(3);
    lab.kafka
        .send_numbered(&topic, 3, 0, 2_000)
        .expect("all were stored");
    let mut job = lab.job(&topic);
    let long = "repeat(CAST(value AS STRING), 60000)";
    job.sql = format!("SELECT partition, length(reverse(reverse(reverse({long})))) AS length FROM messages");
    job.sink = "noop".to_owned();
    let mut process = lab.run(&job, &[]);
    lab.status_when(&job, "batch 0 is planned", |status| {
        status["lastPlannedBatch"] == 0
    });
    process.signal(Signal::TERM).expect("it runs");
    process
        .wait_for_line("once more to abandon", Duration::from_secs(3))
        .expect("it hears the first");
    let start = now();
    process.signal(Signal::TERM).expect("it still runs");
    let code = process.wait_exit(BOUND).expect("it ends");
    assert_eq!(
        (code, start.elapsed() < Duration::from_secs(5)),
        (143, true),
        "{}",
        process.stderr()
    );
    assert_eq!(lab.status(&job)["state"], "interrupted");
}

#[test]
fn a_second_signal_abandons_the_batch_and_the_next_start_runs_it_again() {
    let Some(lab) = Lab::open("second") else { return };
    let (job, mut process, pipe) = inside_a_batch(&lab, "stopTimeout = \"60 seconds\"");
    process.signal(Signal::TERM).expect("it runs");
    pause(Duration::from_millis(500));
    let start = now();
    process.signal(Signal::TERM).expect("it still runs");
    assert_eq!(
        process.wait_exit(BOUND).expect("it ends"),
        143,
        "{}",
        process.stderr()
    );
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "now took {:?}",
        start.elapsed()
    );
    drop(pipe);
    let status = lab.status(&job);
    assert_eq!(status["state"], "interrupted", "{status}");
    assert_eq!(
        (
            &status["lastPlannedBatch"],
            status["lastCommittedBatch"].is_null()
        ),
        (&0.into(), true)
    );
    let next = lab.run(&job, &[]);
    lab.caught_up(&job, &each(1, BIG));
    drop(next);
    let verdict = lab.verdict(&job);
    assert_eq!((verdict.committed, verdict.reran), (BIG, vec![0]));
}

#[test]
fn a_stop_timeout_abandons_the_batch_warns_and_ends_with_0() {
    let Some(lab) = Lab::open("timeout") else { return };
    let (job, mut process, pipe) = inside_a_batch(&lab, "stopTimeout = \"1 second\"");
    let start = now();
    process.signal(Signal::TERM).expect("it runs");
    assert_eq!(
        process.wait_exit(BOUND).expect("it ends"),
        0,
        "{}",
        process.stderr()
    );
    let took = start.elapsed();
    assert!(
        took < Duration::from_secs(4),
        "a stopTimeout of 1 s took {took:?}"
    );
    drop(pipe);
    assert_eq!(lab.status(&job)["state"], "interrupted");
    assert!(process.stderr().contains("abandon"), "{}", process.stderr());
}

#[test]
fn baton_stop_ends_the_job_from_outside() {
    let Some(lab) = Lab::open("stop") else { return };
    let topic = lab.topic(1);
    lab.kafka
        .send_numbered(&topic, 1, 0, 10)
        .expect("all were stored");
    let job = lab.job(&topic);
    let mut process = lab.run(&job, &[]);
    lab.caught_up(&job, &each(1, 10));
    let stopped = lab.baton(&["stop", text(&job.checkpoint)]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    assert_eq!(
        lab.status(&job)["state"],
        "released",
        "stop returns when the owner has released"
    );
    assert_eq!(
        process.wait_exit(BOUND).expect("it stops"),
        0,
        "{}",
        process.stderr()
    );
    lab.exactly_once(&job, &each(1, 10));
}

#[test]
fn baton_stop_now_abandons_the_batch() {
    let Some(lab) = Lab::open("stopnow") else { return };
    let (job, mut process, pipe) = inside_a_batch(&lab, "stopTimeout = \"60 seconds\"");
    let stopped = lab.baton(&["stop", text(&job.checkpoint), "--now"]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    process.wait_exit(BOUND).expect("it ends");
    drop(pipe);
    let status = lab.status_when(&job, "it has ended", |status| status["state"] != "running");
    assert!(status["lastCommittedBatch"].is_null(), "{status}");
}

#[test]
fn a_job_whose_broker_is_down_stops_in_time() {
    if Lab::open("stop-down").is_none() {
        return;
    }
    let broker = PrivateBroker::start().expect("a broker of our own starts");
    let lab = Lab::on("stop-down", broker.kafka());
    let topic = lab.topic(1);
    lab.kafka
        .send_numbered(&topic, 1, 0, 10)
        .expect("all were stored");
    let job = lab.job(&topic);
    let mut process = lab.run(&job, &[]);
    lab.caught_up(&job, &each(1, 10));
    broker.crash().expect("the broker can be crashed");
    pause(Duration::from_secs(1));
    let start = now();
    process.signal(Signal::TERM).expect("it runs");
    assert_eq!(
        process.wait_exit(BOUND).expect("it stops"),
        0,
        "{}",
        process.stderr()
    );
    assert!(
        start.elapsed() < Duration::from_secs(22),
        "it took {:?}",
        start.elapsed()
    );
    assert_eq!(lab.status(&job)["state"], "released");
    lab.exactly_once(&job, &each(1, 10));
}

#[test]
fn a_job_whose_topic_is_deleted_stops_in_time() {
    let Some(lab) = Lab::open("deleted") else { return };
    let topic = lab.topic(1);
    lab.kafka
        .send_numbered(&topic, 1, 0, 10)
        .expect("all were stored");
    let job = lab.job(&topic);
    let mut process = lab.run(&job, &[]);
    lab.caught_up(&job, &each(1, 10));
    lab.kafka.delete_topic(&topic).expect("the topic can be deleted");
    pause(Duration::from_secs(1));
    if process.is_running().expect("its state can be read") {
        process.signal(Signal::TERM).expect("it runs");
    }
    // It may have failed by itself for the reason that the topic is gone.
    let code = process
        .wait_exit(Duration::from_secs(22))
        .expect("it ends in time");
    assert!(
        code == 0 || (code == 1 && process.stderr().contains(&topic)),
        "{code}: {}",
        process.stderr()
    );
    poll_until("nobody owns it", BOUND, || {
        (lab.status(&job)["state"] != "running").then_some(())
    })
    .expect("it is free");
}
