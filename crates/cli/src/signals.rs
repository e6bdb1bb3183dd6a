//! Signals: the first asks, the second insists.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, Result};

/// The signals that end a command.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caught {
    pub(crate) name: &'static str,
    number: u8,
}

impl Caught {
    /// The exit code of a process that a signal ends, as shells show it.
    pub(crate) const fn exit_code(self) -> u8 {
        128 + self.number
    }
}

impl Signals {
    /// Handlers from now on, also for process 1, for which the kernel has no default ones.
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(
                    baton_core::ErrorKind::Internal,
                    "E0511",
                    format!("cannot listen for signals: {error}"),
                )
            })
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            // Under nohup a closed terminal is no reason to end.
            hang_up: if is_ignored(1) {
                None
            } else {
                Some(listen(SignalKind::hangup())?)
            },
        })
    }

    /// The next signal.
    ///
    /// # Cancel safety
    /// A signal that nobody waits for is kept for the next call.
    pub(crate) async fn next(&mut self) -> Caught {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Caught { name: "SIGINT", number: 2 },
            _ = self.terminate.recv() => Caught { name: "SIGTERM", number: 15 },
            _ = hang_up => Caught { name: "SIGHUP", number: 1 },
        }
    }
}

/// Whether the process was started with a signal ignored; where the system does not say, it was not.
pub(crate) fn is_ignored(number: u32) -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, number))
}

fn ignores(status: &str, number: u32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ignored_signals_are_read_from_the_kernels_mask() {
        let status = "Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t1\n";
        assert!(ignores(status, 1) && ignores(status, 13));
        assert!(!ignores(status, 2) && !ignores("", 1));
    }
}
