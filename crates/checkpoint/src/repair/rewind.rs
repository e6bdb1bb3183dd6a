//! Moving the position of a checkpoint that nobody owns.

use baton_core::{BatchId, CheckpointId, Epoch, OwnerId, Position};
use serde::Serialize;
use tokio::sync::mpsc;

use super::moves::{moves, total};
use super::quiet::{owned, quiet};
use super::{Move, RepairError, RewindTo};
use crate::lease::look;
use crate::{
    AcquireOptions, Candidate, Deps, Error, JobShape, Lease, Location, PositionReason, Result, acquire,
};

/// How the owner that moves a position calls itself, in its fence and beside its records.
const VERSION: &str = "baton checkpoint rewind";

/// What a rewind would do, and the means to do it. Serialises to the JSON of `baton checkpoint rewind`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Rewind {
    /// The location.
    pub checkpoint: String,
    /// Its id.
    pub checkpoint_id: CheckpointId,
    /// The last committed batch; it stays so.
    pub last_committed_batch: Option<BatchId>,
    /// The batch that starts at the new position. Numbers are never used again, whatever is read again.
    pub next_batch: BatchId,
    /// Where the next batch would start now.
    pub from: Position,
    /// Where it will start.
    pub to: Position,
    /// The partitions that move.
    pub partitions: Vec<Move>,
    /// How many offsets are read again, over all partitions.
    pub again: u64,
    /// How many offsets no batch will read, over all partitions.
    pub skipped: u64,
    #[serde(skip)]
    location: Location,
    #[serde(skip)]
    shape: JobShape,
}

/// Looks what it would mean to move a checkpoint's position; `None` if there is no checkpoint. Changes nothing.
///
/// # Errors
/// [`RepairError::Owned`] while somebody owns it, [`RepairError::Pending`] if a batch was interrupted, and what is wrong
/// with the target; of kind `Corrupt` if the log is damaged.
///
/// # Cancel safety
/// It changes nothing.
pub async fn rewind(location: &Location, to: &RewindTo, deps: &Deps) -> Result<Option<Rewind>> {
    let Some(directory) = quiet(location, deps, "rewind").await? else {
        return Ok(None);
    };
    let Some(look) = look(&directory).await? else {
        return Ok(None);
    };
    let path = location.path();
    let log = look.contents.log();
    if let Some(pending) = log.pending() {
        return Err(pending_batch(location, pending.batch));
    }
    let (Some(from), Some(shape)) = (log.next().cloned(), log.shape().cloned()) else {
        return Err(RepairError::NoPosition {
            path: path.to_owned(),
        }
        .into());
    };
    let committed = log.committed().map(|committed| committed.batch);
    let to = to.resolve(path, &look.contents.records, &from, committed)?;
    let partitions = moves(&from, &to);
    Ok(Some(Rewind {
        checkpoint: location.to_string(),
        checkpoint_id: look.marker.checkpoint_id,
        last_committed_batch: committed,
        next_batch: log.next_batch(),
        again: total(&partitions, |moved| moved.again),
        skipped: total(&partitions, |moved| moved.skipped),
        from,
        to,
        partitions,
        location: location.clone(),
        shape,
    }))
}

impl Rewind {
    /// Moves the position: as an owner with an epoch of its own, whose fence, position and release stay in the log.
    /// Returns the epoch; `None` if there was nothing to move, and nothing was written.
    ///
    /// # Errors
    /// [`RepairError::Skips`] if records would be skipped and `skip` does not allow it, [`RepairError::Owned`] if
    /// somebody owns the checkpoint, [`RepairError::Changed`] if somebody did meanwhile; otherwise as [`acquire`].
    ///
    /// # Cancel safety
    /// The position is moved or it is not; the next start finds out.
    pub async fn perform(&self, skip: bool, deps: &Deps) -> Result<Option<Epoch>> {
        let path = || self.location.path().to_owned();
        if self.skipped > 0 && !skip {
            let skipped = self.skipped;
            return Err(RepairError::Skips {
                path: path(),
                skipped,
            }
            .into());
        }
        if self.partitions.is_empty() {
            return Ok(None);
        }
        let mut lease = own(&self.location, VERSION, self.shape.clone(), deps)
            .await
            .map_err(|error| match error {
                Error::Held { holder, .. } => owned(&self.location, holder, "rewind"),
                other => other,
            })?;
        let found = lease.recovery();
        let is_as_seen = lease.checkpoint() == self.checkpoint_id
            && found.pending.is_none()
            && found.last_committed == self.last_committed_batch
            && found.next.as_ref() == Some(&self.from);
        if !is_as_seen {
            if found.pending.is_none() {
                lease.release(None).await?;
            }
            return Err(RepairError::Changed { path: path() }.into());
        }
        let epoch = lease.epoch();
        lease
            .record_position(self.to.clone(), PositionReason::Rewind)
            .await?;
        lease.release(None).await?;
        Ok(Some(epoch))
    }
}

fn pending_batch(location: &Location, batch: BatchId) -> Error {
    let path = location.path().to_owned();
    RepairError::Pending { path, batch }.into()
}

/// Owns a checkpoint for a moment, as a job of this shape.
pub(super) async fn own(location: &Location, version: &str, shape: JobShape, deps: &Deps) -> Result<Lease> {
    let candidate = Candidate {
        owner: OwnerId(deps.rng.uuid()),
        job: shape.job.clone(),
        version: version.to_owned(),
        shape,
        // It is gone before anybody could be handed anything.
        handover: false,
    };
    // Nothing happens on the way that is worth saying: it fails or it is there.
    let (events, _nobody_listens) = mpsc::channel(1);
    acquire(location, candidate, AcquireOptions::default(), deps, events).await
}
