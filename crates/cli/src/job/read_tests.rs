use super::*;

const JOB: &str = r#"name = "char-count"
version = "${IMAGE_TAG:-v1}"
[source.messages]
format = "kafka"
[source.messages.options]
"kafka.bootstrap.servers" = "localhost:9092"
subscribe = "test1"
maxOffsetsPerTrigger = 100
includeHeaders = true
kafka.group.id = "g"
[query]
sql = "SELECT value FROM messages"
[sink]
format = "console"
[sink.options]
checkpointLocation = "/tmp/c"
numRows = 5
[trigger]
processingTime = "1 second"
[ownership]
stopTimeout = "5s"
handover = "deny"
[conf]
"spark.sql.streaming.minBatchesToRetain" = 7
"spark.sql.streaming.minBatchToRetain" = 7
"#;

fn read(text: &str, sets: &[&str]) -> Result<JobSpec> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let outside = Outside {
        env: &|name| (name == "HOST").then(|| "broker:9092".to_owned()),
        read: &|path| Ok(format!("SELECT 1 -- {}", path.display())),
    };
    job(&"job.toml".into(), text, &sets, &outside)
}

/// Replaces a line of the good job, and expects this failure.
#[track_caller]
fn refused(from: &str, to: &str, expected: &str) {
    assert!(JOB.contains(from), "{from}");
    let failure = read(&JOB.replacen(from, to, 1), &[]).expect_err("it is wrong");
    assert_eq!(format!("{}: {failure}", failure.code), expected);
}

#[test]
fn a_job_is_read_as_meant() {
    let job = read(JOB, &[]).expect("valid");
    assert_eq!((job.name.as_str(), job.version.as_str()), ("char-count", "v1"));
    let options = &job.sources[0].options.map;
    assert_eq!(options.get("MAXOFFSETSPERTRIGGER"), Some("100"));
    assert_eq!(options.get("includeHeaders"), Some("true"));
    assert_eq!(
        options.get("kafka.group.id"),
        Some("g"),
        "dots without quotes are a name, not tables"
    );
    assert_eq!(job.sink.checkpoint.as_deref(), Some("/tmp/c"));
    assert_eq!(job.sink.options.map.get("checkpointLocation"), None);
    assert_eq!(job.trigger, Trigger::ProcessingTime(Duration::from_secs(1)));
    assert_eq!(
        (job.ownership.stop_timeout, job.ownership.handover),
        (Duration::from_secs(5), false)
    );
    assert_eq!(job.conf.min_batches_to_retain, Some(7));
    assert_eq!(
        job.warnings,
        [
            "job.toml:25:1: `spark.sql.streaming.minBatchToRetain` is not known and has no effect; \
             did you mean `spark.sql.streaming.minBatchesToRetain`?"
        ]
    );
}

#[test]
fn unknown_names_are_refused_with_place_and_nearest_name() {
    refused(
        "[query]",
        "[qery]",
        "E0503: job.toml:11:2: unknown table `qery`; did you mean `query`?",
    );
    refused(
        "format = \"console\"",
        "formt = \"console\"",
        "E0503: job.toml:14:1: unknown key `formt` in [sink]; did you mean `format`?",
    );
    refused(
        "handover",
        "hand_over",
        "E0503: job.toml:22:1: unknown key `hand_over` in [ownership]; did you mean `handover`?",
    );
    refused(
        "format = \"kafka\"",
        "format = \"kafka\"\nzzz = 1",
        "E0503: job.toml:5:1: unknown key `zzz` in [source.messages]; known here: format, options",
    );
}

#[test]
fn wrong_values_are_refused_where_they_stand() {
    refused(
        "name = \"char-count\"",
        "name = \"char count\"",
        "E0504: job.toml:1:1: name `char count` must match [A-Za-z0-9._-]+",
    );
    refused(
        "name = \"char-count\"",
        "",
        "E0504: job.toml: `name` is missing: it is the query's name in progress, metrics and client ids",
    );
    refused(
        "name = \"char-count\"",
        "name = 3",
        "E0504: job.toml:1:1: `name` must be a string, not a number",
    );
    refused(
        "subscribe = \"test1\"",
        "subscribe = [1]",
        "E0504: job.toml:7:1: `subscribe` must be a string, a number or a boolean, not an array",
    );
    refused(
        "includeHeaders",
        "SUBSCRIBE",
        "E0504: job.toml:9:1: option `SUBSCRIBE` is given twice, first at job.toml:7:1; options are case-insensitive",
    );
    refused(
        "processingTime = \"1 second\"",
        "processingTime = \"1 month\"",
        "E0006: job.toml:19:1: `1 month` is not a duration; write 250ms, 10s, 5m, 1h or `1 minute 30 seconds`",
    );
    refused(
        "processingTime = \"1 second\"",
        "once = false",
        "E0504: job.toml:19:1: `trigger.once` must be true; leave it out otherwise",
    );
    refused(
        "processingTime = \"1 second\"",
        "once = true\navailableNow = true",
        "E0504: job.toml:20:1: [trigger] has `once` and `availableNow`; keep one",
    );
    refused(
        "format = \"console\"",
        "format = \"consol\"",
        "E0504: job.toml:14:1: unknown sink format `consol`; did you mean `console`?",
    );
    refused(
        "[source.messages]",
        "[source.my-messages]",
        "E0003: job.toml:3:9: name `my-messages` must match [A-Za-z_][A-Za-z0-9_]*",
    );
}

#[test]
fn what_comes_later_is_refused_as_that() {
    refused(
        "format = \"console\"",
        "format = \"parquet\"",
        "E0506: job.toml:14:1: sink `parquet` is not in this version; use console or noop",
    );
    refused(
        "format = \"console\"",
        "format = \"memory\"",
        "E0506: job.toml:14:1: sink `memory` is for the Rust library only; use console or noop in a job file",
    );
    refused(
        "handover = \"deny\"",
        "rollbackBatches = 2",
        "E0506: job.toml:22:1: `ownership.rollbackBatches` other than 0 is not in this version; leave it out",
    );
    refused(
        "[query]",
        "[watermark]\nx = 1\n[query]",
        "E0506: job.toml:11:2: [watermark] is not in this version; leave it out; stateful queries come later",
    );
}

#[test]
fn contradictions_are_refused() {
    refused(
        "BatchesToRetain\" = 7",
        "BatchesToRetain\" = 0",
        "E0507: job.toml:24:1: `spark.sql.streaming.minBatchesToRetain` must be a whole number above 0, not `0`",
    );
    refused(
        "minBatchToRetain\" = 7",
        "stopTimeout\" = \"6s\"",
        "E0507: job.toml:21:1: `ownership.stopTimeout` is 5s, but spark.sql.streaming.stopTimeout says 6s; keep one",
    );
}

#[test]
fn what_is_not_toml_is_refused_at_its_line() {
    let failure = read("name = \"a\"\nversion = = 3\n", &[]).expect_err("not TOML");
    assert!(
        failure.to_string().starts_with("job.toml:2:11: not TOML: "),
        "{failure}"
    );
    assert_eq!(failure.code, "E0502");
}

#[test]
fn environment_values_go_into_strings_and_unset_names_are_refused() {
    let job = read(&JOB.replace("localhost:9092", "${HOST}"), &[]).expect("valid");
    assert_eq!(
        job.sources[0].options.map.get("kafka.bootstrap.servers"),
        Some("broker:9092")
    );
    refused(
        "localhost:9092",
        "${NONE}",
        "E0505: job.toml:6:1: environment variable `NONE` is not set and has no default; set it, or write `${NONE:-default}`",
    );
}

#[test]
fn a_set_overrides_and_is_named_when_it_is_wrong() {
    let job = read(
        JOB,
        &[
            "sink.format=noop",
            "source.messages.options.subscribe=other",
            "trigger.processingTime=2 seconds",
        ],
    );
    let job = job.expect("valid");
    assert_eq!(job.sink.format, "noop");
    assert_eq!(job.sources[0].options.map.get("subscribe"), Some("other"));
    let failure = read(JOB, &["sink.fromat=noop"]).expect_err("unknown key");
    assert_eq!(
        failure.to_string(),
        "--set sink.fromat: unknown key `fromat` in [sink]; did you mean `format`?"
    );
}

#[test]
fn the_default_version_follows_the_file_its_query_and_the_sets() {
    let text = JOB.replace("version = \"${IMAGE_TAG:-v1}\"\n", "");
    let version = |text: &str, sets: &[&str]| read(text, sets).expect("valid").version;
    assert_eq!(version(&text, &[]), version(&text, &[]));
    assert_eq!(version(&text, &[]).len(), 8);
    assert_ne!(version(&text, &[]), version(&text.replace("value", "key"), &[]));
    assert_ne!(version(&text, &[]), version(&text, &["sink.format=noop"]));
}

#[test]
fn a_query_may_stand_in_a_file_but_not_in_two_places() {
    let job = read(
        &JOB.replace("sql = \"SELECT value FROM messages\"", "file = \"q.sql\""),
        &[],
    )
    .expect("valid");
    assert_eq!(
        (job.sql.as_str(), job.sql_place.to_string().as_str()),
        ("SELECT 1 -- q.sql", "q.sql")
    );
    refused(
        "[sink]\n",
        "file = \"q.sql\"\n[sink]\n",
        "E0504: job.toml:13:1: [query] has both sql and file; keep one",
    );
}

#[test]
fn a_checkpoint_is_found_in_a_file_whose_environment_is_absent() {
    let text = JOB.replace("localhost:9092", "${NONE}");
    assert_eq!(
        checkpoint(&"j".into(), &text, &|_| None).expect("it is there"),
        "/tmp/c"
    );
    let failure = checkpoint(&"j".into(), "name = 'a'", &|_| None).expect_err("it is absent");
    assert_eq!(failure.code, "E0509");
}
