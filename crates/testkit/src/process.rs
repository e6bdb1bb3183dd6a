//! A child process whose streams are files and whose end is bounded.

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::realtime::poll_until;

/// A child process with stdout and stderr in files.
///
/// Dropping it kills it (SIGKILL, by its own pid) and waits for it, so that a failing test leaves nothing behind.
#[derive(Debug)]
pub struct Process {
    child: Child,
    label: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts `program`; its streams become `<logs>/<label>.out` and `<logs>/<label>.err`.
    ///
    /// # Errors
    /// When a log file cannot be made or the program cannot be started.
    pub fn spawn<A: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = A>,
        logs: &Path,
        label: &str,
    ) -> io::Result<Self> {
        let stdout = logs.join(format!("{label}.out"));
        let file = File::create(&stdout)?;
        Self::start(program, args, Stdio::from(file), stdout, logs, label)
    }

    /// Starts `program` with a stdout that nobody reads until the test does: once the pipe is full, a batch that is
    /// printed takes as long as the test wants.
    ///
    /// # Errors
    /// As [`Process::spawn`].
    pub fn spawn_unread<A: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = A>,
        logs: &Path,
        label: &str,
    ) -> io::Result<(Self, ChildStdout)> {
        let stdout = logs.join(format!("{label}.out"));
        let mut process = Self::start(program, args, Stdio::piped(), stdout, logs, label)?;
        let pipe = process
            .child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("stdout is no pipe"))?;
        Ok((process, pipe))
    }

    fn start<A: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = A>,
        out: Stdio,
        stdout: PathBuf,
        logs: &Path,
        label: &str,
    ) -> io::Result<Self> {
        let stderr = logs.join(format!("{label}.err"));
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(File::create(&stderr)?)
            .env_remove("RUST_LOG")
            .env("NO_COLOR", "1")
            .spawn()?;
        Ok(Self {
            child,
            label: label.to_owned(),
            stdout,
            stderr,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file that takes its stdout.
    #[must_use]
    pub fn stdout_path(&self) -> &Path {
        &self.stdout
    }

    /// What it has printed so far; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    /// What it has said on stderr so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the pid does not fit"))?;
        Ok(kill_process(pid, signal)?)
    }

    /// Whether it has not ended.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn is_running(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Waits for its end and returns the exit code as a shell shows it: 128 + signal for one that was killed.
    ///
    /// # Errors
    /// When it has not ended within `bound`; the text holds the end of its stderr.
    pub fn wait_exit(&mut self, bound: Duration) -> io::Result<i32> {
        let mut failed = None;
        let child = &mut self.child;
        let ended = poll_until("end of the process", bound, || match child.try_wait() {
            Ok(status) => status.map(shell_code),
            Err(error) => {
                failed = Some(error);
                Some(-1)
            }
        });
        match (failed, ended) {
            (Some(error), _) => Err(error),
            (None, Ok(code)) => Ok(code),
            (None, Err(error)) => Err(self.explain(&error)),
        }
    }

    /// Waits until a line of stderr contains `pattern`, and returns the line.
    ///
    /// # Errors
    /// When no such line comes within `bound`; the text holds the end of its stderr.
    pub fn wait_for_line(&self, pattern: &str, bound: Duration) -> io::Result<String> {
        let find = || {
            self.stderr()
                .lines()
                .find(|line| line.contains(pattern))
                .map(str::to_owned)
        };
        poll_until(&format!("a line with {pattern:?}"), bound, find).map_err(|error| self.explain(&error))
    }

    fn explain(&self, error: &io::Error) -> io::Error {
        let stderr = self.stderr();
        let lines: Vec<&str> = stderr.lines().collect();
        let tail = lines[lines.len().saturating_sub(15)..].join("\n  ");
        io::Error::new(
            error.kind(),
            format!("{} (pid {}): {error}; stderr:\n  {tail}", self.label, self.pid()),
        )
    }

    /// Kills it (SIGKILL) and waits for its end.
    ///
    /// # Errors
    /// When the system cannot wait for it.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Resident memory in bytes, the highest since its start.
    ///
    /// # Errors
    /// When it is gone or the system does not tell.
    pub fn peak_rss(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok())
            .map(|kib| kib * 1024)
            .ok_or_else(|| io::Error::other("no VmHWM in its status"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has ended already, which is what is wanted.
        drop(self.kill());
    }
}

fn shell_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(-1)
}

fn text(path: &Path) -> String {
    fs::read(path).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn sh(script: &str, logs: &Path) -> Process {
        Process::spawn(Path::new("/bin/sh"), ["-c", script], logs, "sh").expect("there is a shell")
    }

    #[test]
    fn the_code_is_the_shells() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        assert_eq!(sh("exit 3", dir.path()).wait_exit(SOON).expect("it ends"), 3);
        assert_eq!(
            sh("kill -TERM $$", dir.path()).wait_exit(SOON).expect("it ends"),
            143
        );
    }

    #[test]
    fn a_process_that_does_not_end_is_an_error_with_its_last_words() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let mut process = sh("echo so it is >&2; exec sleep 60", dir.path());
        process.wait_for_line("so it is", SOON).expect("it says so");
        let error = process
            .wait_exit(Duration::from_millis(50))
            .expect_err("it sleeps");
        assert!(error.to_string().contains("so it is"), "{error}");
    }

    #[test]
    fn dropping_it_kills_it() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let process = sh("exec sleep 60", dir.path());
        let proc = PathBuf::from(format!("/proc/{}", process.pid()));
        assert!(proc.exists());
        drop(process);
        assert!(!proc.exists());
    }
}
