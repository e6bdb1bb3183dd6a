//! A command that must not outlive its guard.
//!
//! ```text
//! guard ──► warden ──► command ──► whatever it starts
//! ```
//! The guard is `baton exec`: it owns the checkpoint. The warden is a process of its own, so that it is still there when the
//! guard is killed: the kernel tells it, and it kills the command with all its descendants. It adopts those that lose their
//! parent (`PR_SET_CHILD_SUBREAPER`), so none gets away by starting in the background, and it ends when the last one has.
//! It inherits the checkpoint's lock from the guard, and so do they: until all have ended, nobody else gets it.
//!
//! Should the warden itself be killed, the kernel kills the command (`PR_SET_PDEATHSIG`), and the guard ends what is left.
//! Should both be killed at the same instant, descendants of the command may live on, with the lock.
//!
//! Warden and step are this very program under another name, chosen by [`role`]. The step runs between fork and exec of the
//! command, where Rust would need `unsafe`: it asks for the death signal, looks that its parent still lives, and becomes the
//! command.

mod inbox;
mod step;
mod tree;
mod ward;
mod warden;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use baton_core::ErrorKind;
pub(crate) use inbox::Inbox;
use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process};
pub(crate) use ward::Ward;

use crate::failure::{Failure, Result};

/// What a guard passes on to its command.
const PASSED: [Signal; 7] = [
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::HUP,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
];

/// Tells the warden to kill everything; the kernel does when the guard dies.
const OVER: Signal = Signal::ALARM;

/// This program; the path leads to it even if its file was replaced.
const MYSELF: &str = "/proc/self/exe";

const WARDEN: &str = "baton-warden";
const STEP: &str = "baton-step";

/// The exit code of a process that was started as warden or step, once it has ended; `None` in any other.
pub(crate) fn role() -> Option<ExitCode> {
    let mut args = std::env::args_os();
    let name = args.next()?;
    let args: Vec<OsString> = args.collect();
    match name.to_str()? {
        WARDEN => Some(warden::run(&args)),
        STEP => Some(step::run(&args)),
        _ => None,
    }
}

/// Looks whether a command could be started, as the shell would.
pub(crate) fn find(command: &OsStr) -> Result<()> {
    let candidates: Vec<PathBuf> = if command.as_bytes().contains(&b'/') {
        vec![PathBuf::from(command)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/bin:/usr/bin".into());
        std::env::split_paths(&path)
            .map(|dir| dir.join(command))
            .collect()
    };
    let files: Vec<&PathBuf> = candidates.iter().filter(|path| path.is_file()).collect();
    match files.first() {
        Some(_) if files.iter().any(|path| is_executable(path)) => Ok(()),
        Some(path) => Err(not_executable(
            path.as_os_str(),
            "it is no program or may not be executed",
        )),
        None => Err(not_found(command)),
    }
}

fn is_executable(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok()
}

/// Sends a signal to a child that has not been reaped, so that its number is its own. One that has ended needs none, and one
/// that belongs to another user by now can be sent none.
fn send(child: Pid, signal: Signal) {
    if let Err(errno) = kill_process(child, signal) {
        tracing::debug!(%errno, ?signal, "a signal was not sent");
    }
}

/// With the exit codes of shells, `env`, `nohup` and `timeout`.
fn not_found(command: &OsStr) -> Failure {
    let shown = command.to_string_lossy();
    Failure::invalid(
        "E0540",
        format!("command `{shown}` is not found; give its path, or look at PATH"),
    )
    .exits(127)
}

fn not_executable(command: &OsStr, why: &str) -> Failure {
    let shown = command.to_string_lossy();
    let text =
        format!("command `{shown}` cannot be started: {why}; chmod +x it, or start it by its interpreter");
    Failure::new(ErrorKind::Failed, "E0541", text).exits(126)
}

fn refused(what: &str, error: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorKind::Internal, "E0511", format!("cannot {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_looked_for_as_a_shell_does() {
        let check = |command: &str, code: Option<u8>| {
            let found = find(OsStr::new(command)).err().map(|failure| failure.exit_code());
            assert_eq!(found, code, "{command}");
        };
        check("sh", None);
        check("/bin/sh", None);
        check("no-such-command-at-all", Some(127));
        check("/no/such/file", Some(127));
        check("/etc/passwd", Some(126));
        check("/etc", Some(127));
    }
}
