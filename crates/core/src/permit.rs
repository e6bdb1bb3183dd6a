//! The right to publish one batch.

use crate::{BatchId, CheckpointId, Epoch, WriteId};

/// The right to publish one batch once, shown to [`Sink::commit`](crate::Sink::commit).
///
/// It is a value without `Clone`, consumed by the commit: no permit, no publication, and one permit publishes once.
/// The checkpoint's ownership protocol alone issues it, after the batch's plan is durable and the owner has looked that
/// it still is the owner.
#[derive(Debug)]
#[must_use = "a permit that is not used leaves its batch unpublished"]
pub struct CommitPermit {
    checkpoint: CheckpointId,
    batch: BatchId,
    epoch: Epoch,
    plan: WriteId,
}

impl CommitPermit {
    /// Issues a permit. Only `baton_checkpoint::protocol` may call this; `clippy.toml` forbids it elsewhere.
    pub const fn issue(checkpoint: CheckpointId, batch: BatchId, epoch: Epoch, plan: WriteId) -> Self {
        Self {
            checkpoint,
            batch,
            epoch,
            plan,
        }
    }

    /// The checkpoint whose batch it is: with the batch id, a key that never repeats.
    #[must_use]
    pub const fn checkpoint(&self) -> CheckpointId {
        self.checkpoint
    }

    /// The batch that may be published.
    #[must_use]
    pub const fn batch(&self) -> BatchId {
        self.batch
    }

    /// The fencing token. A sink that has seen a higher one must refuse.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The write id of the batch's plan, which a marker carries so that recovery can tell this attempt's output.
    #[must_use]
    pub const fn plan(&self) -> WriteId {
        self.plan
    }
}
