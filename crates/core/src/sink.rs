//! The seam between the engine and wherever rows go.

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

use crate::{BatchId, CheckpointId, CommitPermit, Epoch, Error, Fault, OptionMap, WriteId};

/// Spark's output modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputMode {
    /// Only new rows.
    #[default]
    Append,
    /// Rows that changed.
    Update,
    /// The whole result, each time.
    Complete,
}

impl FromStr for OutputMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.to_ascii_lowercase().as_str() {
            "append" => Ok(Self::Append),
            "update" => Ok(Self::Update),
            "complete" => Ok(Self::Complete),
            _ => Err(Error::InvalidOption {
                key: "outputMode".to_owned(),
                reason: format!("must be append, update or complete, not `{text}`"),
            }),
        }
    }
}

impl fmt::Display for OutputMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Append => "append",
            Self::Update => "update",
            Self::Complete => "complete",
        })
    }
}

/// A factory that users name with `format = "…"`.
pub trait SinkFormat: Send + Sync {
    /// The name in job files, `console`.
    fn name(&self) -> &'static str;

    /// Reads the options (`checkpointLocation` is already taken out). Pure and offline.
    ///
    /// # Errors
    /// Of kind `Invalid`, naming the option.
    fn sink(&self, options: OptionMap) -> Result<Box<dyn Sink>, Fault>;
}

/// Where a sink's own record of what it has published lies, kept in each plan; opaque to everybody else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SinkRef(pub String);

/// What a sink is told when it opens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SinkContext {
    /// The checkpoint that the sink's batches belong to.
    pub checkpoint: CheckpointId,
    /// The query's name.
    pub job: String,
}

impl SinkContext {
    /// Names checkpoint and query.
    #[must_use]
    pub const fn new(checkpoint: CheckpointId, job: String) -> Self {
        Self { checkpoint, job }
    }
}

/// What a sink promises about each batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guarantee {
    /// Each batch is published once; an owner of an older epoch is refused.
    ExactlyOnce,
    /// The one batch that a crash interrupted may be published again; the text says how, for the user.
    MayRepeat(&'static str),
}

/// What a sink itself knows of the last batch it published.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Marker {
    /// The sink keeps no such record; the log alone decides.
    Untracked,
    /// The sink keeps a record, and it is empty.
    Nothing,
    /// The last batch published.
    At {
        /// Which batch.
        batch: BatchId,
        /// By an owner of which epoch.
        epoch: Epoch,
        /// Under which plan.
        plan: WriteId,
    },
}

/// The batch that rows belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchContext {
    /// Its number.
    pub batch: BatchId,
    /// The owner's fencing token.
    pub epoch: Epoch,
}

impl BatchContext {
    /// Names batch and epoch.
    #[must_use]
    pub const fn new(batch: BatchId, epoch: Epoch) -> Self {
        Self { batch, epoch }
    }
}

/// What a sink says of a batch it has published; stored with the batch's commit record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Receipt {
    /// Rows published.
    pub rows: u64,
    /// Anything the sink wants to find again.
    pub note: String,
}

/// Publishes batches.
///
/// Life cycle: made by [`SinkFormat::sink`] (offline) → [`Sink::check`] (offline) → [`Sink::open`] →
/// [`Sink::fence`], [`Sink::last_committed`] → for each batch `begin`, `write`…, then `commit` or `abort`. One owner,
/// one batch at a time.
///
/// An implementor owes: nothing of a batch can be seen before `commit`; `commit` publishes all of it or nothing; after
/// `fence(e)` returns, no commit of an epoch before `e` can take effect (where [`Guarantee::ExactlyOnce`] is
/// promised); `abort` and a new `begin` are possible after any error but a `Fenced` one. Every call is bounded in time.
#[async_trait]
pub trait Sink: Send {
    /// As in Spark's progress.
    fn description(&self) -> String;

    /// What is promised. Said to the user at start where it is less than exactly once.
    fn guarantee(&self) -> Guarantee;

    /// Whether rows of this shape, in this mode, can be written. Offline.
    ///
    /// # Errors
    /// Of kind `Invalid`, naming the column or the mode.
    fn check(&self, schema: &Schema, mode: OutputMode) -> Result<(), Fault>;

    /// Connects. Publishes nothing, fences nobody: candidates do this while another owner works.
    async fn open(&mut self, context: &SinkContext) -> Result<SinkRef, Fault>;

    /// Shuts out every owner of an epoch before `epoch`. Called once the epoch's fence record is durable.
    async fn fence(&mut self, epoch: Epoch, at: &SinkRef) -> Result<(), Fault>;

    /// The last batch published, read after [`Sink::fence`].
    async fn last_committed(&mut self) -> Result<Marker, Fault>;

    /// Starts a batch.
    async fn begin(&mut self, batch: BatchContext) -> Result<(), Fault>;

    /// Takes rows of the batch.
    async fn write(&mut self, rows: RecordBatch) -> Result<(), Fault>;

    /// Publishes the batch.
    async fn commit(&mut self, permit: CommitPermit) -> Result<Receipt, Fault>;

    /// Throws away what was written since `begin`.
    async fn abort(&mut self) -> Result<(), Fault>;
}
