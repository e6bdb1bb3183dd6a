//! Time as a dependency that is handed in.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Wall-clock time in milliseconds since the Unix epoch: for stamps and for aligning triggers, never for leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// What a component knows of time.
///
/// An implementor owes that [`Clock::elapsed`] never falls, whatever happens to the wall clock.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Wall-clock time, which may jump.
    fn now(&self) -> Timestamp;

    /// Monotonic time since some fixed moment of this process.
    fn elapsed(&self) -> Duration;

    /// Waits. Dropping the future ends the wait and leaves nothing behind.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The clock of production: the system's wall clock, tokio's monotonic clock and timers.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug)]
pub struct TokioClock(tokio::time::Instant);

#[cfg(feature = "tokio")]
impl TokioClock {
    /// Starts counting now.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the real clock"
    )]
    pub fn start() -> Self {
        Self(tokio::time::Instant::now())
    }
}

#[cfg(feature = "tokio")]
impl Clock for TokioClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the real clock"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp(since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that sleeps on the real clock"
    )]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
