//! Questions to the brokers: which partitions there are, and where they begin and end.
//!
//! They have a client of their own. A broker answers the requests of one connection in order, so on the reader's
//! connection a question would wait behind its fetch for new data.

use baton_core::{Offset, PartitionOffsets, TopicPartition};
use rdkafka::consumer::Consumer;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::types::RDKafkaRespErr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::client::{self, Client, Context, describe, describe_code};
use crate::ffi::{self, Failure};
use crate::options::{Strategy, is_internal};
use crate::properties::Properties;
use crate::{Error, Result};

/// How long one question may take. A broker that is there answers in milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);

/// Above this many topics, one question about all of the cluster's is cheaper than one each.
const MANY_TOPICS: usize = 8;

/// Which partitions exist, of those that the strategy is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) partitions: BTreeSet<TopicPartition>,
    /// What the strategy names and the cluster lacks, with what the cluster has instead.
    pub(crate) missing: BTreeMap<String, Option<i32>>,
}

/// The client for questions.
pub(crate) struct Control {
    client: Arc<Client>,
    context: Context,
    address: String,
    committed_only: bool,
}

impl Control {
    /// Makes the client; waits for no connection.
    pub(crate) fn connect(properties: &Properties) -> Result<Self> {
        let defaults = [
            ("reconnect.backoff.ms", "50".to_owned()),
            ("reconnect.backoff.max.ms", "500".to_owned()),
            ("socket.nagle.disable", "true".to_owned()),
        ];
        let mut fixed = vec![
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
        ];
        if let Some(group) = properties.group() {
            fixed.push(("group.id", group));
        }
        let address = properties.bootstrap_servers().to_owned();
        let (client, context) = client::connect(&properties.config(&defaults, &fixed), &address)?;
        Ok(Self {
            client,
            context,
            address,
            committed_only: properties.committed_only(),
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Runs something that blocks, beside the runtime. Dropping the future gives it up: `given_up` becomes true.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &AtomicBool) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        struct GiveUp(Arc<AtomicBool>);
        impl Drop for GiveUp {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let given_up = GiveUp(Arc::default());
        let (control, flag) = (Arc::clone(self), Arc::clone(&given_up.0));
        let ended = tokio::task::spawn_blocking(move || work(&control, &flag)).await;
        drop(given_up);
        ended.map_err(|error| Error::bug(format!("a question to Kafka did not end: {error}")))?
    }

    /// Which partitions exist. Blocks.
    pub(crate) fn find(&self, strategy: &Strategy, patience: Duration) -> Result<Found> {
        let mut found = Found::default();
        match strategy {
            Strategy::Pattern(pattern) => {
                for (topic, count) in self.topics(None, patience)? {
                    if pattern.is_match(&topic) && !is_internal(&topic) {
                        let count = count.unwrap_or(0);
                        found
                            .partitions
                            .extend((0..count).map(|number| TopicPartition::new(topic.as_str(), number)));
                    }
                }
            }
            Strategy::Subscribe(_) => {
                for (topic, count) in self.counts(strategy, patience)? {
                    match count {
                        Some(count) => found
                            .partitions
                            .extend((0..count).map(|number| TopicPartition::new(topic.as_str(), number))),
                        None => drop(found.missing.insert(format!("topic `{topic}`"), None)),
                    }
                }
            }
            Strategy::Assign(partitions) => {
                let counts = self.counts(strategy, patience)?;
                for partition in partitions {
                    match counts.get(&partition.topic).copied().flatten() {
                        Some(count) if partition.partition < count => {
                            found.partitions.insert(partition.clone());
                        }
                        count => drop(found.missing.insert(format!("partition {partition}"), count)),
                    }
                }
            }
        }
        Ok(found)
    }

    /// How many partitions the strategy's topics have; none for one that does not exist.
    fn counts(&self, strategy: &Strategy, patience: Duration) -> Result<BTreeMap<String, Option<i32>>> {
        let named = strategy.topics();
        if named.len() > MANY_TOPICS {
            let mut all = self.topics(None, patience)?;
            return Ok(named
                .iter()
                .map(|topic| ((*topic).to_owned(), all.remove(*topic).flatten()))
                .collect());
        }
        let mut counts = BTreeMap::new();
        for topic in named {
            counts.extend(self.topics(Some(topic), patience)?);
        }
        Ok(counts)
    }

    fn topics(&self, topic: Option<&str>, patience: Duration) -> Result<BTreeMap<String, Option<i32>>> {
        use RDKafkaRespErr as Code;
        let metadata = self
            .client
            .client()
            .fetch_metadata(topic, patience)
            .map_err(|error| {
                self.failed(
                    "list topics",
                    error.rdkafka_error_code(),
                    &describe(&error),
                    patience,
                )
            })?;
        let mut topics = BTreeMap::new();
        for topic in metadata.topics() {
            let count = i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX);
            let count = match topic.error() {
                None => Some(count),
                Some(Code::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE) if count > 0 => Some(count),
                Some(
                    Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART | Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID,
                ) => None,
                Some(code) => {
                    let (task, code) = (format!("describe topic `{}`", topic.name()), code.into());
                    return Err(self.failed(&task, Some(code), &describe_code(code), patience));
                }
            };
            topics.insert(topic.name().to_owned(), count);
        }
        Ok(topics)
    }

    /// One offset for each partition: `Offset::LATEST` and `Offset::EARLIEST` are asked for, others kept. Under
    /// read_committed the latest is the last stable one. Blocks.
    pub(crate) fn resolve(
        &self,
        asked: &PartitionOffsets,
        patience: Duration,
        given_up: &AtomicBool,
    ) -> Result<PartitionOffsets> {
        let mut resolved = asked.clone();
        let open: ffi::Asked = asked
            .iter()
            .filter(|(_, offset)| offset.0 < 0)
            .map(|(partition, offset)| ((partition.topic, partition.partition), offset.0))
            .collect();
        if open.is_empty() {
            return Ok(resolved);
        }
        let task = "tell where partitions end";
        let failed = |failure: Failure| self.failed(task, Some(failure.code), &failure.text, patience);
        let answers = ffi::list_offsets(&self.client, &open, self.committed_only, patience, given_up)
            .map_err(failed)?;
        for ((topic, partition), answer) in answers {
            let partition = TopicPartition::new(topic, partition);
            let offset = answer.map_err(|failure| {
                let task = format!("tell where {partition} ends");
                self.failed(&task, Some(failure.code), &failure.text, patience)
            })?;
            resolved.set(partition, Offset(offset));
        }
        let unanswered = resolved.iter().find(|(_, offset)| offset.0 < 0);
        match unanswered {
            Some((partition, _)) => {
                Err(self.failed(task, None, &format!("no answer about {partition}"), patience))
            }
            None => Ok(resolved),
        }
    }

    /// The same offset for all partitions, resolved.
    pub(crate) fn all_at(
        &self,
        partitions: impl IntoIterator<Item = TopicPartition>,
        at: Offset,
        given_up: &AtomicBool,
    ) -> Result<PartitionOffsets> {
        self.resolve(
            &partitions.into_iter().map(|partition| (partition, at)).collect(),
            PATIENCE,
            given_up,
        )
    }

    /// What a failed call means: gone for now, or refused for good.
    pub(crate) fn failed(
        &self,
        task: &str,
        code: Option<RDKafkaErrorCode>,
        text: &str,
        waited: Duration,
    ) -> Error {
        use RDKafkaErrorCode as Code;
        let (address, task) = (self.address.clone(), task.to_owned());
        match code {
            Some(
                Code::TopicAuthorizationFailed
                | Code::GroupAuthorizationFailed
                | Code::ClusterAuthorizationFailed
                | Code::SaslAuthenticationFailed
                | Code::UnsupportedVersion
                | Code::UnsupportedFeature
                | Code::InvalidTopic,
            ) => Error::Refused {
                address,
                task,
                cause: text.to_owned(),
            },
            Some(
                Code::BrokerTransportFailure
                | Code::AllBrokersDown
                | Code::OperationTimedOut
                | Code::MessageTimedOut
                | Code::RequestTimedOut
                | Code::Resolve
                | Code::Authentication
                | Code::SSL,
            ) => {
                let cause = self.context.last_error().unwrap_or_else(|| text.to_owned());
                Error::unreachable(&address, waited, cause)
            }
            _ => Error::Passing {
                address,
                task,
                cause: text.to_owned(),
            },
        }
    }
}

impl Found {
    /// The first thing that is named but does not exist, as an error.
    pub(crate) fn complain(&self, address: &str) -> Result<()> {
        let Some((what, count)) = self.missing.iter().next() else {
            return Ok(());
        };
        let (what, next) = match count {
            Some(count) => (
                format!("{what} (the topic has {count})"),
                "name only partitions that exist in assign".to_owned(),
            ),
            None => (what.clone(), "create it, or correct its name".to_owned()),
        };
        Err(Error::Missing {
            what,
            address: address.to_owned(),
            next,
        })
    }
}
