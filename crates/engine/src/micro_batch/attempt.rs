//! One attempt at a planned batch: read, compute, write, publish.

use baton_core::{BatchContext, CommitPermit, ErrorKind, Fault, Position, Receipt};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::execute::{self, Meters};
use super::helm::{Patience, Watched};
use super::plan::{self, Draft, Limits, SourceFault};
use super::run::{Batch, Runner};
use crate::event::AbandonReason;
use crate::query::chain;
use crate::trigger::Pace;
use crate::{Error, Result};

/// How long a batch's commit record waits for the next batch's plan, to share its synced write.
const SHARED_SLOT_PATIENCE: Duration = Duration::from_millis(10);

/// What an attempt at a batch came to.
pub(super) enum Attempt {
    Published { receipt: Receipt, draft: Option<Draft> },
    SourceAway(SourceFault),
    SinkAway(Fault),
    Abandoned(AbandonReason),
}

impl Runner {
    /// Reads, computes, writes and publishes a planned batch once.
    pub(super) async fn attempt(
        &mut self,
        batch: &mut Batch,
        meters: &mut Meters,
        pace: &Pace,
        limits: &Limits,
    ) -> Result<Attempt> {
        let number = batch.planned.batch;
        let context = BatchContext::new(number, self.helm.lease.epoch());
        let started = self.helm.clock.elapsed();
        let (from, until) = (&batch.planned.from, &batch.planned.until);
        let with_stamps = self.narrator.wants_stamps();
        let pulse = Arc::clone(&self.helm.shared.pulse);
        let opened = execute::open_ranges(&self.sources, from, until, self.streams, with_stamps, &pulse)?;
        let inputs = match opened {
            Ok((inputs, counting)) => {
                *meters = counting;
                inputs
            }
            Err(fault) => return source_away(fault),
        };
        let streams = self.query.run(self.helm.clock.now(), inputs)?;
        let bound = self.helm.clock.elapsed();
        batch.timings.query_planning = bound.saturating_sub(started);

        let writing = self
            .sink
            .call(move |sink| Box::pin(execute::write_all(sink, context, streams, pulse)));
        match self.helm.watch(Patience::Finish, writing).await {
            Watched::Done(Ok(Ok(_rows))) => {}
            Watched::Done(Ok(Err(failure))) => {
                self.abort_batch().await;
                if let Some(fault) = meters.take_fault() {
                    return source_away(fault);
                }
                return match failure {
                    execute::WriteFailure::Sink(fault) if is_passing(&fault) => Ok(Attempt::SinkAway(fault)),
                    other => Err(other.into_error(number, &self.sink.format)),
                };
            }
            Watched::Done(Err(error)) => return Err(error),
            Watched::Interrupted => return Ok(Attempt::Abandoned(AbandonReason::Asked)),
            Watched::Abandoned(why) => return Ok(Attempt::Abandoned(why)),
        }

        // B4. The permit is the last look that we still own the checkpoint; between it and the publication is nothing.
        let permit = self.helm.lease.permit(&batch.planned).await?;
        let attempt = self.publish(permit, &batch.planned.until, pace, limits).await;
        batch.timings.add_batch = self.helm.clock.elapsed().saturating_sub(bound);
        attempt
    }

    /// Publishes what was written, and meanwhile looks what the next batch would take.
    async fn publish(
        &mut self,
        permit: CommitPermit,
        until: &Position,
        pace: &Pace,
        limits: &Limits,
    ) -> Result<Attempt> {
        let look_ahead = !self.helm.is_leaving() && pace.is_due(self.helm.clock.now());
        let drafting = plan::draft(self.sources.clone(), until.clone(), limits.clone());
        let clock = Arc::clone(&self.helm.clock);
        let committing = self
            .sink
            .call(move |sink| Box::pin(async move { sink.commit(permit).await }));
        let both = async move {
            let (mut committing, mut drafting) = (pin!(committing), pin!(drafting));
            let mut draft = None;
            let published = loop {
                tokio::select! {
                    biased;
                    published = &mut committing => break published,
                    drafted = &mut drafting, if look_ahead && draft.is_none() => draft = Some(drafted),
                }
            };
            if look_ahead && draft.is_none() {
                tokio::select! {
                    biased;
                    drafted = &mut drafting => draft = Some(drafted),
                    () = clock.sleep(SHARED_SLOT_PATIENCE) => {}
                }
            }
            (published, draft)
        };
        let (published, draft) = match self.helm.watch(Patience::Finish, both).await {
            Watched::Done(done) => done,
            Watched::Interrupted => return Ok(Attempt::Abandoned(AbandonReason::Asked)),
            Watched::Abandoned(why) => return Ok(Attempt::Abandoned(why)),
        };
        match published? {
            Ok(receipt) => {
                // A look ahead that failed or found something special is simply made again, alone.
                let draft = draft.and_then(Result::ok).filter(|draft| {
                    !self.helm.is_leaving()
                        && draft.continues(until)
                        && draft.is_empty().is_ok_and(|empty| !empty)
                });
                if let Some(draft) = &draft {
                    self.narrator.saw(&draft.latest);
                }
                Ok(Attempt::Published { receipt, draft })
            }
            Err(fault) => {
                self.abort_batch().await;
                if is_passing(&fault) {
                    Ok(Attempt::SinkAway(fault))
                } else {
                    Err(Error::sink_failed(&self.sink.format, fault))
                }
            }
        }
    }

    /// Best effort: whatever failed before is what the user hears of.
    async fn abort_batch(&mut self) {
        let aborting = self.sink.call(|sink| Box::pin(async move { sink.abort().await }));
        if let Watched::Done(Ok(Err(fault))) = self.helm.watch(Patience::Finish, aborting).await {
            tracing::warn!(error = chain(&fault), "the sink could not abort its batch");
        }
    }
}

/// A source's passing failure is waited out; any other ends the query.
fn source_away(fault: SourceFault) -> Result<Attempt> {
    if fault.fault.kind == ErrorKind::Unavailable {
        Ok(Attempt::SourceAway(fault))
    } else {
        Err(Error::source_failed(&fault.name, fault.fault))
    }
}

/// Whether a sink's failure may pass. A fenced sink is among them: a transaction that a broker timed out looks the
/// same, and only the log can tell.
fn is_passing(fault: &Fault) -> bool {
    matches!(fault.kind, ErrorKind::Unavailable | ErrorKind::Fenced)
}
