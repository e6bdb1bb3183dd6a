//! From a stream of rows to a running query: Spark's `DataStreamWriter`.

use baton_checkpoint::{AcquireOptions, Location};
use baton_core::{OptionMap, OutputMode, Sink};
use std::time::Duration;
use tokio::sync::mpsc;

use crate::event::QueryEvent;
use crate::query::StreamingQuery;
use crate::reader::DataFrame;
use crate::session::check_name;
use crate::spec::{QuerySpec, start};
use crate::{Error, Result, Trigger};

/// Describes where the rows go, and starts the query.
pub struct DataStreamWriter {
    frame: DataFrame,
    name: Option<String>,
    version: String,
    format: String,
    sink: Option<Box<dyn Sink>>,
    options: OptionMap,
    mode: String,
    trigger: Trigger,
    ownership: AcquireOptions,
    handover: bool,
    claim_group: bool,
    stop_timeout: Duration,
    start_timeout: Duration,
    events: Option<mpsc::Sender<QueryEvent>>,
}

impl DataStreamWriter {
    pub(crate) fn new(frame: DataFrame) -> Self {
        Self {
            frame,
            name: None,
            version: "v1".to_owned(),
            format: String::new(),
            sink: None,
            options: OptionMap::new(),
            mode: "append".to_owned(),
            trigger: Trigger::Default,
            ownership: AcquireOptions::default(),
            handover: true,
            claim_group: false,
            stop_timeout: Duration::from_secs(20),
            start_timeout: Duration::from_secs(60),
            events: None,
        }
    }

    /// Names the query; without one it has the application's name.
    #[must_use]
    pub fn query_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The job's version, shown in status and hand-over.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// `append`, `update` or `complete`.
    #[must_use]
    pub fn output_mode(mut self, mode: impl Into<String>) -> Self {
        self.mode = mode.into();
        self
    }

    /// The registered format to write with.
    #[must_use]
    pub fn format(mut self, format: impl Into<String>) -> Self {
        self.format = format.into();
        self
    }

    /// Writes into this sink instead of one of a registered format; `foreachBatch` closures come this way.
    #[must_use]
    pub fn sink(mut self, sink: Box<dyn Sink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Sets one option, under Spark's name, case-insensitive. `checkpointLocation` is the one that must be there.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "`option(\"x\", 5)` reads better than `option(\"x\", &5)`"
    )]
    pub fn option(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        self.options.set(key, value.to_string());
        self
    }

    /// When batches start.
    #[must_use]
    pub const fn trigger(mut self, trigger: Trigger) -> Self {
        self.trigger = trigger;
        self
    }

    /// What to do when somebody owns the checkpoint; by default the start fails.
    #[must_use]
    pub fn ownership(mut self, ownership: AcquireOptions) -> Self {
        self.ownership = ownership;
        self
    }

    /// Whether a take-over request is honoured; by default it is.
    #[must_use]
    pub const fn handover(mut self, honour: bool) -> Self {
        self.handover = honour;
        self
    }

    /// Whether a source's consumer group is taken from another checkpoint.
    #[must_use]
    pub const fn claim_group(mut self, claim: bool) -> Self {
        self.claim_group = claim;
        self
    }

    /// How long a stop may finish its batch.
    #[must_use]
    pub const fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = timeout;
        self
    }

    /// How long an unreachable server may be waited for at start.
    #[must_use]
    pub const fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Where to tell what happens; without it events are only logged.
    #[must_use]
    pub fn events(mut self, events: mpsc::Sender<QueryEvent>) -> Self {
        self.events = Some(events);
        self
    }

    /// Everything as a [`QuerySpec`]; opens nothing.
    ///
    /// # Errors
    /// An unknown format, a bad option, no `checkpointLocation`.
    pub fn into_spec(mut self) -> Result<QuerySpec> {
        let Some(location) = self.options.take("checkpointLocation") else {
            return Err(baton_core::Error::MissingOption {
                key: "checkpointLocation".to_owned(),
                reason: "it names the directory that says how far the query is and who runs it".to_owned(),
            }
            .into());
        };
        let location = Location::parse(&location)?;
        let name = self
            .name
            .unwrap_or_else(|| self.frame.session.inner().app_name.clone());
        check_name(&name)?;
        let (sink, sink_name) = match self.sink {
            Some(sink) => {
                self.options.finish(&["checkpointLocation"])?;
                let name = sink.description();
                (sink, name)
            }
            None => {
                let format = self.frame.session.sink_format(&self.format)?;
                let sink = format.sink(self.options);
                (
                    sink.map_err(|fault| Error::sink_failed(format.name(), fault))?,
                    format.name().to_owned(),
                )
            }
        };
        let mut spec = QuerySpec::new(
            name,
            self.frame.sources,
            self.frame.sql,
            sink,
            sink_name,
            location,
        );
        spec.version = self.version;
        spec.output_mode = self.mode.parse::<OutputMode>()?;
        spec.trigger = self.trigger;
        spec.ownership = self.ownership;
        spec.handover = self.handover;
        spec.claim_group = self.claim_group;
        spec.stop_timeout = self.stop_timeout;
        spec.start_timeout = self.start_timeout;
        Ok(spec)
    }

    /// Starts the query and waits until it owns its checkpoint.
    ///
    /// # Errors
    /// Why it could not start.
    ///
    /// # Cancel safety
    /// Dropping the future ends the query, as dropping its handle does.
    pub async fn start(mut self) -> Result<StreamingQuery> {
        let events = self.events.take().unwrap_or_else(|| {
            let (sender, receiver) = mpsc::channel(64);
            drop(tokio::spawn(log_events(receiver)));
            sender
        });
        let deps = self.frame.session.inner().deps.clone();
        let query = start(self.into_spec()?, deps, events);
        query.started().await?;
        Ok(query)
    }
}

/// What a program that did not ask for events finds in its log.
async fn log_events(mut events: mpsc::Receiver<QueryEvent>) {
    while let Some(event) = events.recv().await {
        match event {
            QueryEvent::BatchDone(progress) => tracing::debug!(progress = progress.to_json(), "batch done"),
            QueryEvent::Idle { since } => tracing::debug!(?since, "no new data"),
            QueryEvent::Overrun(overrun) => {
                tracing::warn!(?overrun, "the query is falling behind its trigger")
            }
            QueryEvent::SourceWaiting { .. }
            | QueryEvent::Gap { .. }
            | QueryEvent::PublishFailed { .. }
            | QueryEvent::SinkRetry { .. }
            | QueryEvent::Abandoned { .. } => tracing::warn!(?event, "query"),
            other => tracing::info!(event = ?other, "query"),
        }
    }
}
