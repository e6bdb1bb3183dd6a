//! Input that is wrong or unusual, on a real broker.

use baton_testkit::Record;

use crate::lab::{Ended, Job, Lab, each, quoted};

/// Asserts a clear end: the code, one last line that has all of `parts`, an error code, and nothing on stdout.
fn refused(ended: &Ended, codes: &[i32], parts: &[&str]) {
    assert!(codes.contains(&ended.code), "{}: {}", ended.code, ended.stderr);
    assert_eq!(ended.stdout, "");
    for part in parts {
        assert!(
            ended.stderr.contains(part),
            "{part:?} is missing in: {}",
            ended.stderr
        );
    }
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

fn now(job: Job) -> Job {
    job.trigger("availableNow = true")
}

#[test]
fn a_missing_topic_is_named() {
    let Some(lab) = Lab::open("missing") else { return };
    let job = lab.job("there-is-no-such-topic");
    refused(
        &lab.ends(&job, &["--start-timeout", "5s"]),
        &[1, 2],
        &["there-is-no-such-topic", "E0"],
    );
}

#[test]
fn limits_that_are_no_counts_are_refused() {
    let Some(lab) = Lab::open("limits") else { return };
    let topic = lab.topic(1);
    for limit in ["0", "-5", "\"many\""] {
        let job = lab.job(&topic).option("maxOffsetsPerTrigger", limit);
        refused(&lab.ends(&job, &[]), &[2], &["maxOffsetsPerTrigger"]);
    }
}

#[test]
fn offsets_that_cannot_be_are_refused() {
    let Some(lab) = Lab::open("offsets") else { return };
    let topic = lab.topic(2);
    lab.kafka
        .send_numbered(&topic, 2, 0, 10)
        .expect("all were stored");
    let start = |json: String| lab.job(&topic).option("startingOffsets", &quoted(&json));
    let negative = start(format!(r#"{{"{topic}":{{"0":-7,"1":0}}}}"#));
    refused(&lab.ends(&negative, &[]), &[2], &["-7"]);
    let beyond = start(format!(r#"{{"{topic}":{{"0":4711,"1":0}}}}"#));
    refused(&lab.ends(&now(beyond), &[]), &[1, 2], &["4711"]);
    let incomplete = start(format!(r#"{{"{topic}":{{"0":0}}}}"#));
    refused(&lab.ends(&incomplete, &[]), &[1, 2], &[&topic]);
    let garbage = start("{not json".to_owned());
    refused(&lab.ends(&garbage, &[]), &[2], &["startingOffsets"]);
}

#[test]
fn the_offsets_named_are_where_the_job_starts() {
    let Some(lab) = Lab::open("exact") else { return };
    let topic = lab.topic(3);
    lab.kafka
        .send_numbered(&topic, 3, 0, 10)
        .expect("all were stored");
    let json = format!(r#"{{"{topic}":{{"0":4,"1":-2,"2":-1}}}}"#);
    let job = now(lab.job(&topic).option("startingOffsets", &quoted(&json)));
    assert_eq!(lab.ends(&job, &[]).code, 0);
    let verdict = lab.verdict(&job);
    assert_eq!(verdict.committed, 6 + 10);
}

#[test]
fn an_unknown_option_is_refused_with_the_nearest_name() {
    let Some(lab) = Lab::open("option") else { return };
    let job = lab.job("any").option("startingOffset", &quoted("earliest"));
    refused(&lab.ends(&job, &[]), &[2], &["startingOffset", "startingOffsets"]);
}

#[test]
fn another_querys_checkpoint_is_refused_with_the_difference() {
    let Some(lab) = Lab::open("other") else { return };
    let (topic, second) = (lab.topic(1), lab.topic(1));
    lab.kafka.send_numbered(&topic, 1, 0, 5).expect("all were stored");
    let job = now(lab.job(&topic));
    assert_eq!(lab.ends(&job, &[]).code, 0);
    let other = job.clone().option("subscribe", &quoted(&second));
    refused(
        &lab.ends(&other, &[]),
        &[2],
        &[&topic, &second, "--accept-changes"],
    );
    let sql = job.sql("SELECT partition, offset, upper(CAST(value AS STRING)) AS value FROM messages");
    assert_eq!(
        lab.ends(&sql, &[]).code,
        0,
        "other SQL over the same source is a new version"
    );
}

#[test]
fn large_and_absent_keys_and_values_pass() {
    let Some(lab) = Lab::open("large") else { return };
    let topic = lab.topic(1);
    let large = vec![b'x'; 1_000_000];
    let record = |key, value| Record {
        partition: 0,
        key,
        value,
    };
    let records = [
        record(None, Some(large.as_slice())),
        record(None, None),
        record(Some(b"key".as_slice()), None),
        record(Some(b"".as_slice()), Some(b"".as_slice())),
    ];
    lab.kafka.send(&topic, &records).expect("all were stored");
    let sql = "SELECT partition, offset, concat_ws('/', coalesce(CAST(length(key) AS STRING), 'none'), \
               coalesce(CAST(length(value) AS STRING), 'none')) AS value FROM messages";
    let job = now(lab.job(&topic).sql(sql));
    let ended = lab.ends(&job, &[]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let printed = lab.printed();
    let values: Vec<&str> = printed
        .iter()
        .flat_map(|p| p.rows())
        .map(|row| row.value.as_str())
        .collect();
    assert_eq!(values, ["none/1000000", "none/none", "3/none", "0/0"]);
    let whole = now(lab.job(&topic));
    let ended = lab.ends(&whole, &[]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.len() > 3_000_000,
        "the table is as wide as its widest cell"
    );
    assert_eq!(crate::lab::ends(&lab.status(&whole)), each(1, 4));
}
