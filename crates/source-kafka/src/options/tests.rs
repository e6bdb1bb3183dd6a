use super::*;
use baton_core::{ErrorKind, SourceName};

fn read<const N: usize>(options: [(&str, &str); N]) -> Result<Options> {
    let context = SourceContext::new(SourceName::new("messages").expect("a name"), "job".to_owned());
    let mut map = OptionMap::from_iter([("kafka.bootstrap.servers", "localhost:9092")]);
    for (key, value) in options {
        map.set(key, value);
    }
    Options::read(&context, map)
}

#[track_caller]
fn refused<const N: usize>(options: [(&str, &str); N], says: &str) {
    let error = read(options).expect_err("must be refused");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains(says),
        "`{error}` does not say `{says}`"
    );
}

#[test]
fn plain_options_have_the_defaults_of_spark() {
    let options = read([("Subscribe", " b, a ,,")]).expect("valid");
    assert_eq!(options.strategy.to_string(), "KafkaV2[Subscribe[a, b]]");
    assert_eq!(options.start, Start::Latest);
    assert!(options.fail_on_data_loss && !options.headers && options.limit.is_none());
}

#[test]
fn exactly_one_strategy_is_taken() {
    refused([], "one of subscribe");
    refused([("subscribe", "t"), ("assign", r#"{"t":[0]}"#)], "only one of");
    refused([("subscribe", " , ")], "names no topic");
    refused([("subscribe", "__consumer_offsets")], "Kafka's own");
    refused([("subscribePattern", " ")], "empty");
    refused([("subscribePattern", "a(")], "regular expression");
    refused([("assign", "t")], "must be JSON");
    refused([("assign", r#"{"t":[-1]}"#)], "negative");
    refused([("assign", "{}")], "no partition");
}

#[test]
fn a_pattern_is_found_anywhere_and_the_user_is_told() {
    let options = read([("subscribePattern", "orders")]).expect("valid");
    assert!(
        options.notices.iter().any(|notice| notice.contains("anywhere")),
        "{:?}",
        options.notices
    );
    let Strategy::Pattern(pattern) = &options.strategy else {
        panic!("{:?}", options.strategy)
    };
    assert!(pattern.is_match("orders-dlq"));
    let anchored = read([("subscribePattern", "^orders$")]).expect("valid");
    assert!(!anchored.notices.iter().any(|notice| notice.contains("anywhere")));
}

#[test]
fn starting_offsets_must_fit_what_is_read() {
    let at = read([
        ("assign", r#"{"t":[0,1]}"#),
        ("startingOffsets", r#"{"t":{"0":-2,"1":7}}"#),
    ])
    .expect("valid");
    assert!(matches!(at.start, Start::At(_)));
    refused(
        [
            ("assign", r#"{"t":[0,1]}"#),
            ("startingOffsets", r#"{"t":{"0":1}}"#),
        ],
        "t-1 is missing",
    );
    refused(
        [
            ("assign", r#"{"t":[0]}"#),
            ("startingOffsets", r#"{"t":{"0":1,"1":1}}"#),
        ],
        "t-1",
    );
    refused(
        [("subscribe", "t"), ("startingOffsets", r#"{"u":{"0":1}}"#)],
        "topic `",
    );
    refused(
        [("subscribe", "t"), ("startingOffsets", "erliest")],
        "earliest, latest or JSON",
    );
    refused(
        [("subscribe", "t"), ("startingOffsets", r#"{"t":{"0":-5}}"#)],
        "negative",
    );
}

#[test]
fn limits_of_zero_and_below_are_refused() {
    refused([("subscribe", "t"), ("maxOffsetsPerTrigger", "0")], "above 0");
    refused([("subscribe", "t"), ("maxOffsetsPerTrigger", "-5")], "above 0");
    refused([("subscribe", "t"), ("maxOffsetsPerTrigger", "many")], "above 0");
    assert_eq!(
        read([("subscribe", "t"), ("maxOffsetsPerTrigger", "10")])
            .expect("valid")
            .limit,
        Some(10)
    );
}

#[test]
fn a_misspelt_option_is_named_before_the_one_that_is_missing() {
    refused([("subscrib", "t")], "did you mean `subscribe`");
}

#[test]
fn unknown_late_and_batch_options_are_told_apart() {
    refused(
        [("subscribe", "t"), ("startingOfsets", "latest")],
        "did you mean `startingOffsets`",
    );
    refused(
        [("subscribe", "t"), ("startingTimestamp", "1")],
        "not supported yet",
    );
    refused([("subscribe", "t"), ("endingOffsets", "latest")], "batch read");
}

#[test]
fn what_spark_forbids_is_refused_with_its_reason() {
    refused(
        [("subscribe", "t"), ("kafka.auto.offset.reset", "earliest")],
        "startingOffsets",
    );
    refused([("subscribe", "t"), ("kafka.key.deserializer", "x")], "CAST");
    refused([("subscribe", "t"), ("kafka.value.deserializer", "x")], "CAST");
    refused(
        [("subscribe", "t"), ("kafka.enable.auto.commit", "true")],
        "checkpoint",
    );
    refused([("subscribe", "t"), ("kafka.interceptor.classes", "x")], "Java");
}
