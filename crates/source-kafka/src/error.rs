//! What can go wrong between Kafka and a batch of rows.

use baton_core::{ErrorKind, Fault};
use std::time::Duration;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong between Kafka and a batch of rows.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option or a Kafka property cannot be used. The text never holds the value of a secret.
    #[error("option `{key}` {reason}")]
    Option {
        /// The key as the user spelled it.
        key: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// No broker answers.
    #[error("no Kafka broker answers at `{address}` within {waited}: {cause}; {next}")]
    Unreachable {
        /// The bootstrap servers.
        address: String,
        /// How long was waited, with its unit.
        waited: String,
        /// The client's last error.
        cause: String,
        /// What to do.
        next: &'static str,
    },
    /// The broker answered, but not with what was asked for; it may next time.
    #[error("Kafka at `{address}` cannot {task} now: {cause}")]
    Passing {
        /// The bootstrap servers.
        address: String,
        /// What was tried, an infinitive.
        task: String,
        /// The broker's or client's answer.
        cause: String,
    },
    /// A topic or partition that is named does not exist.
    #[error("{what} not found on Kafka at `{address}`; {next}")]
    Missing {
        /// "topic `t`", "partition t-3 (the topic has 3 partitions)".
        what: String,
        /// The bootstrap servers.
        address: String,
        /// What to do.
        next: String,
    },
    /// Starting offsets do not fit the partitions.
    #[error("option `startingOffsets` {reason}")]
    StartingOffsets {
        /// What is wrong and what would be right.
        reason: String,
    },
    /// Records that were to be read no longer exist.
    #[error("records are lost: {what}; {next}")]
    DataLoss {
        /// Topic, partition and offsets.
        what: String,
        /// What to do.
        next: String,
    },
    /// Another checkpoint has the consumer group.
    #[error("kafka.group.id `{group}` belongs to {holder}; {next}")]
    GroupHeld {
        /// The group.
        group: String,
        /// Who has it.
        holder: String,
        /// What to do.
        next: String,
    },
    /// The group does not take offsets.
    #[error("offsets cannot be stored in kafka.group.id `{group}`: {cause}; {next}")]
    GroupRefused {
        /// The group.
        group: String,
        /// Kafka's answer.
        cause: String,
        /// What to do.
        next: &'static str,
    },
    /// Kafka refuses for good: no permission, wrong credentials, damaged data.
    #[error("Kafka at `{address}` refuses to {task}: {cause}")]
    Refused {
        /// The bootstrap servers.
        address: String,
        /// What was tried, an infinitive.
        task: String,
        /// The broker's or client's answer.
        cause: String,
    },
    /// A message was not stored.
    #[error("a message to topic `{topic}` was not stored: {cause}")]
    NotStored {
        /// Topic.
        topic: String,
        /// The client's answer.
        cause: String,
    },
    /// A record's time does not fit into microseconds (Spark: `KAFKA_MALFORMED_RECORD_TIMESTAMP`).
    #[error(
        "record {topic}-{partition} at offset {offset} has timestamp {millis} ms, which overflows microseconds"
    )]
    Timestamp {
        /// Topic.
        topic: String,
        /// Partition.
        partition: i32,
        /// Offset.
        offset: i64,
        /// As stored.
        millis: i64,
    },
    /// The embedded broker does not start or take an order.
    #[error("the embedded broker cannot {task}: {cause}")]
    Embedded {
        /// What was tried, an infinitive.
        task: String,
        /// The library's answer.
        cause: String,
    },
    /// A call came in the wrong order, or a task ended in a way that it cannot.
    #[error("bug in the Kafka source: {what}")]
    Bug {
        /// What happened.
        what: String,
    },
    /// The vocabulary's own: an option's form, offsets in JSON.
    #[error("{text}")]
    Core {
        /// Its text.
        text: String,
        /// Its kind.
        kind: ErrorKind,
        /// Its code.
        code: &'static str,
    },
}

impl Error {
    /// What a caller does about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Option { .. } | Self::StartingOffsets { .. } | Self::Missing { .. } => ErrorKind::Invalid,
            Self::Unreachable { .. } | Self::Passing { .. } => ErrorKind::Unavailable,
            Self::GroupHeld { .. } => ErrorKind::Held,
            Self::DataLoss { .. }
            | Self::GroupRefused { .. }
            | Self::Refused { .. }
            | Self::NotStored { .. }
            | Self::Timestamp { .. }
            | Self::Embedded { .. } => ErrorKind::Failed,
            Self::Bug { .. } => ErrorKind::Internal,
            Self::Core { kind, .. } => *kind,
        }
    }

    /// The stable code, with a page of its own under `docs/errors/`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Option { .. } => "E0201",
            Self::Unreachable { .. } | Self::Passing { .. } => "E0202",
            Self::Missing { .. } => "E0203",
            Self::StartingOffsets { .. } => "E0204",
            Self::DataLoss { .. } => "E0205",
            Self::GroupHeld { .. } => "E0206",
            Self::GroupRefused { .. } => "E0207",
            Self::Refused { .. } => "E0208",
            Self::NotStored { .. } => "E0209",
            Self::Timestamp { .. } => "E0210",
            Self::Embedded { .. } => "E0211",
            Self::Bug { .. } => "E0212",
            Self::Core { code, .. } => code,
        }
    }

    /// No broker answers; `waited` is how long it was given.
    pub(crate) fn unreachable(address: &str, waited: Duration, cause: String) -> Self {
        Self::Unreachable {
            address: address.to_owned(),
            waited: format!("{} s", waited.as_secs_f32().ceil()),
            cause,
            next: "check that it runs, and that kafka.bootstrap.servers and the security options are right",
        }
    }

    /// The same after all attempts together took this long.
    pub(crate) fn after(mut self, all: Duration) -> Self {
        if let Self::Unreachable { waited, .. } = &mut self {
            *waited = format!("{} s", all.as_secs_f32().ceil());
        }
        self
    }

    pub(crate) fn option(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Option {
            key: key.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn bug(what: impl Into<String>) -> Self {
        Self::Bug { what: what.into() }
    }
}

impl From<baton_core::Error> for Error {
    fn from(error: baton_core::Error) -> Self {
        Self::Core {
            text: error.to_string(),
            kind: error.kind(),
            code: error.code(),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error.code(), error.to_string())
    }
}
