//! This crate's errors.

use baton_core::{BatchId, ErrorKind, Fault, SourceName};
use std::sync::Arc;

/// Why a query could not start or go on.
///
/// It is `Clone` because everybody who waits for a query is told; causes are shared.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A format that nobody registered.
    #[error("unknown {role} format `{format}`{hint}")]
    UnknownFormat {
        /// `source` or `sink`.
        role: &'static str,
        /// The name as given.
        format: String,
        /// `; did you mean …?` or what is registered.
        hint: String,
    },
    /// An output mode that the query cannot have.
    #[error("output mode {mode} needs an aggregation, which this query has not; use append")]
    OutputMode {
        /// The mode.
        mode: baton_core::OutputMode,
    },
    /// A name or an option is wrong.
    #[error(transparent)]
    Input(Arc<baton_core::Error>),
    /// The SQL is wrong or cannot be streamed.
    #[error(transparent)]
    Sql(Arc<crate::sql::Error>),
    /// The checkpoint refused.
    #[error(transparent)]
    Checkpoint(Arc<baton_checkpoint::Error>),
    /// A source failed.
    #[error("source `{name}` failed")]
    Source {
        /// Which.
        name: SourceName,
        /// Why.
        #[source]
        fault: Arc<Fault>,
    },
    /// The sink failed.
    #[error("sink `{sink}` failed")]
    Sink {
        /// Its format.
        sink: String,
        /// Why.
        #[source]
        fault: Arc<Fault>,
    },
    /// The rows of a batch could not be computed.
    #[error(
        "batch {batch} cannot be computed; nothing of it was published, and the next start runs it again"
    )]
    Compute {
        /// Which.
        batch: BatchId,
        /// Why.
        #[source]
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// Offsets that were logged do not fit the source.
    #[error(
        "batch {batch} was planned for source `{name}`, which this job does not have; start the job that planned it"
    )]
    ForeignPlan {
        /// Which batch.
        batch: BatchId,
        /// The source in its plan.
        name: SourceName,
    },
    /// The sink failed again and again on one batch.
    #[error("sink `{sink}` did not take batch {batch} in {attempts} attempts; the next start runs it again")]
    SinkGaveUp {
        /// Its format.
        sink: String,
        /// Which batch.
        batch: BatchId,
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        #[source]
        fault: Arc<Fault>,
    },
    /// A task of the engine panicked.
    #[error("the query's {task} panicked; this is a bug, and the next start resumes from the log")]
    Panicked {
        /// Which.
        task: &'static str,
    },
}

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn source_failed(name: &SourceName, fault: Fault) -> Self {
        Self::Source {
            name: name.clone(),
            fault: Arc::new(fault),
        }
    }

    pub(crate) fn sink_failed(sink: &str, fault: Fault) -> Self {
        Self::Sink {
            sink: sink.to_owned(),
            fault: Arc::new(fault),
        }
    }

    /// What a caller does about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownFormat { .. } | Self::OutputMode { .. } | Self::ForeignPlan { .. } => {
                ErrorKind::Invalid
            }
            Self::Input(error) => error.kind(),
            Self::Sql(error) => error.kind(),
            Self::Checkpoint(error) => error.kind(),
            Self::Source { fault, .. } | Self::Sink { fault, .. } => fault.kind,
            Self::Compute { .. } => ErrorKind::Failed,
            Self::SinkGaveUp { .. } => ErrorKind::Unavailable,
            Self::Panicked { .. } => ErrorKind::Internal,
        }
    }

    /// The stable code, with a page of its own under `docs/errors/`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownFormat { .. } => "E0401",
            Self::OutputMode { .. } => "E0402",
            Self::Input(error) => error.code(),
            Self::Sql(error) => error.code(),
            Self::Checkpoint(error) => error.code(),
            Self::Source { fault, .. } | Self::Sink { fault, .. } => fault.code,
            Self::Compute { .. } => "E0430",
            Self::ForeignPlan { .. } => "E0431",
            Self::SinkGaveUp { .. } => "E0432",
            Self::Panicked { .. } => "E0439",
        }
    }
}

impl From<baton_core::Error> for Error {
    fn from(error: baton_core::Error) -> Self {
        Self::Input(Arc::new(error))
    }
}

impl From<crate::sql::Error> for Error {
    fn from(error: crate::sql::Error) -> Self {
        Self::Sql(Arc::new(error))
    }
}

impl From<baton_checkpoint::Error> for Error {
    fn from(error: baton_checkpoint::Error) -> Self {
        Self::Checkpoint(Arc::new(error))
    }
}
