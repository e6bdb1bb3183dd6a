//! What the engine's tests share: a sink that remembers, and a lab that holds one query's parts.

use async_trait::async_trait;
use baton_checkpoint::{Deps, Location};
use baton_core::arrow::array::{Array, RecordBatch, StringArray, StringViewArray};
use baton_core::arrow::schema::Schema;
use baton_core::{
    BatchContext, Clock, CommitPermit, ErrorKind, Fault, Guarantee, Marker, OutputMode, Receipt, Rng, Sink,
    SinkContext, SinkRef, SourceName, TokioClock,
};
use baton_engine::{QueryEvent, QuerySpec, StreamingQuery, Trigger, start};
use baton_testkit::{ManualClock, ScriptedSource};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as blocking};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// A batch that reached a sink: its number, its epoch, its values in order of arrival.
pub(crate) type Published = (u64, u64, Vec<String>);

/// A sink that remembers what it published and fails when told.
#[derive(Clone, Debug)]
pub(crate) struct ProbeSink {
    state: Arc<Mutex<Probe>>,
    gate: Arc<watch::Sender<bool>>,
}

#[derive(Debug, Default)]
struct Probe {
    rows: Vec<String>,
    context: Option<BatchContext>,
    published: Vec<Published>,
    calls: Vec<&'static str>,
    /// What the next commits answer, and whether they publish all the same.
    failures: VecDeque<(ErrorKind, bool)>,
    /// Whether the sink keeps a marker of what it published.
    tracks: bool,
    marker: Option<Marker>,
    /// Blocks the thread of the next write until the other end is dropped.
    blocker: Option<blocking::Receiver<()>>,
}

impl Default for ProbeSink {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            gate: Arc::new(watch::Sender::new(true)),
        }
    }
}

impl ProbeSink {
    fn state(&self) -> MutexGuard<'_, Probe> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn published(&self) -> Vec<Published> {
        self.state().published.clone()
    }

    /// All values in order of batch.
    pub(crate) fn values(&self) -> Vec<String> {
        self.state()
            .published
            .iter()
            .flat_map(|(_, _, values)| values.clone())
            .collect()
    }

    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.state().calls.clone()
    }

    /// Makes the next commit answer with this failure, after publishing or instead of it.
    pub(crate) fn fail_commit(&self, kind: ErrorKind, published: bool) {
        self.state().failures.push_back((kind, published));
    }

    /// Keeps a marker, as a sink that promises exactly once.
    pub(crate) fn tracking(self) -> Self {
        self.state().tracks = true;
        self
    }

    /// Makes writes wait.
    pub(crate) fn stall(&self) {
        self.gate.send_replace(false);
    }

    pub(crate) fn resume(&self) {
        self.gate.send_replace(true);
    }

    /// Makes the next write block its thread until the returned value is dropped.
    pub(crate) fn block_thread(&self) -> blocking::Sender<()> {
        let (release, blocker) = blocking::channel();
        self.state().blocker = Some(blocker);
        release
    }

    /// Whether a write has taken the blocker, and so has its thread.
    pub(crate) fn blocks_thread(&self) -> bool {
        self.state().blocker.is_none()
    }
}

fn values(rows: &RecordBatch) -> Vec<String> {
    let column = rows.column_by_name("value").expect("tests select `value`");
    if let Some(texts) = column.as_any().downcast_ref::<StringArray>() {
        return texts
            .iter()
            .map(|text| text.unwrap_or("NULL").to_owned())
            .collect();
    }
    let texts = column
        .as_any()
        .downcast_ref::<StringViewArray>()
        .expect("text is one of two types");
    texts
        .iter()
        .map(|text| text.unwrap_or("NULL").to_owned())
        .collect()
}

#[async_trait]
impl Sink for ProbeSink {
    fn description(&self) -> String {
        "Probe".to_owned()
    }

    fn guarantee(&self) -> Guarantee {
        if self.state().tracks {
            Guarantee::ExactlyOnce
        } else {
            Guarantee::MayRepeat("a probe forgets")
        }
    }

    fn check(&self, _schema: &Schema, _mode: OutputMode) -> Result<(), Fault> {
        Ok(())
    }

    async fn open(&mut self, _context: &SinkContext) -> Result<SinkRef, Fault> {
        self.state().calls.push("open");
        Ok(SinkRef("probe".to_owned()))
    }

    async fn fence(&mut self, _epoch: baton_core::Epoch, _at: &SinkRef) -> Result<(), Fault> {
        self.state().calls.push("fence");
        Ok(())
    }

    async fn last_committed(&mut self) -> Result<Marker, Fault> {
        let mut state = self.state();
        state.calls.push("last_committed");
        Ok(if state.tracks {
            state.marker.clone().unwrap_or(Marker::Nothing)
        } else {
            Marker::Untracked
        })
    }

    async fn begin(&mut self, batch: BatchContext) -> Result<(), Fault> {
        let mut state = self.state();
        state.calls.push("begin");
        state.rows.clear();
        state.context = Some(batch);
        Ok(())
    }

    async fn write(&mut self, rows: RecordBatch) -> Result<(), Fault> {
        let blocker = self.state().blocker.take();
        if let Some(blocker) = blocker {
            // An error is the other end's drop, which is the signal.
            assert!(blocker.recv().is_err());
        }
        let mut gate = self.gate.subscribe();
        drop(gate.wait_for(|open| *open).await);
        self.state().rows.extend(values(&rows));
        Ok(())
    }

    async fn commit(&mut self, permit: CommitPermit) -> Result<Receipt, Fault> {
        let mut state = self.state();
        state.calls.push("commit");
        let failure = state.failures.pop_front();
        let rows = std::mem::take(&mut state.rows);
        let count = rows.len() as u64;
        if failure.is_none_or(|(_, published)| published) {
            state.published.push((permit.batch().0, permit.epoch().0, rows));
            state.marker = Some(Marker::At {
                batch: permit.batch(),
                epoch: permit.epoch(),
                plan: permit.plan(),
            });
        }
        match failure {
            Some((kind, _)) => Err(Fault::new(kind, "E0399", "the probe was told to fail")),
            None => Ok(Receipt {
                rows: count,
                note: String::new(),
            }),
        }
    }

    async fn abort(&mut self) -> Result<(), Fault> {
        let mut state = self.state();
        state.calls.push("abort");
        state.rows.clear();
        Ok(())
    }
}

/// The parts of one query, to start it more than once.
pub(crate) struct Lab {
    dir: tempfile::TempDir,
    pub(crate) clock: ManualClock,
    pub(crate) source: ScriptedSource,
    pub(crate) sink: ProbeSink,
}

/// A started query, with what it tells.
pub(crate) struct Run {
    pub(crate) query: StreamingQuery,
    pub(crate) events: mpsc::Receiver<QueryEvent>,
    clock: ManualClock,
}

impl Lab {
    pub(crate) fn new(source: ScriptedSource) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the checkpoint");
        // 10.3 s after the epoch: 700 ms before a tick of a trigger of one second.
        Self {
            dir,
            clock: ManualClock::at(10_300),
            source,
            sink: ProbeSink::default(),
        }
    }

    pub(crate) fn location(&self) -> Location {
        let path = self.dir.path().join("checkpoint");
        Location::parse(path.to_str().expect("a plain path")).expect("a local path")
    }

    pub(crate) fn spec(&self, trigger: Trigger) -> QuerySpec {
        let name = SourceName::new("messages").expect("a name");
        let mut spec = QuerySpec::new(
            "job",
            vec![(name, Box::new(self.source.clone()))],
            "SELECT value FROM messages",
            Box::new(self.sink.clone()),
            "probe",
            self.location(),
        );
        spec.trigger = trigger;
        spec
    }

    pub(crate) fn run(&self, trigger: Trigger) -> Run {
        self.run_spec(self.spec(trigger))
    }

    pub(crate) fn run_spec(&self, spec: QuerySpec) -> Run {
        let deps = Deps {
            clock: Arc::new(self.clock.clone()),
            rng: Arc::new(Rng::from_os()),
        };
        let (sender, events) = mpsc::channel(1_000);
        Run {
            query: start(spec, deps, sender),
            events,
            clock: self.clock.clone(),
        }
    }

    /// Starts on the real clock, where two starts have to talk to each other.
    pub(crate) fn run_in_real_time(&self, spec: QuerySpec) -> Run {
        let (sender, events) = mpsc::channel(1_000);
        Run {
            query: start(spec, real_deps(), sender),
            events,
            clock: self.clock.clone(),
        }
    }

    /// The log's records as `checkpoint show` prints them.
    pub(crate) async fn records(&self) -> Vec<serde_json::Value> {
        let show = baton_checkpoint::show(&self.location(), &real_deps())
            .await
            .expect("a readable log");
        let show = serde_json::to_value(show).expect("it serialises");
        show["records"].as_array().expect("records").clone()
    }

    /// The kinds of the log's records, in order, with the batch where there is one: `plan 0`.
    pub(crate) async fn kinds(&self) -> Vec<String> {
        let records = self.records().await;
        records
            .iter()
            .map(|record| {
                let kind = record["kind"].as_str().expect("a kind");
                record["batchId"]
                    .as_u64()
                    .map_or_else(|| kind.to_owned(), |batch| format!("{kind} {batch}"))
            })
            .collect()
    }
}

/// Real time and chance, for what has to talk to another process.
fn real_deps() -> Deps {
    Deps {
        clock: Arc::new(TokioClock::start()),
        rng: Arc::new(Rng::from_os()),
    }
}

impl Run {
    /// The next event that `wanted` takes, time standing still.
    pub(crate) async fn event<T>(&mut self, mut wanted: impl FnMut(&QueryEvent) -> Option<T>) -> T {
        let waiting = async {
            while let Some(event) = self.events.recv().await {
                if let Some(found) = wanted(&event) {
                    return found;
                }
            }
            let end = self.query.exception();
            panic!("the query ended without the event: {end:?}");
        };
        within(waiting).await
    }

    /// The same, time passing as fast as everybody sleeps.
    pub(crate) async fn event_in_time<T>(&mut self, mut wanted: impl FnMut(&QueryEvent) -> Option<T>) -> T {
        let clock = self.clock.clone();
        tokio::select! {
            biased;
            found = self.event(&mut wanted) => found,
            () = pass(&clock) => unreachable!("time does not end"),
        }
    }

    /// Waits until a batch is committed.
    pub(crate) async fn batch(&mut self) -> u64 {
        self.event_in_time(|event| match event {
            QueryEvent::BatchDone(progress) => Some(progress.batch_id),
            _ => None,
        })
        .await
    }

    /// Waits until the query owns its checkpoint.
    pub(crate) async fn started(&self) {
        within(self.query.started()).await.expect("the query starts");
    }

    /// Waits until the query owns its checkpoint or says why it cannot, time passing: a plain start waits a moment for an
    /// owner that is just leaving.
    pub(crate) async fn starts(&self) -> baton_engine::Result<()> {
        tokio::select! {
            biased;
            started = within(self.query.started()) => started,
            () = pass(&self.clock) => unreachable!("time does not end"),
        }
    }

    /// Waits for the end, time passing.
    pub(crate) async fn end(&self) -> baton_engine::Result<baton_engine::Outcome> {
        tokio::select! {
            biased;
            end = within(self.query.await_termination()) => end,
            () = pass(&self.clock) => unreachable!("time does not end"),
        }
    }
}

/// Lets time pass to whatever anybody waits for next, again and again.
async fn pass(clock: &ManualClock) {
    loop {
        clock.advance_to_next().await;
        tokio::task::yield_now().await;
    }
}

/// A test that hangs says so.
pub(crate) async fn within<F: Future>(work: F) -> F::Output {
    let limit = TokioClock::start().sleep(Duration::from_secs(20));
    tokio::select! {
        done = work => done,
        () = limit => panic!("this should not take 20 s"),
    }
}
