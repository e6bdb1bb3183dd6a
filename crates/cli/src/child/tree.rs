//! The processes under this one.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, wait};

use super::send;

/// What became of this process's children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaped {
    /// One has ended, with an exit code as a shell shows it.
    One(Pid, u8),
    /// All live.
    None,
    /// There are none.
    NoChildren,
}

/// Takes note of one child that has ended. Never waits.
pub(super) fn reap() -> Reaped {
    of_wait(wait(WaitOptions::NOHANG))
}

fn of_wait(found: rustix::io::Result<Option<(Pid, WaitStatus)>>) -> Reaped {
    match found {
        Ok(Some((pid, status))) => Reaped::One(pid, code(status)),
        Ok(None) | Err(Errno::INTR) => Reaped::None,
        Err(_) => Reaped::NoChildren,
    }
}

/// Kills everything under this process, which adopts what loses its parent, and returns when it is gone. A process that
/// hangs in a system call is waited for: it may still write.
pub(super) fn end() {
    loop {
        signal(Signal::KILL, |_| true);
        if of_wait(wait(WaitOptions::empty())) == Reaped::NoChildren {
            return;
        }
    }
}

/// Sends a signal to the children that `meant` names.
pub(super) fn signal(signal: Signal, mut meant: impl FnMut(Pid) -> bool) {
    for child in children().into_iter().filter(|&child| meant(child)) {
        send(child, signal);
    }
}

/// The children of this process. Until they are reaped their numbers are nobody else's.
fn children() -> Vec<Pid> {
    let me = getpid();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| parent(&stat) == Some(me))
    })
    .collect()
}

/// From `/proc/PID/stat`: `4711 (any )name) S 42 …`.
fn parent(stat: &str) -> Option<Pid> {
    let (_, rest) = stat.rsplit_once(')')?;
    Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?)
}

fn code(status: WaitStatus) -> u8 {
    let code = status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_whatever_the_process_is_called() {
        let parent = |stat| parent(stat).map(Pid::as_raw_nonzero).map(std::num::NonZero::get);
        assert_eq!(parent("7 (sh) S 42 7 7 0"), Some(42));
        assert_eq!(parent("7 (a) S 1 b) R 43 7"), Some(43));
        assert_eq!(parent("7 (sh) S 0 7"), None);
        assert_eq!(parent(""), None);
    }
}
