//! The guard's end.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, set_child_subreaper};

use super::{Inbox, MYSELF, OVER, WARDEN, refused, send, tree};
use crate::failure::Result;

/// A command that runs under this guard. Dropping it kills the command and all its descendants, and returns when they are
/// gone.
#[derive(Debug)]
pub(crate) struct Ward {
    warden: Child,
    pid: Pid,
    endings: Inbox,
    ended: bool,
}

impl Ward {
    /// Starts a command. It must be called on the main thread: the kernel ties the death signal to the thread.
    ///
    /// The lock goes to the command and is closed here. From a terminal the command gets no input: in its own process
    /// group it could only be stopped for trying to read.
    pub(crate) fn start<'a>(
        command: &[OsString],
        environment: impl IntoIterator<Item = (&'a str, &'a OsStr)>,
        stop_timeout: Duration,
        lock: OwnedFd,
    ) -> Result<Self> {
        let endings = Inbox::listen(&[Signal::CHILD])?;
        // Should the warden be killed, what it had adopted comes here.
        set_child_subreaper(Some(getpid()))
            .map_err(|error| refused("adopt what the command starts", error))?;
        let stdin = if std::io::stdin().is_terminal() {
            Stdio::null()
        } else {
            Stdio::inherit()
        };
        let warden = Command::new(MYSELF)
            .arg0(WARDEN)
            .arg(getpid().to_string())
            .arg(stop_timeout.as_millis().to_string())
            .args(command)
            .envs(environment)
            .stdin(stdin)
            .process_group(0)
            .spawn()
            .map_err(|error| refused("start the command", error))?;
        drop(lock);
        let pid = i32::try_from(warden.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| refused("start the command", "its process id is none"))?;
        Ok(Self {
            warden,
            pid,
            endings,
            ended: false,
        })
    }

    /// Waits until nothing is left of the command; its exit code, 128 + n if signal n ended it.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn ended(&mut self) -> Result<u8> {
        loop {
            let looked = self.warden.try_wait();
            if let Some(status) = looked.map_err(|error| refused("wait for the command", error))? {
                self.ended = true;
                if status.signal().is_some() {
                    tree::end();
                }
                return Ok(code(status));
            }
            self.endings.next().await;
        }
    }

    /// Passes a signal on to the command.
    pub(crate) fn pass_on(&self, signal: Signal) {
        send(self.pid, signal);
    }

    /// Kills the command and all its descendants.
    pub(crate) fn kill(&self) {
        self.pass_on(OVER);
    }
}

impl Drop for Ward {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
            // An error means that there is nobody to wait for.
            drop(self.warden.wait());
            tree::end();
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
