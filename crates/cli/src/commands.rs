//! The commands, one file each.

mod broker;
mod checkpoint;
mod exec;
mod produce;
mod run;
mod show;
mod status;
mod stop;
mod validate;

use clap::CommandFactory;
use std::future::Future;
use std::io::{ErrorKind, Write};
use std::time::Duration;

use crate::args::{Cli, Command};
use crate::failure::{Failure, Result};
use crate::{job, wire};

/// How long tasks that a command leaves behind may hold up its end.
const FAREWELL: Duration = Duration::from_millis(100);

/// Does what was typed, and gives the exit code.
pub(crate) fn run(cli: Cli) -> Result<u8> {
    let verbose = cli.talk.verbose > 0;
    match cli.command {
        Command::Run(args) => block_on(run::run(args)),
        Command::Validate(args) => block_on(validate::run(args, verbose)),
        Command::Status(args) => block_on(status::run(args)),
        Command::Stop(args) => block_on(stop::run(args)),
        Command::Checkpoint(command) => block_on(checkpoint::run(command)),
        Command::Exec(args) => block_on(exec::run(args)),
        Command::Broker(args) => block_on(broker::run(args)),
        Command::Produce(args) => block_on(produce::run(args)),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "baton", &mut script);
            print(&script)?;
            Ok(0)
        }
    }
}

fn block_on(command: impl Future<Output = Result<u8>>) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::new(
                baton_core::ErrorKind::Unavailable,
                "E0511",
                format!("cannot start threads: {error}"),
            )
        })?;
    let result = runtime.block_on(command);
    // A write to a pipe that nobody reads must not keep the process.
    runtime.shutdown_timeout(FAREWELL);
    result
}

/// Writes a result to stdout. A reader that has gone wants no more, which is no failure.
fn print(bytes: &[u8]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::output(&error)),
        _ => Ok(()),
    }
}

/// The same, saying whether anybody still reads.
fn print_while_read(bytes: &[u8]) -> Result<bool> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::output(&error)),
    }
}

/// `CHECKPOINT`: a location, or a job file whose checkpointLocation is meant.
fn checkpoint(argument: &str) -> Result<baton_checkpoint::Location> {
    match job::is_job_file(argument) {
        Some(file) => wire::location(&job::checkpoint_of(&file)?),
        None => wire::location(argument),
    }
}
