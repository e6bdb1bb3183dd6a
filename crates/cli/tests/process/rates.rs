//! How much a batch takes, how soon a row leaves, and triggers that end by themselves.

use baton_testkit::realtime::{now, pause};
use baton_testkit::{Record, numbered};
use std::time::Duration;

use crate::lab::{Lab, each, is_soak};

const PARTITIONS: i32 = 50;
/// Peak memory of a process of the dev profile on a backlog of 50 partitions.
const RSS: u64 = 700 * 1024 * 1024;

/// Runs the backlog under a limit, and checks that every partition gets its turn and that no batch is above the limit.
/// Shares are Spark's: none is below one offset, so that a limit below the number of partitions gives each of them one.
fn limited(limit: u64, per_partition: u64) {
    let Some(lab) = Lab::open("limit") else { return };
    let topic = lab.topic(PARTITIONS);
    lab.kafka
        .send_numbered(&topic, PARTITIONS, 0, per_partition)
        .expect("all were stored");
    let job = lab
        .job(&topic)
        .option("maxOffsetsPerTrigger", &limit.to_string())
        .trigger("availableNow = true");
    let ended = lab.ends(&job, &[]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    lab.exactly_once(&job, &each(PARTITIONS, per_partition));
    let log = lab.log(&job);
    let sizes: Vec<i64> = log
        .batches()
        .map(|b| b.ranges().map(|(_, from, until)| until - from).sum())
        .collect();
    let largest = sizes.iter().copied().max().unwrap_or_default();
    let most = limit.max(u64::from(PARTITIONS.unsigned_abs()));
    assert!(
        u64::try_from(largest).is_ok_and(|size| size <= most),
        "a batch of {largest}: {sizes:?}"
    );
    let turns = usize::try_from((u64::try_from(PARTITIONS).unwrap_or(0) / limit).max(1) + 1).unwrap_or(1);
    let mut seen = std::collections::BTreeSet::new();
    for batch in log.batches().take(turns) {
        seen.extend(
            batch
                .ranges()
                .filter(|(_, from, until)| until > from)
                .map(|(partition, ..)| partition),
        );
    }
    assert_eq!(
        seen.len(),
        each(PARTITIONS, 1).len(),
        "every partition has its turn within {turns} batches"
    );
}

#[test]
fn a_limit_above_the_number_of_partitions_holds() {
    limited(1000, 60);
}

#[test]
fn a_limit_below_the_number_of_partitions_gives_each_of_them_one_offset_a_batch() {
    limited(10, 4);
}

#[test]
fn memory_is_bounded_without_a_limit() {
    let Some(lab) = Lab::open("backlog") else { return };
    let topic = lab.topic(PARTITIONS);
    let count = if is_soak() { 10_000 } else { 1_000 };
    let value = vec![b'x'; 2_000];
    for _ in 0..count / 100 {
        let records: Vec<Record<'_>> = (0..PARTITIONS)
            .flat_map(|p| std::iter::repeat_n(Record::value(p, &value), 100))
            .collect();
        lab.kafka.send(&topic, &records).expect("all were stored");
    }
    let mut job = lab.job(&topic).sql("SELECT value FROM messages");
    "noop".clone_into(&mut job.sink);
    let process = lab.run(&job, &[]);
    lab.caught_up(&job, &each(PARTITIONS, count));
    let peak = process.peak_rss().expect("it still runs");
    assert!(peak < RSS, "peak memory {} MiB", peak >> 20);
}

#[test]
fn each_row_leaves_in_the_trigger_that_read_it() {
    let Some(lab) = Lab::open("trickle") else { return };
    let topic = lab.topic(3);
    let filter =
        "SELECT partition, offset, CAST(value AS STRING) AS value FROM messages WHERE offset % 3 = 0";
    let job = lab
        .job(&topic)
        .sql(filter)
        .trigger("processingTime = \"500 milliseconds\"");
    let process = lab.run(&job, &[]);
    lab.owned_by(&job, "v1");
    for number in 0..18_u64 {
        let partition = i32::try_from(number % 3).unwrap_or(0);
        let value = numbered(partition, number / 3);
        lab.kafka
            .send(&topic, &[Record::value(partition, value.as_bytes())])
            .expect("it was stored");
        let sent = now();
        if (number / 3) % 3 == 0 {
            let shown = format!("|{value}");
            baton_testkit::realtime::poll_until("the row is shown", Duration::from_secs(4), || {
                process.stdout().contains(&shown).then_some(())
            })
            .expect("a row leaves in its trigger");
        }
        pause(Duration::from_millis(333).saturating_sub(sent.elapsed()));
    }
    lab.caught_up(&job, &each(3, 6));
    let log = lab.log(&job);
    for printed in lab.printed() {
        for (id, rows) in printed.batches() {
            let batch = log
                .batches()
                .find(|batch| batch.id == *id)
                .expect("a shown batch is in the log");
            let inside = |p, o| {
                batch
                    .ranges()
                    .any(|(q, from, until)| p == q && from <= o && o < until)
            };
            assert!(
                rows.iter().all(|row| inside(row.partition, row.offset)),
                "batch {id} shows another's rows"
            );
        }
    }
}

#[test]
fn available_now_takes_what_is_there_and_ends_and_does_nothing_the_second_time() {
    let Some(lab) = Lab::open("now") else { return };
    let topic = lab.topic(2);
    lab.kafka
        .send_numbered(&topic, 2, 0, 100)
        .expect("all were stored");
    let job = lab
        .job(&topic)
        .option("maxOffsetsPerTrigger", "50")
        .trigger("availableNow = true");
    assert_eq!(lab.ends(&job, &[]).code, 0);
    let again = lab.ends(&job, &[]);
    assert_eq!((again.code, again.stdout.as_str()), (0, ""), "{}", again.stderr);
    let verdict = lab.exactly_once(&job, &each(2, 100));
    assert_eq!(verdict.batches, 4);
    assert_eq!(lab.status(&job)["state"], "released");
}

#[test]
fn once_takes_everything_in_one_batch() {
    let Some(lab) = Lab::open("once") else { return };
    let topic = lab.topic(2);
    lab.kafka
        .send_numbered(&topic, 2, 0, 100)
        .expect("all were stored");
    let job = lab
        .job(&topic)
        .option("maxOffsetsPerTrigger", "50")
        .trigger("once = true");
    assert_eq!(lab.ends(&job, &[]).code, 0);
    let verdict = lab.exactly_once(&job, &each(2, 100));
    assert_eq!(verdict.batches, 1);
}
