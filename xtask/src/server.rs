//! Servers that tests need, started and stopped by the tool of their name.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::guard::Guard;
use crate::{Result, target};

/// `tools/NAME/NAME`.
pub(crate) fn tool(name: &str) -> Command {
    Command::new(target::root().join("tools").join(name).join(name))
}

/// A server with a directory of its own; stopped and wiped when dropped.
pub(crate) struct Server {
    name: &'static str,
    dir: PathBuf,
    address: String,
    /// It is no child of this program and does not end with it.
    _guard: Guard,
}

impl Server {
    /// Starts one; the first time, what it needs is fetched.
    pub(crate) fn start(name: &'static str) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("baton-{name}-{}", std::process::id()));
        let stop = "\"$1\" stop --wipe --dir \"$2\"";
        let guard = Guard::new(stop, &[tool(name).get_program(), dir.as_os_str()])?;
        // Made before it starts: whatever a half start leaves is cleaned up.
        let mut server = Self {
            name,
            dir,
            address: String::new(),
            _guard: guard,
        };
        let started = tool(name)
            .arg("start")
            .arg("--dir")
            .arg(&server.dir)
            .stderr(Stdio::inherit())
            .output();
        let started = started.map_err(|error| format!("cannot run tools/{name}/{name}: {error}"))?;
        if !started.status.success() {
            return Err(format!(
                "{name} did not start; `tools/{name}/{name} start` shows why"
            ));
        }
        String::from_utf8_lossy(&started.stdout)
            .trim()
            .clone_into(&mut server.address);
        Ok(server)
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let stopped = tool(self.name)
            .args(["stop", "--wipe", "--dir"])
            .arg(&self.dir)
            .stdout(Stdio::null())
            .status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!(
                "xtask: {} in {} could not be stopped",
                self.name,
                self.dir.display()
            );
        }
    }
}
