//! What `baton status` says, whoever lives.

use baton_testkit::Signal;
use serde_json::Value;

use crate::lab::{BOUND, Lab, each};

fn is_stamp(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|stamp| stamp.len() >= 20 && stamp.contains('T') && stamp.ends_with('Z'))
}

#[test]
fn status_tells_the_truth_before_during_and_after() {
    let Some(lab) = Lab::open("status") else { return };
    let topic = lab.topic(2);
    lab.kafka
        .send_numbered(&topic, 2, 0, 10)
        .expect("all were stored");
    let job = lab.job(&topic);

    let mut process = lab.run(&job, &[]);
    let running = lab.caught_up(&job, &each(2, 10));
    assert_eq!(running["state"], "running", "{running}");
    assert_eq!(running["job"], "rows", "{running}");
    assert!(
        running["checkpointId"].as_str().is_some_and(|id| id.len() == 36),
        "{running}"
    );
    let owner = &running["owner"];
    assert_eq!(owner["pid"], process.pid(), "{running}");
    assert_eq!(
        (&owner["version"], &owner["epoch"]),
        (&"v1".into(), &1.into()),
        "{running}"
    );
    assert!(
        is_stamp(&owner["since"]) && is_stamp(&running["lastCommitAt"]),
        "{running}"
    );
    assert!(owner["host"].is_string() && owner["id"].is_string(), "{running}");
    assert_eq!(
        (&running["responding"], &running["lastError"]),
        (&true.into(), &Value::Null),
        "{running}"
    );
    assert_eq!(
        running["lastPlannedBatch"], running["lastCommittedBatch"],
        "{running}"
    );
    assert!(running["standby"].is_null(), "{running}");
    let known = lab.status_when(&job, "the lag is known", |status| is_stamp(&status["lagAt"]));
    assert_eq!(known["lag"]["messages"][&topic]["0"], 0, "{known}");

    let standby = lab.run(&job.version("v2"), &["--if-owned", "wait"]);
    let seen = lab.status_when(&job, "the standby is seen", |status| {
        status["standby"]["version"] == "v2"
    });
    assert_eq!(seen["standby"]["pid"], standby.pid(), "{seen}");
    drop(standby);

    process.kill().expect("it can be killed");
    let killed = lab.status(&job);
    assert_eq!(
        (&killed["state"], &killed["owner"]),
        (&"interrupted".into(), &Value::Null),
        "{killed}"
    );
    assert_eq!(crate::lab::ends(&killed), each(2, 10), "{killed}");

    let mut again = lab.run(&job, &[]);
    lab.owned_by(&job, "v1");
    again.signal(Signal::TERM).expect("it runs");
    assert_eq!(again.wait_exit(BOUND).expect("it stops"), 0);
    let released = lab.status(&job);
    assert_eq!(
        (&released["state"], &released["owner"]),
        (&"released".into(), &Value::Null),
        "{released}"
    );
}
