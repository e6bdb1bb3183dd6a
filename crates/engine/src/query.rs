//! The handle of a running query.

use baton_core::{Clock, Position, RunId, SourceName};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::progress::{Recent, StreamingQueryProgress, StreamingQueryStatus};
use crate::vitals::{Noted, Observer, Pulse, Vitals};
use crate::{Error, Result};

/// How a query ended, when it did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It was stopped: the last batch is committed, the checkpoint released.
    Stopped,
    /// Its trigger had nothing more to do (`once`, `availableNow`); the checkpoint is released.
    Done,
    /// Another start asked for the checkpoint and has it now.
    HandedOver {
        /// Who, in words.
        to: String,
    },
    /// The running batch was abandoned; the next start runs it again.
    Interrupted,
}

/// A query that was started. Clones are handles of the same query.
///
/// Dropping the last handle abandons the running batch; the next start on the checkpoint resumes.
#[derive(Clone, Debug)]
pub struct StreamingQuery {
    shared: Arc<Shared>,
    _last_handle: Arc<DropGuard>,
}

/// What the handle and the running task share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) run: RunId,
    /// Asks for an end after the running batch.
    pub(crate) stop: CancellationToken,
    /// Asks for an end at once.
    pub(crate) abandon: CancellationToken,
    pub(crate) pulse: Arc<Pulse>,
    facts: Mutex<Facts>,
    started: watch::Sender<bool>,
    end: watch::Sender<Option<Result<Outcome>>>,
}

#[derive(Debug)]
struct Facts {
    id: Option<String>,
    status: StreamingQueryStatus,
    recent: Recent,
    away: Option<Noted>,
    lag: Option<Position>,
}

impl Shared {
    pub(crate) fn new(name: String, run: RunId, clock: Arc<dyn Clock>) -> Arc<Self> {
        let status = StreamingQueryStatus {
            message: "Initializing sources".to_owned(),
            is_data_available: false,
            is_trigger_active: false,
        };
        Arc::new(Self {
            name,
            run,
            stop: CancellationToken::new(),
            abandon: CancellationToken::new(),
            pulse: Arc::new(Pulse::new(clock)),
            facts: Mutex::new(Facts {
                id: None,
                status,
                recent: Recent::default(),
                away: None,
                lag: None,
            }),
            started: watch::Sender::new(false),
            end: watch::Sender::new(None),
        })
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what the query is doing, in Spark's words. Saying it is a sign of life.
    pub(crate) fn say(&self, message: &str, is_data_available: bool, is_trigger_active: bool) {
        self.pulse.beat();
        let mut facts = self.facts();
        facts.status.message.clear();
        facts.status.message.push_str(message);
        facts.status.is_data_available = is_data_available;
        facts.status.is_trigger_active = is_trigger_active;
    }

    pub(crate) fn has_started(&self, id: String) {
        self.facts().id = Some(id);
        self.started.send_replace(true);
    }

    pub(crate) fn progressed(&self, progress: Arc<StreamingQueryProgress>) {
        self.facts().recent.push(progress);
    }

    /// A source does not answer, since `since` on the monotonic clock.
    pub(crate) fn is_away(&self, source: SourceName, since: Duration, error: String) {
        self.pulse.beat();
        self.facts().away = Some(Noted { source, since, error });
    }

    /// All sources answer.
    pub(crate) fn is_back(&self) {
        self.facts().away = None;
    }

    /// How far each partition is behind.
    pub(crate) fn lags(&self, lag: Position) {
        self.facts().lag = Some(lag);
    }

    pub(crate) fn vitals(&self) -> Vitals {
        let end = self.end.borrow().clone();
        let asked = self.stop.is_cancelled() || self.abandon.is_cancelled();
        let facts = self.facts();
        Vitals {
            has_started: facts.id.is_some(),
            is_stopping: asked && end.is_none(),
            end,
            doing: facts.status.message.clone(),
            still: self.pulse.still(),
            away: facts.away.clone().map(|away| away.by(self.pulse.now())),
            lag: facts.lag.clone(),
        }
    }

    pub(crate) fn has_ended(&self, end: Result<Outcome>) {
        match &end {
            Ok(_) => self.say("Stopped", false, false),
            Err(error) => self.say(
                &format!("Terminated with exception: {}", chain(error)),
                false,
                false,
            ),
        }
        self.end.send_replace(Some(end));
        self.started.send_replace(true);
    }
}

/// An error and its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text.push_str(": ");
        text.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    text
}

impl StreamingQuery {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let guard = shared.abandon.clone().drop_guard();
        Self {
            shared,
            _last_handle: Arc::new(guard),
        }
    }

    /// Looks at the query without holding it: dropping the last handle abandons the batch all the same.
    #[must_use]
    pub fn observer(&self) -> Observer {
        Observer::new(Arc::clone(&self.shared))
    }

    /// The query's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The checkpoint's id, the same over restarts; none until the checkpoint is owned.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        self.shared.facts().id.clone()
    }

    /// This start's id.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        self.shared.run
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.shared.end.borrow().is_none()
    }

    /// Why it failed, if it did.
    #[must_use]
    pub fn exception(&self) -> Option<Error> {
        self.shared
            .end
            .borrow()
            .as_ref()
            .and_then(|end| end.as_ref().err().cloned())
    }

    /// What it is doing.
    #[must_use]
    pub fn status(&self) -> StreamingQueryStatus {
        self.shared.facts().status.clone()
    }

    /// The progress of the last batch.
    #[must_use]
    pub fn last_progress(&self) -> Option<Arc<StreamingQueryProgress>> {
        self.shared.facts().recent.last()
    }

    /// The progress of the last hundred batches, oldest first.
    #[must_use]
    pub fn recent_progress(&self) -> Vec<Arc<StreamingQueryProgress>> {
        self.shared.facts().recent.all()
    }

    /// Waits until the query owns its checkpoint and is about to run, or has ended.
    ///
    /// # Errors
    /// Why it could not start.
    ///
    /// # Cancel safety
    /// Waiting changes nothing.
    pub async fn started(&self) -> Result<()> {
        let mut started = self.shared.started.subscribe();
        // An error means that the sender is gone, which cannot be: `self.shared` holds it.
        drop(started.wait_for(|started| *started).await);
        self.exception().map_or(Ok(()), Err)
    }

    /// Waits until the query ends, for whatever reason.
    ///
    /// # Errors
    /// Why it failed.
    ///
    /// # Cancel safety
    /// Waiting changes nothing.
    pub async fn await_termination(&self) -> Result<Outcome> {
        let mut end = self.shared.end.subscribe();
        let ended = end.wait_for(Option::is_some).await.map(|end| (*end).clone());
        ended
            .ok()
            .flatten()
            .unwrap_or(Err(Error::Panicked { task: "end" }))
    }

    /// Asks for an end after the running batch, without waiting for it.
    pub fn request_stop(&self) {
        self.shared.stop.cancel();
    }

    /// Asks for an end at once, without waiting for it.
    pub fn request_stop_now(&self) {
        self.shared.abandon.cancel();
    }

    /// Finishes the running batch, commits it, releases the checkpoint. If the batch takes longer than the stop
    /// time-out it is abandoned, and the outcome is [`Outcome::Interrupted`].
    ///
    /// # Errors
    /// Why it failed, if it did.
    ///
    /// # Cancel safety
    /// The stop goes on although nobody waits for it.
    pub async fn stop(&self) -> Result<Outcome> {
        self.request_stop();
        self.await_termination().await
    }

    /// Abandons the running batch; the next start runs it again.
    ///
    /// # Errors
    /// Why it failed, if it did.
    ///
    /// # Cancel safety
    /// The stop goes on although nobody waits for it.
    pub async fn stop_now(&self) -> Result<Outcome> {
        self.request_stop_now();
        self.await_termination().await
    }
}
