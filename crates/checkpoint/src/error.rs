//! This crate's errors.

use baton_core::{BatchId, ErrorKind};
use std::io;
use std::path::PathBuf;

use crate::RepairError;

/// Why a checkpoint cannot be had, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Somebody else owns the checkpoint.
    #[error(
        "checkpoint `{path}` is owned by {holder}; pass --if-owned wait to stand by, or --if-owned takeover to ask for a hand-over"
    )]
    Held {
        /// The checkpoint.
        path: PathBuf,
        /// The owner in words, with what is known of its last batch.
        holder: String,
    },
    /// The owner did not release in the time that was given.
    #[error(
        "checkpoint `{path}` is still owned by {holder} after --wait-timeout {waited}; wait longer, or pass --if-owned takeover to ask for a hand-over"
    )]
    WaitTimeout {
        /// The checkpoint.
        path: PathBuf,
        /// The owner in words.
        holder: String,
        /// How long, in words.
        waited: String,
    },
    /// The owner does not hand over.
    #[error(
        "{holder} does not hand over checkpoint `{path}`: {reason}; pass --if-owned wait to stand by, or --if-owned force to end it"
    )]
    TakeoverRefused {
        /// The checkpoint.
        path: PathBuf,
        /// The owner in words.
        holder: String,
        /// Its reason.
        reason: String,
    },
    /// The owner was asked and did not release in time.
    #[error(
        "{holder} did not hand over checkpoint `{path}` within --drain-timeout {waited}; raise it, or pass --on-drain-timeout force to end it then"
    )]
    DrainTimeout {
        /// The checkpoint.
        path: PathBuf,
        /// The owner in words.
        holder: String,
        /// How long, in words.
        waited: String,
    },
    /// The owner cannot be ended from here.
    #[error(
        "{holder} cannot be ended from here: {reason}; stop it where it runs, checkpoint `{path}` is free then"
    )]
    ForceFailed {
        /// The checkpoint.
        path: PathBuf,
        /// The owner in words.
        holder: String,
        /// Why.
        reason: String,
    },
    /// Ownership was lost while it was used.
    #[error("ownership of checkpoint `{path}` is lost: {reason}; nothing more is published, look at baton status {}", path.display())]
    Fenced {
        /// The checkpoint.
        path: PathBuf,
        /// How.
        reason: String,
    },
    /// A location that cannot be used.
    #[error("checkpoint location `{text}` {reason}")]
    Location {
        /// As given.
        text: String,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// A word that is none of the allowed ones.
    #[error("{name} must be {allowed}, not `{text}`")]
    Option {
        /// Which option.
        name: &'static str,
        /// As given.
        text: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A directory with something else in it.
    #[error(
        "`{path}` is not a checkpoint: it holds `{found}` but no `baton.json`; give a new or empty directory"
    )]
    NotACheckpoint {
        /// The directory.
        path: PathBuf,
        /// One of its entries.
        found: String,
    },
    /// A checkpoint that Spark wrote.
    #[error(
        "`{path}` is a checkpoint of Spark (it has `metadata` and `offsets`); give a new directory, and the offsets of its last file in `offsets` as startingOffsets"
    )]
    SparkCheckpoint {
        /// The directory.
        path: PathBuf,
    },
    /// A checkpoint of ours where another program's directory is wanted.
    #[error(
        "`{path}` is a checkpoint of baton run, which guards it by itself; give baton exec the directory that its command works on"
    )]
    NotGuarded {
        /// The directory.
        path: PathBuf,
    },
    /// The job is not the one that the checkpoint knows.
    #[error(
        "the job does not fit checkpoint `{path}`: {difference}; pass --accept-changes to go on, or give it a checkpoint of its own"
    )]
    Incompatible {
        /// The checkpoint.
        path: PathBuf,
        /// What differs.
        difference: String,
    },
    /// Written by a newer version of Baton.
    #[error(
        "{what} of checkpoint `{path}` has format version {found}, this baton knows up to {known}; use the newer baton that wrote it"
    )]
    NewerFormat {
        /// The checkpoint.
        path: PathBuf,
        /// What has the version.
        what: String,
        /// The version found.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// A file system whose locks cannot be trusted.
    #[error(
        "checkpoint `{path}` is on {filesystem}, whose locks cannot keep a second owner out; give a directory on a local disk"
    )]
    Filesystem {
        /// The checkpoint.
        path: PathBuf,
        /// Its file system.
        filesystem: String,
    },
    /// A store that cannot keep a second owner out.
    #[error(
        "checkpoint `{path}` is on a store without working create-if-absent: {reason}; without it two owners could write one log, give a place on a store that enforces If-None-Match on PUT"
    )]
    NoConditionalPut {
        /// The checkpoint.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The directory cannot be used.
    #[error("cannot {action} `{path}`; {advice}")]
    Directory {
        /// Which file or directory.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What to do.
        advice: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No space.
    #[error(
        "checkpoint storage full: no space left for `{path}`; free some and start again, it resumes from the log"
    )]
    Full {
        /// The checkpoint.
        path: PathBuf,
    },
    /// A record is not what was written.
    #[error("record {seq} of checkpoint `{path}` is damaged: {reason}; nothing was changed, restore `{}` from a backup, or look at what is readable with baton checkpoint show {}", path.join("log").display(), path.display())]
    DamagedRecord {
        /// The checkpoint.
        path: PathBuf,
        /// Its log slot.
        seq: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of the store is not what was written.
    #[error("the log of checkpoint `{path}` cannot be read, `{file}` is damaged ({reason}); nothing was changed, restore `{}` from a backup", path.join("log").display())]
    DamagedFile {
        /// The checkpoint.
        path: PathBuf,
        /// Which file, as far as the store says.
        file: String,
        /// What the store says.
        reason: String,
    },
    /// The log ends before records that were acknowledged.
    #[error("the log of checkpoint `{path}` ends at record {last}, but record {acknowledged} was acknowledged: its end was cut off; restore `{}` from a backup, or {way_out}", path.join("log").display())]
    LostRecords {
        /// The checkpoint.
        path: PathBuf,
        /// The last record found.
        last: u64,
        /// The last record known to have been written.
        acknowledged: u64,
        /// What else can be done: only a log that still has a position can be gone on from.
        way_out: String,
    },
    /// The format marker is missing or unreadable.
    #[error("`{}` is {reason}; restore it from a backup, the log beside it is untouched", path.join("baton.json").display())]
    DamagedMarker {
        /// The checkpoint.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// What the sink has published does not fit the log.
    #[error("the sink of checkpoint `{path}` says {found}, but the log has {expected}; nothing was published, compare the output with baton checkpoint show {}", path.display())]
    Halt {
        /// The checkpoint.
        path: PathBuf,
        /// What the sink says.
        found: String,
        /// What the log has.
        expected: String,
    },
    /// A batch would break the log's rules.
    #[error(
        "a record was refused before it was written, it breaks {invariant}: {reason}; this is a bug, the next start resumes from the log"
    )]
    Invariant {
        /// Which one.
        invariant: &'static str,
        /// How.
        reason: String,
    },
    /// A method was called at the wrong time.
    #[error("{what}; this is a bug, the next start resumes from the log")]
    Misuse {
        /// What was wrong.
        what: String,
    },
    /// The store failed, and whether its last record is durable is not known.
    #[error("the store of checkpoint `{path}` failed ({reason}); start again, it resumes from the log")]
    Store {
        /// The checkpoint.
        path: PathBuf,
        /// What it says.
        reason: String,
    },
    /// The owner did not stop in time.
    #[error(
        "{holder} did not stop within {waited}; wait for its batch, pass a longer --timeout, or --now to abandon the batch"
    )]
    StopTimeout {
        /// The owner in words.
        holder: String,
        /// How long, in words.
        waited: String,
    },
    /// A plan that leaves a gap or repeats records.
    #[error("batch {batch} would start {partition} at {found}, but the log says {expected}; start again, and see baton checkpoint show {}", path.display())]
    Discontinuous {
        /// The checkpoint.
        path: PathBuf,
        /// Which batch.
        batch: BatchId,
        /// Which partition.
        partition: String,
        /// Where it would start.
        found: i64,
        /// Where the batch before ended.
        expected: i64,
    },
    /// A repair is refused.
    #[error(transparent)]
    Repair(#[from] RepairError),
}

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What a caller does about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Held { .. }
            | Self::WaitTimeout { .. }
            | Self::TakeoverRefused { .. }
            | Self::DrainTimeout { .. }
            | Self::ForceFailed { .. } => ErrorKind::Held,
            Self::Fenced { .. } => ErrorKind::Fenced,
            Self::Location { .. }
            | Self::Option { .. }
            | Self::NotACheckpoint { .. }
            | Self::SparkCheckpoint { .. }
            | Self::NotGuarded { .. }
            | Self::Incompatible { .. }
            | Self::NewerFormat { .. }
            | Self::Filesystem { .. }
            | Self::NoConditionalPut { .. } => ErrorKind::Invalid,
            Self::Directory { .. } | Self::Full { .. } | Self::Discontinuous { .. } => ErrorKind::Failed,
            Self::DamagedRecord { .. }
            | Self::DamagedFile { .. }
            | Self::LostRecords { .. }
            | Self::DamagedMarker { .. }
            | Self::Halt { .. } => ErrorKind::Corrupt,
            Self::Invariant { .. } | Self::Misuse { .. } => ErrorKind::Internal,
            Self::Store { .. } | Self::StopTimeout { .. } => ErrorKind::Unavailable,
            Self::Repair(refused) => refused.kind(),
        }
    }

    /// The stable code, with a page of its own under `docs/errors/`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Held { .. } => "E0101",
            Self::WaitTimeout { .. } => "E0102",
            Self::TakeoverRefused { .. } => "E0103",
            Self::DrainTimeout { .. } => "E0104",
            Self::ForceFailed { .. } => "E0105",
            Self::Fenced { .. } => "E0106",
            Self::Location { .. } => "E0107",
            Self::Option { .. } => "E0108",
            Self::NotACheckpoint { .. } => "E0109",
            Self::SparkCheckpoint { .. } => "E0110",
            Self::NotGuarded { .. } => "E0160",
            Self::Incompatible { .. } => "E0111",
            Self::NewerFormat { .. } => "E0112",
            Self::Filesystem { .. } => "E0113",
            Self::Directory { .. } => "E0114",
            Self::Full { .. } => "E0115",
            Self::DamagedRecord { .. } => "E0116",
            Self::DamagedFile { .. } => "E0117",
            Self::LostRecords { .. } => "E0118",
            Self::DamagedMarker { .. } => "E0119",
            Self::Halt { .. } => "E0120",
            Self::Invariant { .. } => "E0121",
            Self::Misuse { .. } => "E0122",
            Self::Store { .. } => "E0123",
            Self::StopTimeout { .. } => "E0124",
            Self::Discontinuous { .. } => "E0125",
            Self::NoConditionalPut { .. } => "E0126",
            Self::Repair(refused) => refused.code(),
        }
    }
}
