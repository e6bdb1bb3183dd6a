//! Signs of life: what whoever judges a query from outside may look at, without holding it and without steering it.

use baton_core::{Clock, Position, SourceName};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Result;
use crate::query::{Outcome, Shared};

/// What a query looks like at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Vitals {
    /// Whether it has gone on from the log, and batches run.
    pub has_started: bool,
    /// Whether it was asked to end, by whomever, and has not ended.
    pub is_stopping: bool,
    /// How it ended, once it has.
    pub end: Option<Result<Outcome>>,
    /// What it is doing, as [`StreamingQueryStatus::message`](crate::StreamingQueryStatus::message).
    pub doing: String,
    /// How long nothing has moved: no step of the loop, no rows read, none taken by the sink. A wait for the next
    /// trigger is meant to be still and is not counted. Means nothing before the checkpoint is owned.
    pub still: Duration,
    /// The source that does not answer.
    pub away: Option<Away>,
    /// How far each partition is behind, as far as was seen last; none before the first look.
    pub lag: Option<Position>,
}

/// A source that does not answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Away {
    /// Which.
    pub source: SourceName,
    /// For how long by now.
    pub lasting: Duration,
    /// Why, when it was said last.
    pub error: String,
}

/// Looks at a query. Unlike its handle, it may outlive the query and keeps nothing running.
#[derive(Clone, Debug)]
pub struct Observer(Arc<Shared>);

impl Observer {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// What it looks like now.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        self.0.vitals()
    }
}

/// When a query last moved. Beating costs one look at the clock and happens per step and per Arrow batch, never per row.
#[derive(Debug)]
pub(crate) struct Pulse {
    clock: Arc<dyn Clock>,
    /// On the monotonic clock, in ms; in the future while the query rests on purpose.
    moved: AtomicU64,
}

impl Pulse {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let pulse = Self {
            clock,
            moved: AtomicU64::new(0),
        };
        pulse.beat();
        pulse
    }

    /// Something moved.
    pub(crate) fn beat(&self) {
        self.rest(Duration::ZERO);
    }

    /// Nothing will move for `pause`, on purpose.
    pub(crate) fn rest(&self, pause: Duration) {
        let until = (self.clock.elapsed() + pause).as_millis();
        self.moved
            .store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long nothing has moved.
    pub(crate) fn still(&self) -> Duration {
        let moved = Duration::from_millis(self.moved.load(Ordering::Relaxed));
        self.clock.elapsed().saturating_sub(moved)
    }

    /// The clock it counts by.
    pub(crate) fn now(&self) -> Duration {
        self.clock.elapsed()
    }
}

/// An outage as the loop notes it.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    pub(crate) source: SourceName,
    /// On the monotonic clock.
    pub(crate) since: Duration,
    pub(crate) error: String,
}

impl Noted {
    pub(crate) fn by(self, now: Duration) -> Away {
        Away {
            source: self.source,
            lasting: now.saturating_sub(self.since),
            error: self.error,
        }
    }
}
