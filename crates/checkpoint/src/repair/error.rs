//! Why a repair is refused.

use baton_core::{BatchId, ErrorKind};
use std::path::PathBuf;

/// A repair that is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Somebody owns the checkpoint.
    #[error(
        "checkpoint `{}` is owned by {holder}, and {command} wants it to stand still; stop the owner first: baton stop {}",
        path.display(),
        path.display()
    )]
    Owned {
        /// The checkpoint.
        path: PathBuf,
        /// The owner in words.
        holder: String,
        /// What was to be done.
        command: &'static str,
    },
    /// A batch was interrupted.
    #[error(
        "batch {batch} of checkpoint `{}` was interrupted, and its output may be out already; start the job once so that it is finished, then stop it and rewind. If it cannot be finished: baton checkpoint fork {} NEW, and rewind that",
        path.display(),
        path.display()
    )]
    Pending {
        /// The checkpoint.
        path: PathBuf,
        /// Planned, and not committed.
        batch: BatchId,
    },
    /// A batch that the log does not have.
    #[error(
        "the log of checkpoint `{}` has no end of batch {batch}: {kept}; pass one of these, or offsets with --to",
        path.display()
    )]
    NoSuchBatch {
        /// The checkpoint.
        path: PathBuf,
        /// As asked for.
        batch: BatchId,
        /// Which batches there are, in words.
        kept: String,
    },
    /// Offsets that cannot be gone to.
    #[error("cannot go to these offsets: {reason}")]
    Offsets {
        /// What is wrong with them, and what would be right.
        reason: String,
    },
    /// Records would be skipped.
    #[error(
        "{skipped} records of checkpoint `{}` would be skipped, no batch from here on reads them; pass --yes if that is meant",
        path.display()
    )]
    Skips {
        /// The checkpoint.
        path: PathBuf,
        /// How many.
        skipped: u64,
    },
    /// There is no position yet.
    #[error(
        "checkpoint `{}` has no position: no job has come to its first poll there, or it only guards another program's directory; a job gets its position by being started: baton run JOB",
        path.display()
    )]
    NoPosition {
        /// The checkpoint.
        path: PathBuf,
    },
    /// The new checkpoint's place is taken.
    #[error("`{}` cannot become a new checkpoint: {reason}; give a directory that does not exist yet", path.display())]
    Taken {
        /// The place.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Somebody owned the checkpoint between the look and the deed.
    #[error(
        "checkpoint `{}` was owned by somebody else meanwhile, and is no longer where it was; look again: baton checkpoint rewind {} … --dry-run",
        path.display(),
        path.display()
    )]
    Changed {
        /// The checkpoint.
        path: PathBuf,
    },
}

impl RepairError {
    /// What a caller does about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Owned { .. } => ErrorKind::Held,
            Self::NoSuchBatch { .. } | Self::Offsets { .. } | Self::Skips { .. } | Self::Taken { .. } => {
                ErrorKind::Invalid
            }
            Self::Pending { .. } | Self::NoPosition { .. } => ErrorKind::Failed,
            Self::Changed { .. } => ErrorKind::Unavailable,
        }
    }

    /// The stable code, with a page of its own under `docs/errors/`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Owned { .. } => "E0150",
            Self::Pending { .. } => "E0151",
            Self::NoSuchBatch { .. } => "E0152",
            Self::Offsets { .. } => "E0153",
            Self::Skips { .. } => "E0154",
            Self::NoPosition { .. } => "E0155",
            Self::Taken { .. } => "E0156",
            Self::Changed { .. } => "E0157",
        }
    }
}
