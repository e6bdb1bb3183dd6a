//! The records of the log.

use baton_core::{BatchId, Epoch, OwnerId, Position, Receipt, SinkRef, Timestamp, WriteId};
use serde::{Deserialize, Serialize};

use crate::{HandOver, JobShape, PositionReason};

/// One record of the log. Several may share one slot; a slot is written once, as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The slot.
    pub seq: u64,
    /// The epoch of its writer.
    pub epoch: Epoch,
    /// Names this attempt to write it.
    pub write_id: WriteId,
    /// Its writer.
    pub owner: OwnerId,
    /// When, by the writer's wall clock: for people, never for decisions that matter.
    pub at: Timestamp,
    /// The version of the writer's job.
    pub version: String,
    /// What it says.
    pub body: Body,
    /// What the hand-over before it cost, beside a new owner's first commit: for people.
    pub handover: Option<HandOver>,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// A new owner: nothing of an older epoch comes after it.
    Fence {
        /// Why the checkpoint could be claimed.
        reason: FenceReason,
        /// The owner's machine.
        host: String,
        /// The owner's process.
        pid: u32,
        /// The version that was replaced by a take-over or by force: it does not take over in return.
        replaces: Option<String>,
        /// What the job is.
        shape: JobShape,
    },
    /// Where the next batch starts, if not where the last one ended.
    Position {
        /// Where.
        next: Position,
        /// Why.
        reason: PositionReason,
    },
    /// A batch is about to run.
    Plan {
        /// Which.
        batch: BatchId,
        /// Where it starts.
        from: Position,
        /// Where it ends.
        until: Position,
        /// Where its sink keeps its own record.
        sink: SinkRef,
    },
    /// A batch is published.
    Commit {
        /// Which.
        batch: BatchId,
        /// The plan's write id.
        plan: WriteId,
        /// What the sink said.
        receipt: Receipt,
    },
    /// The owner is done; nothing is pending.
    Release {
        /// The last committed batch.
        after: Option<BatchId>,
        /// Where the next batch starts.
        next: Option<Position>,
        /// Who asked for the checkpoint.
        successor: Option<OwnerId>,
    },
}

/// Why a checkpoint could be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FenceReason {
    /// Nobody had it before.
    Fresh,
    /// The owner before released it.
    Released,
    /// The owner before ended without releasing.
    Expired,
    /// The owner before was ended.
    Forced,
    /// The owner before takes it back from a successor that failed.
    Reclaim,
}

impl FenceReason {
    /// In JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Forced => "forced",
            Self::Reclaim => "reclaim",
        }
    }
}

impl Body {
    /// `fence`, `position`, `plan`, `commit` or `release`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Fence { .. } => "fence",
            Self::Position { .. } => "position",
            Self::Plan { .. } => "plan",
            Self::Commit { .. } => "commit",
            Self::Release { .. } => "release",
        }
    }
}
