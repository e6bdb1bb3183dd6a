//! A broker inside the process, for a first try and for tests.

use rdkafka::config::{ClientConfig, FromClientConfigAndContext};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, Producer as _, ProducerContext};

use crate::client::{Context, describe};
use crate::{Error, Result};

/// A broker inside the process: librdkafka's mock cluster of one broker, on a free port of the loopback interface.
///
/// It is for a first try and for tests: it keeps only the newest 5 MB of a partition, in memory, and knows neither
/// compaction nor aborted transactions. Topics that a producer names are made as it goes. It ends, and forgets
/// everything, when dropped.
pub struct EmbeddedBroker {
    address: String,
    /// The cluster belongs to this client, which does nothing else.
    client: BaseProducer<Context>,
}

impl EmbeddedBroker {
    /// Starts a broker with these topics, each with so many partitions.
    ///
    /// # Errors
    /// [`Error::Embedded`] when it cannot listen, or not make a topic: a bad name, or a number of partitions below 1.
    pub fn start(topics: &[(&str, i32)]) -> Result<Self> {
        let mut config = ClientConfig::new();
        config
            .set("test.mock.num.brokers", "1")
            .set("client.id", "baton-embedded-broker");
        let client: BaseProducer<Context> =
            BaseProducer::from_config_and_context(&config, Context::default())
                .map_err(|error| failed("start", describe(&error)))?;
        let address = client
            .client()
            .mock_cluster()
            .map(|cluster| cluster.bootstrap_servers());
        let address = address.ok_or_else(|| failed("start", "it has no cluster".to_owned()))?;
        let broker = Self { address, client };
        for (topic, partitions) in topics {
            broker.create_topic(topic, *partitions)?;
        }
        Ok(broker)
    }

    /// Makes a topic.
    ///
    /// # Errors
    /// [`Error::Embedded`] when there is one of that name, the name is bad, or `partitions` is below 1.
    pub fn create_topic(&self, topic: &str, partitions: i32) -> Result<()> {
        let task = format!("make topic `{topic}`");
        let named = !topic.is_empty()
            && topic.len() <= 249
            && !matches!(topic, "." | "..")
            && topic
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
        if !named {
            return Err(failed(
                &task,
                "a topic's name is 1 to 249 of A-Z a-z 0-9 . _ -".to_owned(),
            ));
        }
        if partitions < 1 {
            return Err(failed(
                &task,
                format!("it needs at least one partition, not {partitions}"),
            ));
        }
        let cluster = self
            .client
            .client()
            .mock_cluster()
            .ok_or_else(|| failed(&task, "it is gone".to_owned()))?;
        cluster
            .create_topic(topic, partitions, 1)
            .map_err(|error| failed(&task, describe(&error)))
    }

    /// Where it is, as `host:port`.
    #[must_use]
    pub fn bootstrap_servers(&self) -> &str {
        &self.address
    }
}

impl std::fmt::Debug for EmbeddedBroker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedBroker")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// It sends nothing.
impl ProducerContext for Context {
    type DeliveryOpaque = ();
    fn delivery(&self, _result: &DeliveryResult<'_>, _opaque: ()) {}
}

fn failed(task: &str, cause: String) -> Error {
    Error::Embedded {
        task: task.to_owned(),
        cause,
    }
}
