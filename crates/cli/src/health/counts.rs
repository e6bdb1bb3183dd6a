//! What the events of a query add up to.

use baton_core::{BatchId, Epoch, ErrorKind, SourceName, Timestamp};
use baton_engine::checkpoint::AcquireEvent;
use baton_engine::{HandOver, QueryEvent, StreamingQueryProgress};
use std::collections::BTreeMap;

use super::metrics::BUCKETS;
use super::verdict::Role;

/// How often a duration was how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Histogram {
    /// One for each of [`BUCKETS`], not cumulative; what is longer than all of them is only in `count`.
    pub(super) buckets: [u64; BUCKETS.len()],
    pub(super) count: u64,
    pub(super) sum_ms: u64,
}

impl Histogram {
    pub(super) fn add(&mut self, ms: u64) {
        if let Some(at) = BUCKETS.iter().position(|(bound, _)| ms <= *bound) {
            self.buckets[at] += 1;
        }
        self.count += 1;
        self.sum_ms += ms;
    }
}

/// What is counted per source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OfSource {
    pub(super) rows: u64,
    pub(super) gaps: u64,
    pub(super) lost: u64,
    pub(super) publish_failures: u64,
}

/// What the events of a query add up to, from its start on.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub(super) role: Role,
    /// Who has asked for the checkpoint and not withdrawn.
    pub(super) successor: Option<String>,
    pub(super) last_batch: Option<BatchId>,
    pub(super) last_commit: Option<Timestamp>,
    pub(super) fenced: u64,
    pub(super) adopted: u64,
    pub(super) replayed: u64,
    pub(super) hand_over: Option<HandOver>,
    pub(super) durations: BTreeMap<&'static str, Histogram>,
    pub(super) overruns: u64,
    pub(super) missed: u64,
    pub(super) replaced: u64,
    /// In the job's order, which is that of a progress's sources.
    pub(super) sources: Vec<(SourceName, OfSource)>,
    pub(super) rows_out: u64,
    pub(super) retries: u64,
}

impl Counts {
    /// Everything at 0: a counter that appears only when something has happened hides that it did.
    pub(super) fn new(sources: impl IntoIterator<Item = SourceName>) -> Self {
        Self {
            role: Role::Preparing,
            successor: None,
            last_batch: None,
            last_commit: None,
            fenced: 0,
            adopted: 0,
            replayed: 0,
            hand_over: None,
            durations: BTreeMap::new(),
            overruns: 0,
            missed: 0,
            replaced: 0,
            sources: sources
                .into_iter()
                .map(|name| (name, OfSource::default()))
                .collect(),
            rows_out: 0,
            retries: 0,
        }
    }

    /// The epoch, while it owns the checkpoint.
    pub(super) const fn epoch(&self) -> Option<Epoch> {
        match self.role {
            Role::Owner(epoch) => Some(epoch),
            Role::Preparing | Role::Standby { .. } => None,
        }
    }

    fn source(&mut self, name: &SourceName) -> Option<&mut OfSource> {
        self.sources
            .iter_mut()
            .find(|(of, _)| of == name)
            .map(|(_, counts)| counts)
    }

    /// Takes in one event, which came at `now`.
    pub(super) fn observe(&mut self, event: &QueryEvent, now: Timestamp) {
        match event {
            QueryEvent::Acquire(step) => self.acquire(step),
            QueryEvent::Acquired {
                epoch,
                last_committed,
                last_commit_at,
                ..
            } => {
                self.role = Role::Owner(*epoch);
                self.successor = None;
                self.last_batch = *last_committed;
                self.last_commit = *last_commit_at;
            }
            QueryEvent::Replaying { .. } => self.replayed += 1,
            QueryEvent::Adopted { batch } => {
                self.adopted += 1;
                self.committed(*batch, now);
            }
            QueryEvent::Gap { source, gap } => {
                let lost = gap.lost.range.len();
                if let Some(source) = self.source(source) {
                    source.gaps += 1;
                    source.lost += lost;
                }
            }
            QueryEvent::BatchDone(progress) => self.batch(progress, now),
            QueryEvent::ReplacedCharacters { count, .. } => self.replaced += count,
            QueryEvent::Overrun(overrun) => {
                self.overruns += 1;
                self.missed += overrun.missed;
            }
            QueryEvent::SinkRetry { error, .. } => {
                self.retries += 1;
                self.fenced += u64::from(error.kind() == ErrorKind::Fenced);
            }
            QueryEvent::PublishFailed { source, .. } => {
                if let Some(source) = self.source(source) {
                    source.publish_failures += 1;
                }
            }
            QueryEvent::HandedOver(hand_over) => self.hand_over = Some(hand_over.clone()),
            QueryEvent::HandOverRequested { by } => self.successor = Some(by.clone()),
            QueryEvent::HandOverWithdrawn => self.successor = None,
            // Outages, stops and ends are asked of the query itself.
            _ => {}
        }
    }

    /// Whoever waits, or has been promised the checkpoint, has been through every check.
    fn acquire(&mut self, step: &AcquireEvent) {
        let holder = match step {
            AcquireEvent::Waiting { holder, .. } => holder.as_ref().map(ToString::to_string),
            AcquireEvent::Asked { holder } => Some(holder.to_string()),
            _ => return,
        };
        let holder = holder.unwrap_or_else(|| "the owner".to_owned());
        self.role = Role::Standby { holder };
    }

    fn committed(&mut self, batch: BatchId, now: Timestamp) {
        self.last_batch = Some(batch);
        self.last_commit = Some(now);
    }

    fn batch(&mut self, progress: &StreamingQueryProgress, now: Timestamp) {
        self.committed(BatchId(progress.batch_id), now);
        for (phase, ms) in &progress.duration_ms {
            self.durations.entry(phase).or_default().add(*ms);
        }
        for ((_, counts), done) in self.sources.iter_mut().zip(&progress.sources) {
            counts.rows += done.num_input_rows;
        }
        self.rows_out += progress.sink.num_output_rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::{CheckpointId, Gap, Offset, OffsetRange, PartitionRange, RunId, TopicPartition};
    use baton_engine::Overrun;
    use std::time::Duration;

    const NOW: Timestamp = Timestamp(1_796_092_891_123);

    fn messages() -> SourceName {
        SourceName::new("messages").expect("a name")
    }

    fn after(events: &[QueryEvent]) -> Counts {
        let mut counts = Counts::new([messages()]);
        for event in events {
            counts.observe(event, NOW);
        }
        counts
    }

    fn waiting() -> QueryEvent {
        QueryEvent::Acquire(AcquireEvent::Waiting {
            holder: None,
            why: "it is owned".to_owned(),
        })
    }

    fn acquired() -> QueryEvent {
        QueryEvent::Acquired {
            checkpoint: CheckpointId("00000000-0000-0000-0000-000000000000".parse().expect("an id")),
            epoch: Epoch(4),
            run: RunId("00000000-0000-0000-0000-000000000000".parse().expect("an id")),
            last_committed: Some(BatchId(16)),
            last_commit_at: Some(Timestamp(1_796_092_000_000)),
        }
    }

    #[test]
    fn a_process_prepares_stands_by_and_owns() {
        assert_eq!(after(&[]).role, Role::Preparing);
        let standby = after(&[waiting()]);
        let holder = "the owner".to_owned();
        assert_eq!(
            (standby.role.clone(), standby.epoch()),
            (Role::Standby { holder }, None)
        );
        let owner = after(&[waiting(), acquired()]);
        assert_eq!(
            (owner.epoch(), owner.last_batch),
            (Some(Epoch(4)), Some(BatchId(16)))
        );
        let before = Some(Timestamp(1_796_092_000_000));
        assert_eq!(
            owner.last_commit, before,
            "the age goes on over a change of the owner"
        );
    }

    #[test]
    fn a_difference_that_is_told_before_anybody_was_asked_makes_no_standby() {
        let told = AcquireEvent::Difference {
            notes: Vec::new(),
            refusals: Vec::new(),
        };
        assert_eq!(after(&[QueryEvent::Acquire(told)]).role, Role::Preparing);
    }

    #[test]
    fn a_request_counts_until_it_is_withdrawn() {
        let asked = || QueryEvent::HandOverRequested { by: "v2".to_owned() };
        assert_eq!(after(&[acquired(), asked()]).successor.as_deref(), Some("v2"));
        let withdrawn = after(&[acquired(), asked(), QueryEvent::HandOverWithdrawn]);
        assert_eq!(withdrawn.successor, None);
    }

    #[test]
    fn what_is_lost_late_and_repeated_is_counted() {
        let range = OffsetRange::new(Offset(40), Offset(45)).expect("a range");
        let gap = Gap {
            lost: PartitionRange {
                partition: TopicPartition::new("t", 0),
                range,
            },
            reason: "retention".to_owned(),
        };
        let overrun = Overrun {
            interval: Duration::from_secs(1),
            took: Duration::from_secs(4),
            missed: 2,
        };
        let counts = after(&[
            QueryEvent::Adopted { batch: BatchId(17) },
            QueryEvent::Gap {
                source: messages(),
                gap,
            },
            QueryEvent::Overrun(overrun),
            QueryEvent::ReplacedCharacters {
                batch: BatchId(18),
                count: 3,
            },
        ]);
        assert_eq!((counts.adopted, counts.last_batch), (1, Some(BatchId(17))));
        assert_eq!(counts.last_commit, Some(NOW));
        let source = &counts.sources[0].1;
        assert_eq!((source.gaps, source.lost), (1, 5));
        assert_eq!((counts.overruns, counts.missed, counts.replaced), (1, 2, 3));
    }

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let mut histogram = Histogram::default();
        for ms in [0, 1, 2, 300_000, 300_001] {
            histogram.add(ms);
        }
        assert_eq!(histogram.buckets[..2], [2, 1]);
        assert_eq!(histogram.buckets[BUCKETS.len() - 1], 1);
        assert_eq!((histogram.count, histogram.sum_ms), (5, 600_004));
    }
}
