//! One owner per checkpoint: fail, wait, force, groups, left-over and deleted locks.

use baton_testkit::Signal;
use baton_testkit::realtime::{now, pause};
use std::time::Duration;

use crate::lab::{BOUND, Lab, REFUSAL, each, quoted, text};

#[test]
fn a_second_plain_start_is_refused_at_once_and_told_by_whom() {
    let Some(lab) = Lab::open("fail") else { return };
    let topic = lab.topic(3);
    let flow = lab.kafka.flow(&topic, 3, 300).expect("messages flow");
    let job = lab.job(&topic).trigger("processingTime = \"500 milliseconds\"");
    let mut owner = lab.run(&job, &[]);
    lab.committed(&job, 100);
    let start = now();
    let refused = lab.ends(&job.version("v2"), &[]);
    assert!(
        start.elapsed() < REFUSAL,
        "refused only after {:?}",
        start.elapsed()
    );
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert_eq!(refused.stdout, "", "a refused start shows nothing");
    let line = refused.stderr.lines().last().unwrap_or_default();
    for part in [
        owner.pid().to_string().as_str(),
        "v1",
        "epoch",
        "since",
        "--if-owned",
    ] {
        assert!(line.contains(part), "{part:?} is missing in: {line}");
    }
    assert!(
        owner.is_running().expect("its state can be read"),
        "the owner goes on"
    );
    lab.committed(&job, flow.sent());
    let sent = flow.finish().expect("all were stored");
    lab.caught_up(&job, &sent);
    owner.signal(Signal::TERM).expect("it runs");
    assert_eq!(owner.wait_exit(BOUND).expect("it stops"), 0);
    lab.exactly_once(&job, &sent);
    assert_eq!(lab.log(&job).epochs(), [1], "nobody else ever owned it");
}

#[test]
fn a_standby_starts_when_the_owner_stops_or_dies() {
    for (end, bound) in [(Signal::TERM, 3), (Signal::KILL, 4)] {
        let Some(lab) = Lab::open("wait") else { return };
        let topic = lab.topic(3);
        lab.kafka
            .send_numbered(&topic, 3, 0, 50)
            .expect("all were stored");
        let job = lab.job(&topic);
        let mut owner = lab.run(&job, &[]);
        lab.committed(&job, 150);
        let standby = lab.run(&job.version("v2"), &["--if-owned", "wait"]);
        let line = standby
            .wait_for_line(&owner.pid().to_string(), BOUND)
            .expect("it says whom it waits for");
        assert!(line.to_lowercase().contains("wait"), "{line}");
        owner.signal(end).expect("it runs");
        owner.wait_exit(BOUND).expect("it ends");
        let free = now();
        lab.owned_by(&job, "v2");
        assert!(
            free.elapsed() < Duration::from_secs(bound),
            "free for {:?} after {end:?}",
            free.elapsed()
        );
        lab.kafka
            .send_numbered(&topic, 3, 50, 10)
            .expect("all were stored");
        lab.caught_up(&job, &each(3, 60));
        drop(standby);
        lab.exactly_once(&job, &each(3, 60));
    }
}

#[test]
fn a_wait_that_times_out_ends_with_3_and_disturbs_nobody() {
    let Some(lab) = Lab::open("timeout") else { return };
    let topic = lab.topic(1);
    let job = lab.job(&topic);
    let mut owner = lab.run(&job, &[]);
    lab.owned_by(&job, "v1");
    let ended = lab.ends(
        &job.version("v2"),
        &["--if-owned", "wait", "--wait-timeout", "1s"],
    );
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(owner.is_running().expect("its state can be read"));
    assert_eq!(lab.log(&job).epochs(), [1]);
}

#[test]
fn a_refused_take_over_ends_with_3() {
    let Some(lab) = Lab::open("deny") else { return };
    let topic = lab.topic(1);
    let job = lab.job(&topic).ownership("handover = \"deny\"");
    let mut owner = lab.run(&job, &[]);
    lab.owned_by(&job, "v1");
    let ended = lab.ends(&job.version("v2"), &["--if-owned", "takeover"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(owner.is_running().expect("its state can be read"));
}

#[test]
fn a_candidate_that_would_not_run_never_disturbs_the_owner() {
    let Some(lab) = Lab::open("candidate") else { return };
    let topic = lab.topic(1);
    lab.kafka
        .send_numbered(&topic, 1, 0, 10)
        .expect("all were stored");
    let job = lab.job(&topic);
    let mut owner = lab.run(&job, &[]);
    lab.committed(&job, 10);
    let wrong = job.version("v2").sql("SELECT no_such_column FROM messages");
    let missing = job.version("v3").option("subscribe", &quoted("no-such-topic"));
    for (candidate, codes) in [(wrong, [2, 2]), (missing, [1, 2])] {
        let ended = lab.ends(&candidate, &["--if-owned", "takeover", "--start-timeout", "5s"]);
        assert!(codes.contains(&ended.code), "{}: {}", ended.code, ended.stderr);
        assert!(
            owner.is_running().expect("its state can be read"),
            "{} disturbed it",
            candidate.version
        );
    }
    assert_eq!(lab.log(&job).epochs(), [1]);
}

#[test]
fn force_ends_the_owner_even_a_stopped_one() {
    for stopped in [false, true] {
        let Some(lab) = Lab::open("force") else { return };
        let topic = lab.topic(3);
        let flow = lab.kafka.flow(&topic, 3, 300).expect("messages flow");
        let job = lab.job(&topic);
        let mut owner = lab.run(&job, &[]);
        lab.committed(&job, 50);
        if stopped {
            owner.signal(Signal::STOP).expect("it runs");
            let status = lab.status(&job);
            assert_eq!(
                (&status["state"], &status["responding"]),
                (&"running".into(), &false.into()),
                "{status}"
            );
        }
        let successor = lab.run(&job.version("v2"), &["--if-owned", "force"]);
        lab.owned_by(&job, "v2");
        let code = owner.wait_exit(BOUND).expect("the old owner is gone");
        assert!([4, 137].contains(&code), "the old owner ended with {code}");
        lab.committed(&job, flow.sent());
        let sent = flow.finish().expect("all were stored");
        lab.caught_up(&job, &sent);
        successor.signal(Signal::TERM).expect("it runs");
        lab.status_when(&job, "released", |status| status["state"] == "released");
        assert_eq!(lab.verdict(&job).committed, sent.values().sum::<u64>());
        assert_eq!(lab.log(&job).epochs(), [1, 2]);
    }
}

#[test]
fn one_group_belongs_to_one_checkpoint_until_it_is_claimed() {
    let Some(lab) = Lab::open("group") else { return };
    let topic = lab.topic(2);
    lab.kafka
        .send_numbered(&topic, 2, 0, 20)
        .expect("all were stored");
    let group = quoted(&format!("{topic}-group"));
    let first = lab.job(&topic).option("kafka.group.id", &group);
    let mut owner = lab.run(&first, &[]);
    lab.caught_up(&first, &each(2, 20));
    let mut second = first.clone();
    second.checkpoint = lab.path().join("another-checkpoint");
    second.sink = "noop".to_owned();
    let refused = lab.ends(&second, &[]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("--claim-group"), "{}", refused.stderr);
    assert!(refused.stderr.contains("kafka.group.id"), "{}", refused.stderr);
    assert!(
        owner.is_running().expect("its state can be read"),
        "the first goes on"
    );
    owner.signal(Signal::TERM).expect("it runs");
    owner.wait_exit(BOUND).expect("it stops");
    let again = lab.ends(&second, &[]);
    assert_eq!(
        again.code, 3,
        "the group names its checkpoint after the job has stopped too: {}",
        again.stderr
    );
    let claimed = lab.run(&second, &["--claim-group"]);
    lab.caught_up(&second, &each(2, 20));
    drop(claimed);
    let old = lab.ends(&first, &[]);
    assert_eq!(old.code, 3, "the group has moved: {}", old.stderr);
}

#[test]
fn a_job_whose_group_is_moved_ends_after_its_batch() {
    let Some(lab) = Lab::open("moved-group") else {
        return;
    };
    let topic = lab.topic(1);
    lab.kafka
        .send_numbered(&topic, 1, 0, 10)
        .expect("all were stored");
    let first = lab.job(&topic).option("kafka.group.id", &quoted(&topic));
    let mut owner = lab.run(&first, &[]);
    lab.caught_up(&first, &each(1, 10));
    let mut second = first.clone();
    second.checkpoint = lab.path().join("another-checkpoint");
    second.sink = "noop".to_owned();
    let mut claimant = lab.run(&second, &["--claim-group"]);
    lab.caught_up(&second, &each(1, 10));
    lab.kafka
        .send_numbered(&topic, 1, 10, 10)
        .expect("all were stored");
    let code = owner.wait_exit(BOUND).expect("it learns of it");
    let why = owner.stderr();
    assert_eq!(code, 3, "{why}");
    assert!(why.contains("E0206") && why.contains("kafka.group.id"), "{why}");
    lab.caught_up(&second, &each(1, 20));
    assert!(claimant.is_running().expect("its state can be read"));
}

#[test]
fn no_lock_is_left_over_by_a_kill_and_none_is_opened_by_deleting_files() {
    let Some(lab) = Lab::open("locks") else { return };
    let topic = lab.topic(1);
    lab.kafka
        .send_numbered(&topic, 1, 0, 10)
        .expect("all were stored");
    let job = lab.job(&topic);
    let mut first = lab.run(&job, &[]);
    lab.committed(&job, 10);
    first.kill().expect("it can be killed");
    let mut second = lab.run(&job, &[]);
    lab.status_when(&job, "the second start owns it", |status| {
        status["owner"]["epoch"] == 2
    });
    for file in [
        "LOCK",
        "lock",
        "owner.json",
        "store/LOCK",
        "db/LOCK",
        "rocksdb/LOCK",
    ] {
        // Which of them exist is the layout's business.
        drop(std::fs::remove_file(job.checkpoint.join(file)));
    }
    let refused = lab.ends(&job.version("v2"), &[]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(second.is_running().expect("its state can be read"));
    second.signal(Signal::TERM).expect("it runs");
    assert_eq!(second.wait_exit(BOUND).expect("it stops"), 0);
    lab.exactly_once(&job, &each(1, 10));
}

#[test]
fn an_owner_whose_directory_was_replaced_publishes_nothing_more() {
    let Some(lab) = Lab::open("replaced") else { return };
    let topic = lab.topic(1);
    lab.kafka
        .send_numbered(&topic, 1, 0, 10)
        .expect("all were stored");
    let job = lab.job(&topic);
    let mut owner = lab.run(&job, &[]);
    lab.committed(&job, 10);
    let aside = lab.path().join("aside");
    std::fs::rename(&job.checkpoint, &aside).expect("the directory can be moved");
    std::fs::create_dir(text(&job.checkpoint)).expect("another can take its place");
    lab.kafka
        .send_numbered(&topic, 1, 10, 10)
        .expect("all were stored");
    let code = owner.wait_exit(BOUND).expect("it notices");
    assert_eq!(code, 4, "{}", owner.stderr());
    pause(Duration::from_millis(100));
    let shown: usize = lab.printed().iter().map(|printed| printed.rows().count()).sum();
    assert_eq!(shown, 10, "nothing is shown after the directory has gone");
}
