//! Messages into a topic, for `baton produce`, examples and tests.

use baton_core::{Clock, TokioClock};
use futures::future::{Either, select};
use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

use crate::client::{Context, describe};
use crate::{Error, Result};

/// How long a message may be under way before it counts as not stored.
const PATIENCE: Duration = Duration::from_secs(15);
/// The client gives a message up after [`PATIENCE`]; this much later it has surely said so.
const SURELY: Duration = Duration::from_secs(20);
/// How often a full queue is tried again, should its signal be missed.
const AGAIN: Duration = Duration::from_millis(100);

/// Sends messages to Kafka: in order, each stored once, keys to the partition that Java's producer would choose.
///
/// A message is *accepted* by [`Producer::send`] and *stored* when a later [`Producer::flush`] has returned. What could
/// not be stored is reported by whichever of the two is called next.
pub struct Producer {
    client: Arc<ThreadedProducer<Deliveries>>,
    deliveries: Deliveries,
    address: String,
    clock: Arc<dyn Clock>,
}

/// What became of the messages.
#[derive(Clone, Debug, Default)]
struct Deliveries {
    context: Context,
    failed: Arc<Mutex<Option<(String, KafkaError)>>>,
    room: Arc<Notify>,
}

impl Producer {
    /// Makes a client for a broker at `host:port` (several parted by commas). No connection is waited for.
    ///
    /// # Errors
    /// [`Error::Refused`] when the client refuses the address.
    pub fn connect(bootstrap_servers: &str) -> Result<Self> {
        let mut config = ClientConfig::new();
        let patience = PATIENCE.as_millis().to_string();
        config
            .set("bootstrap.servers", bootstrap_servers)
            .set("client.id", "baton-producer")
            .set("enable.idempotence", "true")
            .set("partitioner", "murmur2_random")
            .set("message.timeout.ms", &patience)
            .set("linger.ms", "5")
            // How large a message may be is the broker's to say.
            .set("message.max.bytes", "100000000")
            .set("queue.buffering.max.messages", "100000")
            .set("queue.buffering.max.kbytes", "65536")
            .set("reconnect.backoff.max.ms", "500");
        let deliveries = Deliveries::default();
        let client = ThreadedProducer::from_config_and_context(&config, deliveries.clone());
        let client = client.map_err(|error| Error::Refused {
            address: bootstrap_servers.to_owned(),
            task: "be connected to".to_owned(),
            cause: describe(&error),
        })?;
        let (client, address) = (Arc::new(client), bootstrap_servers.to_owned());
        Ok(Self {
            client,
            deliveries,
            address,
            clock: Arc::new(TokioClock::start()),
        })
    }

    /// Hands a message to the client, waiting while too much is under way. Absent key or value is Kafka's null.
    ///
    /// # Errors
    /// What kept an *earlier* message from being stored, or this one from being accepted: [`Error::Unreachable`] when no
    /// broker has answered for 15 s, [`Error::Missing`] for a topic that neither exists nor may be made,
    /// [`Error::NotStored`] for all else.
    ///
    /// # Cancel safety
    /// The message is either accepted or not sent at all.
    pub async fn send(&self, topic: &str, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        let start = self.clock.elapsed();
        let mut record = BaseRecord::<[u8], [u8]>::to(topic);
        (record.key, record.payload) = (key, value);
        loop {
            self.complain()?;
            let mut room = std::pin::pin!(self.deliveries.room.notified());
            // Registered before the attempt, so that room made in between is noticed.
            room.as_mut().enable();
            let error = match self.client.send(record) {
                Ok(()) => return Ok(()),
                Err((error, back)) => {
                    record = back;
                    error
                }
            };
            let full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
            if !full || self.clock.elapsed().saturating_sub(start) > SURELY {
                return Err(self.not_stored(topic, &error));
            }
            match select(room, self.clock.sleep(AGAIN)).await {
                Either::Left(_) | Either::Right(_) => {}
            }
        }
    }

    /// Waits until every accepted message is stored.
    ///
    /// # Errors
    /// As [`Producer::send`]; within 20 s.
    ///
    /// # Cancel safety
    /// Messages go on their way all the same, as long as the producer lives.
    pub async fn flush(&self) -> Result<()> {
        let client = Arc::clone(&self.client);
        let flushed = tokio::task::spawn_blocking(move || client.flush(SURELY)).await;
        self.complain()?;
        match flushed {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.not_stored("", &error)),
            Err(error) => Err(Error::bug(format!("a flush did not end: {error}"))),
        }
    }

    /// The first failure since the last complaint.
    fn complain(&self) -> Result<()> {
        let failed = self
            .deliveries
            .failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        failed.map_or(Ok(()), |(topic, error)| Err(self.not_stored(&topic, &error)))
    }

    fn not_stored(&self, topic: &str, error: &KafkaError) -> Error {
        use RDKafkaErrorCode as Code;
        match error.rdkafka_error_code() {
            Some(
                Code::MessageTimedOut | Code::OperationTimedOut | Code::QueueFull | Code::AllBrokersDown,
            ) => {
                let cause = self
                    .deliveries
                    .context
                    .last_error()
                    .unwrap_or_else(|| describe(error));
                Error::unreachable(&self.address, PATIENCE, cause)
            }
            Some(Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition) => {
                Error::Missing {
                    what: format!("topic `{topic}`"),
                    address: self.address.clone(),
                    next: "create it, or correct its name".to_owned(),
                }
            }
            _ => Error::NotStored {
                topic: topic.to_owned(),
                cause: describe(error),
            },
        }
    }
}

impl std::fmt::Debug for Producer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Producer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.context.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.context.error(error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _opaque: ()) {
        if let Err((error, message)) = result {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.get_or_insert_with(|| (message.topic().to_owned(), error.clone()));
        }
        self.room.notify_waiters();
    }
}
