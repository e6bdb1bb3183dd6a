//! The search of the ownership protocol's model.

use std::process::{Command, ExitCode, Stdio};

use crate::{Result, cargo};

/// The protocol without any back end: what is searched builds in a minute.
const TARGET: [&str; 5] = [
    "-p",
    "baton-checkpoint",
    "--no-default-features",
    "--test",
    "model",
];

/// A hundred times the test command's random histories, eight times its shortest ones; up to 8 GB of memory.
const STATES: &str = "100000000";

/// `cargo xtask model`: the larger search.
pub(crate) fn run() -> Result<ExitCode> {
    let status = command()
        .env("BATON_MODEL_STATES", STATES)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The search within the test command's bounds.
pub(crate) fn command() -> Command {
    let search = [&["test", "--profile", "sim"], &TARGET[..], &["--", "--nocapture"]].concat();
    cargo::command(&search)
}

/// It is no target of the others, which would search twice.
pub(crate) fn clippy() -> Command {
    cargo::command(&[&["clippy", "--quiet"], &TARGET[..], &["--", "--deny", "warnings"]].concat())
}
