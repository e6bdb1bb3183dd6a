//! Many starts at the same instant: one winner each.

use baton_testkit::realtime::{pause, poll_until};
use baton_testkit::{Process, Signal};
use std::time::Duration;

use crate::lab::{BOUND, Job, Lab, rounds};

/// Starts `count` processes at once; returns the one that won, after all others have ended with 3.
fn race(lab: &Lab, job: &Job, count: usize) -> Process {
    let mut runners: Vec<Process> = (0..count)
        .map(|n| lab.run(&job.version(&format!("r{n}")), &[]))
        .collect();
    poll_until("all but one have ended", BOUND, || {
        runners.retain_mut(|runner| {
            if runner.is_running().expect("its state can be read") {
                return true;
            }
            let code = runner.wait_exit(BOUND).expect("it has ended");
            assert_eq!(code, 3, "a loser ended otherwise: {}", runner.stderr());
            false
        });
        (runners.len() <= 1).then_some(())
    })
    .expect("the losers end");
    let mut winner = runners.pop().expect("no round without a winner");
    lab.status_when(job, "the winner owns it", |status| {
        status["owner"]["pid"] == winner.pid()
    });
    pause(Duration::from_millis(50));
    assert!(
        winner.is_running().expect("its state can be read"),
        "{}",
        winner.stderr()
    );
    winner
}

fn stop(mut winner: Process) {
    winner.signal(Signal::TERM).expect("it runs");
    assert_eq!(
        winner.wait_exit(BOUND).expect("it stops"),
        0,
        "{}",
        winner.stderr()
    );
}

#[test]
fn of_two_first_starts_at_the_same_instant_one_wins() {
    let Some(lab) = Lab::open("two") else { return };
    let topic = lab.topic(1);
    for _ in 0..rounds(20, 200) {
        let job = lab.job(&topic);
        stop(race(&lab, &job, 2));
        assert_eq!(lab.log(&job).epochs(), [1]);
    }
}

#[test]
fn of_eight_starts_at_the_same_instant_one_wins_and_epochs_strictly_grow() {
    let Some(lab) = Lab::open("eight") else { return };
    let topic = lab.topic(1);
    let old = lab.job(&topic);
    let mut owners = 0;
    for round in 0..rounds(20, 200) {
        let job = if round % 2 == 0 {
            lab.job(&topic)
        } else {
            old.clone()
        };
        stop(race(&lab, &job, 8));
        owners += round % 2;
        let expected: Vec<u64> = if round % 2 == 0 {
            vec![1]
        } else {
            (1..=owners).collect()
        };
        assert_eq!(
            lab.log(&job).epochs(),
            expected,
            "one epoch per owner, none reused"
        );
    }
}
