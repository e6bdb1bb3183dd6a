//! The least that librdkafka can do: takes the messages of a topic and counts them. The reader of this crate is measured
//! against it, with the same settings and the same allocator.
//!
//! `bare_consumer BOOTSTRAP TOPIC COUNT` reads every partition from its first record until COUNT messages have come, and
//! prints one line of JSON.
#![expect(clippy::print_stdout, reason = "the result")]
#![expect(
    unsafe_code,
    reason = "the same call as the reader's, without anything around it"
)]

use baton_testkit::realtime::now;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka_sys as sys;
use std::ffi::CString;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Messages taken in one call.
const MOST: usize = 4_096;
/// How long a call waits to be full, and how many in a row may bring nothing.
const WAIT_MS: i32 = 100;
const PATIENCE: u32 = 300;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, topic, count] = args.as_slice() else {
        return Err("usage: bare_consumer BOOTSTRAP TOPIC COUNT".into());
    };
    let wanted: usize = count.parse()?;
    let started = now();
    let probe: BaseConsumer = ClientConfig::new().set("bootstrap.servers", bootstrap).create()?;
    let metadata = probe.fetch_metadata(Some(topic), Duration::from_secs(10))?;
    let partitions = metadata
        .topics()
        .first()
        .map_or(0, |topic| topic.partitions().len());
    drop(metadata);
    if partitions == 0 {
        return Err(format!("topic `{topic}` not found on Kafka at `{bootstrap}`").into());
    }
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("isolation.level", "read_committed");
    config
        .set("enable.partition.eof", "true")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false");
    for (name, value) in baton_source_kafka::reader_settings(partitions) {
        config.set(name, value);
    }
    let client: BaseConsumer = config.create()?;
    let rows = count_messages(&client, topic, i32::try_from(partitions)?, wanted)?;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{}",
        serde_json::json!({ "rows": rows, "seconds": seconds, "rowsPerSecond": (rows as f64 / seconds).round() })
    );
    Ok(())
}

/// Takes messages until `wanted` have come.
fn count_messages(
    client: &BaseConsumer,
    topic: &str,
    partitions: i32,
    wanted: usize,
) -> Result<usize, String> {
    let native = client.client().native_ptr();
    let name = CString::new(topic).map_err(|_| "the topic's name holds a NUL")?;
    let mut messages = vec![std::ptr::null_mut(); MOST];
    let mut rows = 0;
    // SAFETY: the client outlives this call; topic and queue are made and given back here; the vector has room for `MOST`
    // pointers, of which the call writes as many as it returns, and each message is destroyed once.
    unsafe {
        let handle = sys::rd_kafka_topic_new(native, name.as_ptr(), std::ptr::null_mut());
        let queue = sys::rd_kafka_queue_new(native);
        for partition in 0..partitions {
            if sys::rd_kafka_consume_start_queue(handle, partition, -2, queue) == -1 {
                return Err(format!("partition {partition} cannot be read"));
            }
        }
        let mut silent = 0;
        while rows < wanted {
            // No more than are missing: a call that is not full waits.
            let most = MOST.min(wanted - rows);
            let taken = sys::rd_kafka_consume_batch_queue(queue, WAIT_MS, messages.as_mut_ptr(), most);
            let taken = usize::try_from(taken).unwrap_or(0);
            silent = if taken == 0 { silent + 1 } else { 0 };
            if silent == PATIENCE {
                return Err(format!("{rows} of {wanted} messages came, then none for 30 s"));
            }
            for message in &messages[..taken] {
                rows += usize::from((**message).err == sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR);
                sys::rd_kafka_message_destroy(*message);
            }
        }
        for partition in 0..partitions {
            sys::rd_kafka_consume_stop(handle, partition);
        }
        sys::rd_kafka_queue_destroy(queue);
        sys::rd_kafka_topic_destroy(handle);
    }
    Ok(rows)
}
