//! From one version to the next while messages flow.

use baton_testkit::realtime::{now, pause};
use baton_testkit::{Process, Signal};
use std::time::Duration;

use crate::lab::{BOUND, Job, Lab, rounds};

#[test]
fn the_scenario_of_the_demo() {
    let Some(lab) = Lab::open("demo") else { return };
    let topic = lab.topic(3);
    let flow = lab.kafka.flow(&topic, 3, 500).expect("messages flow");
    let v1 = lab.job(&topic).latest();
    let mut first = lab.run(&v1, &[]);
    lab.batches(&v1, 3);
    let refused = lab.ends(&v1.version("v2"), &[]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    let second = lab.run(&v1.version("v2"), &["--if-owned", "takeover"]);
    lab.owned_by(&v1, "v2");
    assert_eq!(
        first.wait_exit(BOUND).expect("v1 leaves"),
        0,
        "{}",
        first.stderr()
    );
    let taken_over_at = lab.status(&v1)["lastCommittedBatch"].as_u64().unwrap_or_default();
    lab.batches(&v1, taken_over_at + 4);
    let said = second.stderr();
    for word in ["commit_gap", "excess_gap", "max_delay"] {
        assert!(said.contains(word), "the hand-over line has no {word}: {said}");
    }
    let sent = flow.finish().expect("all were stored");
    lab.caught_up(&v1, &sent);
    second.signal(Signal::TERM).expect("it runs");
    lab.status_when(&v1, "released", |status| status["state"] == "released");
    let verdict = lab.verdict(&v1);
    assert_eq!((verdict.repeated, verdict.ends.len()), (0, 3));
    let checkpoint = v1.checkpoint.to_str().expect("a plain path");
    let records = lab.baton(&["checkpoint", "show", checkpoint, "--output", "json"]);
    let records: serde_json::Value = serde_json::from_str(&records.stdout).expect("one document");
    let noted = records["records"].as_array().expect("records").iter();
    let noted: Vec<_> = noted.filter(|record| record["handover"].is_object()).collect();
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert_eq!(
        (&noted[0]["kind"], &noted[0]["handover"]["from"]),
        (&"commit".into(), &"v1".into())
    );
    let shown: Vec<usize> = lab.printed().iter().map(|p| p.rows().count()).collect();
    assert!(
        shown[0] > 0 && shown[1] == 0 && shown[2] > 0,
        "each owner showed something: {shown:?}"
    );
}

#[test]
fn ever_new_versions_take_over_while_messages_flow() {
    let Some(lab) = Lab::open("versions") else { return };
    let topic = lab.topic(3);
    let flow = lab.kafka.flow(&topic, 3, 300).expect("messages flow");
    let job = lab.job(&topic).version("v0");
    let mut owner = lab.run(&job, &[]);
    lab.committed(&job, 30);
    // The verdict needs the whole log, and each start reads it: in the long run it must not have a batch for each message.
    let paced = job.clone().trigger("processingTime = \"100 milliseconds\"");
    let count = rounds(30, 1000);
    for round in 1..=count {
        let version = format!("v{round}");
        let job = if round <= 30 { &job } else { &paced };
        let next = lab.run(&job.version(&version), &["--if-owned", "takeover"]);
        lab.owned_by(job, &version);
        assert_eq!(
            owner.wait_exit(BOUND).expect("the old one leaves"),
            0,
            "{}",
            owner.stderr()
        );
        pause(Duration::from_millis(lab.below(200)));
        owner = next;
    }
    let sent = flow.finish().expect("all were stored");
    lab.caught_up(&job, &sent);
    owner.signal(Signal::TERM).expect("it runs");
    assert_eq!(owner.wait_exit(BOUND).expect("it stops"), 0);
    lab.exactly_once(&job, &sent);
    let epochs: Vec<u64> = (1..=count + 1).collect();
    assert_eq!(lab.log(&job).epochs(), epochs, "each version owned it once");
}

/// An orchestrator that starts again whatever ends.
struct Always<'a> {
    lab: &'a Lab,
    job: Job,
    process: Process,
    restarts: u32,
}

impl<'a> Always<'a> {
    fn start(lab: &'a Lab, job: Job) -> Self {
        let process = lab.run(&job, &["--if-owned", "takeover"]);
        Self {
            lab,
            job,
            process,
            restarts: 0,
        }
    }

    fn look(&mut self) {
        if !self.process.is_running().expect("its state can be read") {
            self.process = self.lab.run(&self.job, &["--if-owned", "takeover"]);
            self.restarts += 1;
        }
    }
}

#[test]
fn two_versions_that_are_always_restarted_do_not_play_ping_pong() {
    let Some(lab) = Lab::open("pingpong") else { return };
    let topic = lab.topic(3);
    let flow = lab.kafka.flow(&topic, 3, 300).expect("messages flow");
    let job = lab.job(&topic);
    let mut old = Always::start(&lab, job.clone());
    lab.owned_by(&job, "v1");
    let mut new = Always::start(&lab, job.version("v2"));
    let span = Duration::from_secs(rounds(8, 120));
    let start = now();
    while start.elapsed() < span {
        old.look();
        new.look();
        pause(Duration::from_millis(50));
    }
    assert_eq!(
        (old.restarts, new.restarts),
        (1, 0),
        "v1 was replaced once and then waits"
    );
    assert_eq!(lab.log(&job).epochs(), [1, 2]);
    let status = lab.owned_by(&job, "v2");
    assert_eq!(status["standby"]["version"], "v1", "{status}");
    let sent = flow.finish().expect("all were stored");
    lab.caught_up(&job, &sent);
    drop(old);
    new.process.signal(Signal::TERM).expect("it runs");
    assert_eq!(new.process.wait_exit(BOUND).expect("it stops"), 0);
    lab.exactly_once(&job, &sent);
}

#[test]
fn the_owners_own_version_waits_instead_of_taking_over() {
    let Some(lab) = Lab::open("same") else { return };
    let topic = lab.topic(1);
    let job = lab.job(&topic);
    let mut owner = lab.run(&job, &[]);
    lab.owned_by(&job, "v1");
    let ended = lab.ends(&job, &["--if-owned", "takeover", "--wait-timeout", "2s"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(owner.is_running().expect("its state can be read"));
    assert_eq!(lab.log(&job).epochs(), [1]);
}
