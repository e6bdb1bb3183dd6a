//! The source against a real Kafka: what the embedded broker does not have.
//!
//! `BATON_TEST_KAFKA=host:port` names the broker; see the lab.

mod lab;
mod reading;

use baton_core::{Admission, ErrorKind, Offset, PartitionOffsets, PartitionRange, Source};
use baton_testkit::realtime::{now, pause};
use baton_testkit::{PrivateBroker, Record};
use lab::{BOUND, abort, apart, broker, claimant, commit, put, transactional, unique};
use reading::{Row, open, ranges, rows};
use std::collections::BTreeSet;
use std::time::Duration;

const EARLIEST: (&str, &str) = ("startingOffsets", "earliest");
const GO_ON: (&str, &str) = ("failOnDataLoss", "false");

/// What a batch that starts at `from` takes.
async fn plan(source: &dyn Source, from: &PartitionOffsets) -> (Vec<PartitionRange>, PartitionOffsets) {
    let plan = source.plan(from, &Admission::default()).await.expect("a plan");
    (
        plan.from
            .ranges_until(&plan.until)
            .expect("a plan ends behind its start"),
        plan.until,
    )
}

/// Everything from the first record, batch after batch.
async fn drain(source: &dyn Source) -> Vec<Row> {
    let mut at = source.start().await.expect("a start");
    let mut read = Vec::new();
    loop {
        let (ranges, until) = plan(source, &at).await;
        if ranges.is_empty() {
            return read;
        }
        read.extend(rows(source, &ranges).await.expect("read"));
        at = until;
    }
}

fn values(rows: &[Row]) -> Vec<usize> {
    rows.iter()
        .map(|row| row.value.as_deref().expect("a value").parse().expect("a number"))
        .collect()
}

fn send(kafka: &baton_testkit::Kafka, topic: &str, partition: i32, numbers: std::ops::Range<usize>) {
    let texts: Vec<String> = numbers.map(|number| number.to_string()).collect();
    let records: Vec<_> = texts
        .iter()
        .map(|text| Record::value(partition, text.as_bytes()))
        .collect();
    kafka.send(topic, &records).expect("stored");
}

#[tokio::test]
async fn batches_of_a_compacted_topic_end_where_they_were_planned() {
    let Some(kafka) = broker("compacted") else { return };
    let topic = unique("compacted");
    lab::create_compacted(&kafka, &topic).await;
    let source = open(kafka.address(), &[("subscribe", &topic), EARLIEST]).await;
    let (mut sent, before) = (0, now());
    let all = loop {
        // Each round ends a segment, so that the ones before may be cleaned.
        let texts: Vec<(String, String)> = (sent..sent + 300)
            .map(|n| (format!("k{}", n % 7), n.to_string()))
            .collect();
        let records: Vec<_> = texts
            .iter()
            .map(|(key, value)| Record {
                partition: 0,
                key: Some(key.as_bytes()),
                value: Some(value.as_bytes()),
            })
            .collect();
        kafka.send(&topic, &records).expect("stored");
        sent += 300;
        pause(Duration::from_millis(150));
        let read = rows(source.as_ref(), &ranges(&[(&topic, 0, 0, sent)]))
            .await
            .expect("read");
        if sent >= 900 && read.len() < 500 {
            break read;
        }
        assert!(
            before.elapsed() < BOUND,
            "Kafka has not cleaned: {} of {sent}",
            read.len()
        );
    };
    let keys: BTreeSet<_> = all.iter().map(|row| row.key.clone()).collect();
    assert_eq!(keys.len(), 7, "the newest of each key is there");
    // Any cut into batches gives the same rows, wherever the ends fall.
    for limit in ["97", "1000"] {
        let options = [
            ("subscribe", topic.as_str()),
            EARLIEST,
            ("maxOffsetsPerTrigger", limit),
        ];
        let source = open(kafka.address(), &options).await;
        let start = source.start().await.expect("a start");
        assert_eq!(
            start.get(&topic, 0),
            Some(Offset(0)),
            "cleaning does not move the start"
        );
        let read = drain(source.as_ref()).await;
        let newest: BTreeSet<_> = all.iter().rev().take(7).map(|row| row.offset).collect();
        assert!(
            newest
                .iter()
                .all(|offset| read.iter().any(|row| row.offset == *offset)),
            "limit {limit}"
        );
        assert!(
            read.windows(2).all(|pair| pair[0].offset < pair[1].offset),
            "limit {limit}: each once, in order"
        );
    }
}

#[tokio::test]
async fn aborted_records_are_hidden_and_control_records_end_a_batch_like_any_other() {
    let Some(kafka) = broker("transactions") else {
        return;
    };
    let topic = unique("transactions");
    apart(|| kafka.create_topic(&topic, 1)).expect("made");
    let producer = transactional(&kafka);
    put(&producer, &topic, 0..10);
    commit(&producer);
    put(&producer, &topic, 10..60);
    abort(&producer);
    put(&producer, &topic, 60..65);
    commit(&producer);

    let source = open(kafka.address(), &[("subscribe", &topic), EARLIEST]).await;
    let start = source.start().await.expect("a start");
    let (planned, end) = plan(source.as_ref(), &start).await;
    assert_eq!(
        end.get(&topic, 0),
        Some(Offset(68)),
        "65 records and 3 control records"
    );
    let committed: Vec<usize> = (0..10).chain(60..65).collect();
    assert_eq!(
        values(&rows(source.as_ref(), &planned).await.expect("read")),
        committed
    );
    // Ends on, before and behind a control record, and inside the aborted part.
    for (from, until, wanted) in [
        (0, 62, 10),
        (0, 11, 10),
        (0, 10, 10),
        (10, 11, 0),
        (11, 30, 0),
        (30, 62, 0),
        (62, 68, 5),
        (67, 68, 0),
    ] {
        let before = now();
        let read = rows(source.as_ref(), &ranges(&[(&topic, 0, from, until)]))
            .await
            .expect("read");
        assert_eq!(read.len(), wanted, "{from}..{until}");
        assert!(
            before.elapsed() < Duration::from_secs(3),
            "{from}..{until} took {:?}",
            before.elapsed()
        );
    }

    put(&producer, &topic, 65..70);
    let (planned, _) = plan(source.as_ref(), &end).await;
    assert!(
        planned.is_empty(),
        "an open transaction is not there yet: {planned:?}"
    );
    abort(&producer);
    let before = now();
    let (planned, until) = loop {
        let (planned, until) = plan(source.as_ref(), &end).await;
        if !planned.is_empty() {
            break (planned, until);
        }
        assert!(before.elapsed() < BOUND, "the end of the transaction is not seen");
    };
    assert!(
        rows(source.as_ref(), &planned).await.expect("read").is_empty(),
        "a batch of nothing"
    );
    assert_eq!(until.get(&topic, 0), Some(Offset(74)));

    let options = [
        ("subscribe", topic.as_str()),
        EARLIEST,
        ("kafka.isolation.level", "read_uncommitted"),
    ];
    let source = open(kafka.address(), &options).await;
    assert_eq!(
        values(&drain(source.as_ref()).await),
        (0..70).collect::<Vec<_>>(),
        "Spark's default"
    );
}

#[tokio::test]
async fn a_group_names_one_checkpoint() {
    let Some(kafka) = broker("group") else { return };
    let (topic, group) = (unique("group"), unique("g"));
    apart(|| kafka.create_topic(&topic, 1)).expect("made");
    send(&kafka, &topic, 0, 0..5);
    let source = open(
        kafka.address(),
        &[("subscribe", &topic), ("kafka.group.id", &group)],
    )
    .await;
    let at = |offset| {
        PartitionOffsets::from_iter([(baton_core::TopicPartition::new(topic.as_str(), 0), Offset(offset))])
    };
    source.claim(&claimant(1, false)).await.expect("nobody's");
    source
        .publish(&claimant(1, false), &at(3))
        .await
        .expect("published");
    let (offset, mark) = lab::committed(&kafka, &group, &topic);
    assert_eq!(
        offset,
        rdkafka::Offset::Offset(3),
        "Kafka's tools see the position"
    );
    assert!(mark.contains("job-1"), "{mark}");

    source.claim(&claimant(1, false)).await.expect("its own");
    let fault = source.claim(&claimant(2, false)).await.expect_err("another's");
    assert_eq!((fault.kind, fault.code), (ErrorKind::Held, "E0206"), "{fault}");
    for part in [
        group.as_str(),
        "job-1",
        "--claim-group",
        "same checkpointLocation",
        "another kafka.group.id",
    ] {
        assert!(fault.to_string().contains(part), "`{fault}` lacks `{part}`");
    }
    source.claim(&claimant(2, true)).await.expect("overruled");
    assert_eq!(
        lab::committed(&kafka, &group, &topic).0,
        rdkafka::Offset::Offset(3),
        "a claim moves no offset"
    );
    let fault = source
        .publish(&claimant(1, false), &at(5))
        .await
        .expect_err("no longer its own");
    assert_eq!(fault.kind, ErrorKind::Held, "{fault}");
    source
        .publish(&claimant(2, false), &at(4))
        .await
        .expect("published");
}

#[tokio::test]
async fn a_group_with_live_members_is_refused() {
    let Some(kafka) = broker("members") else { return };
    let (topic, group) = (unique("members"), unique("g"));
    apart(|| kafka.create_topic(&topic, 1)).expect("made");
    let member = lab::member(&kafka, &group, &topic);
    let source = open(
        kafka.address(),
        &[("subscribe", &topic), ("kafka.group.id", &group)],
    )
    .await;
    let fault = source.claim(&claimant(1, false)).await.expect_err("in use");
    assert_eq!((fault.kind, fault.code), (ErrorKind::Failed, "E0207"), "{fault}");
    drop(member);
}

#[tokio::test]
async fn records_that_aged_out_end_the_query_or_become_a_gap() {
    let Some(kafka) = broker("aged out") else { return };
    let topic = unique("aged");
    apart(|| kafka.create_topic(&topic, 1)).expect("made");
    send(&kafka, &topic, 0, 0..2_000);
    let strict = open(kafka.address(), &[("subscribe", &topic), EARLIEST]).await;
    let lenient = open(kafka.address(), &[("subscribe", &topic), EARLIEST, GO_ON]).await;
    let start = strict.start().await.expect("a start");
    let (planned, _) = plan(strict.as_ref(), &start).await;
    lab::delete_records(&kafka, &topic, 1_500).await;

    // Planned before the records went.
    let fault = rows(strict.as_ref(), &planned).await.expect_err("lost");
    assert_eq!((fault.kind, fault.code), (ErrorKind::Failed, "E0205"), "{fault}");
    assert!(fault.to_string().contains("0 to 1499"), "{fault}");
    assert_eq!(
        values(&rows(lenient.as_ref(), &planned).await.expect("read")),
        (1_500..2_000).collect::<Vec<_>>()
    );
    let gone = ranges(&[(&topic, 0, 0, 1_000)]);
    assert!(
        rows(lenient.as_ref(), &gone).await.expect("read").is_empty(),
        "all of the range is gone"
    );

    // Planned after.
    let fault = strict
        .plan(&start, &Admission::default())
        .await
        .expect_err("lost");
    assert_eq!(fault.code, "E0205", "{fault}");
    let plan = lenient.plan(&start, &Admission::default()).await.expect("a plan");
    assert_eq!(
        (plan.from.get(&topic, 0), plan.gaps.len()),
        (Some(Offset(1_500)), 1)
    );
    assert_eq!(plan.gaps[0].lost.range.len(), 1_500);

    let early = format!(r#"{{"{topic}":{{"0":7}}}}"#);
    let source = open(
        kafka.address(),
        &[("subscribe", &topic), ("startingOffsets", &early)],
    )
    .await;
    let fault = source.start().await.expect_err("before the first record");
    assert!(
        fault.code == "E0204" && fault.to_string().contains("first record left is 1500"),
        "{fault}"
    );
}

#[tokio::test]
async fn a_new_partition_is_read_from_its_first_record_also_under_latest() {
    let Some(kafka) = broker("new partition") else {
        return;
    };
    let topic = unique("grown");
    apart(|| kafka.create_topic(&topic, 1)).expect("made");
    let source = open(
        kafka.address(),
        &[("subscribe", &topic), ("startingOffsets", "latest")],
    )
    .await;
    let start = source.start().await.expect("a start");
    let (none, _) = plan(source.as_ref(), &start).await;
    assert!(none.is_empty());
    apart(|| kafka.grow_topic(&topic, 2)).expect("grown");
    let before = now();
    while source
        .plan(&start, &Admission::default())
        .await
        .expect("a plan")
        .until
        .len()
        < 2
    {
        assert!(before.elapsed() < BOUND, "the new partition is not seen");
    }
    send(&kafka, &topic, 1, 0..100);
    let mut grown = start.clone();
    grown.set(baton_core::TopicPartition::new(topic.as_str(), 1), Offset(0));
    for from in [&start, &grown] {
        let (planned, _) = loop {
            let planned = plan(source.as_ref(), from).await;
            if !planned.0.is_empty() {
                break planned;
            }
            assert!(before.elapsed() < BOUND, "its records are not seen");
        };
        assert_eq!(
            values(&rows(source.as_ref(), &planned).await.expect("read")),
            (0..100).collect::<Vec<_>>()
        );
    }
}

#[tokio::test]
async fn a_deleted_topic_and_one_made_again_are_told_from_a_quiet_one() {
    let Some(kafka) = broker("made again") else { return };
    let topic = unique("again");
    apart(|| kafka.create_topic(&topic, 1)).expect("made");
    send(&kafka, &topic, 0, 0..100);
    let strict = open(kafka.address(), &[("subscribe", &topic)]).await;
    let lenient = open(kafka.address(), &[("subscribe", &topic), GO_ON]).await;
    let at = strict.start().await.expect("a start");
    let (none, _) = plan(lenient.as_ref(), &at).await;
    assert!(none.is_empty());
    apart(|| kafka.delete_topic(&topic)).expect("deleted");
    // An idle look may be a second old.
    let before = now();
    let fault = loop {
        match strict.plan(&at, &Admission::default()).await {
            Ok(_) => assert!(before.elapsed() < BOUND, "the deletion is not seen"),
            Err(fault) if fault.kind == ErrorKind::Unavailable => {}
            Err(fault) => break fault,
        }
    };
    assert!(
        fault.code == "E0205" && fault.to_string().contains("no longer exists"),
        "{fault}"
    );

    apart(|| kafka.create_topic(&topic, 1)).expect("made again");
    send(&kafka, &topic, 0, 0..10);
    let fault = strict
        .plan(&at, &Admission::default())
        .await
        .expect_err("shorter than it was");
    assert!(
        fault.code == "E0205" && fault.to_string().contains("ends at 10, before 100"),
        "{fault}"
    );
    let plan = lenient.plan(&at, &Admission::default()).await.expect("a plan");
    assert_eq!((plan.from.get(&topic, 0), plan.gaps.len()), (Some(Offset(10)), 1));
    send(&kafka, &topic, 0, 10..20);
    let (planned, _) = self::plan(lenient.as_ref(), &plan.until).await;
    assert_eq!(
        values(&rows(lenient.as_ref(), &planned).await.expect("read")),
        (10..20).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_source_outlives_its_brokers_outages() {
    if broker("outage").is_none() {
        return;
    }
    let private = PrivateBroker::start().expect("a broker of its own");
    let kafka = private.kafka();
    apart(|| kafka.create_topic("t", 2)).expect("made");
    let source = open(kafka.address(), &[("subscribe", "t"), EARLIEST]).await;
    let mut at = source.start().await.expect("a start");
    for round in 0..2_usize {
        send(&kafka, "t", 0, round * 100..round * 100 + 100);
        let (planned, until) = loop {
            match source.plan(&at, &Admission::default()).await {
                Ok(plan) if plan.from == plan.until => {}
                Ok(plan) => break (plan.from.ranges_until(&plan.until).expect("ranges"), plan.until),
                Err(fault) => assert_eq!(fault.kind, ErrorKind::Unavailable, "{fault}"),
            }
        };
        private.crash().expect("crashed");
        let before = now();
        let fault = source.plan(&at, &Admission::default()).await.expect_err("away");
        assert_eq!(fault.kind, ErrorKind::Unavailable, "{fault}");
        // What was read ahead may still be delivered; if not, the failure is bounded and passing.
        if let Err(fault) = rows(source.as_ref(), &planned).await {
            assert_eq!(fault.kind, ErrorKind::Unavailable, "{fault}");
        }
        assert!(
            before.elapsed() < Duration::from_secs(30),
            "took {:?}",
            before.elapsed()
        );
        private.restore().expect("back");
        let before = now();
        let read = loop {
            match rows(source.as_ref(), &planned).await {
                Ok(read) => break read,
                Err(fault) => assert_eq!(fault.kind, ErrorKind::Unavailable, "{fault}"),
            }
            assert!(before.elapsed() < BOUND, "nothing is read after the outage");
        };
        assert_eq!(
            values(&read),
            (round * 100..round * 100 + 100).collect::<Vec<_>>()
        );
        at = until;
    }
}
