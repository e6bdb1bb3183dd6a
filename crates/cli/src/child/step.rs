//! The last step before the command.

use std::ffi::OsString;
use std::io::ErrorKind as Io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::{not_executable, not_found, refused};
use crate::args::LogFormat;
use crate::failure::Failure;
use crate::talk;

/// Becomes the command: `baton-step PARENT COMMAND ARGUMENT…`. Returns only if that fails.
pub(super) fn run(args: &[OsString]) -> ExitCode {
    let failure = become_command(args);
    talk::failed(&failure, LogFormat::Text);
    ExitCode::from(failure.exit_code())
}

fn become_command(args: &[OsString]) -> Failure {
    let [parent, command, arguments @ ..] = args else {
        return refused("start the command", "it is not said which");
    };
    // The death signal outlives the exec. It is sent to a child whose parent dies from now on, so that comes first and the
    // look second: a parent that died before is not the parent any more.
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return refused("tie the command to its guard", error);
    }
    if getppid().map(|pid| pid.to_string()) != parent.to_str().map(str::to_owned) {
        return refused("start the command", "its guard has ended");
    }
    let error = Command::new(command).args(arguments).exec();
    match error.kind() {
        Io::NotFound => not_found(command),
        _ => not_executable(command, &error.to_string()),
    }
}
