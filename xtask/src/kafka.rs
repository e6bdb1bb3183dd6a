//! A real Kafka on loopback, through `tools/kafka/kafka`.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::guard::Guard;
use crate::{Result, setup, target};

fn tool() -> Command {
    Command::new(target::root().join("tools/kafka/kafka"))
}

/// `cargo xtask kafka ARGS…`.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    setup::ensure(true)?;
    let status = tool()
        .args(args)
        .status()
        .map_err(|error| format!("cannot run tools/kafka/kafka: {error}"))?;
    Ok(status.code().map_or(ExitCode::FAILURE, |code| {
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }))
}

/// A broker with a directory of its own; stopped and wiped when dropped.
pub(crate) struct Broker {
    dir: PathBuf,
    address: String,
    /// Kafka is no child of this program and does not end with it.
    _guard: Guard,
}

impl Broker {
    /// Starts one; the first time, its jars are fetched.
    pub(crate) fn start() -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("baton-kafka-{}", std::process::id()));
        let stop = "\"$1\" stop --wipe --dir \"$2\"";
        let guard = Guard::new(stop, &[tool().get_program(), dir.as_os_str()])?;
        // Made before it starts: whatever a half start leaves is cleaned up.
        let mut broker = Self {
            dir,
            address: String::new(),
            _guard: guard,
        };
        let started = tool()
            .arg("start")
            .arg("--dir")
            .arg(&broker.dir)
            .stderr(Stdio::inherit())
            .output();
        let started = started.map_err(|error| format!("cannot run tools/kafka/kafka: {error}"))?;
        if !started.status.success() {
            return Err("Kafka did not start; `cargo xtask kafka start` shows why".to_owned());
        }
        String::from_utf8_lossy(&started.stdout)
            .trim()
            .clone_into(&mut broker.address);
        Ok(broker)
    }

    /// Makes a topic.
    pub(crate) fn topic(&self, name: &str, partitions: u32) -> Result<()> {
        let made = tool()
            .args(["topics", "--dir"])
            .arg(&self.dir)
            .args([
                "--create",
                "--topic",
                name,
                "--partitions",
                &partitions.to_string(),
            ])
            .stdout(Stdio::null())
            .status();
        match made {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("topic {name} could not be made: {status}")),
            Err(error) => Err(format!("cannot run tools/kafka/kafka: {error}")),
        }
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let stopped = tool()
            .args(["stop", "--wipe", "--dir"])
            .arg(&self.dir)
            .stdout(Stdio::null())
            .status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!("xtask: Kafka in {} could not be stopped", self.dir.display());
        }
    }
}
