//! A broker that is down at the start, or goes away later.

use baton_testkit::PrivateBroker;
use baton_testkit::realtime::{now, pause};
use std::time::Duration;

use crate::lab::{BOUND, Lab, each, rounds};

#[test]
fn a_broker_that_is_down_at_the_start_is_named_within_the_bound() {
    let Some(lab) = Lab::open("down") else { return };
    let mut job = lab.job("any");
    "127.0.0.1:1".clone_into(&mut job.broker);
    let start = now();
    let ended = lab.ends(&job, &["--start-timeout", "3s"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(
        start.elapsed() < Duration::from_secs(7),
        "a bound of 3 s took {:?}",
        start.elapsed()
    );
    let line = ended.stderr.lines().last().unwrap_or_default();
    assert!(line.contains("127.0.0.1:1"), "the address is missing in: {line}");
    assert!(
        line.to_lowercase().contains("refused"),
        "the client's last error is missing in: {line}"
    );
    let state = lab.status(&job)["state"].clone();
    assert!(
        ["empty", "released"].contains(&state.as_str().unwrap_or_default()),
        "nothing is left behind: {state}"
    );
}

#[test]
fn rows_flow_again_within_15_s_after_each_outage() {
    if Lab::open("outage").is_none() {
        return;
    }
    let broker = PrivateBroker::start().expect("a broker of our own starts");
    let lab = Lab::on("outage", broker.kafka());
    let topic = lab.topic(3);
    lab.kafka
        .send_numbered(&topic, 3, 0, 10)
        .expect("all were stored");
    let job = lab.job(&topic);
    let mut process = lab.run(&job, &[]);
    lab.caught_up(&job, &each(3, 10));
    for outage in 1..=2 {
        broker.crash().expect("the broker can be crashed");
        pause(Duration::from_secs(rounds(5, 20)));
        assert!(
            process.is_running().expect("its state can be read"),
            "it waits: {}",
            process.stderr()
        );
        broker.restore().expect("the broker comes back");
        let back = now();
        lab.kafka
            .send_numbered(&topic, 3, outage * 10, 10)
            .expect("all were stored");
        lab.caught_up(&job, &each(3, outage * 10 + 10));
        assert!(
            back.elapsed() < Duration::from_secs(15),
            "outage {outage}: {:?}",
            back.elapsed()
        );
    }
    process.signal(baton_testkit::Signal::TERM).expect("it runs");
    assert_eq!(process.wait_exit(BOUND).expect("it stops"), 0);
    lab.exactly_once(&job, &each(3, 30));
}
