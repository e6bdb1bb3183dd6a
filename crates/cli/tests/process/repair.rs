//! Repair from outside: `verify`, `rewind` and `fork` between real runs.

use baton_testkit::Signal;
use baton_testkit::oracle::Printed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::lab::{BOUND, Ended, Job, Lab, each, text};

/// A job that ends when it has caught up.
fn now(job: &Job) -> Job {
    job.clone().trigger("availableNow = true")
}

fn rewind(lab: &Lab, job: &Job, args: &[&str]) -> Ended {
    lab.baton(&[&["checkpoint", "rewind", text(&job.checkpoint)], args].concat())
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).expect("one JSON document")
}

/// The offsets that one process printed, by partition, in order.
fn shown(printed: &Printed) -> BTreeMap<i32, Vec<i64>> {
    let mut offsets: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for row in printed.rows() {
        offsets.entry(row.partition).or_default().push(row.offset);
    }
    offsets
}

/// What the run that was started last printed.
fn last_shown(lab: &Lab) -> BTreeMap<i32, Vec<i64>> {
    shown(lab.printed().last().expect("something ran"))
}

fn range(from: i64, until: i64) -> Vec<i64> {
    (from..until).collect()
}

/// Runs the job until it has caught up, and asserts what it shows.
fn shows(lab: &Lab, job: &Job, expected: &[(i32, Vec<i64>)]) {
    let ended = lab.ends(&now(job), &[]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(last_shown(lab), expected.iter().cloned().collect());
}

fn send(lab: &Lab, topic: &str, partitions: i32, first: u64, count: u64) {
    lab.kafka
        .send_numbered(topic, partitions, first, count)
        .expect("all were stored");
}

/// A copy of a checkpoint.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("it is there").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}

#[test]
fn what_a_rewind_says_is_read_again_is_what_the_next_run_reads() {
    let Some(lab) = Lab::open("rewind") else { return };
    let topic = lab.topic(2);
    let job = lab.job(&topic);
    send(&lab, &topic, 2, 0, 10);
    shows(&lab, &job, &[(0, range(0, 10)), (1, range(0, 10))]);
    send(&lab, &topic, 2, 10, 5);
    shows(&lab, &job, &[(0, range(10, 15)), (1, range(10, 15))]);

    // Back to where batch 0 ended; first only said.
    let lines = [0, 1].map(|partition| format!("{topic}-{partition}: 15 → 10, 5 records again\n"));
    let dry = rewind(&lab, &job, &["--to-batch", "0", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert!(dry.stdout.contains(&lines.concat()), "{}", dry.stdout);
    assert_eq!(crate::lab::ends(&lab.status(&job)), each(2, 15), "only said");
    let done = rewind(&lab, &job, &["--to-batch", "0"]);
    assert_eq!((done.code, &done.stdout), (0, &dry.stdout), "{}", done.stderr);
    assert_eq!(crate::lab::ends(&lab.status(&job)), each(2, 10));
    shows(&lab, &job, &[(0, range(10, 15)), (1, range(10, 15))]);
    let log = lab.log(&job);
    assert_eq!(log.complaints(), Vec::<String>::new());
    assert_eq!((log.count("position"), log.epochs()), (2, vec![1, 2, 3, 4]));
    assert_eq!(log.batches().map(|batch| batch.id).collect::<Vec<_>>(), [0, 1, 2]);

    // To an offset of one partition; the other one stays. New records come after.
    let to = format!(r#"{{"messages":{{"{topic}":{{"1":3}}}}}}"#);
    let done = json(&rewind(&lab, &job, &["--to", &to, "--output", "json"]));
    assert_eq!(
        (&done["changed"], &done["again"], &done["skipped"]),
        (&true.into(), &12.into(), &0.into())
    );
    assert_eq!((&done["nextBatch"], &done["epoch"]), (&3.into(), &5.into()));
    send(&lab, &topic, 2, 15, 2);
    shows(&lab, &job, &[(0, range(15, 17)), (1, range(3, 17))]);
}

#[test]
fn records_are_skipped_only_when_that_is_said() {
    let Some(lab) = Lab::open("skip") else { return };
    let topic = lab.topic(1);
    let job = lab.job(&topic);
    send(&lab, &topic, 1, 0, 10);
    shows(&lab, &job, &[(0, range(0, 10))]);
    send(&lab, &topic, 1, 10, 10);
    let to = format!(r#"{{"{topic}":{{"0":14}}}}"#);
    let line = format!("{topic}-0: 10 → 14, 4 records SKIPPED\n");
    let refused = rewind(&lab, &job, &["--to", &to]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stdout.contains(&line),
        "it is said all the same: {}",
        refused.stdout
    );
    assert!(
        refused.stderr.contains("E0154") && refused.stderr.contains("--yes"),
        "{}",
        refused.stderr
    );
    let refused = rewind(&lab, &job, &["--to", &to, "--output", "json"]);
    assert_eq!((refused.code, &json(&refused)["changed"]), (2, &false.into()));
    let dry = rewind(&lab, &job, &["--to", &to, "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert_eq!(
        crate::lab::ends(&lab.status(&job)),
        each(1, 10),
        "nothing has moved"
    );
    assert_eq!(rewind(&lab, &job, &["--to", &to, "--yes"]).code, 0);
    shows(&lab, &job, &[(0, range(14, 20))]);
}

#[test]
fn an_owner_and_an_interrupted_batch_come_first() {
    let Some(lab) = Lab::open("first") else { return };
    let topic = lab.topic(1);
    // More than fits into a pipe that nobody reads.
    const BIG: u64 = 20_000;
    send(&lab, &topic, 1, 0, BIG);
    let job = lab.job(&topic);
    let (mut process, pipe) = lab.run_unread(&job, &[]);
    lab.status_when(&job, "batch 0 is planned", |status| {
        status["lastPlannedBatch"] == 0
    });
    let to = format!(r#"{{"{topic}":{{"0":0}}}}"#);
    let pid = process.pid().to_string();
    for command in [
        &["checkpoint", "rewind", text(&job.checkpoint), "--to", &to][..],
        &[
            "checkpoint",
            "rewind",
            text(&job.checkpoint),
            "--to",
            &to,
            "--dry-run",
        ],
        &["checkpoint", "verify", text(&job.checkpoint)],
    ] {
        let refused = lab.baton(command);
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (3, ""),
            "{}",
            refused.stderr
        );
        assert!(
            refused.stderr.contains("E0150") && refused.stderr.contains(&pid),
            "{}",
            refused.stderr
        );
    }
    assert!(process.is_running().expect("its state can be read"));
    process.kill().expect("it can be killed");
    drop(pipe);

    let refused = rewind(&lab, &job, &["--to", &to]);
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (1, ""),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("E0151") && refused.stderr.contains("batch 0"),
        "{}",
        refused.stderr
    );
    let found = lab.baton(&["checkpoint", "verify", text(&job.checkpoint), "--output", "json"]);
    assert_eq!(
        (found.code, &json(&found)["pendingBatch"]),
        (0, &0.into()),
        "{}",
        found.stderr
    );

    shows(&lab, &job, &[(0, range(0, i64::try_from(BIG).expect("small")))]);
    let done = rewind(&lab, &job, &["--to", &format!(r#"{{"{topic}":{{"0":19990}}}}"#)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    shows(&lab, &job, &[(0, range(19_990, 20_000))]);
}

#[test]
fn a_fork_reads_on_from_the_exact_offset_and_the_old_job_does_not_notice() {
    let Some(lab) = Lab::open("fork") else { return };
    let topic = lab.topic(2);
    let job = lab.job(&topic);
    send(&lab, &topic, 2, 0, 10);
    let mut owner = lab.run(&job, &[]);
    lab.caught_up(&job, &each(2, 10));
    let mut fork = job.clone();
    fork.checkpoint = lab.path().join("forks/one");
    let command = [
        "checkpoint",
        "fork",
        text(&job.checkpoint),
        text(&fork.checkpoint),
    ];
    let dry = lab.baton(&[&command[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert!(
        dry.stdout.contains(&format!("messages/{topic}  0:10 1:10")),
        "{}",
        dry.stdout
    );
    assert!(!fork.checkpoint.exists(), "only said");
    let made = lab.baton(&[&command[..], &["--output", "json"]].concat());
    assert_eq!(made.code, 0, "{}", made.stderr);
    let made = json(&made);
    assert_eq!((&made["owned"], &made["pending"]), (&true.into(), &Value::Null));
    let (old, new) = (lab.status(&job), lab.status(&fork));
    assert_eq!(new["checkpointId"], made["forkId"]);
    assert_ne!(new["checkpointId"], old["checkpointId"]);
    assert_eq!(
        (&new["state"], &new["offsets"]),
        (&"released".into(), &old["offsets"])
    );

    let again = lab.baton(&command);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("E0156"), "{}", again.stderr);

    send(&lab, &topic, 2, 10, 7);
    shows(&lab, &fork, &[(0, range(10, 17)), (1, range(10, 17))]);
    lab.caught_up(&job, &each(2, 17));
    owner.signal(Signal::TERM).expect("it runs");
    assert_eq!(owner.wait_exit(BOUND).expect("it stops"), 0);
    let all = shown(&lab.printed()[0]);
    assert_eq!(
        all,
        [(0, range(0, 17)), (1, range(0, 17))].into(),
        "the old job read all of it, once"
    );
    assert_eq!(lab.log(&job).epochs(), [1]);
    let found = lab.baton(&["checkpoint", "verify", text(&fork.checkpoint)]);
    assert_eq!(found.code, 0, "{}", found.stderr);
}

#[test]
fn verify_names_what_is_damaged_and_the_repair_it_names_works() {
    let Some(lab) = Lab::open("verify") else { return };
    let topic = lab.topic(1);
    let job = lab.job(&topic);
    for first in [0, 10, 20] {
        send(&lab, &topic, 1, first, 10);
        assert_eq!(lab.ends(&now(&job), &[]).code, 0);
    }
    let verify = |place: &Path| lab.baton(&["checkpoint", "verify", text(place)]);
    let whole = verify(&job.checkpoint);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert!(whole.stdout.ends_with("verdict    whole\n"), "{}", whole.stdout);

    // A record is gone.
    let holed = lab.path().join("holed");
    copy(&job.checkpoint, &holed);
    {
        let log = holed.join("log");
        let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).expect("a store");
        let store = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, families).expect("it is free");
        let slots = store.cf_handle("slots").expect("the slots");
        store
            .delete_cf(slots, 3_u64.to_be_bytes())
            .expect("it can be deleted");
    }
    let found = verify(&holed);
    assert_eq!(found.code, 1, "{}", found.stderr);
    let new = lab.path().join("repaired");
    let command = format!("baton checkpoint fork {} NEW", holed.display());
    assert!(
        found.stdout.contains("record 3 [E0116]: it is missing"),
        "{}",
        found.stdout
    );
    assert!(
        found.stdout.contains(&command) && found.stderr.contains(&command),
        "{}",
        found.stderr
    );
    let forked = lab.baton(&["checkpoint", "fork", text(&holed), text(&new)]);
    assert_eq!(forked.code, 0, "{}", forked.stderr);
    send(&lab, &topic, 1, 30, 5);
    let mut repaired = job.clone();
    repaired.checkpoint = new;
    shows(&lab, &repaired, &[(0, range(30, 35))]);

    // A file is not what was written.
    let flipped = lab.path().join("flipped");
    copy(&job.checkpoint, &flipped);
    let tables = fs::read_dir(flipped.join("log"))
        .expect("there is a log")
        .flatten();
    let table = tables
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|kind| kind == "sst"))
        .expect("an earlier owner's records are in a table");
    let mut bytes = fs::read(&table).expect("it can be read");
    bytes[10] ^= 0x40;
    fs::write(&table, bytes).expect("it can be written");
    let found = verify(&flipped);
    assert_eq!(found.code, 1, "{}", found.stderr);
    assert!(
        found.stderr.contains("E0117") && found.stderr.contains(text(&table)),
        "{}",
        found.stderr
    );

    // An old log was put back.
    let old = lab.path().join("old");
    copy(&job.checkpoint, &old);
    assert_eq!(lab.ends(&now(&job), &[]).code, 0);
    fs::copy(job.checkpoint.join("owner.json"), old.join("owner.json")).expect("it can be copied");
    let found = verify(&old);
    assert_eq!(found.code, 1, "{}", found.stderr);
    let rm = format!("rm {}", old.join("owner.json").display());
    assert!(
        found.stderr.contains("E0118") && found.stderr.contains(&rm),
        "{}",
        found.stderr
    );
}

#[test]
fn what_cannot_be_meant_is_refused_and_a_job_file_is_as_good_as_a_place() {
    let Some(lab) = Lab::open("meant") else { return };
    let topic = lab.topic(1);
    let job = lab.job(&topic);
    send(&lab, &topic, 1, 0, 10);
    shows(&lab, &job, &[(0, range(0, 10))]);
    let log = |lab: &Lab| lab.baton(&["checkpoint", "show", text(&job.checkpoint)]).stdout;
    let before = log(&lab);
    let minus = format!(r#"{{"{topic}":{{"0":-2}}}}"#);
    let unknown = format!(r#"{{"{topic}":{{"7":1}}}}"#);
    for (args, code, part) in [
        (&["--to", &minus][..], "E0153", "earliest"),
        (&["--to", &unknown], "E0153", "it has messages/"),
        (&["--to", "4000"], "E0153", "topic"),
        (&["--to", "{"], "E0153", "no JSON"),
        (&["--to-batch", "5"], "E0152", "batch 0 only"),
        (&["--to-batch", "-1"], "", "--to-batch"),
        (&["--to-batch", "0", "--to", "{}"], "", "cannot be used with"),
        (&[], "", "--to-batch"),
    ] {
        let refused = rewind(&lab, &job, args);
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (2, ""),
            "{args:?}: {}",
            refused.stderr
        );
        assert!(
            refused.stderr.contains(code) && refused.stderr.contains(part),
            "{args:?}: {}",
            refused.stderr
        );
    }
    let nowhere = lab.path().join("nowhere");
    for command in [
        &["verify", text(&nowhere)][..],
        &["rewind", text(&nowhere), "--to-batch", "0"],
        &["fork", text(&nowhere), text(&lab.path().join("new"))],
    ] {
        let refused = lab.baton(&[&["checkpoint"], command].concat());
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (2, ""),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains("E0514"), "{}", refused.stderr);
        assert!(!nowhere.exists(), "looking makes nothing");
    }
    assert_eq!(log(&lab), before);

    let file = lab.path().join("only-the-place.toml");
    let toml = |place: &Path| format!("[sink.options]\ncheckpointLocation = '{}'\n", place.display());
    fs::write(&file, toml(&job.checkpoint)).expect("it can be written");
    let other = lab.path().join("another-place.toml");
    fs::write(&other, toml(&lab.path().join("by-file"))).expect("it can be written");
    assert_eq!(lab.baton(&["checkpoint", "verify", text(&file)]).code, 0);
    let forked = lab.baton(&["checkpoint", "fork", text(&file), text(&other)]);
    assert_eq!(forked.code, 0, "{}", forked.stderr);
    let stays = lab.baton(&[
        "checkpoint",
        "rewind",
        text(&other),
        "--to",
        &format!(r#"{{"{topic}":{{"0":10}}}}"#),
    ]);
    assert_eq!(stays.code, 0, "{}", stays.stderr);
    assert!(stays.stderr.contains("nothing was changed"), "{}", stays.stderr);
    for command in ["verify", "rewind", "fork"] {
        let help = lab.baton(&["checkpoint", command, "--help"]).stdout;
        assert_eq!(
            help.matches(&format!("  baton checkpoint {command} ")).count(),
            2,
            "{help}"
        );
    }
}
