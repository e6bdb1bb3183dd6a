//! Where everything is measured: release binaries, a real broker, files on a real disk.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::kafka::Broker;
use crate::process::Process;
use crate::scratch::Scratch;
use crate::{Result, cargo, target};

/// How long one process may run.
pub(super) const BOUND: Duration = Duration::from_secs(300);
const SQL: &str =
    "SELECT message, length(message) AS n FROM (SELECT CAST(value AS STRING) AS message FROM messages)";

pub(super) struct Lab {
    bin: PathBuf,
    pub(super) broker: Broker,
    pub(super) scratch: Scratch,
}

/// What a process used, as far as was seen before its end.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Used {
    pub(super) seconds: f64,
    /// Its largest resident set, in MB.
    pub(super) peak_mb: f64,
    pub(super) cpu_seconds: f64,
}

impl Lab {
    /// Builds and starts what is needed.
    pub(super) fn open() -> Result<Self> {
        eprintln!("building in release; the first time that takes about fifteen minutes on two cores");
        // Of the whole workspace, so that features are those of every other build; but what is optimized as a whole takes
        // minutes each, so only what is measured.
        let measured = [
            "--bin",
            "baton",
            "--bin",
            "commit-cost",
            "--example",
            "bare_consumer",
        ];
        let built =
            cargo::command(&[&["build", "--release", "--workspace"], &measured[..]].concat()).status();
        if !built
            .map_err(|error| format!("cannot run cargo: {error}"))?
            .success()
        {
            return Err("the release build failed; what cargo says is above".to_owned());
        }
        // Not in the system's temporary directory, which may be memory.
        let scratch = Scratch::new(&target::dir(), "bench")?;
        Ok(Self {
            bin: target::dir().join("release"),
            broker: Broker::start()?,
            scratch,
        })
    }

    /// A binary, by its path under the release directory.
    pub(super) fn bin(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    pub(super) fn dir(&self) -> &Path {
        self.scratch.path()
    }

    /// The command `baton run` of the job `name` on `topic`, into noop; `trigger` is a line of `[trigger]` or nothing.
    pub(super) fn job(&self, name: &str, topic: &str, trigger: &str) -> Result<Command> {
        let toml = format!(
            r#"name = "bench"
version = "${{VERSION:-v1}}"
[source.messages]
format = "kafka"
[source.messages.options]
"kafka.bootstrap.servers" = "{}"
subscribe = "{topic}"
startingOffsets = "earliest"
[query]
sql = "{SQL}"
[sink]
format = "noop"
[sink.options]
checkpointLocation = '{}'
[trigger]
{trigger}
"#,
            self.broker.address(),
            self.dir().join(format!("{name}.checkpoint")).display()
        );
        let file = self.scratch.write(&format!("{name}.toml"), &toml)?;
        let mut command = Command::new(self.bin("baton"));
        command.arg("run").arg(file).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs a command to its end; what it used and printed.
    pub(super) fn run(&self, name: &str, mut command: Command) -> Result<(Used, Vec<String>)> {
        command.stdin(Stdio::null());
        let start = Instant::now();
        let mut process = Process::quiet(name, command, self.dir())?;
        let (pid, mut used) = (process.pid(), Used::default());
        let code = process.wait_while(BOUND, || used.look(pid))?;
        used.seconds = start.elapsed().as_secs_f64();
        if code == 0 {
            Ok((used, process.out.all()))
        } else {
            let last = process.err.last().unwrap_or_default();
            Err(format!("{name} ended with exit code {code}: {last}"))
        }
    }
}

impl Used {
    /// Looks at a living process; one that has just ended leaves the last look as it is.
    fn look(&mut self, pid: u32) {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        if let Some(kib) = peak_kib(&read("status")) {
            self.peak_mb = kib * 1_024.0 / 1e6;
        }
        if let Some(ticks) = ticks(&read("stat")) {
            // The kernel's unit for programs is a hundredth of a second on every platform that has this file.
            self.cpu_seconds = ticks / 100.0;
        }
    }
}

fn peak_kib(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// User and system time. The program's name, in brackets, may hold blanks.
fn ticks(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

/// The first number under `key` in a line of JSON.
pub(super) fn number(json: &str, key: &str) -> Option<f64> {
    let rest = json.split_once(&format!("\"{key}\":"))?.1;
    let end = rest.find([',', '}', ']']).unwrap_or(rest.len());
    rest[..end].trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_used_is_read_from_proc() {
        assert_eq!(
            peak_kib("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"),
            Some(2_048.0)
        );
        let stat = "17 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 4 0";
        assert_eq!(ticks(stat), Some(300.0));
        let mut used = Used::default();
        used.look(std::process::id());
        assert!(used.peak_mb > 0.1, "{used:?}");
    }

    #[test]
    fn numbers_are_read_from_json() {
        let json = r#"{"rows":5,"seconds":1.25,"sources":[{"rows":6}]}"#;
        let found = ["rows", "seconds", "ms"].map(|key| number(json, key));
        assert_eq!(found, [Some(5.0), Some(1.25), None]);
    }
}
