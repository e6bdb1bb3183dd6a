//! The process-level tests with their long counts: hours instead of minutes.

use std::process::{ExitCode, Stdio};

use crate::kafka::Broker;
use crate::s3::Store;
use crate::{Result, cargo, refuse, setup};

/// `cargo xtask soak [TEST…]`: all of them, or those whose names hold one of the words.
pub(crate) fn run(tests: &[String]) -> Result<ExitCode> {
    if let Some(flag) = tests.iter().find(|test| test.starts_with('-')) {
        refuse(&format!("unknown argument `{flag}`; soak takes names of tests"));
    }
    setup::ensure(true)?;
    let broker = Broker::start()?;
    let store = Store::start()?;
    let mut command = cargo::command(&["test", "--workspace", "--test", "process", "--no-fail-fast", "--"]);
    let status = store
        .told_to(&mut command)
        .args(tests)
        .env("BATON_SOAK", "1")
        .env("BATON_TEST_KAFKA", broker.address())
        .env("BATON_REQUIRE_KAFKA", "1")
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
