//! The loop: fire, plan, run, commit, tell; until somebody or the trigger ends it.

use baton_checkpoint::{Lease, PlanDraft, Planned, PositionReason, Report};
use baton_core::{ErrorKind, Position, SinkRef, Timestamp};
use std::sync::Arc;
use std::time::Duration;

use super::attempt::Attempt;
use super::execute::Meters;
use super::helm::{Helm, Patience, Watched};
use super::outage::Outage;
use super::plan::{self, Draft, Limits, SourceFault, SourceSeat};
use super::publish::Publisher;
use super::seat::SinkSeat;
use super::tell::{Narrator, Timings};
use crate::event::{AbandonReason, QueryEvent};
use crate::query::{Outcome, chain};
use crate::sql::Query;
use crate::trigger::{Fired, Next, Pace, Trigger};
use crate::{Error, Result};

/// How often a batch is tried when the sink answers with passing failures.
const SINK_ATTEMPTS: u32 = 5;

/// After how long without data it is said.
const IDLE_EVERY: Duration = Duration::from_secs(10);

/// How often the lag is noted for `status` while there is no data.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// A query in the course of its batches.
pub(super) struct Runner {
    pub(super) helm: Helm,
    pub(super) sources: Vec<SourceSeat>,
    pub(super) query: Query,
    pub(super) sink: SinkSeat,
    pub(super) sink_ref: SinkRef,
    pub(super) streams: usize,
    pub(super) trigger: Trigger,
    /// Where the next batch starts.
    pub(super) position: Position,
    pub(super) publisher: Publisher,
    pub(super) narrator: Narrator,
}

/// A batch that is in the log and not committed.
pub(super) struct Batch {
    pub(super) planned: Planned,
    /// Where the sources ended when it was planned; not known of one that is run again.
    pub(super) latest: Option<Position>,
    pub(super) timings: Timings,
}

/// How the loop ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// Nothing is planned: the checkpoint can be released.
    Clean {
        /// Whether the trigger had nothing more to do.
        done: bool,
    },
    /// A batch is planned and not committed.
    Abandoned,
}

/// What a look for new data came to.
enum Look {
    Batch(Box<Batch>),
    Nothing,
    Leave,
}

impl Runner {
    /// Runs until the end, and leaves the checkpoint as the end requires.
    pub(super) async fn run(mut self, pending: Option<Planned>) -> Result<Outcome> {
        match self.drive(pending).await {
            Ok(Ending::Clean { done }) => {
                let Self { helm, publisher, .. } = self;
                publisher.finish(&helm.clock).await;
                let successor = helm.successor;
                let to = successor.as_ref().map(ToString::to_string);
                helm.lease.release(successor.map(|owner| owner.id)).await?;
                Ok(match to {
                    Some(to) => Outcome::HandedOver { to },
                    None if done => Outcome::Done,
                    None => Outcome::Stopped,
                })
            }
            Ok(Ending::Abandoned) => {
                let Self {
                    helm: Helm { lease, clock, .. },
                    sink,
                    ..
                } = self;
                sink.vacated(lease, &clock).await;
                Ok(Outcome::Interrupted)
            }
            Err(error) => {
                let Self {
                    helm: Helm { mut lease, clock, .. },
                    sink,
                    ..
                } = self;
                note_failure(&mut lease, &error);
                sink.vacated(lease, &clock).await;
                Err(error)
            }
        }
    }

    async fn drive(&mut self, pending: Option<Planned>) -> Result<Ending> {
        let mut pace = Pace::new(self.trigger);
        let mut limits = Limits {
            unlimited: self.trigger == Trigger::Once,
            cap: None,
        };
        if self.trigger == Trigger::AvailableNow {
            let from = pending
                .as_ref()
                .map_or_else(|| self.position.clone(), |planned| planned.until.clone());
            match self.freeze_end(from).await? {
                Some(cap) => limits.cap = Some(cap),
                None if pending.is_none() => return Ok(Ending::Clean { done: false }),
                None => {}
            }
        }
        let mut ready = pending.map(|planned| Batch {
            planned,
            latest: None,
            timings: Timings::default(),
        });
        loop {
            self.helm.look().await;
            if let Some(error) = self.publisher.lost() {
                return Err(error);
            }
            if ready.is_none() && self.helm.is_leaving() {
                return Ok(Ending::Clean { done: false });
            }
            let fired = self.helm.clock.now();
            pace.fire(fired);
            self.narrator.fired(self.helm.clock.elapsed());
            let batch = match ready.take() {
                Some(batch) => Look::Batch(Box::new(batch)),
                None => self.look_for_data(&limits).await?,
            };
            let outcome = match batch {
                Look::Leave => return Ok(Ending::Clean { done: false }),
                Look::Nothing => {
                    self.idle().await;
                    Fired::Nothing
                }
                Look::Batch(batch) => match self.run_batch(*batch, fired, &pace, &limits).await? {
                    Some(next) => {
                        ready = next;
                        Fired::Ran
                    }
                    None => return Ok(Ending::Abandoned),
                },
            };
            let (next, overrun) = pace.after(outcome, self.helm.clock.now());
            if let Some(overrun) = overrun {
                self.helm.events.emit(QueryEvent::Overrun(overrun)).await;
            }
            match next {
                _ if ready.is_some() => {}
                Next::Now => {}
                Next::End => return Ok(Ending::Clean { done: true }),
                Next::Wait(pause) => self.pause(pause, outcome).await,
            }
        }
    }

    /// Waits for the next firing. Whether it came or somebody asked for the end, the loop's head looks.
    async fn pause(&mut self, pause: Duration, outcome: Fired) {
        match outcome {
            Fired::Ran => self.helm.shared.say("Waiting for next trigger", false, false),
            Fired::Nothing => self.helm.shared.say("Waiting for data to arrive", false, false),
        }
        self.helm.shared.pulse.rest(pause);
        let sleep = self.helm.clock.sleep(pause);
        match self.helm.watch(Patience::Interrupt, sleep).await {
            Watched::Done(()) | Watched::Interrupted | Watched::Abandoned(_) => {}
        }
    }

    /// Where the sources end now, for `availableNow`; none when the query was asked to end first.
    async fn freeze_end(&mut self, from: Position) -> Result<Option<Position>> {
        let limits = Limits {
            unlimited: true,
            cap: None,
        };
        Ok(self
            .draft_patiently(from, &limits)
            .await?
            .map(|draft| draft.until))
    }

    /// Asks the sources until they answer; none when the query was asked to end first.
    async fn draft_patiently(&mut self, from: Position, limits: &Limits) -> Result<Option<Draft>> {
        let mut outage = None;
        loop {
            let asked = plan::draft(self.sources.clone(), from.clone(), limits.clone());
            let fault = match self.helm.watch(Patience::Interrupt, asked).await {
                Watched::Done(Ok(draft)) => {
                    self.back(outage).await;
                    return Ok(Some(draft));
                }
                Watched::Done(Err(fault)) => fault,
                Watched::Interrupted | Watched::Abandoned(_) => return Ok(None),
            };
            if !self.wait_out(fault, &mut outage, Patience::Interrupt).await? {
                return Ok(None);
            }
        }
    }

    async fn look_for_data(&mut self, limits: &Limits) -> Result<Look> {
        self.helm
            .shared
            .say("Getting offsets from the sources", false, true);
        let asked = self.helm.clock.elapsed();
        let Some(draft) = self.draft_patiently(self.position.clone(), limits).await? else {
            return Ok(Look::Leave);
        };
        let latest_offset = self.helm.clock.elapsed().saturating_sub(asked);
        self.narrator.saw(&draft.latest);
        if !draft.gaps.is_empty() {
            self.helm
                .lease
                .record_position(draft.from.clone(), PositionReason::Gap)
                .await?;
            self.position = draft.from.clone();
            for (source, gap) in draft.gaps.iter().cloned() {
                self.helm.events.emit(QueryEvent::Gap { source, gap }).await;
            }
        }
        if draft.is_empty()? {
            return Ok(Look::Nothing);
        }
        self.helm.shared.lags(plan::lag(&self.position, &draft.latest));
        self.helm.shared.say("Writing offsets to log", true, true);
        let (planned, took) = {
            let before = self.helm.clock.elapsed();
            let draft = PlanDraft {
                from: draft.from,
                until: draft.until,
                sink: self.sink_ref.clone(),
            };
            let planned = self.helm.lease.plan(draft).await?;
            (planned, self.helm.clock.elapsed().saturating_sub(before))
        };
        let timings = Timings {
            latest_offset,
            wal_commit: took,
            ..Timings::default()
        };
        Ok(Look::Batch(Box::new(Batch {
            planned,
            latest: Some(draft.latest),
            timings,
        })))
    }

    async fn idle(&mut self) {
        let now = self.helm.clock.elapsed();
        if let Some(since) = self.narrator.idle(now, IDLE_EVERY) {
            self.helm.events.emit(QueryEvent::Idle { since }).await;
        }
        if self.narrator.is_report_due(now, REPORT_EVERY) {
            self.report(None);
        }
    }

    /// Runs a planned batch until it is committed. Returns the next one if its plan shared the commit's slot; the outer
    /// none means that the batch was abandoned.
    async fn run_batch(
        &mut self,
        mut batch: Batch,
        fired: Timestamp,
        pace: &Pace,
        limits: &Limits,
    ) -> Result<Option<Option<Batch>>> {
        self.helm.shared.say("Processing new data", true, true);
        let number = batch.planned.batch;
        let mut outage = None;
        let mut attempt = 1;
        let (receipt, draft, meters) = loop {
            let mut meters = Meters::default();
            match self.attempt(&mut batch, &mut meters, pace, limits).await? {
                Attempt::Published { receipt, draft } => break (receipt, draft, meters),
                Attempt::Abandoned(why) => return self.abandoned(number, why).await,
                Attempt::SourceAway(fault) => {
                    if !self.wait_out(fault, &mut outage, Patience::Finish).await? {
                        return Ok(None);
                    }
                }
                Attempt::SinkAway(fault) => {
                    attempt += 1;
                    if attempt > SINK_ATTEMPTS {
                        let (sink, attempts) = (self.sink.format.clone(), SINK_ATTEMPTS);
                        return Err(Error::SinkGaveUp {
                            sink,
                            batch: number,
                            attempts,
                            fault: Arc::new(fault),
                        });
                    }
                    let error = Error::sink_failed(&self.sink.format, fault);
                    self.helm
                        .events
                        .emit(QueryEvent::SinkRetry {
                            batch: number,
                            error,
                            attempt,
                        })
                        .await;
                    let pause = self.helm.clock.sleep(Duration::from_millis(100 << attempt));
                    match self.helm.watch(Patience::Finish, pause).await {
                        Watched::Done(()) | Watched::Interrupted => {}
                        Watched::Abandoned(why) => return self.abandoned(number, why).await,
                    }
                    match self.ask_sink_again(batch.planned).await? {
                        Some(planned) => batch.planned = planned,
                        // Adopted: published before the failure was reported, and now committed.
                        None => return Ok(Some(None)),
                    }
                }
            }
        };
        self.back(outage).await;
        let Batch {
            planned,
            latest,
            mut timings,
        } = batch;
        let (from, until) = (planned.from.clone(), planned.until.clone());
        let next = draft.map(|draft| {
            let plan = PlanDraft {
                from: draft.from,
                until: draft.until,
                sink: self.sink_ref.clone(),
            };
            (plan, draft.latest)
        });
        let (next_plan, next_latest) = next.unzip();
        let now = self.helm.clock.now();
        let hand_over = self.narrator.hand_over(now, number, meters.oldest_ms());
        if let Some(hand_over) = &hand_over {
            self.helm.lease.note_hand_over(hand_over.clone());
        }
        let before = self.helm.clock.elapsed();
        let next = self.helm.lease.commit(planned, &receipt, next_plan).await?;
        let committed = self.helm.clock.elapsed();
        timings.commit_offsets = committed.saturating_sub(before);
        self.position = until.clone();
        self.publisher.publish(until.clone());
        let told = super::tell::Told {
            batch: number,
            fired,
            from,
            until,
            latest,
            timings,
            rows_out: receipt.rows,
            hand_over,
        };
        self.narrator
            .batch_done(&self.helm, &self.sources, &self.sink.description(), told, &meters)
            .await;
        let replaced = self.query.take_replaced_characters();
        if replaced > 0 {
            self.helm
                .events
                .emit(QueryEvent::ReplacedCharacters {
                    batch: number,
                    count: replaced,
                })
                .await;
        }
        self.report(None);
        let next = next.map(|planned| Batch {
            planned,
            latest: next_latest,
            timings: Timings::default(),
        });
        Ok(Some(next))
    }

    async fn abandoned(
        &mut self,
        batch: baton_core::BatchId,
        why: AbandonReason,
    ) -> Result<Option<Option<Batch>>> {
        self.helm
            .events
            .emit(QueryEvent::Abandoned {
                batch: Some(batch),
                why,
            })
            .await;
        Ok(None)
    }

    /// Tells of a source that does not answer and pauses; false when the query was asked to end first.
    ///
    /// # Errors
    /// The source's own, unless it is a passing one.
    pub(super) async fn wait_out(
        &mut self,
        SourceFault { name, fault }: SourceFault,
        outage: &mut Option<Outage>,
        patience: Patience,
    ) -> Result<bool> {
        let error = Error::source_failed(&name, fault);
        if error.kind() != ErrorKind::Unavailable {
            return Err(error);
        }
        let now = self.helm.clock.elapsed();
        let outage = outage.get_or_insert_with(|| Outage::new(name, now));
        if outage.is_worth_saying(now) {
            self.report(Some(chain(&error)));
            self.helm.shared.say(
                &format!("Waiting for source `{}`: {}", outage.source, chain(&error)),
                false,
                true,
            );
            let (source, since) = (outage.source.clone(), outage.lasted(now));
            self.helm
                .shared
                .is_away(source.clone(), outage.since, chain(&error));
            self.helm
                .events
                .emit(QueryEvent::SourceWaiting { source, error, since })
                .await;
        }
        let pause = self.helm.clock.sleep(outage.pause());
        match self.helm.watch(patience, pause).await {
            Watched::Done(()) => Ok(true),
            Watched::Interrupted => Ok(false),
            Watched::Abandoned(why) => {
                self.helm
                    .events
                    .emit(QueryEvent::Abandoned { batch: None, why })
                    .await;
                Ok(false)
            }
        }
    }

    /// Tells that an outage is over.
    pub(super) async fn back(&mut self, outage: Option<Outage>) {
        if let Some(outage) = outage {
            let after = outage.lasted(self.helm.clock.elapsed());
            self.helm.shared.is_back();
            self.report(None);
            self.helm
                .events
                .emit(QueryEvent::SourceBack {
                    source: outage.source,
                    after,
                })
                .await;
        }
    }

    fn report(&mut self, last_error: Option<String>) {
        let lag = self
            .narrator
            .latest()
            .map(|latest| plan::lag(&self.position, latest));
        if let Some(lag) = &lag {
            self.helm.shared.lags(lag.clone());
        }
        self.helm.lease.report(Report { lag, last_error });
        self.narrator.reported(self.helm.clock.elapsed());
    }
}

fn note_failure(lease: &mut Lease, error: &Error) {
    lease.report(Report {
        lag: None,
        last_error: Some(chain(error)),
    });
}
