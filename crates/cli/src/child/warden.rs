//! The process between a guard and its command.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process_group, set_child_subreaper, set_parent_process_death_signal,
};

use super::tree::{self, Reaped};
use super::{Inbox, MYSELF, OVER, STEP, refused, send};
use crate::args::LogFormat;
use crate::failure::Result;
use crate::{talk, wire};

/// What a warden is told: `baton-warden GUARD STOP-TIMEOUT COMMAND ARGUMENT…`.
struct Orders<'a> {
    /// The guard's process id.
    guard: &'a str,
    /// How long what the command leaves behind may take to end.
    stop_timeout: Duration,
    command: &'a [OsString],
}

/// Runs the command, and ends with its exit code when nothing is left of it.
pub(super) fn run(args: &[OsString]) -> ExitCode {
    let ended = Orders::read(args).and_then(|orders| {
        // One thread: the command's death signal is tied to the thread that started it.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| refused("watch the command", error))?;
        runtime.block_on(watch(&orders))
    });
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            talk::failed(&failure, LogFormat::Text);
            ExitCode::from(failure.exit_code())
        }
    }
}

impl<'a> Orders<'a> {
    fn read(args: &'a [OsString]) -> Result<Self> {
        let orders = match args {
            [guard, millis, command @ ..] if !command.is_empty() => guard
                .to_str()
                .zip(millis.to_str().and_then(|millis| millis.parse().ok()))
                .map(|(guard, millis)| Self {
                    guard,
                    stop_timeout: Duration::from_millis(millis),
                    command,
                }),
            _ => None,
        };
        orders.ok_or_else(|| refused("watch the command", "it is not said which"))
    }
}

async fn watch(orders: &Orders<'_>) -> Result<u8> {
    // Before anything is started: nothing may get lost.
    let mut passed = Inbox::passed()?;
    let mut over = Inbox::listen(&[OVER])?;
    let mut endings = Inbox::listen(&[Signal::CHILD])?;
    set_parent_process_death_signal(Some(OVER))
        .map_err(|error| refused("be told of the guard's end", error))?;
    // The guard may have ended before it could be said to whom that matters.
    if getppid().map(|pid| pid.to_string()).as_deref() != Some(orders.guard) {
        return Err(refused("start the command", "its guard has ended"));
    }
    set_child_subreaper(Some(getpid())).map_err(|error| refused("adopt what the command starts", error))?;
    let command = start(orders)?;

    let clock = wire::deps().clock;
    let mut code = None;
    let mut killing = false;
    let mut told = BTreeSet::new();
    let mut deadline = None;
    loop {
        loop {
            match tree::reap() {
                Reaped::One(pid, ended) if pid == command => code = Some(ended),
                Reaped::One(..) => {}
                Reaped::None => break,
                Reaped::NoChildren => return Ok(code.unwrap_or(u8::MAX)),
            }
        }
        if killing {
            // Again after each end: whoever had that parent is ours now.
            tree::signal(Signal::KILL, |_| true);
        } else if code.is_some() {
            // The command is over, and so is the time of what it has left behind.
            tree::signal(Signal::TERM, |pid| told.insert(pid.as_raw_nonzero()));
            deadline = deadline.or_else(|| clock.elapsed().checked_add(orders.stop_timeout));
        }
        let patience = deadline
            .filter(|_| !killing)
            .map(|deadline| deadline.saturating_sub(clock.elapsed()));
        let run_out = async {
            match patience {
                Some(patience) => clock.sleep(patience).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = endings.next() => {}
            _ = over.next() => killing = true,
            () = run_out => killing = true,
            signal = passed.next() => if code.is_none() {
                pass_on(command, signal);
            },
        }
    }
}

/// Starts the command in a process group of its own: what a terminal sends to its foreground group does not reach it
/// beside what the guard passes on.
fn start(orders: &Orders<'_>) -> Result<Pid> {
    let child = Command::new(MYSELF)
        .arg0(STEP)
        .arg(getpid().to_string())
        .args(orders.command)
        .process_group(0)
        .spawn()
        .map_err(|error| refused("start the command", error))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| refused("start the command", "its process id is none"))
}

/// What a keyboard sends is for all that are in front of it, the rest for the command alone.
fn pass_on(command: Pid, signal: Signal) {
    let group = matches!(signal, Signal::INT | Signal::QUIT);
    if !group {
        send(command, signal);
    } else if let Err(errno) = kill_process_group(command, signal) {
        // Ended just now.
        tracing::debug!(%errno, ?signal, "a signal was not sent");
    }
}
