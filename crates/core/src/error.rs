//! This crate's own errors, and the kinds that all crates sort theirs into.

/// What a caller does about an error; the exit code of `baton` follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input has to be fixed: a job file, an option, SQL, a job that does not fit its checkpoint. Exit code 2.
    Invalid,
    /// Somebody else owns what was asked for. Exit code 3.
    Held,
    /// Ownership was lost while running: stop, publish nothing. Exit code 4.
    Fenced,
    /// Something outside does not answer: try again, within a bound. Exit code 1.
    Unavailable,
    /// Stored data cannot be what was written: touch nothing, inspect. Exit code 1.
    Corrupt,
    /// The job met data or a condition that it cannot go on with. Exit code 1.
    Failed,
    /// A bug. Exit code 1.
    Internal,
}

impl ErrorKind {
    /// The exit code of a process that ends for this reason.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Invalid => 2,
            Self::Held => 3,
            Self::Fenced => 4,
            Self::Unavailable | Self::Corrupt | Self::Failed | Self::Internal => 1,
        }
    }
}

/// What can be wrong with a name, an option or an offset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A range would end before it starts.
    #[error("offset range {from}..{until} ends before it starts")]
    InvertedRange {
        /// First offset.
        from: i64,
        /// Offset after the last.
        until: i64,
    },
    /// An end position lacks a partition that the start has, or lies before it.
    #[error("end offset of {topic}-{partition} is {until}, before its start {from}")]
    EndBeforeStart {
        /// Topic.
        topic: String,
        /// Partition.
        partition: i32,
        /// Start offset.
        from: i64,
        /// End offset, or `missing`.
        until: String,
    },
    /// Offsets in JSON could not be read.
    #[error("offsets must be JSON like {{\"topic\":{{\"0\":23,\"1\":-1}}}}: {reason}")]
    OffsetsJson {
        /// What is wrong with it.
        reason: String,
    },
    /// A name has characters it may not have.
    #[error("name `{name}` must match {rule}")]
    InvalidName {
        /// The name as given.
        name: String,
        /// The regular expression it must match.
        rule: &'static str,
    },
    /// An option nobody knows.
    #[error("unknown option `{key}`{hint}")]
    UnknownOption {
        /// The key as the user spelled it.
        key: String,
        /// `; did you mean …?`, or empty.
        hint: String,
    },
    /// An option's value cannot be used.
    #[error("option `{key}` {reason}")]
    InvalidOption {
        /// The key as the user spelled it.
        key: String,
        /// What is wrong and what would be right; never the value of a secret.
        reason: String,
    },
    /// An option is absent that must be there.
    #[error("option `{key}` must be specified: {reason}")]
    MissingOption {
        /// The key.
        key: String,
        /// What it is for.
        reason: String,
    },
    /// A duration could not be read.
    #[error("`{text}` is not a duration; write 250ms, 10s, 5m, 1h or `1 minute 30 seconds`")]
    InvalidDuration {
        /// The text as given.
        text: String,
    },
}

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What a caller does about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::InvertedRange { .. }
            | Self::EndBeforeStart { .. }
            | Self::OffsetsJson { .. }
            | Self::InvalidName { .. }
            | Self::UnknownOption { .. }
            | Self::InvalidOption { .. }
            | Self::MissingOption { .. }
            | Self::InvalidDuration { .. } => ErrorKind::Invalid,
        }
    }

    /// The stable code, with a page of its own under `docs/errors/`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvertedRange { .. } | Self::EndBeforeStart { .. } => "E0001",
            Self::OffsetsJson { .. } => "E0002",
            Self::InvalidName { .. } => "E0003",
            Self::UnknownOption { .. } => "E0004",
            Self::InvalidOption { .. } | Self::MissingOption { .. } => "E0005",
            Self::InvalidDuration { .. } => "E0006",
        }
    }
}
