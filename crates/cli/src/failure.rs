//! Why a command ends without success: one line, one code, one exit code.

use baton_core::ErrorKind;
use std::error::Error as StdError;
use std::fmt;

/// The command's result.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// A failure as its user reads it.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Decides the exit code.
    pub(crate) kind: ErrorKind,
    /// Names the page under `docs/errors/`.
    pub(crate) code: &'static str,
    text: String,
    /// Where the kind does not decide.
    exit_code: Option<u8>,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, code: &'static str, text: impl Into<String>) -> Self {
        Self {
            kind,
            code,
            text: text.into(),
            exit_code: None,
        }
    }

    /// The same with an exit code of its own.
    pub(crate) const fn exits(mut self, code: u8) -> Self {
        self.exit_code = Some(code);
        self
    }

    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code.unwrap_or_else(|| self.kind.exit_code())
    }

    pub(crate) fn invalid(code: &'static str, text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, code, text)
    }

    /// A library's error with its causes, each said once.
    pub(crate) fn of(kind: ErrorKind, code: &'static str, error: &dyn StdError) -> Self {
        Self::new(kind, code, chain(error))
    }

    /// The same with where it is in front.
    pub(crate) fn at(mut self, place: &impl fmt::Display) -> Self {
        self.text = format!("{place}: {}", self.text);
        self
    }

    /// Whether whoever reads our stdout has gone, which is no failure of ours.
    pub(crate) fn output(error: &std::io::Error) -> Self {
        Self::new(
            ErrorKind::Unavailable,
            "E0510",
            format!("cannot write to stdout: {error}"),
        )
    }
}

impl fmt::Display for Failure {
    /// On one line, whatever the causes' texts look like.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.text.split_whitespace().collect();
        f.write_str(&words.join(" "))
    }
}

/// An error and its causes on one line; a cause whose text its effect already contains is left out.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let more = deeper.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = deeper.source();
    }
    text
}

impl From<baton_core::Error> for Failure {
    fn from(error: baton_core::Error) -> Self {
        Self::of(error.kind(), error.code(), &error)
    }
}

impl From<baton_core::Fault> for Failure {
    fn from(fault: baton_core::Fault) -> Self {
        Self::of(fault.kind, fault.code, &fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_stands_on_one_line_with_its_causes() {
        let fault =
            baton_core::Fault::new(ErrorKind::Failed, "E0001", "it\n  broke").caused_by("because\nof that");
        assert_eq!(Failure::from(fault).to_string(), "it broke: because of that");
    }
}
