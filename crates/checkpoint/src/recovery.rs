//! What an owner finds in the log, and what it writes there.

use baton_core::{BatchId, CheckpointId, Epoch, Position, SinkRef, Timestamp, WriteId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

use crate::{JobShape, OwnerInfo};

/// What a start finds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recovery {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Where the next *new* batch starts: behind the pending one, if there is one. `None` on a fresh checkpoint, where
    /// nothing has been resolved yet.
    pub next: Option<Position>,
    /// The last committed batch.
    pub last_committed: Option<BatchId>,
    /// When that was, by its owner's wall clock.
    pub last_commit_at: Option<Timestamp>,
    /// A batch that is planned and not committed: it is adopted or run again, with the same range.
    pub pending: Option<Planned>,
    /// The job that owned the checkpoint last.
    pub shape: Option<JobShape>,
    /// The owner that handed over to this one.
    pub handed_over_by: Option<HandedOverBy>,
}

/// The owner before, where it handed over to this one by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandedOverBy {
    /// Who.
    pub owner: OwnerInfo,
    /// The last batch committed, by whomever.
    pub last_batch: Option<BatchId>,
    /// When.
    pub committed_at: Option<Timestamp>,
    /// The median time between the commits before that, as far as the log still has them.
    pub median_interval: Option<Duration>,
}

/// A batch that is in the log and not committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Planned {
    /// Which batch.
    pub batch: BatchId,
    /// Where it starts.
    pub from: Position,
    /// Where it ends.
    pub until: Position,
    /// Where its sink keeps its own record.
    pub sink: SinkRef,
    /// Names this plan; a sink's marker carries it.
    pub write_id: WriteId,
    /// The epoch that planned it.
    pub epoch: Epoch,
}

/// A batch that is to be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanDraft {
    /// Where it starts.
    pub from: Position,
    /// Where it ends.
    pub until: Position,
    /// Where its sink keeps its own record.
    pub sink: SinkRef,
}

/// Why a position is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PositionReason {
    /// The user's starting offsets were resolved.
    Start,
    /// Somebody moved the position.
    Rewind,
    /// Records are lost.
    Gap,
    /// Taken over from another system.
    Import,
    /// Given to another system.
    Export,
}

impl fmt::Display for PositionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Rewind => "rewind",
            Self::Gap => "gap",
            Self::Import => "import",
            Self::Export => "export",
        })
    }
}

/// How to go on from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Resume {
    /// Nothing is pending.
    Idle,
    /// Run the batch again, with the same range.
    Rerun(Planned),
    /// The batch is published already: commit it, do not repeat its output.
    Adopt(Planned),
}
