//! Format version 1 of a slot.
//!
//! ```text
//! slot   = version u8 (1) · count u8 · record × count            key = slot number, u64 big-endian
//! record = length u32 LE · crc32c u32 LE · message (protobuf)
//! crc32c over key · version · count · index of the record u8 · message
//! ```
//! The checksum covers the key and the number of records, so that a slot that was cut between two records, or that
//! stands under another's key, is found.

use baton_core::{
    BatchId, Epoch, Offset, OutputMode, OwnerId, PartitionOffsets, Position, Receipt, SinkRef, SourceName,
    Timestamp, TopicPartition, WriteId,
};
use prost::Message;
use uuid::Uuid;

use super::CodecError;
use crate::protocol::{Body, FenceReason, Record};
use crate::{HandOver, JobShape, PositionReason};

/// The version written here.
pub const FORMAT: u8 = 1;

const HEADER: usize = 2;
const FRAME: usize = 8;

/// Encodes the records of one slot.
///
/// # Panics
/// Never in practice: a slot has at most a handful of records.
#[must_use]
pub fn encode_slot(seq: u64, records: &[Record]) -> Vec<u8> {
    let count = u8::try_from(records.len()).expect("a slot has at most a handful of records");
    let mut bytes = vec![FORMAT, count];
    for (index, record) in (0..count).zip(records) {
        let message = wire::Record::from(record).encode_to_vec();
        let length = u32::try_from(message.len()).expect("a record is far below 4 GiB");
        bytes.extend(length.to_le_bytes());
        bytes.extend(checksum(seq, count, index, &message).to_le_bytes());
        bytes.extend(message);
    }
    bytes
}

/// Decodes the slot `seq`.
///
/// # Errors
/// [`CodecError::Newer`] for another version, [`CodecError::Damaged`] for anything that was not written as it stands.
pub fn decode_slot(seq: u64, bytes: &[u8]) -> Result<Vec<Record>, CodecError> {
    let damaged = |reason: &str| CodecError::Damaged(reason.to_owned());
    let [version, count, rest @ ..] = bytes else {
        return Err(damaged(if bytes.is_empty() {
            "it is empty"
        } else {
            "it is cut off"
        }));
    };
    if *version > FORMAT {
        return Err(CodecError::Newer(*version));
    }
    if *version != FORMAT || *count == 0 {
        return Err(damaged("its header is not one"));
    }
    let mut rest = rest;
    let mut records = Vec::with_capacity(usize::from(*count));
    for index in 0..*count {
        let Some((frame, behind)) = rest.split_at_checked(FRAME) else {
            return Err(damaged("it is cut off"));
        };
        let word = |at: usize| {
            frame[at..at + 4]
                .try_into()
                .map(u32::from_le_bytes)
                .unwrap_or_default()
        };
        let length = usize::try_from(word(0)).unwrap_or(usize::MAX);
        let Some((message, behind)) = behind.split_at_checked(length) else {
            return Err(damaged("it is cut off"));
        };
        if checksum(seq, *count, index, message) != word(4) {
            return Err(damaged("its checksum does not match"));
        }
        let record = wire::Record::decode(message).map_err(|error| CodecError::Damaged(error.to_string()))?;
        records.push(domain(seq, record)?);
        rest = behind;
    }
    if rest.is_empty() {
        Ok(records)
    } else {
        Err(damaged("something stands behind its end"))
    }
}

fn checksum(seq: u64, count: u8, index: u8, message: &[u8]) -> u32 {
    let mut prefix = [0; 8 + HEADER + 1];
    prefix[..8].copy_from_slice(&seq.to_be_bytes());
    prefix[8..].copy_from_slice(&[FORMAT, count, index]);
    crc32c::crc32c_append(crc32c::crc32c(&prefix), message)
}

/// The protobuf messages. Field numbers are for ever.
mod wire {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Record {
        #[prost(uint64, tag = "1")]
        pub(super) epoch: u64,
        #[prost(bytes = "vec", tag = "2")]
        pub(super) write_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "3")]
        pub(super) owner: Vec<u8>,
        #[prost(sint64, tag = "4")]
        pub(super) at_ms: i64,
        #[prost(string, tag = "5")]
        pub(super) version: String,
        #[prost(message, optional, tag = "6")]
        pub(super) handover: Option<HandOver>,
        #[prost(oneof = "Body", tags = "10, 11, 12, 13, 14")]
        pub(super) body: Option<Body>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct HandOver {
        #[prost(string, tag = "1")]
        pub(super) from: String,
        #[prost(string, tag = "2")]
        pub(super) to: String,
        #[prost(uint64, optional, tag = "3")]
        pub(super) last_batch: Option<u64>,
        #[prost(uint64, tag = "4")]
        pub(super) first_batch: u64,
        #[prost(uint64, tag = "5")]
        pub(super) commit_gap_ms: u64,
        #[prost(uint64, tag = "6")]
        pub(super) excess_gap_ms: u64,
        #[prost(uint64, optional, tag = "7")]
        pub(super) max_delay_ms: Option<u64>,
    }

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(super) enum Body {
        #[prost(message, tag = "10")]
        Fence(Fence),
        #[prost(message, tag = "11")]
        Position(Moved),
        #[prost(message, tag = "12")]
        Plan(Plan),
        #[prost(message, tag = "13")]
        Commit(Commit),
        #[prost(message, tag = "14")]
        Release(Release),
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Fence {
        #[prost(uint32, tag = "1")]
        pub(super) reason: u32,
        #[prost(string, tag = "2")]
        pub(super) host: String,
        #[prost(uint32, tag = "3")]
        pub(super) pid: u32,
        #[prost(string, optional, tag = "4")]
        pub(super) replaces: Option<String>,
        #[prost(message, required, tag = "5")]
        pub(super) shape: Shape,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Shape {
        #[prost(string, tag = "1")]
        pub(super) job: String,
        #[prost(message, repeated, tag = "2")]
        pub(super) sources: Vec<Described>,
        #[prost(string, tag = "3")]
        pub(super) sql: String,
        #[prost(string, repeated, tag = "4")]
        pub(super) schema: Vec<String>,
        #[prost(string, tag = "5")]
        pub(super) sink: String,
        #[prost(uint32, tag = "6")]
        pub(super) output_mode: u32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Described {
        #[prost(string, tag = "1")]
        pub(super) name: String,
        #[prost(string, tag = "2")]
        pub(super) description: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Moved {
        #[prost(message, required, tag = "1")]
        pub(super) next: Position,
        #[prost(uint32, tag = "2")]
        pub(super) reason: u32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Plan {
        #[prost(uint64, tag = "1")]
        pub(super) batch: u64,
        #[prost(message, required, tag = "2")]
        pub(super) from: Position,
        #[prost(message, required, tag = "3")]
        pub(super) until: Position,
        #[prost(string, tag = "4")]
        pub(super) sink: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Commit {
        #[prost(uint64, tag = "1")]
        pub(super) batch: u64,
        #[prost(bytes = "vec", tag = "2")]
        pub(super) plan: Vec<u8>,
        #[prost(uint64, tag = "3")]
        pub(super) rows: u64,
        #[prost(string, tag = "4")]
        pub(super) note: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Release {
        #[prost(uint64, optional, tag = "1")]
        pub(super) after: Option<u64>,
        #[prost(message, optional, tag = "2")]
        pub(super) next: Option<Position>,
        #[prost(bytes = "vec", optional, tag = "3")]
        pub(super) successor: Option<Vec<u8>>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Position {
        #[prost(message, repeated, tag = "1")]
        pub(super) sources: Vec<Source>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Source {
        #[prost(string, tag = "1")]
        pub(super) name: String,
        #[prost(message, repeated, tag = "2")]
        pub(super) topics: Vec<Topic>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Topic {
        #[prost(string, tag = "1")]
        pub(super) name: String,
        /// One offset per partition, in the same order.
        #[prost(int32, repeated, tag = "2")]
        pub(super) partitions: Vec<i32>,
        #[prost(sint64, repeated, tag = "3")]
        pub(super) offsets: Vec<i64>,
    }
}

impl From<&Record> for wire::Record {
    fn from(record: &Record) -> Self {
        let body = match &record.body {
            Body::Fence {
                reason,
                host,
                pid,
                replaces,
                shape,
            } => wire::Body::Fence(wire::Fence {
                reason: reason_code(*reason),
                host: host.clone(),
                pid: *pid,
                replaces: replaces.clone(),
                shape: shape.into(),
            }),
            Body::Position { next, reason } => wire::Body::Position(wire::Moved {
                next: next.into(),
                reason: position_code(*reason),
            }),
            Body::Plan {
                batch,
                from,
                until,
                sink,
            } => wire::Body::Plan(wire::Plan {
                batch: batch.0,
                from: from.into(),
                until: until.into(),
                sink: sink.0.clone(),
            }),
            Body::Commit { batch, plan, receipt } => wire::Body::Commit(wire::Commit {
                batch: batch.0,
                plan: plan.0.as_bytes().to_vec(),
                rows: receipt.rows,
                note: receipt.note.clone(),
            }),
            Body::Release {
                after,
                next,
                successor,
            } => wire::Body::Release(wire::Release {
                after: after.map(|batch| batch.0),
                next: next.as_ref().map(Into::into),
                successor: successor.map(|id| id.0.as_bytes().to_vec()),
            }),
        };
        Self {
            epoch: record.epoch.0,
            write_id: record.write_id.0.as_bytes().to_vec(),
            owner: record.owner.0.as_bytes().to_vec(),
            at_ms: record.at.0,
            version: record.version.clone(),
            handover: record.handover.as_ref().map(Into::into),
            body: Some(body),
        }
    }
}

impl From<&HandOver> for wire::HandOver {
    fn from(of: &HandOver) -> Self {
        Self {
            from: of.from.clone(),
            to: of.to.clone(),
            last_batch: of.last_batch,
            first_batch: of.first_batch,
            commit_gap_ms: of.commit_gap,
            excess_gap_ms: of.excess_gap,
            max_delay_ms: of.max_delay,
        }
    }
}

impl From<wire::HandOver> for HandOver {
    fn from(of: wire::HandOver) -> Self {
        Self {
            from: of.from,
            to: of.to,
            last_batch: of.last_batch,
            first_batch: of.first_batch,
            commit_gap: of.commit_gap_ms,
            excess_gap: of.excess_gap_ms,
            max_delay: of.max_delay_ms,
        }
    }
}

impl From<&JobShape> for wire::Shape {
    fn from(shape: &JobShape) -> Self {
        Self {
            job: shape.job.clone(),
            sources: shape
                .sources
                .iter()
                .map(|(name, description)| wire::Described {
                    name: name.to_string(),
                    description: description.clone(),
                })
                .collect(),
            sql: shape.sql.clone(),
            schema: shape.schema.clone(),
            sink: shape.sink.clone(),
            output_mode: match shape.output_mode {
                OutputMode::Append => 0,
                OutputMode::Update => 1,
                OutputMode::Complete => 2,
            },
        }
    }
}

impl From<&Position> for wire::Position {
    fn from(position: &Position) -> Self {
        let source = |(name, offsets): (&SourceName, &PartitionOffsets)| {
            let mut topics: Vec<wire::Topic> = Vec::new();
            for (partition, offset) in offsets.iter() {
                if topics.last().is_none_or(|topic| topic.name != partition.topic) {
                    topics.push(wire::Topic {
                        name: partition.topic,
                        ..wire::Topic::default()
                    });
                }
                if let Some(topic) = topics.last_mut() {
                    topic.partitions.push(partition.partition);
                    topic.offsets.push(offset.0);
                }
            }
            wire::Source {
                name: name.to_string(),
                topics,
            }
        };
        Self {
            sources: position.0.iter().map(source).collect(),
        }
    }
}

fn domain(seq: u64, record: wire::Record) -> Result<Record, CodecError> {
    let body = record.body.ok_or_else(|| unknown("kind of record"))?;
    let body = match body {
        wire::Body::Fence(fence) => Body::Fence {
            reason: fence_reason(fence.reason)?,
            host: fence.host,
            pid: fence.pid,
            replaces: fence.replaces,
            shape: shape(fence.shape)?,
        },
        wire::Body::Position(moved) => Body::Position {
            next: position(moved.next)?,
            reason: position_reason(moved.reason)?,
        },
        wire::Body::Plan(plan) => Body::Plan {
            batch: BatchId(plan.batch),
            from: position(plan.from)?,
            until: position(plan.until)?,
            sink: SinkRef(plan.sink),
        },
        wire::Body::Commit(commit) => Body::Commit {
            batch: BatchId(commit.batch),
            plan: WriteId(uuid(&commit.plan)?),
            receipt: Receipt {
                rows: commit.rows,
                note: commit.note,
            },
        },
        wire::Body::Release(release) => Body::Release {
            after: release.after.map(BatchId),
            next: release.next.map(position).transpose()?,
            successor: release.successor.map(|id| uuid(&id).map(OwnerId)).transpose()?,
        },
    };
    Ok(Record {
        seq,
        epoch: Epoch(record.epoch),
        write_id: WriteId(uuid(&record.write_id)?),
        owner: OwnerId(uuid(&record.owner)?),
        at: Timestamp(record.at_ms),
        version: record.version,
        body,
        handover: record.handover.map(Into::into),
    })
}

fn unknown(what: &str) -> CodecError {
    CodecError::Damaged(format!("it has an unknown {what}"))
}

fn uuid(bytes: &[u8]) -> Result<Uuid, CodecError> {
    Uuid::from_slice(bytes).map_err(|_| unknown("id"))
}

fn source_name(name: &str) -> Result<SourceName, CodecError> {
    SourceName::new(name).map_err(|error| CodecError::Damaged(error.to_string()))
}

fn shape(shape: wire::Shape) -> Result<JobShape, CodecError> {
    let sources = shape.sources.into_iter();
    Ok(JobShape {
        job: shape.job,
        sources: sources
            .map(|source| Ok((source_name(&source.name)?, source.description)))
            .collect::<Result<_, CodecError>>()?,
        sql: shape.sql,
        schema: shape.schema,
        sink: shape.sink,
        output_mode: match shape.output_mode {
            0 => OutputMode::Append,
            1 => OutputMode::Update,
            2 => OutputMode::Complete,
            _ => return Err(unknown("output mode")),
        },
    })
}

fn position(position: wire::Position) -> Result<Position, CodecError> {
    let mut all = Position::default();
    for source in position.sources {
        let mut offsets = PartitionOffsets::new();
        for topic in source.topics {
            if topic.partitions.len() != topic.offsets.len() {
                return Err(CodecError::Damaged(
                    "it has partitions without offsets".to_owned(),
                ));
            }
            for (partition, offset) in topic.partitions.into_iter().zip(topic.offsets) {
                offsets.set(
                    TopicPartition::new(topic.name.as_str(), partition),
                    Offset(offset),
                );
            }
        }
        all.0.insert(source_name(&source.name)?, offsets);
    }
    Ok(all)
}

const fn reason_code(reason: FenceReason) -> u32 {
    match reason {
        FenceReason::Fresh => 0,
        FenceReason::Released => 1,
        FenceReason::Expired => 2,
        FenceReason::Forced => 3,
        FenceReason::Reclaim => 4,
    }
}

fn fence_reason(code: u32) -> Result<FenceReason, CodecError> {
    Ok(match code {
        0 => FenceReason::Fresh,
        1 => FenceReason::Released,
        2 => FenceReason::Expired,
        3 => FenceReason::Forced,
        4 => FenceReason::Reclaim,
        _ => return Err(unknown("fence reason")),
    })
}

const fn position_code(reason: PositionReason) -> u32 {
    match reason {
        PositionReason::Start => 0,
        PositionReason::Rewind => 1,
        PositionReason::Gap => 2,
        PositionReason::Import => 3,
        PositionReason::Export => 4,
    }
}

fn position_reason(code: u32) -> Result<PositionReason, CodecError> {
    Ok(match code {
        0 => PositionReason::Start,
        1 => PositionReason::Rewind,
        2 => PositionReason::Gap,
        3 => PositionReason::Import,
        4 => PositionReason::Export,
        _ => return Err(unknown("position reason")),
    })
}
