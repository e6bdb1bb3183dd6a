//! A real Kafka on loopback, through `tools/kafka/kafka`.

use std::process::{ExitCode, Stdio};

use crate::server::{Server, tool};
use crate::{Result, setup};

/// `cargo xtask kafka ARGS…`.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    setup::ensure(true)?;
    let status = tool("kafka")
        .args(args)
        .status()
        .map_err(|error| format!("cannot run tools/kafka/kafka: {error}"))?;
    Ok(status.code().map_or(ExitCode::FAILURE, |code| {
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }))
}

/// A broker with a directory of its own; stopped and wiped when dropped.
pub(crate) struct Broker(Server);

impl Broker {
    /// Starts one; the first time, its jars are fetched.
    pub(crate) fn start() -> Result<Self> {
        Server::start("kafka").map(Self)
    }

    /// Makes a topic.
    pub(crate) fn topic(&self, name: &str, partitions: u32) -> Result<()> {
        let made = tool("kafka")
            .args(["topics", "--dir"])
            .arg(self.0.dir())
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
        self.0.address()
    }
}
