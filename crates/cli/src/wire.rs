//! From a job as meant to a query as run: the only place where concrete sources and sinks meet the engine.

use baton_checkpoint::{AcquireOptions, Location};
use baton_core::{Clock, Rng, Sink, SinkFormat, Source, SourceContext, SourceFormat, SourceName, TokioClock};
use baton_engine::{Deps, QuerySpec};
use std::sync::Arc;

use crate::failure::{Failure, Result, chain};
use crate::job::{JobSpec, Options};

/// Time and randomness of this process. Needs a runtime.
pub(crate) fn deps() -> Deps {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::start());
    Deps {
        clock,
        rng: Arc::new(Rng::from_os()),
    }
}

/// A location as a user gives it.
pub(crate) fn location(text: &str) -> Result<Location> {
    Location::parse(text).map_err(|error| of_checkpoint(&error))
}

/// The job's sources, by name; nothing is opened.
pub(crate) fn sources(job: &JobSpec) -> Result<Vec<(SourceName, Box<dyn Source>)>> {
    let format = baton_source_kafka::format();
    job.sources
        .iter()
        .map(|spec| {
            let context = SourceContext::new(spec.name.clone(), job.name.clone());
            let source = format.source(&context, spec.options.map.clone());
            Ok((
                spec.name.clone(),
                source.map_err(|fault| placed(fault, &spec.options))?,
            ))
        })
        .collect()
}

fn sink(job: &JobSpec) -> Result<Box<dyn Sink>> {
    let options = &job.sink.options;
    let sink = match job.sink.format.as_str() {
        "noop" => baton_sinks::noop().sink(options.map.clone()),
        // Reading the job file has refused everything else.
        _ => baton_sinks::console().sink(options.map.clone()),
    };
    sink.map_err(|fault| placed(fault, options))
}

/// The whole query; nothing is opened.
pub(crate) fn query(job: &JobSpec, location: Location, ownership: AcquireOptions) -> Result<QuerySpec> {
    let mut spec = QuerySpec::new(
        job.name.clone(),
        sources(job)?,
        job.sql.clone(),
        sink(job)?,
        job.sink.format.clone(),
        location,
    );
    spec.version.clone_from(&job.version);
    spec.output_mode = job.sink.output_mode;
    spec.trigger = job.trigger;
    spec.ownership = ownership;
    spec.handover = job.ownership.handover;
    spec.stop_timeout = job.ownership.stop_timeout;
    Ok(spec)
}

/// A refused option, at the line that has it.
fn placed(fault: baton_core::Fault, options: &Options) -> Failure {
    let place = options.place_of(&chain(&fault)).clone();
    Failure::from(fault).at(&place)
}

/// The engine's failure.
pub(crate) fn of_engine(error: &baton_engine::Error) -> Failure {
    Failure::of(error.kind(), error.code(), error)
}

/// The engine's failure before it ran anything: SQL is wrong where the SQL stands.
pub(crate) fn of_compiling(error: &baton_engine::Error, job: &JobSpec) -> Failure {
    let failure = of_engine(error);
    match error {
        baton_engine::Error::Sql(_) => failure.at(&job.sql_place),
        _ => failure,
    }
}

/// The checkpoint's failure.
pub(crate) fn of_checkpoint(error: &baton_checkpoint::Error) -> Failure {
    Failure::of(error.kind(), error.code(), error)
}
