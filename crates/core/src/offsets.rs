//! Offset algebra: positions, ranges, and what lies between them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

use crate::{Error, Result};

/// The offset of a record in its partition, or of the next one to read.
///
/// Kafka's offsets are never negative; -1 and -2 stand for "latest" and "earliest" in options and are resolved before
/// they become a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(pub i64);

impl Offset {
    /// The end of the partition, in options.
    pub const LATEST: Self = Self(-1);
    /// The first record still there, in options.
    pub const EARLIEST: Self = Self(-2);
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One partition of one topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TopicPartition {
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
}

impl TopicPartition {
    /// Names a partition.
    #[must_use]
    pub fn new(topic: impl Into<String>, partition: i32) -> Self {
        Self {
            topic: topic.into(),
            partition,
        }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// A half-open run of offsets, `from..until`, in one topic partition.
///
/// A micro-batch is planned as one range per partition, logged before it runs, and replayed from that log after a
/// crash; two reads of one range must therefore return the same records. A range is dense, its records need not be:
/// compaction, aborted transactions and control records leave holes.
///
/// Invariant OFF-1: `from <= until`. An empty range is legal and means "no part in this batch".
///
/// ```
/// # use baton_core::{Offset, OffsetRange};
/// let planned = OffsetRange::new(Offset(40), Offset(42))?;
/// assert_eq!(planned.len(), 2);
/// # Ok::<(), baton_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetRange {
    from: Offset,
    until: Offset,
}

impl OffsetRange {
    /// Makes a range.
    ///
    /// # Errors
    /// [`Error::InvertedRange`] if `until < from`.
    pub const fn new(from: Offset, until: Offset) -> Result<Self> {
        if until.0 < from.0 {
            return Err(Error::InvertedRange {
                from: from.0,
                until: until.0,
            });
        }
        Ok(Self { from, until })
    }

    /// The first offset.
    #[must_use]
    pub const fn from(self) -> Offset {
        self.from
    }

    /// The offset after the last.
    #[must_use]
    pub const fn until(self) -> Offset {
        self.until
    }

    /// How many offsets, which is at least how many records.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.until.0.abs_diff(self.from.0)
    }

    /// Whether it takes nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.from.0 == self.until.0
    }

    /// Whether `offset` lies in it.
    #[must_use]
    pub const fn contains(self, offset: Offset) -> bool {
        self.from.0 <= offset.0 && offset.0 < self.until.0
    }
}

/// A range with the partition it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRange {
    /// Where.
    pub partition: TopicPartition,
    /// Which offsets.
    pub range: OffsetRange,
}

/// Offsets that were planned to be read but no longer exist: lost, unless somebody kept a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where, and which offsets.
    pub lost: PartitionRange,
    /// Why, in words for the log.
    pub reason: String,
}

/// One offset per partition: where to go on, where a batch ends, where a topic ends.
///
/// Its JSON is Spark's, `{"topic":{"0":12}}`, here always in order of topic and partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct PartitionOffsets(BTreeMap<String, BTreeMap<i32, Offset>>);

/// Offsets as JSON has them: keys are text. Only `serde_json`'s own reader takes numbers out of it; inside a tagged or
/// flattened message nobody would.
type Written = BTreeMap<String, BTreeMap<String, i64>>;

impl TryFrom<Written> for PartitionOffsets {
    type Error = Error;

    fn try_from(topics: Written) -> Result<Self> {
        let refuse = |reason: String| Error::OffsetsJson { reason };
        let mut offsets = Self::new();
        for (topic, partitions) in topics {
            for (partition, offset) in partitions {
                let number: i32 = partition
                    .parse()
                    .ok()
                    .filter(|number| *number >= 0)
                    .ok_or_else(|| {
                        refuse(format!(
                            "`{partition}` of topic `{topic}` is not a partition number"
                        ))
                    })?;
                if offset < Offset::EARLIEST.0 {
                    return Err(refuse(format!(
                        "offset {offset} of {topic}-{number} is negative; -1 means latest, -2 earliest"
                    )));
                }
                offsets.set(TopicPartition::new(topic.as_str(), number), Offset(offset));
            }
        }
        Ok(offsets)
    }
}

impl PartitionOffsets {
    /// No partition at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads Spark's JSON. Negative offsets other than -1 (latest) and -2 (earliest) are refused.
    ///
    /// # Errors
    /// [`Error::OffsetsJson`] naming what is wrong, the partition where there is one.
    pub fn from_json(text: &str) -> Result<Self> {
        let written: Written = serde_json::from_str(text).map_err(|error| Error::OffsetsJson {
            reason: error.to_string(),
        })?;
        written.try_into()
    }

    /// Compact JSON in Spark's form.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a map with string and integer keys always serialises")
    }

    /// The offset of one partition.
    #[must_use]
    pub fn get(&self, topic: &str, partition: i32) -> Option<Offset> {
        self.0.get(topic)?.get(&partition).copied()
    }

    /// The offset of one partition.
    #[must_use]
    pub fn of(&self, partition: &TopicPartition) -> Option<Offset> {
        self.get(&partition.topic, partition.partition)
    }

    /// Sets one partition's offset.
    pub fn set(&mut self, partition: TopicPartition, offset: Offset) {
        self.0
            .entry(partition.topic)
            .or_default()
            .insert(partition.partition, offset);
    }

    /// Drops one partition.
    pub fn remove(&mut self, partition: &TopicPartition) -> Option<Offset> {
        let partitions = self.0.get_mut(&partition.topic)?;
        let removed = partitions.remove(&partition.partition);
        if partitions.is_empty() {
            self.0.remove(&partition.topic);
        }
        removed
    }

    /// All partitions in order.
    pub fn iter(&self) -> impl Iterator<Item = (TopicPartition, Offset)> + '_ {
        self.0.iter().flat_map(|(topic, partitions)| {
            partitions
                .iter()
                .map(move |(&partition, &offset)| (TopicPartition::new(topic.as_str(), partition), offset))
        })
    }

    /// How many partitions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Whether there is no partition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What lies between this position and `until`, empty ranges left out, in order of partition.
    ///
    /// # Errors
    /// [`Error::EndBeforeStart`] if `until` lacks one of this position's partitions or lies before it. A partition
    /// that only `until` has is refused too: its start must be decided, not guessed.
    pub fn ranges_until(&self, until: &Self) -> Result<Vec<PartitionRange>> {
        if let Some((stray, end)) = until.iter().find(|(partition, _)| self.of(partition).is_none()) {
            return Err(Error::EndBeforeStart {
                topic: stray.topic,
                partition: stray.partition,
                from: -1,
                until: format!("{end} without a start"),
            });
        }
        let mut ranges = Vec::new();
        for (partition, from) in self.iter() {
            let end = until.of(&partition);
            let Some(range) = end.and_then(|end| OffsetRange::new(from, end).ok()) else {
                return Err(Error::EndBeforeStart {
                    topic: partition.topic,
                    partition: partition.partition,
                    from: from.0,
                    until: end.map_or_else(|| "missing".to_owned(), |end| end.to_string()),
                });
            };
            if !range.is_empty() {
                ranges.push(PartitionRange { partition, range });
            }
        }
        Ok(ranges)
    }

    /// How far this position is behind `latest`, per partition; a partition that is ahead counts as 0, one that this
    /// position lacks is left out.
    #[must_use]
    pub fn lag_behind(&self, latest: &Self) -> Self {
        let mut lag = Self::new();
        for (partition, at) in self.iter() {
            if let Some(end) = latest.of(&partition) {
                lag.set(partition, Offset((end.0 - at.0).max(0)));
            }
        }
        lag
    }
}

impl FromIterator<(TopicPartition, Offset)> for PartitionOffsets {
    fn from_iter<I: IntoIterator<Item = (TopicPartition, Offset)>>(iter: I) -> Self {
        let mut offsets = Self::new();
        for (partition, offset) in iter {
            offsets.set(partition, offset);
        }
        offsets
    }
}

impl fmt::Display for PartitionOffsets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

#[cfg(test)]
mod tests;
