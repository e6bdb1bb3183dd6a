//! Somebody who sends messages at a steady pace.

use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Result;
use crate::process::Process;

/// How long the last messages may take to be stored.
const BOUND: Duration = Duration::from_secs(20);

/// `baton produce`, and who writes `message 1`, `message 2`, … to it.
pub(crate) struct Sender {
    producer: Process,
    writer: JoinHandle<u64>,
    enough: Arc<AtomicBool>,
}

impl Sender {
    /// Sends one message every `pace`.
    pub(crate) fn start(
        baton: &Path,
        dir: &Path,
        address: &str,
        topic: &str,
        pace: Duration,
    ) -> Result<Self> {
        let mut command = Command::new(baton);
        command
            .args(["produce", "--bootstrap-server", address, "--topic", topic])
            .stdin(Stdio::piped());
        let mut producer = Process::quiet("sender", command, dir)?;
        let stdin = producer.stdin().expect("it is piped");
        let enough = Arc::new(AtomicBool::new(false));
        let writer = {
            let enough = Arc::clone(&enough);
            std::thread::spawn(move || write(stdin, pace, &enough))
        };
        Ok(Self {
            producer,
            writer,
            enough,
        })
    }

    /// Stops; how many were sent, all of them stored.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.enough.store(true, Ordering::Relaxed);
        let sent = self.writer.join().expect("it does not panic");
        match self.producer.wait(BOUND)? {
            0 => Ok(sent),
            code => Err(format!("the sender ended with exit code {code}")),
        }
    }
}

/// Writes until there are enough messages or nobody takes them; how many.
fn write(mut stdin: ChildStdin, pace: Duration, enough: &AtomicBool) -> u64 {
    let (mut sent, mut due) = (0, Instant::now());
    while !enough.load(Ordering::Relaxed) {
        let line = format!("message {}\n", sent + 1);
        if stdin.write_all(line.as_bytes()).is_err() {
            break;
        }
        sent += 1;
        // By the clock, not by sleeps: those are late, and lateness adds up.
        due += pace;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    sent
}
