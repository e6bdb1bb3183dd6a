//! `baton checkpoint …`: looking into a checkpoint, and repairing it from outside.

mod fork;
mod rewind;
mod verify;

use baton_checkpoint::Location;
use serde_json::Value;

use crate::args::CheckpointCommand;
use crate::failure::{Failure, Result};

pub(super) async fn run(command: CheckpointCommand) -> Result<u8> {
    match command {
        CheckpointCommand::Show(args) => super::show::run(args).await,
        CheckpointCommand::Verify(args) => verify::run(args).await,
        CheckpointCommand::Rewind(args) => rewind::run(args).await,
        CheckpointCommand::Fork(args) => fork::run(args).await,
    }
}

/// A place that was mistyped must not look like a checkpoint that is in order.
pub(super) fn none_at(location: &Location) -> Failure {
    let text =
        format!("there is no checkpoint at `{location}`; name its directory, or the job file that does");
    Failure::invalid("E0514", text)
}

/// Adds what became of it to what was said before.
fn with(mut json: Value, more: impl IntoIterator<Item = (&'static str, Value)>) -> String {
    if let Some(object) = json.as_object_mut() {
        object.extend(more.into_iter().map(|(key, value)| (key.to_owned(), value)));
    }
    format!("{json}\n")
}
