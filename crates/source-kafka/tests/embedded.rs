//! The source against the broker inside this process.

mod reading;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};
use baton_core::{Admission, Clock, ErrorKind, Offset, OpenContext, PartitionOffsets, TokioClock};
use baton_source_kafka::{EmbeddedBroker, Producer};
use baton_testkit::realtime::now;
use reading::{Row, all, open, ranges, rows, source};
use std::time::Duration;

async fn produce(broker: &EmbeddedBroker, topic: &str, values: impl IntoIterator<Item = String>) {
    let producer = Producer::connect(broker.bootstrap_servers()).expect("a client");
    for value in values {
        // One key, one partition: that of Java's hash.
        producer
            .send(topic, Some(b"k"), Some(value.as_bytes()))
            .await
            .expect("accepted");
    }
    producer.flush().await.expect("stored");
}

/// Messages over all partitions.
async fn spread(broker: &EmbeddedBroker, topic: &str, count: usize) {
    let producer = Producer::connect(broker.bootstrap_servers()).expect("a client");
    for number in 0..count {
        let key = number.to_string();
        producer
            .send(topic, Some(key.as_bytes()), Some(key.as_bytes()))
            .await
            .expect("accepted");
    }
    producer.flush().await.expect("stored");
}

fn numbers(range: std::ops::Range<usize>) -> impl Iterator<Item = String> {
    range.map(|number| number.to_string())
}

fn values(rows: &[Row]) -> Vec<String> {
    rows.iter()
        .map(|row| row.value.clone().expect("a value"))
        .collect()
}

#[tokio::test]
async fn exactly_the_planned_range_is_read_and_read_again() {
    let broker = EmbeddedBroker::start(&[("t", 1)]).expect("a broker");
    produce(&broker, "t", numbers(0..3_000)).await;
    let source = open(
        broker.bootstrap_servers(),
        &[("subscribe", "t"), ("startingOffsets", "earliest")],
    )
    .await;
    for (from, until) in [(0, 10), (10, 11), (11, 2_900), (5, 7), (2_999, 3_000), (0, 3_000)] {
        let read = rows(source.as_ref(), &ranges(&[("t", 0, from, until)]))
            .await
            .expect("read");
        let wanted: Vec<String> = (from..until).map(|number| number.to_string()).collect();
        assert_eq!(values(&read), wanted, "{from}..{until}");
        assert!(
            read.iter().map(|row| row.offset).eq(from..until),
            "{from}..{until}"
        );
    }
    assert!(
        rows(source.as_ref(), &[]).await.expect("read").is_empty(),
        "no range, no rows"
    );
}

#[tokio::test]
async fn the_row_is_that_of_spark() {
    let broker = EmbeddedBroker::start(&[("t", 1)]).expect("a broker");
    produce(&broker, "t", ["x".to_owned()]).await;
    let options = [
        ("subscribe", "t"),
        ("startingOffsets", "earliest"),
        ("includeHeaders", "true"),
    ];
    let source = open(broker.bootstrap_servers(), &options).await;
    let batches = all(source.read(&ranges(&[("t", 0, 0, 1)]), 1).expect("opened"))
        .await
        .expect("read");
    let [batch] = batches.as_slice() else {
        panic!("one batch, not {}", batches.len())
    };
    assert_eq!(batch.schema(), source.schema());
    let names: Vec<String> = batch
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    let wanted = [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "headers",
    ];
    assert_eq!(names, wanted);
    assert_eq!(batch.column(0).as_binary::<i32>().value(0), b"k");
    assert_eq!(batch.column(2).as_string::<i32>().value(0), "t");
    assert_eq!(batch.column(3).as_primitive::<Int32Type>().value(0), 0);
    assert_eq!(batch.column(4).as_primitive::<Int64Type>().value(0), 0);
    let micros = batch
        .column(5)
        .as_primitive::<TimestampMicrosecondType>()
        .value(0);
    assert!(micros > 1_700_000_000_000_000 && micros % 1_000 == 0, "{micros}");
    assert_eq!(
        batch.column(6).as_primitive::<Int32Type>().value(0),
        0,
        "the producer's own time"
    );
    assert!(batch.column(7).is_null(0), "no headers are NULL");
}

#[tokio::test]
async fn null_and_empty_keys_and_values_stay_apart() {
    let broker = EmbeddedBroker::start(&[("t", 1)]).expect("a broker");
    let producer = Producer::connect(broker.bootstrap_servers()).expect("a client");
    let sent = [
        (None, None),
        (Some(""), Some("")),
        (None, Some("v")),
        (Some("k"), None),
    ];
    for (key, value) in sent {
        producer
            .send("t", key.map(str::as_bytes), value.map(str::as_bytes))
            .await
            .expect("accepted");
    }
    producer.flush().await.expect("stored");
    let source = open(
        broker.bootstrap_servers(),
        &[("subscribe", "t"), ("startingOffsets", "earliest")],
    )
    .await;
    let read = rows(source.as_ref(), &ranges(&[("t", 0, 0, 4)]))
        .await
        .expect("read");
    let read: Vec<_> = read
        .iter()
        .map(|row| (row.key.as_deref(), row.value.as_deref()))
        .collect();
    assert_eq!(
        read,
        [
            (None, None),
            (Some(""), Some("")),
            (None, Some("v")),
            (Some("k"), None)
        ]
    );
}

#[tokio::test]
async fn several_streams_share_the_ranges_and_deliver_each_record_once() {
    let broker = EmbeddedBroker::start(&[("t", 5)]).expect("a broker");
    spread(&broker, "t", 20_000).await;
    let source = open(
        broker.bootstrap_servers(),
        &[("subscribe", "t"), ("startingOffsets", "earliest")],
    )
    .await;
    let start = source.start().await.expect("a start");
    let plan = source.plan(&start, &Admission::default()).await.expect("a plan");
    let ranges = plan.from.ranges_until(&plan.until).expect("ranges");
    assert_eq!(ranges.len(), 5);
    for count in [1, 2, 3, 8] {
        let streams = source.read(&ranges, count).expect("opened");
        assert_eq!(streams.len(), count.min(5));
        let tasks: Vec<_> = streams
            .into_iter()
            .map(|stream| tokio::spawn(all(vec![stream])))
            .collect();
        let (mut values, mut last) = (Vec::new(), std::collections::BTreeMap::new());
        for task in tasks {
            for row in reading::of(&task.await.expect("ended").expect("read")) {
                let before = last.insert(row.partition, row.offset);
                assert!(
                    before.is_none_or(|before| before < row.offset),
                    "in order within its partition"
                );
                values.push(row.value.expect("a value").parse::<usize>().expect("a number"));
            }
        }
        values.sort_unstable();
        assert!(values.into_iter().eq(0..20_000), "{count} streams");
    }
}

#[tokio::test]
async fn batches_follow_each_other_and_another_source_goes_on_where_one_stopped() {
    let broker = EmbeddedBroker::start(&[("t", 1)]).expect("a broker");
    let options = [
        ("subscribe", "t"),
        ("startingOffsets", "latest"),
        ("maxOffsetsPerTrigger", "400"),
    ];
    produce(&broker, "t", ["before".to_owned()]).await;
    let first = open(broker.bootstrap_servers(), &options).await;
    let mut at = first.start().await.expect("a start");
    assert_eq!(at.get("t", 0), Some(Offset(1)), "latest is where the topic ends");
    produce(&broker, "t", numbers(0..1_000)).await;
    let mut read = Vec::new();
    for limit in [400, 400] {
        let plan = first.plan(&at, &Admission::default()).await.expect("a plan");
        assert_eq!(plan.latest.get("t", 0), Some(Offset(1_001)));
        let ranges = plan.from.ranges_until(&plan.until).expect("ranges");
        assert_eq!(ranges[0].range.len(), limit);
        read.extend(values(&rows(first.as_ref(), &ranges).await.expect("read")));
        at = plan.until;
    }
    drop(first);
    let second = open(broker.bootstrap_servers(), &options).await;
    second.warm(&at).await;
    let plan = second.plan(&at, &Admission::default()).await.expect("a plan");
    let ranges = plan.from.ranges_until(&plan.until).expect("ranges");
    read.extend(values(&rows(second.as_ref(), &ranges).await.expect("read")));
    assert!(read.iter().cloned().eq(numbers(0..1_000)), "no gap, no repeat");
    let plan = second
        .plan(&plan.until, &Admission::default())
        .await
        .expect("a plan");
    assert_eq!(plan.from, plan.until, "nothing new");
}

#[tokio::test]
async fn news_is_seen_at_once_after_an_idle_look() {
    let broker = EmbeddedBroker::start(&[("t", 2)]).expect("a broker");
    let source = open(broker.bootstrap_servers(), &[("subscribe", "t")]).await;
    let at = source.start().await.expect("a start");
    for number in 0..5 {
        let idle = source.plan(&at, &Admission::default()).await.expect("a plan");
        assert_eq!(idle.until.len(), 2);
        if number == 4 {
            produce(&broker, "t", ["x".to_owned()]).await;
        }
    }
    // Bounded by the look that is due once a second.
    let before = now();
    let plan = loop {
        let plan = source.plan(&at, &Admission::default()).await.expect("a plan");
        if plan.until != at {
            break plan;
        }
        assert!(before.elapsed() < Duration::from_secs(5), "not seen");
        tokio::task::yield_now().await;
    };
    let ranges = plan.from.ranges_until(&plan.until).expect("ranges");
    assert_eq!(
        values(&rows(source.as_ref(), &ranges).await.expect("read")),
        ["x"]
    );
}

#[tokio::test]
async fn a_record_that_comes_after_the_end_was_told_of_is_waited_for() {
    let broker = EmbeddedBroker::start(&[("t", 1)]).expect("a broker");
    let source = open(broker.bootstrap_servers(), &[("subscribe", "t")]).await;
    for number in 0..3 {
        // Planned by somebody who knows more than the last fetch: the range ends behind the end that the client knows.
        let planned = ranges(&[("t", 0, number, number + 1)]);
        let read = rows(source.as_ref(), &planned);
        let sent = async {
            // By then the reader has heard of the end.
            TokioClock::start().sleep(Duration::from_millis(300)).await;
            produce(&broker, "t", [number.to_string()]).await;
        };
        let (read, ()) = tokio::join!(read, sent);
        assert_eq!(values(&read.expect("read")), [number.to_string()]);
    }
}

#[tokio::test]
async fn a_topic_that_comes_later_is_read_from_its_first_record() {
    let broker = EmbeddedBroker::start(&[("a-1", 1)]).expect("a broker");
    let source = open(
        broker.bootstrap_servers(),
        &[("subscribePattern", "^a-.*$"), ("startingOffsets", "latest")],
    )
    .await;
    let at = source.start().await.expect("a start");
    assert_eq!(at.to_json(), r#"{"a-1":{"0":0}}"#);
    broker.create_topic("a-2", 1).expect("made");
    broker.create_topic("b-1", 1).expect("made");
    produce(&broker, "a-2", numbers(0..3)).await;
    produce(&broker, "b-1", numbers(7..9)).await;
    let plan = source.plan(&at, &Admission::default()).await.expect("a plan");
    assert_eq!(plan.from.to_json(), r#"{"a-1":{"0":0},"a-2":{"0":0}}"#);
    let ranges = plan.from.ranges_until(&plan.until).expect("ranges");
    assert_eq!(
        values(&rows(source.as_ref(), &ranges).await.expect("read")),
        ["0", "1", "2"]
    );
    let mut frozen = Admission::default();
    frozen.cap = Some(at.clone());
    let plan = source.plan(&at, &frozen).await.expect("a plan");
    assert_eq!(
        (plan.from, plan.until),
        (at.clone(), at),
        "behind a frozen end nothing is new"
    );
}

#[tokio::test]
async fn a_limit_is_split_as_in_spark_and_lifted_when_told() {
    let broker = EmbeddedBroker::start(&[("t", 3)]).expect("a broker");
    spread(&broker, "t", 3_000).await;
    let options = [
        ("subscribe", "t"),
        ("startingOffsets", "earliest"),
        ("maxOffsetsPerTrigger", "2"),
    ];
    let source = open(broker.bootstrap_servers(), &options).await;
    let start = source.start().await.expect("a start");
    let plan = source.plan(&start, &Admission::default()).await.expect("a plan");
    assert!(
        plan.until.iter().all(|(_, until)| until == Offset(1)),
        "a share below one is one: {}",
        plan.until
    );
    let mut all = Admission::default();
    all.unlimited = true;
    let plan = source.plan(&start, &all).await.expect("a plan");
    assert_eq!(plan.until.iter().map(|(_, until)| until.0).sum::<i64>(), 3_000);
}

#[tokio::test]
async fn messages_of_a_megabyte_pass() {
    let broker = EmbeddedBroker::start(&[("t", 1)]).expect("a broker");
    let large = "x".repeat(1_000_000);
    produce(
        &broker,
        "t",
        [
            "small".to_owned(),
            large.clone(),
            large.clone(),
            "small".to_owned(),
        ],
    )
    .await;
    let source = open(
        broker.bootstrap_servers(),
        &[("subscribe", "t"), ("startingOffsets", "earliest")],
    )
    .await;
    let read = rows(source.as_ref(), &ranges(&[("t", 0, 0, 4)]))
        .await
        .expect("read");
    assert_eq!(
        values(&read).iter().map(String::len).collect::<Vec<_>>(),
        [5, 1_000_000, 1_000_000, 5]
    );
}

#[tokio::test]
async fn assigned_partitions_alone_are_read() {
    let broker = EmbeddedBroker::start(&[("t", 3)]).expect("a broker");
    spread(&broker, "t", 300).await;
    let options = [
        ("assign", r#"{"t":[0,2]}"#),
        ("startingOffsets", r#"{"t":{"0":-2,"2":5}}"#),
    ];
    let source = open(broker.bootstrap_servers(), &options).await;
    let start = source.start().await.expect("a start");
    assert_eq!(start.to_json(), r#"{"t":{"0":0,"2":5}}"#);
    let plan = source.plan(&start, &Admission::default()).await.expect("a plan");
    let read = rows(
        source.as_ref(),
        &plan.from.ranges_until(&plan.until).expect("ranges"),
    )
    .await
    .expect("read");
    assert!(
        read.iter()
            .all(|row| row.partition != 1 && (row.partition == 0 || row.offset >= 5))
    );
}

#[tokio::test]
async fn starts_that_do_not_fit_are_refused_before_anything_is_read() {
    let broker = EmbeddedBroker::start(&[("t", 2)]).expect("a broker");
    for (start, says) in [
        (r#"{"t":{"0":1,"1":0}}"#, "ends at 0"),
        (r#"{"t":{"0":0}}"#, "t-1 is missing"),
        (r#"{"t":{"0":0,"1":0,"2":0}}"#, "t-2"),
    ] {
        let source = open(
            broker.bootstrap_servers(),
            &[("subscribe", "t"), ("startingOffsets", start)],
        )
        .await;
        let fault = source.start().await.expect_err("refused");
        assert_eq!((fault.kind, fault.code), (ErrorKind::Invalid, "E0204"), "{fault}");
        assert!(fault.to_string().contains(says), "{fault}");
    }
    let options = [
        ("subscribe", "t"),
        ("startingOffsets", r#"{"t":{"0":9,"1":0}}"#),
        ("failOnDataLoss", "false"),
    ];
    let source = open(broker.bootstrap_servers(), &options).await;
    let start = source.start().await.expect("taken as it is");
    let plan = source.plan(&start, &Admission::default()).await.expect("a plan");
    assert_eq!(plan.from.to_json(), r#"{"t":{"0":0,"1":0}}"#);
    assert_eq!(plan.gaps.len(), 1, "{:?}", plan.gaps);
}

#[tokio::test]
async fn what_does_not_exist_is_named_when_the_source_opens() {
    let broker = EmbeddedBroker::start(&[("t", 2)]).expect("a broker");
    let quick = OpenContext::new(Duration::from_secs(5), 1);
    for (options, says) in [
        ([("assign", r#"{"t":[0,7]}"#)], "partition t-7 (the topic has 2)"),
        ([("subscribe", "nothing,t")], "topic `nothing`"),
    ] {
        let source = source(broker.bootstrap_servers(), &options).expect("valid");
        let fault = source.open(&quick).await.expect_err("refused");
        assert_eq!((fault.kind, fault.code), (ErrorKind::Invalid, "E0203"), "{fault}");
        assert!(fault.to_string().contains(says), "{fault}");
    }
}

#[tokio::test]
async fn a_broker_that_is_down_at_the_start_is_named_within_the_bound() {
    let source = source("127.0.0.1:1", &[("subscribe", "t")]).expect("valid");
    let before = now();
    let fault = source
        .open(&OpenContext::new(Duration::from_secs(2), 1))
        .await
        .expect_err("down");
    assert!(
        before.elapsed() < Duration::from_secs(4),
        "took {:?}",
        before.elapsed()
    );
    assert_eq!(
        (fault.kind, fault.code),
        (ErrorKind::Unavailable, "E0202"),
        "{fault}"
    );
    for part in ["127.0.0.1:1", "within 2 s", "refused"] {
        assert!(fault.to_string().contains(part), "`{fault}` lacks `{part}`");
    }
}

#[tokio::test]
async fn a_broker_that_goes_away_is_unavailable_to_plans_and_reads() {
    let broker = EmbeddedBroker::start(&[("t", 1)]).expect("a broker");
    produce(&broker, "t", numbers(0..10)).await;
    let source = open(
        broker.bootstrap_servers(),
        &[("subscribe", "t"), ("startingOffsets", "earliest")],
    )
    .await;
    let at = source.start().await.expect("a start");
    drop(broker);
    let fault = source.plan(&at, &Admission::default()).await.expect_err("gone");
    assert_eq!(fault.kind, ErrorKind::Unavailable, "{fault}");
    let fault = rows(source.as_ref(), &ranges(&[("t", 0, 0, 10)]))
        .await
        .expect_err("gone");
    assert_eq!(fault.kind, ErrorKind::Unavailable, "{fault}");
}

#[tokio::test]
async fn a_source_that_is_not_open_says_so() {
    let source = source("127.0.0.1:1", &[("subscribe", "t")]).expect("valid");
    let fault = source
        .plan(&PartitionOffsets::new(), &Admission::default())
        .await
        .expect_err("not open");
    assert_eq!(fault.kind, ErrorKind::Internal);
}

#[tokio::test]
async fn many_more_messages_than_the_queue_holds_are_sent_in_order() {
    let broker = EmbeddedBroker::start(&[("t", 1)]).expect("a broker");
    // More than the queue of 100 000, small enough for what the broker keeps.
    produce(&broker, "t", (0..150_000).map(|number| (number % 10).to_string())).await;
    let source = open(
        broker.bootstrap_servers(),
        &[("subscribe", "t"), ("startingOffsets", "latest")],
    )
    .await;
    assert_eq!(
        source.start().await.expect("a start").get("t", 0),
        Some(Offset(150_000))
    );
}

#[tokio::test]
async fn a_producer_without_a_broker_says_where_it_looked() {
    let producer = Producer::connect("127.0.0.1:1").expect("a client");
    producer.send("t", None, Some(b"x")).await.expect("accepted");
    let error = producer.flush().await.expect_err("no broker");
    assert_eq!(error.code(), "E0202");
    assert!(
        error.to_string().contains("127.0.0.1:1") && error.to_string().contains("refused"),
        "{error}"
    );
}

#[tokio::test]
async fn a_broker_with_impossible_topics_does_not_start() {
    for (topic, partitions) in [("", 1), ("a b", 1), ("t", 0), ("..", 1)] {
        let error = EmbeddedBroker::start(&[(topic, partitions)]).expect_err("refused");
        assert_eq!(error.code(), "E0211", "{error}");
    }
}
