//! Identifiers, each a type of its own so that the compiler tells a batch from an epoch.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

use crate::{Error, Result};

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

uuid_id! {
    /// Names a checkpoint for its whole life, over all owners, versions and epochs; Spark's query `id`.
    CheckpointId
}
uuid_id! {
    /// Names one start of one process on a checkpoint; Spark's `runId`.
    RunId
}
uuid_id! {
    /// Names one candidate or owner, that is, one process that asked for a checkpoint.
    OwnerId
}
uuid_id! {
    /// Names one attempt to write one log slot, so that a writer that lost the reply can tell its own record.
    WriteId
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one that follows.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// The number of a micro-batch, contiguous from 0 over the life of a checkpoint.
    BatchId
}
counter! {
    /// The fencing token: each new owner of a checkpoint has the previous owner's epoch plus one.
    Epoch
}

/// The name of a source in SQL and in the job file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SourceName(Arc<str>);

impl SourceName {
    /// Accepts `[A-Za-z_][A-Za-z0-9_]*`, what SQL takes without quotes.
    ///
    /// # Errors
    /// [`Error::InvalidName`] for anything else.
    pub fn new(name: &str) -> Result<Self> {
        let mut chars = name.chars();
        let starts_well = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if starts_well && chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            Ok(Self(name.into()))
        } else {
            Err(Error::InvalidName {
                name: name.to_owned(),
                rule: "[A-Za-z_][A-Za-z0-9_]*",
            })
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SourceName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::new(&name).map_err(serde::de::Error::custom)
    }
}
