//! The error of the seams.

use std::error::Error as StdError;
use std::fmt;

use crate::ErrorKind;

/// A failure of a source or a sink, in the form the engine acts upon.
///
/// Each implementing crate has an error enum of its own and turns it into this at the trait's edge; the enum travels
/// along as the cause's text. `kind` decides what happens next, `code` names the page that explains it.
#[derive(Debug)]
pub struct Fault {
    /// What the caller does about it.
    pub kind: ErrorKind,
    /// The stable code, `E0107`.
    pub code: &'static str,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Fault {
    /// A failure without a deeper cause.
    #[must_use]
    pub fn new(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            code,
            message: message.into(),
            source: None,
        }
    }

    /// The same, caused by `source`, whose text is not repeated in this one's.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Fault {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|s| s as &(dyn StdError + 'static))
    }
}

impl From<crate::Error> for Fault {
    fn from(error: crate::Error) -> Self {
        Self::new(error.kind(), error.code(), error.to_string())
    }
}
