//! The reader over librdkafka.

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use baton_core::{BatchStream, Clock, PartitionOffsets, PartitionRange, TopicPartition};
use futures::StreamExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Fetcher;
use super::budget::Budget;
use super::lane::Lane;
use super::stream::{Part, Reading};
use crate::client::{self, Client, Context};
use crate::control::Control;
use crate::ffi::{Failure, Partition};
use crate::properties::Properties;
use crate::{Error, Result};

/// A lane that streams and the next plan look at in turn.
pub(super) type SharedLane = Arc<Mutex<Lane<Context>>>;

pub(super) fn locked(lane: &SharedLane) -> MutexGuard<'_, Lane<Context>> {
    lane.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reader over librdkafka: one client, one lane for each partition, kept open between batches.
pub(crate) struct Librdkafka {
    control: Arc<Control>,
    properties: Properties,
    fail_on_data_loss: bool,
    clock: Arc<dyn Clock>,
    open: Arc<Mutex<Option<Open>>>,
}

/// The client with its lanes. Lanes go before the client, which each of them holds.
struct Open {
    lanes: BTreeMap<TopicPartition, SharedLane>,
    budget: Budget,
    client: Arc<Client>,
}

impl Librdkafka {
    pub(crate) fn new(
        control: Arc<Control>,
        properties: Properties,
        fail_on_data_loss: bool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            control,
            properties,
            fail_on_data_loss,
            clock,
            open: Arc::default(),
        }
    }

    fn connect(properties: &Properties, budget: Budget) -> Result<Arc<Client>> {
        let config = properties.config(
            &settings(budget),
            &[
                ("enable.auto.commit", "false"),
                ("enable.auto.offset.store", "false"),
                ("enable.partition.eof", "true"),
                ("auto.offset.reset", "error"),
                ("allow.auto.create.topics", "false"),
            ],
        );
        let (client, _context) = client::connect(&config, properties.bootstrap_servers())?;
        Ok(client)
    }

    /// The lanes of these partitions, made where they are not there yet.
    fn lanes<'a>(
        properties: &Properties,
        open: &mut Option<Open>,
        partitions: impl Iterator<Item = &'a TopicPartition>,
    ) -> Result<Vec<SharedLane>> {
        let partitions: Vec<_> = partitions.collect();
        let new = partitions
            .iter()
            .filter(|p| open.as_ref().is_none_or(|open| !open.lanes.contains_key(**p)));
        let count = open.as_ref().map_or(0, |open| open.lanes.len()) + new.count();
        if open.as_ref().is_none_or(|open| !open.budget.serves(count)) {
            let budget = Budget::for_partitions(count);
            let client = Self::connect(properties, budget)?;
            // Streams that still read keep the old client until they end.
            *open = Some(Open {
                lanes: BTreeMap::new(),
                budget,
                client,
            });
        }
        let Open { lanes, client, .. } = open.as_mut().expect("made just now");
        partitions
            .into_iter()
            .map(|partition| {
                if let Some(lane) = lanes.get(partition) {
                    return Ok(Arc::clone(lane));
                }
                let source = Partition::new(Arc::clone(client), &partition.topic, partition.partition)
                    .map_err(|failure| cannot_fetch(properties.bootstrap_servers(), partition, &failure))?;
                let lane = Arc::new(Mutex::new(Lane::new(source, partition.clone())));
                lanes.insert(partition.clone(), Arc::clone(&lane));
                Ok(lane)
            })
            .collect()
    }
}

/// The settings that make librdkafka fast and small; the user's overrule them.
fn settings(budget: Budget) -> Vec<(&'static str, String)> {
    vec![
        // Its default of a second starves a reader that is faster than the broker.
        ("fetch.queue.backoff.ms", "10".to_owned()),
        ("fetch.error.backoff.ms", "100".to_owned()),
        // How long a fetch waits for data at the broker; a new start of another partition waits behind it.
        ("fetch.wait.max.ms", "100".to_owned()),
        ("fetch.message.max.bytes", budget.fetch_bytes.to_string()),
        (
            "fetch.max.bytes",
            (budget.fetch_bytes * budget.partitions).max(1 << 20).to_string(),
        ),
        ("queued.min.messages", budget.messages.to_string()),
        ("queued.max.messages.kbytes", budget.kilobytes.to_string()),
        ("reconnect.backoff.ms", "50".to_owned()),
        ("reconnect.backoff.max.ms", "500".to_owned()),
        ("socket.nagle.disable", "true".to_owned()),
    ]
}

/// librdkafka's settings for reading so many partitions: for measuring against a bare consumer, not for applications.
#[must_use]
pub fn reader_settings(partitions: usize) -> Vec<(&'static str, String)> {
    settings(Budget::for_partitions(partitions))
}

/// The client does not start to fetch.
pub(super) fn cannot_fetch(address: &str, partition: &TopicPartition, failure: &Failure) -> Error {
    Error::Passing {
        address: address.to_owned(),
        task: format!("be read at {partition}"),
        cause: failure.text.clone(),
    }
}

#[async_trait]
impl Fetcher for Librdkafka {
    async fn warm(&self, at: &PartitionOffsets) -> Result<()> {
        let (at, open, properties) = (at.clone(), Arc::clone(&self.open), self.properties.clone());
        self.control
            .blocking(move |control, _| {
                let lanes = {
                    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
                    let partitions: Vec<_> = at.iter().map(|(partition, _)| partition).collect();
                    // A partition that is gone would be fetched for ever. One being read is kept by its stream.
                    if let Some(open) = open.as_mut() {
                        open.lanes.retain(|partition, _| at.of(partition).is_some());
                    }
                    Self::lanes(&properties, &mut open, partitions.iter())?
                };
                for lane in &lanes {
                    // One being read is left alone.
                    let Ok(mut lane) = lane.try_lock() else { continue };
                    let Some(offset) = at.of(lane.partition()) else {
                        continue;
                    };
                    let partition = lane.partition().clone();
                    lane.go_to(offset.0)
                        .map_err(|failure| cannot_fetch(control.address(), &partition, &failure))?;
                }
                Ok(())
            })
            .await
    }

    fn is_quiet(&self, at: &PartitionOffsets) -> bool {
        let Ok(open) = self.open.try_lock() else {
            return false;
        };
        let Some(open) = open.as_ref() else { return false };
        open.lanes.len() == at.len()
            && at.iter().all(|(partition, offset)| {
                let Some(lane) = open.lanes.get(&partition) else {
                    return false;
                };
                // Held by a stream as well: it is being read.
                Arc::strong_count(lane) == 1 && locked(lane).is_quiet_at(offset.0)
            })
    }

    fn read(
        &self,
        ranges: &[PartitionRange],
        streams: usize,
        schema: &SchemaRef,
    ) -> Result<Vec<BatchStream>> {
        let lanes = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            Self::lanes(
                &self.properties,
                &mut open,
                ranges.iter().map(|range| &range.partition),
            )?
        };
        let mut parts: Vec<Part> = ranges
            .iter()
            .zip(lanes)
            .map(|(range, lane)| Part::new(lane, range.range))
            .collect();
        // The largest first, each to the stream that has least.
        parts.sort_by_key(|part| std::cmp::Reverse(part.range().len()));
        let count = streams.clamp(1, parts.len().max(1));
        let mut shares: Vec<(u64, Vec<Part>)> = (0..count).map(|_| (0, Vec::new())).collect();
        for part in parts {
            if let Some((size, share)) = shares.iter_mut().min_by_key(|(size, _)| *size) {
                *size += part.range().len();
                share.push(part);
            }
        }
        Ok(shares
            .into_iter()
            .filter(|(_, share)| !share.is_empty())
            .map(|(_, share)| {
                let reading = Reading::new(
                    share,
                    Arc::clone(schema),
                    Arc::clone(&self.control),
                    self.fail_on_data_loss,
                    Arc::clone(&self.clock),
                );
                reading
                    .into_stream()
                    .map(|batch| batch.map_err(Into::into))
                    .boxed()
            })
            .collect())
    }
}
