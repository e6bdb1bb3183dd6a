//! This crate's errors.

use baton_core::{Epoch, ErrorKind, Fault};
use std::io;

/// Why a batch was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// stdout could not be written.
    #[error("cannot print to stdout; nothing more is read, and the next start prints the batch again")]
    Print(#[source] io::Error),
    /// An owner of a newer epoch has been here.
    #[error("epoch {ours} may not write, epoch {newest} has taken over")]
    Fenced {
        /// The epoch that tried.
        ours: Epoch,
        /// The newest epoch that this sink knows.
        newest: Epoch,
    },
    /// A closure of `foreach_batch` returned an error.
    #[error("the foreachBatch function failed")]
    Closure(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What a caller does about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Print(_) | Self::Closure(_) => ErrorKind::Failed,
            Self::Fenced { .. } => ErrorKind::Fenced,
        }
    }

    /// The stable code, with a page of its own under `docs/errors/`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Print(_) => "E0301",
            Self::Fenced { .. } => "E0302",
            Self::Closure(_) => "E0303",
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let fault = Self::new(error.kind(), error.code(), error.to_string());
        match error {
            Error::Print(cause) => fault.caused_by(cause),
            Error::Closure(cause) => fault.caused_by(cause),
            Error::Fenced { .. } => fault,
        }
    }
}
