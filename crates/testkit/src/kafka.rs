//! Topics, messages and private brokers on a real Kafka.

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::types::RDKafkaErrorCode;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::realtime::{beside, now, pause, poll_until};

const BOUND: Duration = Duration::from_secs(30);

/// A broker and what tests do to its topics.
#[derive(Clone, Debug)]
pub struct Kafka {
    address: String,
}

impl Kafka {
    /// The broker at `host:port`.
    #[must_use]
    pub fn at(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
        }
    }

    /// Where it is, as `host:port`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Makes a topic and waits until its leaders are known.
    ///
    /// # Errors
    /// When the broker refuses or does not answer.
    pub fn create_topic(&self, topic: &str, partitions: i32) -> io::Result<()> {
        let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
        self.admin(async |admin, options| admin.create_topics([&new], options).await)?;
        let client: BaseProducer = self.config().create().map_err(io::Error::other)?;
        poll_until(&format!("leaders of {topic}"), BOUND, || {
            let metadata = client
                .client()
                .fetch_metadata(Some(topic), Duration::from_secs(5))
                .ok()?;
            let found = metadata.topics().first()?;
            let led = found
                .partitions()
                .iter()
                .filter(|p| p.error().is_none() && p.leader() >= 0)
                .count();
            (led == usize::try_from(partitions).unwrap_or_default()).then_some(())
        })
    }

    /// Grows a topic to `partitions`.
    ///
    /// # Errors
    /// When the broker refuses or does not answer.
    pub fn grow_topic(&self, topic: &str, partitions: usize) -> io::Result<()> {
        let new = NewPartitions::new(topic, partitions);
        self.admin(async |admin, options| admin.create_partitions([&new], options).await)
    }

    /// Deletes a topic.
    ///
    /// # Errors
    /// When the broker refuses or does not answer.
    pub fn delete_topic(&self, topic: &str) -> io::Result<()> {
        self.admin(async |admin, options| admin.delete_topics(&[topic], options).await)
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.address)
            .set("linger.ms", "5");
        config
            .set("message.max.bytes", "2000000")
            .set("acks", "all")
            .set("enable.idempotence", "true");
        config
    }

    fn admin<F>(&self, ask: F) -> io::Result<()>
    where
        F: AsyncFnOnce(
            &AdminClient<DefaultClientContext>,
            &AdminOptions,
        ) -> Result<Vec<Result<String, (String, RDKafkaErrorCode)>>, KafkaError>,
    {
        let admin: AdminClient<DefaultClientContext> = self.config().create().map_err(io::Error::other)?;
        let options = AdminOptions::new()
            .request_timeout(Some(BOUND))
            .operation_timeout(Some(BOUND));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let results = runtime
            .block_on(ask(&admin, &options))
            .map_err(io::Error::other)?;
        for result in results {
            result.map_err(|(topic, code)| io::Error::other(format!("{topic}: {code}")))?;
        }
        Ok(())
    }

    /// Sends records with keys and values as given, absent ones included, and waits until they are stored.
    ///
    /// # Errors
    /// When they are not stored within 30 s.
    pub fn send(&self, topic: &str, records: &[Record<'_>]) -> io::Result<()> {
        let producer: BaseProducer = self.config().create().map_err(io::Error::other)?;
        for record in records {
            put(&producer, topic, record)?;
        }
        producer.flush(BOUND).map_err(io::Error::other)
    }

    /// Sends `count` numbered messages to each of `partitions`, from number `first`, and waits until they are stored.
    ///
    /// # Errors
    /// As [`Kafka::send`].
    pub fn send_numbered(&self, topic: &str, partitions: i32, first: u64, count: u64) -> io::Result<()> {
        let producer: BaseProducer = self.config().create().map_err(io::Error::other)?;
        for number in first..first + count {
            for partition in 0..partitions {
                put(
                    &producer,
                    topic,
                    &Record::value(partition, numbered(partition, number).as_bytes()),
                )?;
            }
        }
        producer.flush(BOUND).map_err(io::Error::other)
    }

    /// Keeps sending numbered messages, `per_second` over all partitions, until told to stop.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn flow(&self, topic: &str, partitions: i32, per_second: u32) -> io::Result<Flow> {
        let producer: BaseProducer = self.config().create().map_err(io::Error::other)?;
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (topic, told, counted) = (topic.to_owned(), Arc::clone(&stop), Arc::clone(&sent));
        let thread = beside(move || {
            let start = now();
            let mut ends = BTreeMap::new();
            let mut count = 0_u64;
            while !told.load(Ordering::Acquire) {
                let due = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
                let due = due.saturating_mul(u64::from(per_second)) / 1_000_000;
                while count < due {
                    let partition = i32::try_from(count % u64::from(partitions.unsigned_abs())).unwrap_or(0);
                    let number = ends.entry(partition).or_insert(0_u64);
                    let value = numbered(partition, *number);
                    put(&producer, &topic, &Record::value(partition, value.as_bytes()))?;
                    *number += 1;
                    count += 1;
                    counted.store(count, Ordering::Release);
                }
                producer.poll(Duration::ZERO);
                pause(Duration::from_millis(2));
            }
            producer.flush(BOUND).map_err(io::Error::other)?;
            Ok(ends)
        });
        Ok(Flow {
            stop,
            sent,
            thread: Some(thread),
        })
    }
}

/// The text of a numbered message: partition and number, so that a row says where it belongs.
#[must_use]
pub fn numbered(partition: i32, number: u64) -> String {
    format!("{partition}-{number}")
}

/// A record to send; absent key or value is Kafka's null.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Which partition.
    pub partition: i32,
    /// Key.
    pub key: Option<&'a [u8]>,
    /// Value.
    pub value: Option<&'a [u8]>,
}

impl<'a> Record<'a> {
    /// A record without a key.
    #[must_use]
    pub const fn value(partition: i32, value: &'a [u8]) -> Self {
        Self {
            partition,
            key: None,
            value: Some(value),
        }
    }
}

fn put(producer: &BaseProducer, topic: &str, record: &Record<'_>) -> io::Result<()> {
    let mut base = BaseRecord::<[u8], [u8]>::to(topic).partition(record.partition);
    base.key = record.key;
    base.payload = record.value;
    loop {
        match producer.send(base) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                base = back;
                producer.poll(Duration::from_millis(10));
            }
            Err((error, _)) => return Err(io::Error::other(error)),
        }
    }
}

/// Messages that keep flowing beside the test.
#[derive(Debug)]
pub struct Flow {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<BTreeMap<i32, u64>>>>,
}

impl Flow {
    /// How many were handed to the client so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// Stops, waits until all are stored, and returns how many each partition got.
    ///
    /// # Errors
    /// When a message was not stored.
    pub fn finish(mut self) -> io::Result<BTreeMap<i32, u64>> {
        self.stop.store(true, Ordering::Release);
        let thread = self
            .thread
            .take()
            .ok_or_else(|| io::Error::other("finished before"))?;
        thread
            .join()
            .map_err(|_| io::Error::other("the sending thread panicked"))?
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; a failing test is ending already.
            drop(thread.join());
        }
    }
}

/// A broker of one test's own, for outages; stopped and wiped when dropped.
#[derive(Debug)]
pub struct PrivateBroker {
    tool: PathBuf,
    dir: tempfile::TempDir,
    address: String,
}

impl PrivateBroker {
    /// Starts one through the project's Kafka tool: `$BATON_KAFKA_TOOL`, else `tools/kafka/kafka`.
    ///
    /// # Errors
    /// When the tool is missing or the broker does not start.
    pub fn start() -> io::Result<Self> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/kafka/kafka");
        let tool = std::env::var_os("BATON_KAFKA_TOOL").map_or(beside, PathBuf::from);
        let dir = tempfile::tempdir()?;
        let mut broker = Self {
            tool,
            dir,
            address: String::new(),
        };
        broker.address = broker.tool(&["start"])?;
        Ok(broker)
    }

    fn tool(&self, args: &[&str]) -> io::Result<String> {
        let data = self.dir.path().join("broker");
        let output = Command::new(&self.tool)
            .args(&args[..1])
            .arg("--dir")
            .arg(&data)
            .args(&args[1..])
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("kafka {}: {said}", args.join(" "))));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Where it is, also while it is down.
    #[must_use]
    pub fn kafka(&self) -> Kafka {
        Kafka::at(self.address.clone())
    }

    /// Crashes it: the port refuses connections afterwards.
    ///
    /// # Errors
    /// When the tool fails.
    pub fn crash(&self) -> io::Result<()> {
        self.tool(&["stop", "--kill"]).map(drop)
    }

    /// Starts it again on the same port with the same data.
    ///
    /// # Errors
    /// When the broker does not start, or not on its port.
    pub fn restore(&self) -> io::Result<()> {
        let port = self.address.rsplit(':').next().unwrap_or_default();
        let address = self.tool(&["start", "--port", port])?;
        if address == self.address {
            Ok(())
        } else {
            Err(io::Error::other(format!("it is at {address} now")))
        }
    }
}

impl Drop for PrivateBroker {
    fn drop(&mut self) {
        // The directory goes with its owner whether or not the tool could stop what ran in it.
        drop(self.tool(&["stop", "--wipe", "--kill"]));
    }
}
