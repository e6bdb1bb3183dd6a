//! What can be wrong with a query's SQL.

use baton_core::{ErrorKind, SourceName};
use datafusion::error::DataFusionError;
use std::fmt;

/// Where in the SQL text, both counted from 1; nothing is printed where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line, or 0.
    pub line: u64,
    /// Column, or 0.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return Ok(());
        }
        write!(f, " at line {}, column {}", self.line, self.column)
    }
}

/// Why SQL cannot be compiled, or a compiled query not be bound to a batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no SQL.
    #[error("sql cannot be read: {reason}")]
    Syntax {
        /// What the parser expected; it names line and column itself.
        reason: String,
    },
    /// A table nobody knows.
    #[error("table `{name}`{place} is not a source of this job{hint}")]
    UnknownTable {
        /// As written.
        name: String,
        /// Where.
        place: Place,
        /// `; did you mean …?` and what there is.
        hint: String,
    },
    /// A column nobody knows.
    #[error("column `{name}`{place} does not exist{hint}")]
    UnknownColumn {
        /// As written.
        name: String,
        /// Where.
        place: Place,
        /// `; did you mean …?` and what there is.
        hint: String,
    },
    /// A function nobody knows.
    #[error("function `{name}`{place} does not exist{hint}")]
    UnknownFunction {
        /// As written.
        name: String,
        /// Where.
        place: Place,
        /// `; did you mean …?`, or empty.
        hint: String,
    },
    /// Something that needs more than a batch's rows.
    #[error(
        "{operator}{place} needs more than the rows of one batch, which a stateless query has not; {hint}"
    )]
    NotStreamable {
        /// The operator as in SQL.
        operator: String,
        /// Where.
        place: Place,
        /// What to do instead.
        hint: String,
    },
    /// Something else than one SELECT.
    #[error(
        "a job's sql is one SELECT, not {statement}; where rows come from and go to is said outside of the sql"
    )]
    NotAQuery {
        /// What it is.
        statement: String,
    },
    /// Arguments or operands of the wrong type or number.
    #[error("{what}{place} {reason}")]
    Mismatch {
        /// The function or operator.
        what: String,
        /// Where.
        place: Place,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// SQL that Spark has and this version has not.
    #[error("{what}{place} is not supported; {hint}")]
    Unsupported {
        /// What.
        what: String,
        /// Where.
        place: Place,
        /// What to do instead.
        hint: String,
    },
    /// A name that more than one column has.
    #[error("column `{name}`{place} is ambiguous: it could be {candidates}; qualify it or give one an alias")]
    Ambiguous {
        /// As written.
        name: String,
        /// Where.
        place: Place,
        /// The columns it could be.
        candidates: String,
    },
    /// A source stands more than once in the query.
    #[error(
        "source `{name}` is read twice; a batch's rows can be read once: use one SELECT with CASE or explode(array(…)), or define a second source over the same topic"
    )]
    ReadTwice {
        /// Which.
        name: SourceName,
    },
    /// The planner or an operator failed.
    #[error("the query cannot be planned")]
    Plan(#[source] Box<DataFusionError>),
    /// The engine did not give a source's streams.
    #[error("source `{name}` has no streams in this batch; this is a bug")]
    NotBound {
        /// Which.
        name: SourceName,
    },
}

impl Error {
    /// What a caller does about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Syntax { .. }
            | Self::UnknownTable { .. }
            | Self::UnknownColumn { .. }
            | Self::UnknownFunction { .. }
            | Self::NotStreamable { .. }
            | Self::NotAQuery { .. }
            | Self::Mismatch { .. }
            | Self::Unsupported { .. }
            | Self::Ambiguous { .. }
            | Self::ReadTwice { .. }
            | Self::Plan(_) => ErrorKind::Invalid,
            Self::NotBound { .. } => ErrorKind::Internal,
        }
    }

    /// The stable code, with a page of its own under `docs/errors/`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "E0410",
            Self::UnknownTable { .. } => "E0411",
            Self::UnknownColumn { .. } => "E0412",
            Self::UnknownFunction { .. } => "E0413",
            Self::NotStreamable { .. } => "E0414",
            Self::NotAQuery { .. } => "E0415",
            Self::Mismatch { .. } => "E0416",
            Self::Unsupported { .. } => "E0417",
            Self::Ambiguous { .. } => "E0418",
            Self::ReadTwice { .. } => "E0419",
            Self::Plan(_) => "E0420",
            Self::NotBound { .. } => "E0421",
        }
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        Self::Plan(Box::new(error))
    }
}
