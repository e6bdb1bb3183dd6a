//! A real broker and what its administrators do to topics, for the tests of this crate.

use baton_core::{CheckpointId, Claimant, Rng};
use baton_testkit::Kafka;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::time::Duration;

pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// The broker that `BATON_TEST_KAFKA=host:port` names; none, said aloud, when there is none and none is required.
#[expect(clippy::print_stderr, reason = "a test that did not run says so")]
pub(crate) fn broker(test: &str) -> Option<Kafka> {
    if let Ok(address) = std::env::var("BATON_TEST_KAFKA") {
        return Some(Kafka::at(address));
    }
    let required = std::env::var("BATON_REQUIRE_KAFKA").is_ok_and(|value| value == "1");
    assert!(
        !required,
        "BATON_TEST_KAFKA is not set and BATON_REQUIRE_KAFKA=1 asks for a broker"
    );
    eprintln!("left out: {test} (BATON_TEST_KAFKA names no broker)");
    None
}

/// A name that no other run has.
pub(crate) fn unique(name: &str) -> String {
    format!("{name}-{:016x}", Rng::from_os().next_u64())
}

/// Runs what brings a runtime of its own on a thread of its own.
pub(crate) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join()).expect("no panic")
}

/// A topic of one partition that keeps the newest record of each key, as soon as Kafka comes to it.
pub(crate) async fn create_compacted(kafka: &Kafka, topic: &str) {
    let new = NewTopic::new(topic, 1, TopicReplication::Fixed(1))
        .set("cleanup.policy", "compact")
        .set("segment.ms", "100")
        .set("min.cleanable.dirty.ratio", "0.01")
        .set("max.compaction.lag.ms", "200")
        .set("delete.retention.ms", "0");
    let made = admin(kafka)
        .create_topics([&new], &AdminOptions::new().operation_timeout(Some(BOUND)))
        .await;
    made.expect("an answer").remove(0).expect("made");
}

/// Deletes the records of partition 0 before `offset`, as retention does.
pub(crate) async fn delete_records(kafka: &Kafka, topic: &str, offset: i64) {
    let mut until = TopicPartitionList::new();
    until
        .add_partition_offset(topic, 0, Offset::Offset(offset))
        .expect("an offset");
    admin(kafka)
        .delete_records(&until, &AdminOptions::new())
        .await
        .expect("deleted");
}

fn admin(kafka: &Kafka) -> AdminClient<DefaultClientContext> {
    ClientConfig::new()
        .set("bootstrap.servers", kafka.address())
        .create()
        .expect("a client")
}

/// A producer inside its first transaction.
pub(crate) fn transactional(kafka: &Kafka) -> BaseProducer {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", kafka.address())
        .set("transactional.id", unique("tx"));
    let producer: BaseProducer = config.create().expect("a client");
    producer.init_transactions(BOUND).expect("a coordinator");
    producer.begin_transaction().expect("begun");
    producer
}

/// Puts numbered messages into partition 0 and waits until they are stored, committed or not.
pub(crate) fn put(producer: &BaseProducer, topic: &str, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let text = number.to_string();
        producer
            .send(BaseRecord::<str, str>::to(topic).partition(0).payload(&text))
            .expect("accepted");
    }
    producer.flush(BOUND).expect("stored");
}

/// Commits the transaction and begins the next.
pub(crate) fn commit(producer: &BaseProducer) {
    producer.commit_transaction(BOUND).expect("committed");
    producer.begin_transaction().expect("begun");
}

/// Aborts the transaction and begins the next.
pub(crate) fn abort(producer: &BaseProducer) {
    producer.abort_transaction(BOUND).expect("aborted");
    producer.begin_transaction().expect("begun");
}

/// Who claims a group: a checkpoint known by a number.
pub(crate) fn claimant(checkpoint: u128, overrule: bool) -> Claimant {
    let id: CheckpointId =
        serde_json::from_str(&format!("\"{checkpoint:032x}\"")).expect("32 digits are an id");
    Claimant::new(id, format!("job-{checkpoint}"), overrule)
}

/// A member of `group` that consumes `topic`.
pub(crate) fn member(kafka: &Kafka, group: &str, topic: &str) -> BaseConsumer {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", kafka.address())
        .set("group.id", group)
        .set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.create().expect("a client");
    consumer.subscribe(&[topic]).expect("subscribed");
    baton_testkit::realtime::poll_until("an assignment", BOUND, || {
        drop(consumer.poll(Duration::from_millis(10)));
        (consumer.assignment().ok()?.count() > 0).then_some(())
    })
    .expect("a member");
    consumer
}

/// What Kafka's tools see of `group` at partition 0: offset and metadata.
pub(crate) fn committed(kafka: &Kafka, group: &str, topic: &str) -> (Offset, String) {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", kafka.address())
        .set("group.id", group);
    let consumer: BaseConsumer = config.create().expect("a client");
    let mut asked = TopicPartitionList::new();
    asked.add_partition(topic, 0);
    let list = consumer.committed_offsets(asked, BOUND).expect("an answer");
    let one = list.find_partition(topic, 0).expect("asked for");
    (one.offset(), one.metadata().to_owned())
}
