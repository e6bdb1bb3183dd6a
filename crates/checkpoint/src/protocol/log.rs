//! What a sequence of records means.

use baton_core::{BatchId, CheckpointId, Epoch, OwnerId, Position, SinkRef, Timestamp, WriteId};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::invariants::{self, Fact, Violation};
use super::record::{Body, FenceReason, Record};
use crate::{HandedOverBy, JobShape, OwnerInfo, Planned, Recovery};

/// How many facts at the log's end the invariants are checked on: more than any rule reaches back.
const WINDOW: usize = 12;

/// How many commit times the median interval is taken from.
const INTERVALS: usize = 100;

/// What a sequence of records means; the fold over them, one at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Log {
    tail: Option<u64>,
    epoch: Epoch,
    owner: Option<OwnerInfo>,
    shape: Option<JobShape>,
    next: Option<Position>,
    committed: Option<Committed>,
    pending: Option<Planned>,
    released: Option<Released>,
    /// The owner before, when the last fence answers a release that named its writer.
    handed_over_by: Option<OwnerInfo>,
    /// Versions that were replaced and do not take over in return.
    replaced: BTreeSet<String>,
    commit_times: VecDeque<Timestamp>,
    /// The first slot of each plan that is kept, oldest first.
    plans: VecDeque<(BatchId, u64)>,
    fences: BTreeSet<u64>,
    recent: VecDeque<Fact>,
}

/// The last committed batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Committed {
    /// Which.
    pub batch: BatchId,
    /// Its plan.
    pub plan: WriteId,
    /// When.
    pub at: Timestamp,
    /// Where its sink keeps its own record; not known when its plan is no longer in the log.
    pub sink: Option<SinkRef>,
}

/// A log whose owner has released.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Released {
    /// Who it was.
    pub by: OwnerInfo,
    /// Who is expected.
    pub successor: Option<OwnerId>,
    /// When.
    pub at: Timestamp,
}

impl Log {
    /// Folds records in the order of the log.
    pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut log = Self::default();
        for record in records {
            log.apply(record);
        }
        log
    }

    /// Checks that `records` may come next.
    ///
    /// # Errors
    /// The first rule that they would break.
    pub fn check(&self, records: &[Record]) -> Result<(), Violation> {
        let mut facts: Vec<Fact> = self.recent.iter().cloned().collect();
        facts.extend(
            records
                .iter()
                .cloned()
                .map(|record| Fact::Appended(Arc::new(record))),
        );
        invariants::check_log(&facts)
    }

    /// Takes one more record.
    pub fn apply(&mut self, record: &Record) {
        self.tail = Some(record.seq);
        self.epoch = record.epoch;
        match &record.body {
            Body::Fence {
                reason,
                host,
                pid,
                replaces,
                shape,
            } => {
                let named = self
                    .released
                    .take()
                    .filter(|released| released.successor == Some(record.owner));
                self.handed_over_by = named.map(|released| released.by);
                if *reason == FenceReason::Forced {
                    self.replaced.remove(&record.version);
                }
                self.replaced
                    .extend(replaces.clone().filter(|version| *version != record.version));
                self.owner = Some(OwnerInfo {
                    id: record.owner,
                    host: host.clone(),
                    pid: *pid,
                    version: record.version.clone(),
                    epoch: Some(record.epoch),
                    since: record.at,
                });
                self.shape = Some(shape.clone());
                self.fences.insert(record.seq);
            }
            Body::Position { next, .. } => self.next = Some(next.clone()),
            Body::Plan {
                batch,
                from,
                until,
                sink,
            } => {
                self.plans.push_back((*batch, record.seq));
                self.pending = Some(Planned {
                    batch: *batch,
                    from: from.clone(),
                    until: until.clone(),
                    sink: sink.clone(),
                    write_id: record.write_id,
                    epoch: record.epoch,
                });
            }
            Body::Commit { batch, plan, .. } => {
                let planned = self.pending.take();
                if let Some(planned) = &planned {
                    self.next = Some(planned.until.clone());
                }
                self.committed = Some(Committed {
                    batch: *batch,
                    plan: *plan,
                    at: record.at,
                    sink: planned.map(|planned| planned.sink),
                });
                self.commit_times.push_back(record.at);
                if self.commit_times.len() > INTERVALS {
                    self.commit_times.pop_front();
                }
            }
            Body::Release { successor, next, .. } => {
                if self.next.is_none() {
                    self.next.clone_from(next);
                }
                self.released = self.owner.clone().map(|by| Released {
                    by,
                    successor: *successor,
                    at: record.at,
                });
            }
        }
        self.recent.push_back(Fact::Appended(Arc::new(record.clone())));
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
    }

    /// The slots that are no longer needed when `keep` committed batches are to stay: all of them from `floor` on that
    /// hold no fence, and the new floor. The log's end is never among them.
    pub fn retire(&mut self, floor: u64, keep: u64) -> (Vec<u64>, u64) {
        // The pending batch, if any, is kept on top; at least the last committed one stays.
        let keep = usize::try_from(keep.max(1)).unwrap_or(usize::MAX);
        let keep = keep.saturating_add(usize::from(self.pending.is_some()));
        let surplus = self.plans.len().saturating_sub(keep);
        self.plans.drain(..surplus);
        // What stands before the oldest plan says where that starts; it goes when its plan does.
        let Some(&(_, oldest)) = self.plans.front().filter(|_| surplus > 0) else {
            return (Vec::new(), floor);
        };
        let retired = (floor..oldest).filter(|seq| !self.fences.contains(seq)).collect();
        (retired, oldest.max(floor))
    }

    /// The last slot.
    #[must_use]
    pub const fn tail(&self) -> Option<u64> {
        self.tail
    }

    /// The first free slot.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.tail.map_or(0, |tail| tail + 1)
    }

    /// The last epoch; 0 when nobody ever owned it.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The last owner.
    #[must_use]
    pub const fn owner(&self) -> Option<&OwnerInfo> {
        self.owner.as_ref()
    }

    /// The last owner's job.
    #[must_use]
    pub const fn shape(&self) -> Option<&JobShape> {
        self.shape.as_ref()
    }

    /// Where the batch after the last committed one starts.
    #[must_use]
    pub const fn next(&self) -> Option<&Position> {
        self.next.as_ref()
    }

    /// The last committed batch.
    #[must_use]
    pub const fn committed(&self) -> Option<&Committed> {
        self.committed.as_ref()
    }

    /// The batch that is planned and not committed.
    #[must_use]
    pub const fn pending(&self) -> Option<&Planned> {
        self.pending.as_ref()
    }

    /// Whether and how the last owner released.
    #[must_use]
    pub const fn released(&self) -> Option<&Released> {
        self.released.as_ref()
    }

    /// Versions that were replaced and do not take over in return.
    #[must_use]
    pub const fn replaced(&self) -> &BTreeSet<String> {
        &self.replaced
    }

    /// The number of the next new batch.
    #[must_use]
    pub fn next_batch(&self) -> BatchId {
        let last = self.pending.as_ref().map(|planned| planned.batch);
        last.or_else(|| self.committed.as_ref().map(|committed| committed.batch))
            .map_or(BatchId(0), BatchId::next)
    }

    /// What a start finds.
    #[must_use]
    pub fn recovery(&self, checkpoint: CheckpointId) -> Recovery {
        let pending = self.pending.clone();
        let behind = pending.as_ref().map(|planned| planned.until.clone());
        Recovery {
            checkpoint,
            next: behind.or_else(|| self.next.clone()),
            last_committed: self.committed.as_ref().map(|committed| committed.batch),
            last_commit_at: self.committed.as_ref().map(|committed| committed.at),
            pending,
            shape: self.shape.clone(),
            handed_over_by: self.handed_over_by.clone().map(|owner| HandedOverBy {
                owner,
                last_batch: self.committed.as_ref().map(|committed| committed.batch),
                committed_at: self.committed.as_ref().map(|committed| committed.at),
                median_interval: self.median_interval(),
            }),
        }
    }

    fn median_interval(&self) -> Option<Duration> {
        let pairs = self.commit_times.iter().zip(self.commit_times.iter().skip(1));
        // A wall clock that was set back gives no interval.
        let mut intervals: Vec<u64> = pairs.filter_map(|(a, b)| u64::try_from(b.0 - a.0).ok()).collect();
        intervals.sort_unstable();
        intervals
            .get(intervals.len() / 2)
            .copied()
            .map(Duration::from_millis)
    }
}
