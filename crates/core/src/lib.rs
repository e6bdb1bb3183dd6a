//! The vocabulary and the seams of Baton.
//!
//! Every other crate speaks in these words: a [`Position`] says where each source goes on, an [`OffsetRange`] is what
//! one batch takes from one partition, a [`Source`] turns planned ranges into Arrow batches, a [`Sink`] publishes them
//! when it is shown a [`CommitPermit`]. Nothing here does I/O, starts a runtime, or knows Kafka or SQL.
//!
//! ```
//! use baton_core::{Offset, PartitionOffsets};
//!
//! let from = PartitionOffsets::from_json(r#"{"test1":{"0":40,"1":7}}"#)?;
//! let until = PartitionOffsets::from_json(r#"{"test1":{"0":42,"1":7}}"#)?;
//! let ranges = from.ranges_until(&until)?;
//! assert_eq!(ranges.len(), 1, "partition 1 has no part in this batch");
//! assert_eq!(ranges[0].range.len(), 2);
//! # Ok::<(), baton_core::Error>(())
//! ```

mod clock;
mod error;
mod fault;
mod ids;
mod interval;
mod offsets;
mod options;
mod permit;
mod position;
mod rng;
mod secret;
mod sink;
mod source;

#[cfg(feature = "tokio")]
pub use clock::TokioClock;
pub use clock::{Clock, Timestamp};
pub use error::{Error, ErrorKind, Result};
pub use fault::Fault;
pub use ids::{BatchId, CheckpointId, Epoch, OwnerId, RunId, SourceName, WriteId};
pub use interval::parse_duration;
pub use offsets::{Gap, Offset, OffsetRange, PartitionOffsets, PartitionRange, TopicPartition};
pub use options::{OptionMap, nearest};
pub use permit::CommitPermit;
pub use position::Position;
pub use rng::Rng;
pub use secret::Secret;
pub use sink::{
    BatchContext, Guarantee, Marker, OutputMode, Receipt, Sink, SinkContext, SinkFormat, SinkRef,
};
pub use source::{
    Admission, BatchStream, Claimant, OpenContext, Source, SourceContext, SourceFormat, SourcePlan,
};

/// The Arrow crates whose types stand in this crate's public signatures.
pub mod arrow {
    pub use arrow_array as array;
    pub use arrow_schema as schema;
}
