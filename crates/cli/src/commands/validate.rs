//! `baton validate`.

use baton_checkpoint::AcquireOptions;
use baton_core::OpenContext;
use baton_core::arrow::schema::SchemaRef;
use baton_engine::{CompiledInfo, QuerySpec};
use serde_json::{Value, json};
use std::fmt::Write as _;

use crate::args::{OutputForm, ValidateArgs};
use crate::failure::{Failure, Result};
use crate::job::{self, JobSpec};
use crate::render;
use crate::talk::warn;
use crate::wire;

pub(super) async fn run(args: ValidateArgs, verbose: bool) -> Result<u8> {
    let Some(path) = &args.job else {
        super::print(format!("{:#}\n", job::schema::schema()).as_bytes())?;
        return Ok(0);
    };
    let job = job::load(path, &args.set)?;
    for warning in &job.warnings {
        warn!("{warning}");
    }
    let place = match &job.sink.checkpoint {
        Some(checkpoint) => Some(wire::location(checkpoint)?),
        None if args.connect => return Err(job::missing_checkpoint(&job.sink.options.table)),
        None => {
            warn!(
                "{}: there is no checkpointLocation, which `baton run` needs",
                job.sink.options.table
            );
            None
        }
    };
    // Offline nobody looks at the location.
    let location = match &place {
        Some(location) => location.clone(),
        None => wire::location("/")?,
    };
    let spec = wire::query(&job, location, AcquireOptions::default())?;
    let compiled = baton_engine::compile(&spec).map_err(|error| wire::of_compiling(&error, &job))?;
    let mut report = offline(&job, &spec, &compiled, verbose);
    if args.connect {
        report["connect"] = connect(&spec, &compiled, &args).await?;
    }
    let text = match args.output {
        OutputForm::Json => format!("{report}\n"),
        OutputForm::Text => text(&report),
    };
    super::print(text.as_bytes())?;
    Ok(0)
}

fn offline(job: &JobSpec, spec: &QuerySpec, compiled: &CompiledInfo, verbose: bool) -> Value {
    let sources: serde_json::Map<String, Value> = spec
        .sources
        .iter()
        .map(|(name, source)| {
            let columns = columns(&source.schema());
            (
                name.to_string(),
                json!({ "description": source.description(), "columns": columns }),
            )
        })
        .collect();
    let mut report = json!({
        "job": job.name,
        "version": job.version,
        "sources": sources,
        "schema": columns(&compiled.schema),
        "sink": job.sink.format,
        "outputMode": job.sink.output_mode,
        "checkpoint": job.sink.checkpoint,
    });
    if verbose {
        report["plan"] = Value::from(compiled.explain.clone());
    }
    report
}

fn columns(schema: &SchemaRef) -> Vec<Value> {
    let one = |name: &str, kind: String, nullable: bool| json!({ "name": name, "type": kind, "nullable": nullable });
    schema
        .fields()
        .iter()
        .map(|field| one(field.name(), field.data_type().to_string(), field.is_nullable()))
        .collect()
}

/// Asks everything that a start asks before it owns anything, and changes nothing: no position, no group, no fence.
async fn connect(spec: &QuerySpec, compiled: &CompiledInfo, args: &ValidateArgs) -> Result<Value> {
    let mut starts = serde_json::Map::new();
    for (name, source) in &spec.sources {
        source.open(&OpenContext::new(args.start_timeout, 1)).await?;
        let start = source.start().await?;
        starts.insert(name.to_string(), serde_json::to_value(&start).unwrap_or_default());
    }
    let found = baton_checkpoint::preview(&spec.location, &wire::deps())
        .await
        .map_err(|error| wire::of_checkpoint(&error))?;
    let Some(recovery) = found else {
        return Ok(json!({ "checkpoint": "fresh", "startsAt": starts }));
    };
    let mut notes = Vec::new();
    if let Some(old) = &recovery.shape {
        let comparison = compiled.shape.compare(old);
        if !comparison.refusals.is_empty() && !args.accept_changes {
            let text = format!(
                "the job does not fit checkpoint `{}`: {}; pass --accept-changes to go on, or give it a checkpoint of its own",
                spec.location,
                comparison.refusals.join("; ")
            );
            return Err(Failure::invalid("E0111", text));
        }
        notes.extend(comparison.notes);
        notes.extend(comparison.refusals);
    }
    Ok(json!({
        "checkpoint": "fits",
        "lastCommittedBatch": recovery.last_committed,
        "startsAt": recovery.next,
        "differences": notes,
    }))
}

fn text(report: &Value) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut out = format!(
        "job {}, version {}: valid\n",
        word(&report["job"]),
        word(&report["version"])
    );
    for (name, source) in report["sources"].as_object().into_iter().flatten() {
        let _infallible = writeln!(out, "source {name}: {}", word(&source["description"]));
    }
    let _infallible = writeln!(
        out,
        "sink {}, {} mode; columns:",
        word(&report["sink"]),
        word(&report["outputMode"])
    );
    for column in report["schema"].as_array().into_iter().flatten() {
        let null = if column["nullable"] == Value::Bool(true) {
            ""
        } else {
            " not null"
        };
        let _infallible = writeln!(out, "  {} {}{null}", word(&column["name"]), word(&column["type"]));
    }
    if let Some(plan) = report["plan"].as_str() {
        let _infallible = writeln!(out, "plan:");
        for line in plan.lines() {
            let _infallible = writeln!(out, "  {line}");
        }
    }
    let connect = &report["connect"];
    if connect.is_object() {
        let _infallible = writeln!(out, "sources answer; checkpoint {}", word(&connect["checkpoint"]));
        for line in render::offsets(&connect["startsAt"]) {
            let _infallible = writeln!(out, "  starts at {line}");
        }
        for difference in connect["differences"].as_array().into_iter().flatten() {
            let _infallible = writeln!(
                out,
                "  differs from the job in the checkpoint: {}",
                word(difference)
            );
        }
    }
    out
}
