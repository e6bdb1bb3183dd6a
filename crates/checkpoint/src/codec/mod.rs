//! How records are stored. Wire types are never domain types; each format version has a module of its own.

mod v1;

pub use v1::{FORMAT, decode_slot, encode_slot};

/// Why a slot cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// Written by a newer version.
    #[error("format version {0} is newer than {FORMAT}")]
    Newer(u8),
    /// Not what was written.
    #[error("{0}")]
    Damaged(String),
}

#[cfg(test)]
mod tests;
