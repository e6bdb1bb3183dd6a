//! A query as data, and its start.

use baton_checkpoint::{AcquireOptions, Deps, JobShape, Location};
use baton_core::arrow::schema::SchemaRef;
use baton_core::{OutputMode, RunId, Sink, Source, SourceName};
use std::time::Duration;
use tokio::sync::mpsc;

use crate::event::{Events, QueryEvent};
use crate::query::{Shared, StreamingQuery};
use crate::sql::{Compiler, Query};
use crate::{Error, Result, Trigger};

/// Everything that a query is made of. Nothing in it has been opened.
#[non_exhaustive]
pub struct QuerySpec {
    /// The query's name.
    pub name: String,
    /// The job's version, free text.
    pub version: String,
    /// What it reads, by the names used in SQL.
    pub sources: Vec<(SourceName, Box<dyn Source>)>,
    /// What it computes.
    pub sql: String,
    /// Where the rows go.
    pub sink: Box<dyn Sink>,
    /// The sink's format, for messages.
    pub sink_name: String,
    /// The output mode.
    pub output_mode: OutputMode,
    /// When batches start.
    pub trigger: Trigger,
    /// The checkpoint.
    pub location: Location,
    /// What to do when somebody owns it.
    pub ownership: AcquireOptions,
    /// Whether a take-over request is honoured.
    pub handover: bool,
    /// Whether a source's outside name is taken from another checkpoint.
    pub claim_group: bool,
    /// How long a stop may finish its batch.
    pub stop_timeout: Duration,
    /// How long an unreachable server may be waited for at start.
    pub start_timeout: Duration,
}

impl QuerySpec {
    /// A query with the defaults of `interface.md`: append, default trigger, fail if owned, hand-overs allowed.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        sources: Vec<(SourceName, Box<dyn Source>)>,
        sql: impl Into<String>,
        sink: Box<dyn Sink>,
        sink_name: impl Into<String>,
        location: Location,
    ) -> Self {
        Self {
            name: name.into(),
            version: "v1".to_owned(),
            sources,
            sql: sql.into(),
            sink,
            sink_name: sink_name.into(),
            output_mode: OutputMode::Append,
            trigger: Trigger::Default,
            location,
            ownership: AcquireOptions::default(),
            handover: true,
            claim_group: false,
            stop_timeout: Duration::from_secs(20),
            start_timeout: Duration::from_secs(60),
        }
    }
}

/// What can be known of a query offline.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompiledInfo {
    /// The columns that reach the sink.
    pub schema: SchemaRef,
    /// The plan, for people.
    pub explain: String,
    /// What the checkpoint will be asked whether it fits.
    pub shape: JobShape,
}

/// Plans and type-checks a query without opening anything.
///
/// # Errors
/// What is wrong with the SQL, or why the sink does not take its rows.
pub fn compile(spec: &QuerySpec) -> Result<CompiledInfo> {
    let query = compile_query(spec)?;
    Ok(CompiledInfo {
        schema: query.schema(),
        explain: query.explain(),
        shape: job_shape(spec, &query),
    })
}

/// What the query is, as far as its checkpoint depends on it.
pub(crate) fn job_shape(spec: &QuerySpec, query: &Query) -> JobShape {
    let sources = spec
        .sources
        .iter()
        .map(|(name, source)| (name.clone(), source.description()))
        .collect();
    let schema = query
        .schema()
        .fields()
        .iter()
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect();
    JobShape {
        job: spec.name.clone(),
        sources,
        sql: spec.sql.clone(),
        schema,
        sink: spec.sink_name.clone(),
        output_mode: spec.output_mode,
    }
}

pub(crate) fn compile_query(spec: &QuerySpec) -> Result<Query> {
    if spec.output_mode == OutputMode::Complete {
        return Err(Error::OutputMode {
            mode: spec.output_mode,
        });
    }
    let schemas: Vec<(SourceName, SchemaRef)> = spec
        .sources
        .iter()
        .map(|(name, source)| (name.clone(), source.schema()))
        .collect();
    let query = Compiler::new(&schemas)?.compile(&spec.sql)?;
    let checked = spec.sink.check(&query.schema(), spec.output_mode);
    checked.map_err(|fault| Error::sink_failed(&spec.sink_name, fault))?;
    Ok(query)
}

/// Starts a query on the current tokio runtime and returns its handle at once; whatever goes wrong, the SQL included, is
/// told by [`StreamingQuery::started`] and [`StreamingQuery::await_termination`].
#[must_use]
pub fn start(spec: QuerySpec, deps: Deps, events: mpsc::Sender<QueryEvent>) -> StreamingQuery {
    let clock = std::sync::Arc::clone(&deps.clock);
    let shared = Shared::new(spec.name.clone(), RunId(deps.rng.uuid()), clock);
    let query = StreamingQuery::new(std::sync::Arc::clone(&shared));
    let events = Events::new(events, std::sync::Arc::clone(&deps.clock));
    drop(tokio::spawn(async move {
        let running = tokio::spawn(crate::micro_batch::run_query(
            spec,
            deps,
            events,
            std::sync::Arc::clone(&shared),
        ));
        let end = running.await.unwrap_or(Err(Error::Panicked { task: "loop" }));
        shared.has_ended(end);
    }));
    query
}
