//! The seam between the engine and whatever rows come from.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::stream::BoxStream;
use std::time::Duration;

use crate::{CheckpointId, Fault, Gap, OptionMap, PartitionOffsets, PartitionRange, SourceName};

/// Record batches of one batch's read. Dropping it ends the read.
pub type BatchStream = BoxStream<'static, Result<RecordBatch, Fault>>;

/// A factory that users name with `format = "…"`.
pub trait SourceFormat: Send + Sync {
    /// The name in job files, `kafka`.
    fn name(&self) -> &'static str;

    /// Reads the options. Pure and offline: everything that can be refused without a connection is refused here.
    ///
    /// # Errors
    /// Of kind `Invalid`, naming the option.
    fn source(&self, context: &SourceContext, options: OptionMap) -> Result<Box<dyn Source>, Fault>;
}

/// What a source is told about the query it belongs to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceContext {
    /// The source's name in SQL.
    pub name: SourceName,
    /// The query's name, for client ids.
    pub job: String,
}

impl SourceContext {
    /// Names source and query.
    #[must_use]
    pub const fn new(name: SourceName, job: String) -> Self {
        Self { name, job }
    }
}

/// What [`Source::open`] is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenContext {
    /// How long an unreachable server may be waited for.
    pub start_timeout: Duration,
    /// How many streams [`Source::read`] will be asked for, at most.
    pub streams: usize,
}

impl OpenContext {
    /// Bounds the wait and the parallelism.
    #[must_use]
    pub const fn new(start_timeout: Duration, streams: usize) -> Self {
        Self {
            start_timeout,
            streams,
        }
    }
}

/// Who asks for a source's outside name (Kafka: the consumer group).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claimant {
    /// The checkpoint that claims.
    pub checkpoint: CheckpointId,
    /// Its query's name.
    pub job: String,
    /// Whether a claim of another checkpoint is to be overruled (`--claim-group`).
    pub overrule: bool,
}

impl Claimant {
    /// Names the claimant.
    #[must_use]
    pub const fn new(checkpoint: CheckpointId, job: String, overrule: bool) -> Self {
        Self {
            checkpoint,
            job,
            overrule,
        }
    }
}

/// How much a batch may take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Admission {
    /// Ignore the source's own limits (Spark's `Trigger.Once`).
    pub unlimited: bool,
    /// Never beyond this position (`availableNow`'s frozen end). Partitions it lacks are not read.
    pub cap: Option<PartitionOffsets>,
}

/// What one batch may take from one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourcePlan {
    /// The position asked from, plus the starts of partitions seen for the first time, minus lost records.
    pub from: PartitionOffsets,
    /// Where the batch ends; the same partitions as `from`.
    pub until: PartitionOffsets,
    /// Where the partitions ended when the plan was made.
    pub latest: PartitionOffsets,
    /// Records between the position asked from and `from` that no longer exist.
    pub gaps: Vec<Gap>,
}

/// A replayable source: a planned range of offsets read twice gives the same rows.
///
/// Life cycle: made by [`SourceFormat::source`] (offline) → [`Source::open`] → any of the others, by one owner.
/// All calls but `read`'s streams are bounded in time by the implementor. A passing failure is of kind `Unavailable`
/// and may be tried again; the engine does, visibly.
#[async_trait]
pub trait Source: Send + Sync {
    /// The rows' columns.
    fn schema(&self) -> SchemaRef;

    /// As in Spark's progress: `KafkaV2[Subscribe[t]]`.
    fn description(&self) -> String;

    /// What the user should know before the first batch (ignored, differing from Spark).
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }

    /// Connects and checks that everything named exists. Changes nothing outside.
    async fn open(&self, context: &OpenContext) -> Result<(), Fault>;

    /// Resolves the user's starting offsets to a position. Called once in a checkpoint's life, before the first read.
    async fn start(&self) -> Result<PartitionOffsets, Fault>;

    /// Claims the outside name that stands for one owner, where the user gave one (Kafka: `kafka.group.id`).
    ///
    /// # Errors
    /// Of kind `Held`, if another checkpoint has it.
    async fn claim(&self, claimant: &Claimant) -> Result<(), Fault>;

    /// Decides what one batch takes. An empty plan (`from == until`) means that there is nothing new.
    async fn plan(&self, from: &PartitionOffsets, admission: &Admission) -> Result<SourcePlan, Fault>;

    /// Makes ready to read from about here: connections, assignments, prefetch. A hint; a wrong one costs time only.
    async fn warm(&self, at: &PartitionOffsets);

    /// Reads exactly these ranges, as at most `streams` streams that may be polled in any order and in parallel.
    /// Each record of the ranges that exists is delivered once; records of one partition come in order of offset.
    ///
    /// # Errors
    /// When the client cannot be made; what happens later, a stream says.
    fn read(&self, ranges: &[PartitionRange], streams: usize) -> Result<Vec<BatchStream>, Fault>;

    /// Tells the outside (Kafka: the consumer group) that everything before `until` is done. The checkpoint, not the
    /// outside, is what the query goes on from; a failure is worth a warning, not a failed batch.
    ///
    /// # Errors
    /// Of kind `Held`, if another checkpoint has claimed the name since: that ends the query.
    async fn publish(&self, claimant: &Claimant, until: &PartitionOffsets) -> Result<(), Fault>;
}
