//! Beginning another checkpoint where one stands.

use baton_core::{BatchId, CheckpointId, Position};
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::RepairError;
use super::rewind::own;
use super::slots::{End, Slots, starts_at};
use crate::layout::OWNER;
use crate::lease::{Directory, Marker, found, look, read_hint, trouble};
use crate::{Deps, Error, JobShape, Location, Planned, PositionReason, Result, State, inspect};

/// How the owner that begins the new checkpoint calls itself.
const VERSION: &str = "baton checkpoint fork";

/// What a fork would do, and the means to do it. Serialises to the JSON of `baton checkpoint fork`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Fork {
    /// The location of the old one.
    pub checkpoint: String,
    /// Its id.
    pub checkpoint_id: CheckpointId,
    /// The location of the new one.
    pub fork: String,
    /// The last committed batch of the old one; the new one begins with batch 0.
    pub last_committed_batch: Option<BatchId>,
    /// Where the new one starts: from here on both read the same.
    pub next: Position,
    /// A batch of the old one that is running or was interrupted. The new one reads its range too.
    pub pending: Option<Overlap>,
    /// Whether somebody owns the old one at this moment.
    pub owned: bool,
    /// What is wrong with the old one's log, before the records that this position comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    #[serde(skip)]
    new: Location,
    #[serde(skip)]
    shape: JobShape,
}

/// A batch whose range both checkpoints publish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Overlap {
    /// Its number in the old checkpoint.
    pub batch_id: BatchId,
    /// Where it starts.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
}

/// Looks what it would mean to begin another checkpoint at `new` where the one at `location` stands, whoever owns that;
/// `None` if there is none. Changes nothing.
///
/// A log that is damaged can be forked when its end is whole: the records behind the damage say exactly where the next
/// batch starts.
///
/// # Errors
/// [`RepairError::Taken`] if `new` holds something, [`RepairError::NoPosition`] if the old one has none yet, and of kind
/// `Corrupt` if the log does not say where the next batch starts.
///
/// # Cancel safety
/// It changes nothing.
pub async fn fork(location: &Location, new: &Location, deps: &Deps) -> Result<Option<Fork>> {
    let Some(directory) = Directory::find(location.local()?)?.map(Arc::new) else {
        return Ok(None);
    };
    let status = inspect(location, deps).await;
    let owned =
        directory.lock_holder().is_some() || status.is_ok_and(|status| status.state == State::Running);
    let (marker, log, next, shape, damage) = match look(&directory).await {
        Ok(None) => return Ok(None),
        Ok(Some(look)) => {
            let log = look.contents.log();
            let (next, shape) = (starts_at(&log), log.shape().cloned());
            (look.marker, log, next, shape, None)
        }
        Err(error @ Error::DamagedRecord { .. }) => {
            let (Some(marker), Some((end, shape))) =
                (Marker::read(&directory)?, readable_end(&directory).await?)
            else {
                return Err(error);
            };
            (
                marker,
                end.log,
                Some(end.next),
                Some(shape),
                Some(error.to_string()),
            )
        }
        Err(error) => return Err(error),
    };
    let (Some(next), Some(shape)) = (next, shape) else {
        let path = location.path().to_owned();
        return Err(RepairError::NoPosition { path }.into());
    };
    check_place(location.local()?, new.local()?)?;
    Ok(Some(Fork {
        checkpoint: location.to_string(),
        checkpoint_id: marker.checkpoint_id,
        fork: new.to_string(),
        last_committed_batch: log.committed().map(|committed| committed.batch),
        next,
        pending: log.pending().map(Overlap::of),
        owned,
        damage,
        new: new.clone(),
        shape,
    }))
}

/// The whole end of a damaged log, if it has one. One whose tail was cut off has none, however whole it looks.
async fn readable_end(directory: &Arc<Directory>) -> Result<Option<(End, JobShape)>> {
    let found = found(directory)
        .await
        .map_err(|failure| failure.about(directory.path()))?;
    let slots = Slots::of(&found);
    let marker = Marker::read(directory)?;
    let acknowledged = marker
        .and_then(|marker| read_hint(directory, marker.checkpoint_id))
        .and_then(|hint| hint.seq);
    let is_whole = acknowledged.is_none_or(|seq| slots.last.is_some_and(|last| seq <= last));
    let is_ours = marker.is_some_and(|marker| slots.checkpoint == Some(marker.checkpoint_id));
    Ok(slots.end().filter(|_| is_whole && is_ours).zip(slots.shape()))
}

impl Overlap {
    fn of(planned: &Planned) -> Self {
        Self {
            batch_id: planned.batch,
            start: planned.from.clone(),
            end: planned.until.clone(),
        }
    }
}

impl Fork {
    /// Makes the new checkpoint, and returns its id. It is made beside its place and appears there all at once, with its
    /// position in the log: nobody can start on one that would resolve starting offsets of its own.
    ///
    /// # Errors
    /// [`RepairError::Taken`] if something came to stand there meanwhile, otherwise as [`acquire`](crate::acquire).
    ///
    /// # Cancel safety
    /// The new checkpoint is there or it is not. A directory beside it, named `.baton-fork-…`, may be left over.
    pub async fn perform(&self, deps: &Deps) -> Result<CheckpointId> {
        let place = self.new.path();
        check_place(Path::new(&self.checkpoint), place)?;
        let Some(parent) = place.parent() else {
            return Err(taken(place, "it has no name".to_owned()));
        };
        fs::create_dir_all(parent).map_err(|error| trouble(parent, "create checkpoint directory", error))?;
        let beside = parent.join(format!(".baton-fork-{}", deps.rng.uuid()));
        let made = self.make(&beside, deps).await;
        if made.is_err()
            && let Err(error) = fs::remove_dir_all(&beside)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "`{}` could not be removed; it is of no use", beside.display());
        }
        made
    }

    async fn make(&self, beside: &Path, deps: &Deps) -> Result<CheckpointId> {
        let location = Location::parse(&beside.to_string_lossy())?;
        let mut lease = own(&location, VERSION, self.shape.clone(), deps).await?;
        let id = lease.checkpoint();
        lease
            .record_position(self.next.clone(), PositionReason::Import)
            .await?;
        lease.release(None).await?;
        self.address(beside, id)?;
        appear(beside, self.new.path())?;
        Ok(id)
    }

    /// Lets what the owner said of itself name the place where it will be found.
    fn address(&self, beside: &Path, id: CheckpointId) -> Result<()> {
        let Some(directory) = Directory::find(beside)? else {
            return Ok(());
        };
        if let Some(mut hint) = read_hint(&directory, id) {
            hint.status.checkpoint.clone_from(&self.fork);
            let bytes = serde_json::to_vec(&hint).expect("a status always serialises");
            directory
                .replace(OWNER, &bytes, false)
                .map_err(|error| trouble(beside, "write to checkpoint", error))?;
        }
        Ok(())
    }
}

/// Moves a finished directory to its place, durably. Fails where anything but an empty directory stands.
fn appear(beside: &Path, place: &Path) -> Result<()> {
    match rustix::fs::rename(beside, place) {
        Ok(()) => {}
        Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(taken(place, "it holds something".to_owned())),
        Err(Errno::BUSY | Errno::XDEV) => return Err(taken(place, "it is a mount point".to_owned())),
        Err(errno) => return Err(trouble(place, "create checkpoint directory", errno.into())),
    }
    let parent = place.parent().unwrap_or(place);
    File::open(parent)
        .and_then(|parent| parent.sync_all())
        .map_err(|error| trouble(parent, "write to", error))
}

fn check_place(old: &Path, place: &Path) -> Result<()> {
    if place != old && place.starts_with(old) {
        return Err(taken(place, format!("it lies inside `{}`", old.display())));
    }
    let mut entries = match fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(trouble(place, "create checkpoint", error)),
    };
    match entries.next() {
        None => Ok(()),
        Some(entry) => {
            let name = entry.map(|entry| entry.file_name().to_string_lossy().into_owned());
            Err(taken(place, format!("it holds `{}`", name.unwrap_or_default())))
        }
    }
}

fn taken(place: &Path, reason: String) -> Error {
    let path = PathBuf::from(place);
    RepairError::Taken { path, reason }.into()
}
