//! From a spec to a running loop: every check that can fail, then ownership, then the first batch.

use baton_checkpoint::{
    AcquireEvent, Candidate, Deps, IfOwned, JobShape, Lease, PositionReason, Recovery, acquire, inspect,
    preview,
};
use baton_core::{
    CheckpointId, Claimant, Clock, ErrorKind, Guarantee, OpenContext, OwnerId, Position, SinkContext, SinkRef,
};
use futures::future::{join_all, try_join_all};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

use super::helm::{Helm, Patience, Watched};
use super::outage::Outage;
use super::plan::{SourceFault, SourceSeat};
use super::publish::Publisher;
use super::recover;
use super::run::Runner;
use super::seat::SinkSeat;
use super::tell::{Identity, Narrator, Predecessor};
use super::threads::Threads;
use crate::event::{Events, QueryEvent};
use crate::query::{Outcome, Shared, chain};
use crate::spec::{QuerySpec, compile_query, job_shape};
use crate::sql::Query;
use crate::{Error, Result, Trigger};

/// More streams than this bring nothing that the sink could take.
const MOST_STREAMS: usize = 16;

/// A query whose every part has been checked, before it owns anything.
struct Candidacy {
    spec: Settings,
    shape: JobShape,
    query: Query,
    sources: Vec<SourceSeat>,
    sink: SinkSeat,
    streams: usize,
    deps: Deps,
    events: Events,
    shared: Arc<Shared>,
}

/// What is left of a spec when its sources, its SQL and its sink have been taken out.
struct Settings {
    name: String,
    version: String,
    trigger: Trigger,
    location: baton_checkpoint::Location,
    ownership: baton_checkpoint::AcquireOptions,
    handover: bool,
    claim_group: bool,
    stop_timeout: Duration,
    start_timeout: Duration,
}

/// Runs a query from its first check to its end.
pub(crate) async fn run_query(
    spec: QuerySpec,
    deps: Deps,
    events: Events,
    shared: Arc<Shared>,
) -> Result<Outcome> {
    // Planning computes what is constant, which may take long: not on the loop's threads.
    let planning = {
        let shared = Arc::clone(&shared);
        let planning = tokio::task::spawn_blocking(move || Candidacy::new(spec, deps, events, shared));
        async {
            planning
                .await
                .unwrap_or(Err(Error::Panicked { task: "planning" }))
        }
    };
    let Some(mut candidacy) = unless_stopped(&shared, planning).await? else {
        return Ok(Outcome::Stopped);
    };
    let Some(ready) = unless_stopped(&shared, candidacy.prepare()).await? else {
        return Ok(Outcome::Stopped);
    };
    let Some((lease, sink_ref)) = unless_stopped(&shared, candidacy.own(ready)).await? else {
        return Ok(Outcome::Stopped);
    };
    candidacy.take_office(lease, sink_ref).await
}

/// Before anything is owned, every request to end is heard at once. Dropping the work withdraws what it asked for.
async fn unless_stopped<T>(shared: &Shared, work: impl Future<Output = Result<T>>) -> Result<Option<T>> {
    tokio::select! {
        biased;
        () = shared.abandon.cancelled() => Ok(None),
        () = shared.stop.cancelled() => Ok(None),
        done = work => done.map(Some),
    }
}

/// What preparation has found out.
struct Ready {
    /// The checkpoint that the sink was opened for and the sources claimed for, if it exists already.
    opened: Option<(CheckpointId, SinkRef)>,
    /// The checkpoint was free when we looked, or its owner will be asked.
    lease: Option<Lease>,
}

impl Candidacy {
    fn new(spec: QuerySpec, deps: Deps, events: Events, shared: Arc<Shared>) -> Result<Self> {
        let query = compile_query(&spec)?;
        let shape = job_shape(&spec, &query);
        let QuerySpec {
            name,
            version,
            sources,
            sink,
            sink_name,
            trigger,
            location,
            ownership,
            ..
        } = spec;
        let settings = Settings {
            name,
            version,
            trigger,
            location,
            ownership,
            handover: spec.handover,
            claim_group: spec.claim_group,
            stop_timeout: spec.stop_timeout,
            start_timeout: spec.start_timeout,
        };
        let sources = sources
            .into_iter()
            .map(|(name, source)| SourceSeat {
                name,
                source: Arc::from(source),
            })
            .collect();
        let streams = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MOST_STREAMS);
        let sink = SinkSeat::new(sink, sink_name, Threads::start(streams));
        Ok(Self {
            spec: settings,
            shape,
            query,
            sources,
            sink,
            streams,
            deps,
            events,
            shared,
        })
    }

    /// Everything that can fail without owning anything.
    async fn prepare(&mut self) -> Result<Ready> {
        self.notices().await;
        let before = preview(&self.spec.location, &self.deps).await?;
        // A plain start on an owned checkpoint has its answer at once, not after a broker's time-out.
        let lease = match &before {
            Some(_) if matches!(self.spec.ownership.if_owned, IfOwned::Fail) && self.is_owned().await => {
                Some(self.acquire().await?)
            }
            _ => None,
        };
        let context = OpenContext::new(self.spec.start_timeout, self.streams);
        self.of_all_sources(|seat| {
            let context = context.clone();
            async move {
                seat.source
                    .open(&context)
                    .await
                    .map_err(|fault| seat.fault(fault))
            }
        })
        .await?;
        let opened = match before {
            Some(Recovery { checkpoint, .. }) => {
                self.claim(checkpoint).await?;
                Some((checkpoint, self.open_sink(checkpoint).await?))
            }
            None => None,
        };
        Ok(Ready { opened, lease })
    }

    /// Whether somebody alive owns the checkpoint; a doubt counts as no, because owning it is tried later anyway.
    async fn is_owned(&self) -> bool {
        let Ok(status) = inspect(&self.spec.location, &self.deps).await else {
            return false;
        };
        serde_json::to_value(status).is_ok_and(|status| status["state"] == "running")
    }

    async fn notices(&self) {
        for seat in &self.sources {
            for text in seat.source.notices() {
                self.events
                    .emit(QueryEvent::Notice {
                        about: seat.name.to_string(),
                        text,
                    })
                    .await;
            }
        }
        if let Some(Guarantee::MayRepeat(text)) = self.sink.guarantee() {
            let about = format!("sink {}", self.sink.format);
            self.events
                .emit(QueryEvent::Notice {
                    about,
                    text: text.to_owned(),
                })
                .await;
        }
    }

    async fn of_all_sources<T, F>(&self, ask: impl Fn(SourceSeat) -> F) -> Result<Vec<T>>
    where
        F: Future<Output = Result<T, SourceFault>>,
    {
        let asked = try_join_all(self.sources.iter().cloned().map(ask)).await;
        asked.map_err(|SourceFault { name, fault }| Error::source_failed(&name, fault))
    }

    fn claimant(&self, checkpoint: CheckpointId) -> Claimant {
        Claimant::new(checkpoint, self.spec.name.clone(), self.spec.claim_group)
    }

    async fn claim(&self, checkpoint: CheckpointId) -> Result<()> {
        let claimant = self.claimant(checkpoint);
        self.of_all_sources(|seat| {
            let claimant = claimant.clone();
            async move {
                seat.source
                    .claim(&claimant)
                    .await
                    .map_err(|fault| seat.fault(fault))
            }
        })
        .await
        .map(drop)
    }

    async fn open_sink(&mut self, checkpoint: CheckpointId) -> Result<SinkRef> {
        let context = SinkContext::new(checkpoint, self.spec.name.clone());
        let opened = self
            .sink
            .call(move |sink| Box::pin(async move { sink.open(&context).await }))
            .await?;
        opened.map_err(|fault| Error::sink_failed(&self.sink.format, fault))
    }

    /// Gets the checkpoint, and makes the parts fit the one that it turned out to be.
    async fn own(&mut self, ready: Ready) -> Result<(Lease, SinkRef)> {
        let lease = match ready.lease {
            Some(lease) => lease,
            None => self.acquire().await?,
        };
        match ready.opened {
            Some((checkpoint, sink_ref)) if checkpoint == lease.checkpoint() => Ok((lease, sink_ref)),
            _ => {
                let opened = async {
                    self.claim(lease.checkpoint()).await?;
                    self.open_sink(lease.checkpoint()).await
                };
                match opened.await {
                    Ok(sink_ref) => Ok((lease, sink_ref)),
                    Err(error) => {
                        // Nothing ran: leave the checkpoint as found, so that whoever comes next need not recover.
                        if lease.recovery().pending.is_none() {
                            drop(lease.release(None).await);
                        }
                        Err(error)
                    }
                }
            }
        }
    }

    async fn acquire(&self) -> Result<Lease> {
        let candidate = Candidate {
            owner: OwnerId(self.deps.rng.uuid()),
            job: self.spec.name.clone(),
            version: self.spec.version.clone(),
            shape: self.shape.clone(),
            handover: self.spec.handover,
        };
        let (sender, mut receiver) = mpsc::channel(16);
        let acquiring = acquire(
            &self.spec.location,
            candidate,
            self.spec.ownership.clone(),
            &self.deps,
            sender,
        );
        let telling = async {
            while let Some(event) = receiver.recv().await {
                let accepted = match &event {
                    AcquireEvent::Accepted { end, .. } => Some(end.clone()),
                    _ => None,
                };
                self.events.emit(QueryEvent::Acquire(event)).await;
                if let Some(end) = accepted {
                    self.warm(&end).await;
                }
            }
        };
        let (lease, ()) = tokio::join!(acquiring, telling);
        Ok(lease?)
    }

    /// A guess where reading will go on: the holder's last batch may yet be another.
    async fn warm(&self, at: &Position) {
        join_all(self.sources.iter().map(|seat| async move {
            if let Some(at) = at.source(&seat.name) {
                seat.source.warm(at).await;
            }
        }))
        .await;
    }

    /// From ownership to the first batch.
    async fn take_office(mut self, lease: Lease, sink_ref: SinkRef) -> Result<Outcome> {
        let clock: Arc<dyn Clock> = Arc::clone(&self.deps.clock);
        let (checkpoint, epoch) = (lease.checkpoint(), lease.epoch());
        let recovery = lease.recovery();
        let (last_committed, next) = (recovery.last_committed, recovery.next.clone());
        let last_commit_at = recovery.last_commit_at;
        let pending_ref = recovery.pending.as_ref().map(|planned| planned.sink.clone());
        let predecessor = predecessor(recovery);
        self.shared.say("Going on from the checkpoint", false, false);
        self.events
            .emit(QueryEvent::Acquired {
                checkpoint,
                epoch,
                run: self.shared.run,
                last_committed,
                last_commit_at,
            })
            .await;
        let mut helm = Helm::new(
            lease,
            Arc::clone(&clock),
            self.events.clone(),
            Arc::clone(&self.shared),
            self.spec.stop_timeout,
        );

        // R2, R3: on the ref of the batch that may be half published, which an older version may have chosen.
        let fenced_at = pending_ref.unwrap_or_else(|| sink_ref.clone());
        let marker = recover::fence_and_look(&mut self.sink, epoch, fenced_at.clone()).await?;
        if fenced_at != sink_ref {
            // What the new place has is no batch of this log: only older owners are shut out there.
            recover::fence_and_look(&mut self.sink, epoch, sink_ref.clone()).await?;
        }
        // R4, R5.
        let pending = recover::resume(&mut helm.lease, marker, &self.events).await?;
        if let Some(planned) = &pending {
            recover::check_sources(planned, &self.sources)?;
            let (batch, from, until) = (planned.batch, planned.from.clone(), planned.until.clone());
            self.events
                .emit(QueryEvent::Replaying { batch, from, until })
                .await;
        }

        let next = match &pending {
            Some(planned) => planned.until.clone(),
            None => next.unwrap_or_default(),
        };
        let Some(position) = self.settle_position(&mut helm, next, pending.is_some()).await? else {
            if pending.is_none() {
                helm.lease.release(None).await?;
                return Ok(Outcome::Stopped);
            }
            return Ok(Outcome::Interrupted);
        };
        let publisher = Publisher::start(
            self.sources.clone(),
            self.claimant(checkpoint),
            self.events.clone(),
        );
        publisher.publish(position.clone());
        let identity = Identity {
            id: checkpoint.to_string(),
            run: self.shared.run,
            name: self.spec.name.clone(),
            version: self.spec.version.clone(),
            epoch,
        };
        self.shared.has_started(checkpoint.to_string());
        let runner = Runner {
            helm,
            narrator: Narrator::new(identity, predecessor, clock.elapsed()),
            sources: self.sources,
            query: self.query,
            sink: self.sink,
            sink_ref,
            streams: self.streams,
            trigger: self.spec.trigger,
            position,
            publisher,
        };
        Box::pin(runner.run(pending)).await
    }

    /// Completes the position by sources that it lacks – all of them on a fresh checkpoint – and writes it down before
    /// anything is read: a crash before the first batch must not resolve `latest` again and lose what came in between.
    /// None when the query was asked to end first.
    async fn settle_position(
        &self,
        helm: &mut Helm,
        next: Position,
        pending: bool,
    ) -> Result<Option<Position>> {
        let mut position: Position = self
            .sources
            .iter()
            .filter_map(|seat| Some((seat.name.clone(), next.source(&seat.name)?.clone())))
            .collect();
        if position.0.len() == self.sources.len() && position == next {
            return Ok(Some(position));
        }
        for seat in &self.sources {
            if position.source(&seat.name).is_none() {
                let Some(start) = start_patiently(helm, seat).await? else {
                    return Ok(None);
                };
                position.0.insert(seat.name.clone(), start);
            }
        }
        if !pending {
            helm.lease
                .record_position(position.clone(), PositionReason::Start)
                .await?;
            self.events.emit(QueryEvent::StartsAt(position.clone())).await;
        }
        Ok(Some(position))
    }
}

/// Resolves a source's starting offsets, waiting for the source if it must.
async fn start_patiently(helm: &mut Helm, seat: &SourceSeat) -> Result<Option<baton_core::PartitionOffsets>> {
    let mut outage: Option<Outage> = None;
    loop {
        let fault = match helm.watch(Patience::Interrupt, seat.source.start()).await {
            Watched::Done(Ok(start)) => {
                if let Some(outage) = outage {
                    helm.shared.is_back();
                    let after = outage.lasted(helm.clock.elapsed());
                    let source = outage.source;
                    helm.events.emit(QueryEvent::SourceBack { source, after }).await;
                }
                return Ok(Some(start));
            }
            Watched::Done(Err(fault)) => fault,
            Watched::Interrupted | Watched::Abandoned(_) => return Ok(None),
        };
        if fault.kind != ErrorKind::Unavailable {
            return Err(Error::source_failed(&seat.name, fault));
        }
        let now = helm.clock.elapsed();
        let outage = outage.get_or_insert_with(|| Outage::new(seat.name.clone(), now));
        if outage.is_worth_saying(now) {
            let (source, since) = (seat.name.clone(), outage.lasted(now));
            let error = Error::source_failed(&seat.name, fault);
            helm.shared.is_away(source.clone(), outage.since, chain(&error));
            helm.events
                .emit(QueryEvent::SourceWaiting { source, error, since })
                .await;
        }
        let pause = helm.clock.sleep(outage.pause());
        match helm.watch(Patience::Interrupt, pause).await {
            Watched::Done(()) => {}
            Watched::Interrupted | Watched::Abandoned(_) => return Ok(None),
        }
    }
}

fn predecessor(recovery: &Recovery) -> Option<Predecessor> {
    let before = recovery.handed_over_by.as_ref()?;
    Some(Predecessor {
        version: before.owner.version.clone(),
        last_batch: before.last_batch,
        committed_at: before.committed_at,
        median_interval: before.median_interval,
    })
}
