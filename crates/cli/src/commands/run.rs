//! `baton run`.

use baton_checkpoint::{AcquireOptions, IfOwned, OnDrainTimeout};
use baton_core::ErrorKind;
use baton_engine::{Outcome, QueryEvent, StreamingQuery};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

use crate::args::{IfOwnedArg, OnDrainTimeoutArg, RunArgs};
use crate::failure::{Failure, Result};
use crate::health::{self, About, Board};
use crate::job::{self, JobSpec};
use crate::signals::{Caught, Signals};
use crate::talk::{say, warn};
use crate::{report, wire};

/// How long an abandoned query may take to end before the process ends without it. What it leaves is what a kill
/// leaves, which every start recovers from.
const ABANDON: Duration = Duration::from_secs(2);

pub(super) async fn run(args: RunArgs) -> Result<u8> {
    // Before anything else: an orchestrator may change its mind at once.
    let mut signals = Signals::listen()?;
    let listening = args.listen.as_deref().map(health::listen).transpose()?;
    let job = job::load(&args.job, &args.set)?;
    let Some(checkpoint) = &job.sink.checkpoint else {
        return Err(job::missing_checkpoint(&job.sink.options.table));
    };
    let location = wire::location(checkpoint)?;
    let mut spec = wire::query(&job, location, ownership(&args, &job)?)?;
    spec.start_timeout = args.start_timeout;
    spec.claim_group = args.claim_group;
    let mut progress = args.progress.as_deref().map(Progress::open).transpose()?;
    for warning in &job.warnings {
        warn!("{warning}");
    }
    say!(
        job = job.name,
        version = job.version,
        checkpoint,
        "job {}, version {}, checkpoint {checkpoint}",
        job.name,
        job.version
    );

    let deps = wire::deps();
    let clock = Arc::clone(&deps.clock);
    let (sender, mut events) = mpsc::channel(256);
    let query = baton_engine::start(spec, deps, sender);
    let board = Board::new(about(&job, &args), query.observer(), Arc::clone(&clock));
    // Ends with this function, whatever way that ends.
    let _server = match listening {
        Some(listening) => {
            let address = listening.address;
            let server = listening.serve(Arc::clone(&board))?;
            say!(%address, "health and metrics at http://{address}/healthz, /readyz and /metrics");
            Some(server)
        }
        None => None,
    };
    let telling = tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            board.observe(&event);
            report::event(&event);
            if let (QueryEvent::BatchDone(done), Some(file)) = (&event, &mut progress) {
                file.append(&done.to_json());
            }
        }
    });

    let mut first: Option<Caught> = None;
    let outcome = loop {
        tokio::select! {
            outcome = query.await_termination() => break outcome,
            caught = signals.next() => match first.replace(caught) {
                None => {
                    say!("{}: stopping; once more to abandon the batch", caught.name);
                    query.request_stop();
                }
                Some(_) => {
                    warn!("{} again: abandoning the batch; the next start runs it again", caught.name);
                    query.request_stop_now();
                    tokio::select! {
                        _ = query.await_termination() => {}
                        _ = signals.next() => {}
                        () = clock.sleep(ABANDON) => {}
                    }
                    telling.abort();
                    return Ok(caught.exit_code());
                }
            },
        }
    };
    let owned = query.id().is_some();
    finish(query, telling, clock.sleep(ABANDON)).await;
    match outcome {
        Ok(outcome) => {
            ended(&outcome, owned);
            Ok(0)
        }
        Err(error) => Err(wire::of_compiling(&error, &job)),
    }
}

/// What the metrics say of the job.
fn about(job: &JobSpec, args: &RunArgs) -> About {
    About {
        job: job.name.clone(),
        version: job.version.clone(),
        sources: job.sources.iter().map(|source| source.name.clone()).collect(),
        sink: job.sink.format.clone(),
        start_timeout: args.start_timeout,
    }
}

/// The last events are said before the last line.
async fn finish(
    query: StreamingQuery,
    telling: tokio::task::JoinHandle<()>,
    patience: impl Future<Output = ()>,
) {
    drop(query);
    tokio::select! {
        _ = telling => {}
        () = patience => {}
    }
}

fn ended(outcome: &Outcome, owned: bool) {
    match outcome {
        Outcome::Stopped if !owned => say!(outcome = "stopped", "stopped before it owned the checkpoint"),
        Outcome::Stopped => say!(outcome = "stopped", "stopped; the checkpoint is released"),
        Outcome::Done => say!(outcome = "done", "done; the checkpoint is released"),
        Outcome::HandedOver { to } => say!(outcome = "handedOver", to, "handed over to {to}"),
        Outcome::Interrupted => warn!(
            outcome = "interrupted",
            "ended inside a batch; the next start runs it again"
        ),
        _ => say!("ended"),
    }
}

fn ownership(args: &RunArgs, job: &JobSpec) -> Result<AcquireOptions> {
    let if_owned = match (args.if_owned, &job.ownership.if_owned) {
        (Some(IfOwnedArg::Fail), _) => IfOwned::Fail,
        (Some(IfOwnedArg::Wait), _) => IfOwned::Wait,
        (Some(IfOwnedArg::Takeover), _) => IfOwned::Takeover,
        (Some(IfOwnedArg::Force), _) => IfOwned::Force,
        (None, Some(text)) => IfOwned::from_str(text).map_err(|error| wire::of_checkpoint(&error))?,
        (None, None) => IfOwned::Fail,
    };
    let mut options = AcquireOptions {
        if_owned,
        wait_timeout: args.wait_timeout,
        drain_timeout: args.drain_timeout,
        on_drain_timeout: match args.on_drain_timeout {
            OnDrainTimeoutArg::Giveup => OnDrainTimeout::GiveUp,
            OnDrainTimeoutArg::Force => OnDrainTimeout::Force,
        },
        accept_changes: args.accept_changes,
        ..AcquireOptions::default()
    };
    if let Some(batches) = job.conf.min_batches_to_retain {
        options.min_batches_to_retain = batches;
    }
    Ok(options)
}

/// `--progress FILE`.
struct Progress {
    shown: String,
    file: File,
    failed: bool,
}

impl Progress {
    fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let opened = File::options().create(true).append(true).open(path);
        let file = opened.map_err(|error| {
            Failure::new(
                ErrorKind::Invalid,
                "E0512",
                format!("cannot append to --progress `{shown}`: {error}"),
            )
        })?;
        Ok(Self {
            shown,
            file,
            failed: false,
        })
    }

    /// A line at once, so that lines of two owners that share a file do not mix. A full disk does not stop the job.
    fn append(&mut self, json: &str) {
        match self.file.write_all(format!("{json}\n").as_bytes()) {
            Ok(()) => self.failed = false,
            Err(error) if !self.failed => {
                self.failed = true;
                warn!(
                    "cannot append to --progress `{}`: {error}; the job goes on",
                    self.shown
                );
            }
            Err(_) => {}
        }
    }
}
