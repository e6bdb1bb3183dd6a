//! What is known of this process, for whoever asks.

use baton_core::{Clock, ErrorKind, SourceName};
use baton_engine::{Observer, QueryEvent, Vitals};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::counts::Counts;
use super::page::{self, Scene};
use super::verdict::{self, Facts, Verdict};
use crate::failure::chain;

/// What stays the same.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) job: String,
    pub(crate) version: String,
    /// In the job's order.
    pub(crate) sources: Vec<SourceName>,
    /// The sink's format.
    pub(crate) sink: String,
    /// How long an unreachable broker is waited for at the start.
    pub(crate) start_timeout: Duration,
}

/// Keeps what the events say and looks at the query itself when it is asked.
///
/// The lock is held for as long as it takes to add a number or to write a page, never while anything is waited for.
#[derive(Debug)]
pub(crate) struct Board {
    about: About,
    observer: Observer,
    counts: Mutex<Counts>,
    pub(super) clock: Arc<dyn Clock>,
    /// On the monotonic clock.
    born: Duration,
}

impl Board {
    pub(crate) fn new(about: About, observer: Observer, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            counts: Mutex::new(Counts::new(about.sources.iter().cloned())),
            about,
            observer,
            born: clock.elapsed(),
            clock,
        })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in one event.
    pub(crate) fn observe(&self, event: &QueryEvent) {
        let now = self.clock.now();
        self.counts().observe(event, now);
    }

    fn facts(&self) -> Facts {
        let vitals = self.observer.vitals();
        let counts = self.counts();
        let Vitals {
            has_started,
            is_stopping,
            end,
            doing,
            still,
            away,
            ..
        } = vitals;
        Facts {
            role: counts.role.clone(),
            has_started,
            is_stopping,
            successor: counts.successor.clone(),
            end: end.map(|end| end.map(drop).map_err(|error| chain(&error))),
            doing,
            batch: counts.last_batch.map_or(0, |batch| batch.0 + 1),
            still,
            away: away.map(|away| (away.source.to_string(), away.lasting, away.error)),
            age: self.clock.elapsed().saturating_sub(self.born),
            start_timeout: self.about.start_timeout,
        }
    }

    /// Whether the process should be left alone.
    pub(super) fn lives(&self) -> Verdict {
        verdict::lives(&self.facts())
    }

    /// Whether a deployment may go on to its next step.
    pub(super) fn is_ready(&self) -> Verdict {
        verdict::is_ready(&self.facts())
    }

    /// The metrics.
    pub(super) fn page(&self) -> String {
        let vitals = self.observer.vitals();
        let counts = self.counts();
        page::render(&Scene {
            job: &self.about.job,
            version: &self.about.version,
            sink: &self.about.sink,
            counts: &counts,
            is_fenced: matches!(&vitals.end, Some(Err(error)) if error.kind() == ErrorKind::Fenced),
            still: vitals.still,
            away: vitals.away.as_ref().map(|away| &away.source),
            lag: vitals.lag.as_ref(),
        })
    }
}
