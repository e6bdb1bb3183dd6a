//! Where a position is to be moved: to the end of a batch, or to offsets.
//!
//! Pure: what the log says and what was asked for make the new position, nothing is looked up elsewhere. That is why
//! `-1` and `-2`, which only Kafka could resolve, are refused.

use baton_core::{BatchId, Offset, Position, SourceName, TopicPartition};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use super::RepairError;
use crate::protocol::{Body, Record};

/// Where a checkpoint is to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RewindTo {
    /// Where this batch ended: everything that was read after it is read again, and it is not.
    AfterBatch(BatchId),
    /// At these offsets; partitions that are not named stay.
    Offsets(Offsets),
}

/// Offsets as somebody named them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offsets(Vec<Named>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    /// Absent in Spark's form.
    source: Option<String>,
    partition: TopicPartition,
    offset: Offset,
}

type Result<T> = std::result::Result<T, RepairError>;

fn refuse<T>(reason: impl Into<String>) -> Result<T> {
    Err(RepairError::Offsets {
        reason: reason.into(),
    })
}

impl RewindTo {
    /// Reads offsets in Spark's form, `{"topic":{"0":4000}}`, or with the source's name around them,
    /// `{"messages":{"topic":{"0":4000}}}`, as `status` prints them.
    ///
    /// ```
    /// use baton_checkpoint::RewindTo;
    /// assert!(RewindTo::offsets(r#"{"t":{"0":4000}}"#).is_ok());
    /// assert!(RewindTo::offsets(r#"{"t":{"0":-2}}"#).is_err());
    /// ```
    ///
    /// # Errors
    /// [`RepairError::Offsets`] for anything else, and for `-1` and `-2`.
    pub fn offsets(json: &str) -> Result<Self> {
        const FORM: &str = r#"write {"topic":{"0":4000}}, or {"source":{"topic":{"0":4000}}}"#;
        let node: Node = match serde_json::from_str(json) {
            Ok(node) => node,
            Err(error) => return refuse(format!("they are no JSON ({error}); {FORM}")),
        };
        let Node::Object(entries) = node else {
            return refuse(format!("they are {node}; {FORM}"));
        };
        let mut named = Vec::new();
        for (name, inner) in entries {
            let Node::Object(inner) = inner else {
                return refuse(format!("`{name}` has {inner}; {FORM}"));
            };
            let is_source = inner.iter().any(|(_, node)| matches!(node, Node::Object(_)));
            if is_source {
                for (topic, partitions) in inner {
                    let Node::Object(partitions) = partitions else {
                        return refuse(format!("`{topic}` of source `{name}` has {partitions}; {FORM}"));
                    };
                    take(&mut named, Some(&name), &topic, partitions)?;
                }
            } else {
                take(&mut named, None, &name, inner)?;
            }
        }
        if named.is_empty() {
            return refuse(format!("they name no partition; {FORM}"));
        }
        Ok(Self::Offsets(Offsets(named)))
    }

    /// The whole position that this means for a checkpoint whose log has these records and stands at `next`.
    pub(super) fn resolve(
        &self,
        path: &Path,
        records: &[Record],
        next: &Position,
        committed: Option<BatchId>,
    ) -> Result<Position> {
        match self {
            Self::AfterBatch(batch) => after_batch(path, records, next, committed, *batch),
            Self::Offsets(offsets) => offsets.over(next),
        }
    }
}

fn take(
    named: &mut Vec<Named>,
    source: Option<&str>,
    topic: &str,
    partitions: Vec<(String, Node)>,
) -> Result<()> {
    for (text, node) in partitions {
        let number = text.parse().ok().filter(|number: &i32| *number >= 0);
        let Some(number) = number.filter(|number| number.to_string() == text) else {
            return refuse(format!("`{text}` of topic `{topic}` is no partition number"));
        };
        let partition = TopicPartition::new(topic, number);
        let offset = match node {
            Node::Number(offset @ 0..) => Offset(offset),
            Node::Number(-1) => {
                return refuse(format!(
                    "-1 (latest) for {partition} is known only to Kafka, and nothing connects to it here; give the number"
                ));
            }
            Node::Number(-2) => {
                return refuse(format!(
                    "-2 (earliest) for {partition} is known only to Kafka, and nothing connects to it here; give the number"
                ));
            }
            Node::Number(offset) => return refuse(format!("{offset} for {partition} is below 0")),
            other => return refuse(format!("{partition} has {other}, not a whole number")),
        };
        named.push(Named {
            source: source.map(str::to_owned),
            partition,
            offset,
        });
    }
    Ok(())
}

impl Offsets {
    /// `next` with these offsets in it.
    fn over(&self, next: &Position) -> Result<Position> {
        let mut moved = next.clone();
        let mut seen = BTreeSet::new();
        for Named {
            source,
            partition,
            offset,
        } in &self.0
        {
            let source = find(next, source.as_deref(), partition)?;
            if !seen.insert((source.clone(), partition.clone())) {
                return refuse(format!("{partition} is named twice"));
            }
            if let Some(offsets) = moved.0.get_mut(&source) {
                offsets.set(partition.clone(), *offset);
            }
        }
        Ok(moved)
    }
}

/// The source that a partition belongs to.
fn find(next: &Position, source: Option<&str>, partition: &TopicPartition) -> Result<SourceName> {
    let mut having = next
        .0
        .iter()
        .filter(|(name, _)| source.is_none_or(|wanted| wanted == name.as_str()))
        .filter(|(_, offsets)| offsets.of(partition).is_some())
        .map(|(name, _)| name.clone());
    match (having.next(), having.next()) {
        (Some(only), None) => Ok(only),
        (Some(first), Some(second)) => refuse(format!(
            "{partition} is read by the sources `{first}` and `{second}`; say which: {{\"{first}\":{{\"{}\":{{…}}}}}}",
            partition.topic
        )),
        (None, _) => refuse(format!(
            "the checkpoint has no {partition}{}; it has {}",
            source.map_or_else(String::new, |source| format!(" of source `{source}`")),
            known(next)
        )),
    }
}

/// Every partition, cut short.
fn known(position: &Position) -> String {
    const MOST: usize = 12;
    let all: Vec<String> = position
        .0
        .iter()
        .flat_map(|(name, offsets)| offsets.iter().map(move |(at, _)| format!("{name}/{at}")))
        .collect();
    match all.len() {
        0 => "none".to_owned(),
        count if count > MOST => format!("{} and {} more", all[..MOST].join(", "), count - MOST),
        _ => all.join(", "),
    }
}

/// Where a batch ended. A partition that its plan does not know was first read later: it goes back to where that was.
fn after_batch(
    path: &Path,
    records: &[Record],
    next: &Position,
    committed: Option<BatchId>,
    batch: BatchId,
) -> Result<Position> {
    let ended = |number: BatchId| committed.is_some_and(|last| number <= last);
    let plans = || {
        records
            .iter()
            .enumerate()
            .filter_map(|(at, record)| match &record.body {
                Body::Plan { batch, until, .. } if ended(*batch) => Some((at, *batch, until)),
                _ => None,
            })
    };
    let Some((at, _, until)) = plans().find(|(_, found, _)| *found == batch) else {
        let kept = match (plans().next(), plans().next_back()) {
            (Some((_, first, _)), Some((_, last, _))) if first == last => {
                format!("it has batch {first} only")
            }
            (Some((_, first, _)), Some((_, last, _))) => format!("it has batches {first} to {last}"),
            _ => "it has no committed batch yet".to_owned(),
        };
        return Err(RepairError::NoSuchBatch {
            path: path.to_owned(),
            batch,
            kept,
        });
    };
    let later = &records[at + 1..];
    let mut moved = next.clone();
    for (source, offsets) in &mut moved.0 {
        let of = |position: &Position, partition: &TopicPartition| position.source(source)?.of(partition);
        let partitions: Vec<TopicPartition> = offsets.iter().map(|(partition, _)| partition).collect();
        for partition in partitions {
            let first_read = || {
                later.iter().find_map(|record| match &record.body {
                    Body::Plan { from, .. } => of(from, &partition),
                    Body::Position { next, .. } => of(next, &partition),
                    _ => None,
                })
            };
            if let Some(offset) = of(until, &partition).or_else(first_read) {
                offsets.set(partition, offset);
            }
        }
    }
    Ok(moved)
}

/// JSON as far as offsets need it. Keys that stand twice are kept, so that they are found.
#[derive(Debug)]
enum Node {
    Number(i64),
    Object(Vec<(String, Self)>),
    Other(&'static str),
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "the number {number}"),
            Self::Object(_) => f.write_str("an object"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("offsets")
            }
            fn visit_i64<E>(self, number: i64) -> std::result::Result<Node, E> {
                Ok(Node::Number(number))
            }
            fn visit_u64<E>(self, number: u64) -> std::result::Result<Node, E> {
                Ok(i64::try_from(number).map_or(Node::Other("a number beyond all offsets"), Node::Number))
            }
            fn visit_f64<E>(self, _: f64) -> std::result::Result<Node, E> {
                Ok(Node::Other("a number that is not whole"))
            }
            fn visit_bool<E>(self, _: bool) -> std::result::Result<Node, E> {
                Ok(Node::Other("true or false"))
            }
            fn visit_str<E>(self, _: &str) -> std::result::Result<Node, E> {
                Ok(Node::Other("a text"))
            }
            fn visit_unit<E>(self) -> std::result::Result<Node, E> {
                Ok(Node::Other("null"))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Node, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Node::Other("a list"))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Node, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Node::Object(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests;
