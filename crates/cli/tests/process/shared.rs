//! Checkpoints on shared storage: the same promises with no lock, no socket and no common machine.

use baton_testkit::realtime::pause;
use baton_testkit::{Process, Signal};
use std::path::PathBuf;
use std::time::Duration;

use crate::lab::{BOUND, Job, Lab, say};

/// A job whose checkpoint is on the S3 server that the environment names; none when there is none and none is required.
fn job(lab: &Lab, topic: &str) -> Option<Job> {
    if std::env::var("BATON_TEST_S3").is_err() {
        let required = std::env::var("BATON_REQUIRE_S3").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "BATON_TEST_S3 is not set and BATON_REQUIRE_S3=1 asks for a server"
        );
        say(&format!("left out: {topic} (BATON_TEST_S3 names no S3 server)"));
        return None;
    }
    let checkpoint = PathBuf::from(format!("s3://baton/{topic}/{:08x}", lab.below(1 << 32)));
    // A server in Python, asked by several tests at once, is no match for a batch per message.
    let paced = lab.job(topic).trigger("processingTime = \"200 milliseconds\"");
    Some(Job { checkpoint, ..paced })
}

fn stop(lab: &Lab, job: &Job, mut owner: Process) {
    let stopped = lab.baton(&["stop", job.checkpoint.to_str().expect("a URL")]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    assert_eq!(owner.wait_exit(BOUND).expect("it stops"), 0, "{}", owner.stderr());
}

#[test]
fn a_new_version_takes_over_through_the_bucket() {
    let Some(lab) = Lab::open("shared-takeover") else {
        return;
    };
    let topic = lab.topic(3);
    let Some(v1) = job(&lab, &topic) else { return };
    let flow = lab.kafka.flow(&topic, 3, 300).expect("messages flow");
    let mut first = lab.run(&v1, &[]);
    lab.batches(&v1, 3);
    let refused = lab.ends(&v1.version("v2"), &[]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("v1"),
        "it names the holder: {}",
        refused.stderr
    );
    let second = lab.run(&v1.version("v2"), &["--if-owned", "takeover"]);
    assert_eq!(
        first.wait_exit(BOUND).expect("v1 leaves"),
        0,
        "{}",
        first.stderr()
    );
    let taken = lab.owned_by(&v1, "v2")["lastCommittedBatch"]
        .as_u64()
        .unwrap_or_default();
    lab.batches(&v1, taken + 3);
    let sent = flow.finish().expect("all were stored");
    lab.caught_up(&v1, &sent);
    stop(&lab, &v1, second);
    let status = lab.status(&v1);
    assert_eq!(status["state"], "released", "{status}");
    lab.exactly_once(&v1, &sent);
    assert_eq!(lab.log(&v1).epochs(), [1, 2]);
}

#[test]
fn a_standby_goes_on_once_the_lease_of_a_killed_owner_is_over() {
    let Some(lab) = Lab::open("shared-kill") else {
        return;
    };
    let topic = lab.topic(3);
    let Some(v1) = job(&lab, &topic) else { return };
    let flow = lab.kafka.flow(&topic, 3, 300).expect("messages flow");
    let mut first = lab.run(&v1, &[]);
    lab.batches(&v1, 3);
    let second = lab.run(&v1.version("v2"), &["--if-owned", "wait"]);
    let seen = lab.status_when(&v1, "the standby is seen", |status| status["standby"].is_object());
    assert_eq!(seen["standby"]["version"], "v2", "{seen}");
    first.kill().expect("it can be killed");
    lab.owned_by(&v1, "v2");
    let sent = flow.finish().expect("all were stored");
    lab.caught_up(&v1, &sent);
    stop(&lab, &v1, second);
    let verdict = lab.verdict(&v1);
    assert_eq!(
        verdict.committed,
        sent.values().sum::<u64>(),
        "nothing is missing"
    );
}

#[test]
fn an_owner_that_was_stopped_past_its_lease_wakes_publishes_nothing_and_ends_with_4() {
    let Some(lab) = Lab::open("shared-zombie") else {
        return;
    };
    let topic = lab.topic(3);
    let Some(v1) = job(&lab, &topic) else { return };
    let flow = lab.kafka.flow(&topic, 3, 300).expect("messages flow");
    let mut first = lab.run(&v1, &[]);
    lab.batches(&v1, 3);
    let second = lab.run(&v1.version("v2"), &["--if-owned", "wait"]);
    lab.status_when(&v1, "the standby is seen", |status| status["standby"].is_object());
    first.signal(Signal::STOP).expect("it runs");
    // What it had on its way.
    pause(Duration::from_millis(500));
    let before = first.stdout();
    let taken = lab.owned_by(&v1, "v2")["lastCommittedBatch"]
        .as_u64()
        .unwrap_or_default();
    lab.batches(&v1, taken + 3);
    first.signal(Signal::CONT).expect("it is there");
    assert_eq!(first.wait_exit(BOUND).expect("it ends"), 4, "{}", first.stderr());
    let published = first.stdout()[before.len()..].matches("Batch: ").count();
    let sent = flow.finish().expect("all were stored");
    lab.caught_up(&v1, &sent);
    stop(&lab, &v1, second);
    assert_eq!(
        published,
        0,
        "a woken zombie publishes nothing: {}",
        first.stderr()
    );
    let verdict = lab.verdict(&v1);
    assert_eq!(
        verdict.committed,
        sent.values().sum::<u64>(),
        "nothing is missing"
    );
}

#[test]
fn force_takes_a_stopped_owners_checkpoint_at_once() {
    let Some(lab) = Lab::open("shared-force") else {
        return;
    };
    let topic = lab.topic(2);
    let Some(v1) = job(&lab, &topic) else { return };
    let flow = lab.kafka.flow(&topic, 2, 200).expect("messages flow");
    let mut first = lab.run(&v1, &[]);
    lab.batches(&v1, 2);
    first.signal(Signal::STOP).expect("it runs");
    let second = lab.run(&v1.version("v2"), &["--if-owned", "force"]);
    lab.owned_by(&v1, "v2");
    first.signal(Signal::CONT).expect("it is there");
    assert_eq!(first.wait_exit(BOUND).expect("it ends"), 4, "{}", first.stderr());
    let sent = flow.finish().expect("all were stored");
    lab.caught_up(&v1, &sent);
    stop(&lab, &v1, second);
    let verdict = lab.verdict(&v1);
    assert_eq!(
        verdict.committed,
        sent.values().sum::<u64>(),
        "nothing is missing"
    );
}

#[test]
fn storage_that_cannot_be_reached_and_commands_that_need_a_path_say_so_in_one_line() {
    let Some(lab) = Lab::open("shared-bad") else {
        return;
    };
    let topic = lab.topic(1);
    let Some(good) = job(&lab, &topic) else { return };
    let no_bucket = Job {
        checkpoint: PathBuf::from("s3://no-such-bucket-here/c"),
        ..good.clone()
    };
    let ended = lab.ends(&no_bucket, &[]);
    assert!(
        ended.code != 0 && ended.stderr.contains("no-such-bucket-here"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    let place = good.checkpoint.to_str().expect("a URL");
    for command in [
        &["checkpoint", "verify", place][..],
        &["checkpoint", "rewind", place, "--to-batch", "0"],
        &["exec", "--checkpoint", place, "--", "true"],
    ] {
        let ended = lab.baton(command);
        assert_eq!(ended.code, 2, "{command:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("shared storage"),
            "{command:?}: {}",
            ended.stderr
        );
    }
}
