//! Cleaning up even when this program is killed.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::Result;

/// A shell that waits for the end of this program, whatever ends it, and then cleans up. Dropped, it does nothing:
/// whoever drops it has cleaned up, or has nothing to clean up any more.
pub(crate) struct Guard(Child);

impl Guard {
    /// Runs `script`, a line of shell in which `$1`, `$2`, … are `args`, if this program ends with the guard in place.
    pub(crate) fn new(script: &str, args: &[&OsStr]) -> Result<Self> {
        // Its stdin ends with this program. In a group of its own Ctrl-C does not reach it.
        let guard = Command::new("sh")
            .arg("-c")
            .arg(format!("read -r _; {script}"))
            .arg("guard")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        guard.map(Self).map_err(|error| format!("cannot run sh: {error}"))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_guard_acts_at_the_end_of_this_program_and_not_when_dropped() {
        let scratch = Scratch::new(&std::env::temp_dir(), "guard").expect("a directory can be made");
        let [gone, dropped] = ["gone", "dropped"].map(|name| scratch.path().join(name));
        let script = "echo done >\"$1\"";
        let mut guard = Guard::new(script, &[gone.as_os_str()]).expect("a shell can be started");
        // A shell that does not wait is done by then.
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!gone.exists(), "it waits");
        // As the end of this program does.
        drop(guard.0.stdin.take());
        assert!(guard.0.wait().expect("it ends").success());
        drop(Guard::new(script, &[dropped.as_os_str()]).expect("a shell can be started"));
        assert_eq!((gone.exists(), dropped.exists()), (true, false));
        scratch.remove();
    }
}
