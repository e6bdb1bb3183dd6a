//! Turning what the loop did into progress, idle lines and the hand-over line.

use baton_checkpoint::HandOver;
use baton_core::{BatchId, Epoch, Position, RunId, SourceName, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::execute::Meters;
use super::helm::Helm;
use super::plan::SourceSeat;
use crate::event::QueryEvent;
use crate::progress::{Rates, SinkProgress, SourceFacts, StreamingQueryProgress, iso};

/// Where the time of one batch went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timings {
    pub(super) latest_offset: Duration,
    pub(super) wal_commit: Duration,
    pub(super) query_planning: Duration,
    pub(super) add_batch: Duration,
    pub(super) commit_offsets: Duration,
}

/// A committed batch, for telling.
pub(super) struct Told {
    pub(super) batch: BatchId,
    pub(super) fired: Timestamp,
    pub(super) from: Position,
    pub(super) until: Position,
    pub(super) latest: Option<Position>,
    pub(super) timings: Timings,
    pub(super) rows_out: u64,
    /// What the hand-over before this batch cost.
    pub(super) hand_over: Option<HandOver>,
}

/// What is known of the owner before us, if it handed over.
#[derive(Clone, Debug)]
pub(super) struct Predecessor {
    pub(super) version: String,
    pub(super) last_batch: Option<BatchId>,
    pub(super) committed_at: Option<Timestamp>,
    pub(super) median_interval: Option<Duration>,
}

/// What stays the same in all progresses of one start.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) id: String,
    pub(super) run: RunId,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) epoch: Epoch,
}

/// Keeps what telling needs from one batch to the next.
pub(super) struct Narrator {
    identity: Identity,
    rates: Rates,
    fired: Duration,
    latest: Option<Position>,
    last_data: Duration,
    last_idle: Duration,
    reported: Duration,
    predecessor: Option<Predecessor>,
}

impl Narrator {
    pub(super) fn new(identity: Identity, predecessor: Option<Predecessor>, now: Duration) -> Self {
        Self {
            identity,
            rates: Rates::default(),
            fired: now,
            latest: None,
            last_data: now,
            last_idle: now,
            reported: now,
            predecessor,
        }
    }

    pub(super) const fn fired(&mut self, now: Duration) {
        self.fired = now;
    }

    /// Notes where the sources end.
    pub(super) fn saw(&mut self, latest: &Position) {
        self.latest = Some(latest.clone());
    }

    pub(super) const fn latest(&self) -> Option<&Position> {
        self.latest.as_ref()
    }

    /// Whether the records' own timestamps are wanted: for the first batch after a hand-over only.
    pub(super) const fn wants_stamps(&self) -> bool {
        self.predecessor.is_some()
    }

    /// How long there has been no data, when it is time to say so.
    pub(super) fn idle(&mut self, now: Duration, every: Duration) -> Option<Duration> {
        let due = now.saturating_sub(self.last_idle.max(self.last_data)) >= every;
        due.then(|| {
            self.last_idle = now;
            now.saturating_sub(self.last_data)
        })
    }

    pub(super) fn is_report_due(&self, now: Duration, every: Duration) -> bool {
        now.saturating_sub(self.reported) >= every
    }

    pub(super) const fn reported(&mut self, now: Duration) {
        self.reported = now;
    }

    /// Tells of a committed batch.
    pub(super) async fn batch_done(
        &mut self,
        helm: &Helm,
        sources: &[SourceSeat],
        sink: &str,
        mut told: Told,
        meters: &Meters,
    ) {
        let now = helm.clock.elapsed();
        self.last_data = now;
        let hand_over = told.hand_over.take();
        let took = now.saturating_sub(self.fired);
        let progress = Arc::new(self.progress(sources, sink, told, took, |name| meters.rows_of(name)));
        helm.shared.progressed(Arc::clone(&progress));
        helm.events.emit(QueryEvent::BatchDone(progress)).await;
        if let Some(hand_over) = hand_over {
            helm.events.emit(QueryEvent::HandedOver(hand_over)).await;
        }
    }

    fn progress(
        &mut self,
        sources: &[SourceSeat],
        sink: &str,
        told: Told,
        took: Duration,
        rows_of: impl Fn(&SourceName) -> u64,
    ) -> StreamingQueryProgress {
        let took_ms = millis(took);
        let rate = self.rates.trigger(told.fired, took_ms);
        let rows = sources.iter().map(|seat| rows_of(&seat.name)).sum();
        let sources = sources
            .iter()
            .map(|seat| {
                rate.source(SourceFacts {
                    description: seat.source.description(),
                    start: told.from.source(&seat.name).cloned(),
                    end: told.until.source(&seat.name).cloned(),
                    latest: told
                        .latest
                        .as_ref()
                        .and_then(|latest| latest.source(&seat.name))
                        .cloned(),
                    rows: rows_of(&seat.name),
                })
            })
            .collect();
        StreamingQueryProgress {
            id: self.identity.id.clone(),
            run_id: self.identity.run.to_string(),
            name: self.identity.name.clone(),
            timestamp: iso(told.fired),
            batch_id: told.batch.0,
            batch_duration: took_ms,
            num_input_rows: rows,
            input_rows_per_second: rate.input(rows),
            processed_rows_per_second: rate.processed(rows),
            duration_ms: BTreeMap::from([
                ("latestOffset", millis(told.timings.latest_offset)),
                ("walCommit", millis(told.timings.wal_commit)),
                ("queryPlanning", millis(told.timings.query_planning)),
                ("addBatch", millis(told.timings.add_batch)),
                ("commitOffsets", millis(told.timings.commit_offsets)),
                ("triggerExecution", took_ms),
            ]),
            state_operators: Vec::new(),
            sources,
            sink: SinkProgress {
                description: sink.to_owned(),
                num_output_rows: told.rows_out,
            },
            epoch: self.identity.epoch.0,
            version: self.identity.version.clone(),
        }
    }

    /// What the hand-over cost, once, at the first batch after it.
    pub(super) fn hand_over(
        &mut self,
        now: Timestamp,
        first: BatchId,
        oldest_ms: Option<i64>,
    ) -> Option<HandOver> {
        let before = self.predecessor.take()?;
        let commit_gap = before
            .committed_at
            .map_or(0, |at| (now.0 - at.0).max(0).unsigned_abs());
        let usual = before.median_interval.map_or(0, millis);
        Some(HandOver {
            from: before.version,
            to: self.identity.version.clone(),
            last_batch: before.last_batch.map(|batch| batch.0),
            first_batch: first.0,
            commit_gap,
            excess_gap: commit_gap.saturating_sub(usual),
            max_delay: oldest_ms.map(|oldest| (now.0 - oldest).max(0).unsigned_abs()),
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrator(predecessor: Option<Predecessor>) -> Narrator {
        let identity = Identity {
            id: "i".to_owned(),
            run: RunId(uuid::Uuid::nil()),
            name: "n".to_owned(),
            version: "v2".to_owned(),
            epoch: Epoch(2),
        };
        Narrator::new(identity, predecessor, Duration::ZERO)
    }

    #[test]
    fn idleness_is_said_every_ten_seconds_and_counted_from_the_last_data() {
        let mut narrator = narrator(None);
        let every = Duration::from_secs(10);
        let said: Vec<u64> = (0..35)
            .filter_map(|second| narrator.idle(Duration::from_secs(second), every))
            .map(|since| since.as_secs())
            .collect();
        assert_eq!(said, [10, 20, 30]);
    }

    #[test]
    fn a_hand_over_is_told_once_with_its_gap_beyond_the_usual_interval() {
        let mut narrator = narrator(Some(Predecessor {
            version: "v1".to_owned(),
            last_batch: Some(BatchId(41)),
            committed_at: Some(Timestamp(10_000)),
            median_interval: Some(Duration::from_millis(30)),
        }));
        let told = narrator
            .hand_over(Timestamp(10_100), BatchId(42), Some(9_990))
            .expect("the first batch");
        assert_eq!(
            (told.commit_gap, told.excess_gap, told.max_delay),
            (100, 70, Some(110))
        );
        assert_eq!(
            (told.from.as_str(), told.to.as_str(), told.last_batch),
            ("v1", "v2", Some(41))
        );
        assert_eq!(narrator.hand_over(Timestamp(10_200), BatchId(43), None), None);
    }
}
