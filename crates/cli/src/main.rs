//! The `baton` binary: from what was typed to an exit code.

mod args;
mod child;
mod commands;
mod env;
mod failure;
mod health;
mod job;
mod render;
mod report;
mod signals;
mod talk;
mod wire;

use clap::Parser;
use std::process::ExitCode;

// librdkafka and Arrow allocate much and on many threads; measured faster and smaller than the system's.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    if let Some(code) = child::role() {
        return code;
    }
    let cli = args::Cli::parse();
    let format = cli.talk.log_format;
    talk::install(cli.talk);
    match commands::run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            talk::failed(&failure, format);
            ExitCode::from(failure.exit_code())
        }
    }
}
