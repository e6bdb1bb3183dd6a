//! Reading planned ranges.
//!
//! [`Fetcher`] is the seam: librdkafka is its first implementation, measured at about two million rows a second on two
//! cores, of which its object per message is the larger part; a faster one takes its place without anything else
//! noticing.

mod budget;
mod lane;
mod librdkafka;
mod stream;

pub(crate) use librdkafka::Librdkafka;
pub use librdkafka::reader_settings;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use baton_core::{BatchStream, PartitionOffsets, PartitionRange};

use crate::Result;

/// Reads planned ranges, and reads ahead of them within a bound.
///
/// An implementor owes: every record of a range that exists is delivered once, in order of offset within its partition;
/// a stream ends when the ends of its ranges are reached, also when their last offsets hold no record (compaction,
/// control records, aborted transactions); what was fetched beyond an end is kept for the next range; memory is bounded
/// whatever the backlog and the number of partitions; a broker that goes away makes the stream fail within a bound, and
/// the next read goes on by itself.
#[async_trait]
pub(crate) trait Fetcher: Send + Sync {
    /// Makes ready to read from here. A partition that is being read, or that is about here already, is left alone.
    async fn warm(&self, at: &PartitionOffsets) -> Result<()>;

    /// Whether nothing has come in behind `at`, as far as can be told without asking a broker. `false` when unsure.
    fn is_quiet(&self, at: &PartitionOffsets) -> bool;

    /// Opens the ranges as at most `streams` streams.
    fn read(&self, ranges: &[PartitionRange], streams: usize, schema: &SchemaRef)
    -> Result<Vec<BatchStream>>;
}
