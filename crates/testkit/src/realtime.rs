//! Real time for tests that drive real processes; everything else uses [`ManualClock`](crate::ManualClock).

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a condition outside of this process is looked at again.
const POLL: Duration = Duration::from_millis(20);

/// Waits.
#[expect(clippy::disallowed_methods, reason = "other processes live in real time")]
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Monotonic time.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "other processes live in real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Runs `work` beside the test.
#[expect(
    clippy::disallowed_methods,
    reason = "a producer that runs while the test waits is the point"
)]
pub fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(work)
}

/// Looks again and again until `look` finds something.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`], naming `what`, when it has found nothing within `bound`.
pub fn poll_until<T>(what: &str, bound: Duration, mut look: impl FnMut() -> Option<T>) -> io::Result<T> {
    let start = now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if start.elapsed() >= bound {
            let text = format!("{what}: not within {} ms", bound.as_millis());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        pause(POLL);
    }
}
