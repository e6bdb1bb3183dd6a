//! What must never be seen: one predicate each, over what happened in the order in which it happened.
//!
//! The predicates know nothing of [`step`](super::step). Tests run them over whole histories, production over the end of
//! the log and what is about to be written. All of them hold for a history whose beginning is cut off.
//!
//! I8 (state descends from the state of the batch before) comes with stateful queries; I11 and I12 are about liveness
//! and about what is *not* a premise, and are shown by tests of their own.

use baton_core::{BatchId, Epoch, Marker, OwnerId, Position, WriteId};
use std::fmt;
use std::sync::Arc;

use super::record::{Body, Record};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fact {
    /// A record became durable.
    Appended(Arc<Record>),
    /// A sink shut out all epochs before this one.
    SinkFenced(Epoch),
    /// An owner read the sink's marker.
    MarkerRead(Epoch, Marker),
    /// A batch became visible.
    Published {
        /// Which.
        batch: BatchId,
        /// By an owner of which epoch.
        epoch: Epoch,
        /// Under which plan.
        plan: WriteId,
    },
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which, `I3`.
    pub id: &'static str,
    /// How.
    pub reason: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.reason)
    }
}

/// One rule: `Err` says how it was broken.
pub type Predicate = fn(&[Fact]) -> Result<(), String>;

/// The rules about the log alone.
pub const LOG: [(&str, Predicate); 6] = [
    ("I1", epochs_never_fall),
    ("I2", an_epoch_starts_with_its_fence),
    ("I3", batches_follow_without_gap),
    ("I4", a_commit_follows_its_plan_once),
    ("I9", a_release_is_the_end),
    ("I10", nothing_old_comes_after_a_fence),
];

/// The rules about a sink that can refuse.
pub const SINK: [(&str, Predicate); 3] = [
    ("I5", each_batch_is_visible_once),
    ("I6", a_marker_is_near_the_log),
    ("I7", nobody_publishes_blindly),
];

/// Checks the rules about the log.
///
/// # Errors
/// The first that is broken.
pub fn check_log(facts: &[Fact]) -> Result<(), Violation> {
    check(&LOG, facts)
}

/// Checks all rules, for a history with a sink that promises exactly once.
///
/// # Errors
/// The first that is broken.
pub fn check_all(facts: &[Fact]) -> Result<(), Violation> {
    check_log(facts)?;
    check(&SINK, facts)
}

fn check(rules: &[(&'static str, Predicate)], facts: &[Fact]) -> Result<(), Violation> {
    for (id, predicate) in rules {
        predicate(facts).map_err(|reason| Violation { id, reason })?;
    }
    Ok(())
}

fn records(facts: &[Fact]) -> impl Iterator<Item = &Record> {
    facts.iter().filter_map(|fact| match fact {
        Fact::Appended(record) => Some(&**record),
        _ => None,
    })
}

/// Whether slots before this record were retired, so that nothing is known of what they said.
fn is_behind_retired(record: &Record, slot: &mut u64) -> bool {
    let before = std::mem::replace(slot, record.seq);
    record.seq > before + 1
}

/// I1: epochs never fall along the log.
fn epochs_never_fall(facts: &[Fact]) -> Result<(), String> {
    let mut last = Epoch(0);
    for record in records(facts) {
        if record.epoch < last {
            return Err(format!(
                "epoch {} at record {} follows epoch {last}",
                record.epoch, record.seq
            ));
        }
        last = record.epoch;
    }
    Ok(())
}

/// I2: the first record of epoch e is its fence, e is the epoch before plus one, and one owner writes in it.
fn an_epoch_starts_with_its_fence(facts: &[Fact]) -> Result<(), String> {
    let mut current: Option<(Epoch, OwnerId)> = None;
    for record in records(facts) {
        let is_fence = matches!(record.body, Body::Fence { .. });
        match current {
            // The beginning is cut off, or it is the very first record.
            None if !is_fence && record.seq == 0 => {
                return Err("the log does not start with a fence".to_owned());
            }
            None => {}
            Some((epoch, _)) if is_fence && record.epoch != epoch.next() => {
                return Err(format!(
                    "the fence of epoch {} follows epoch {epoch}",
                    record.epoch
                ));
            }
            Some((epoch, _)) if !is_fence && record.epoch != epoch => {
                return Err(format!(
                    "record {} of epoch {} has no fence",
                    record.seq, record.epoch
                ));
            }
            Some((epoch, owner)) if !is_fence && record.owner != owner => {
                return Err(format!(
                    "record {} is the second writer's in epoch {epoch}",
                    record.seq
                ));
            }
            Some(_) => {}
        }
        current = Some((record.epoch, record.owner));
    }
    Ok(())
}

/// I3: each batch starts where the one before ended, or where a position between them says; at most one plan of each
/// number ever. A partition that nothing was said of may start anywhere.
fn batches_follow_without_gap(facts: &[Fact]) -> Result<(), String> {
    let mut last: Option<BatchId> = None;
    let mut next: Option<&Position> = None;
    let mut slot = 0;
    for record in records(facts) {
        if is_behind_retired(record, &mut slot) {
            (last, next) = (None, None);
        }
        match &record.body {
            Body::Position { next: moved, .. } => next = Some(moved),
            Body::Plan {
                batch, from, until, ..
            } => {
                if let Some(before) = last
                    && *batch != before.next()
                {
                    return Err(format!(
                        "the plan of batch {batch} follows that of batch {before}"
                    ));
                }
                if last.is_none() && next.is_none() && record.seq < 2 {
                    return Err(format!(
                        "batch {batch} was planned before a position was recorded"
                    ));
                }
                for (name, offsets) in next.into_iter().flat_map(|next| &next.0) {
                    for (partition, expected) in offsets.iter() {
                        let found = from.source(name).and_then(|from| from.of(&partition));
                        if found != Some(expected) {
                            return Err(format!(
                                "batch {batch} starts {name}/{partition} at {found:?}, not at {expected}"
                            ));
                        }
                    }
                }
                if let Err(error) = from.offsets_until(until) {
                    return Err(format!("batch {batch}: {error}"));
                }
                last = Some(*batch);
                next = Some(until);
            }
            Body::Fence { .. } | Body::Commit { .. } | Body::Release { .. } => {}
        }
    }
    Ok(())
}

/// I4: a batch is committed at most once, after its plan and before the next one's, under its plan's write id.
fn a_commit_follows_its_plan_once(facts: &[Fact]) -> Result<(), String> {
    /// What is known of the batch that may be committed next.
    enum Pending {
        Unknown,
        Nothing,
        Batch(BatchId, WriteId),
    }
    let mut pending = Pending::Unknown;
    let mut slot = 0;
    for record in records(facts) {
        if is_behind_retired(record, &mut slot) {
            pending = Pending::Unknown;
        }
        match &record.body {
            Body::Plan { batch, .. } => {
                if let Pending::Batch(open, _) = pending {
                    return Err(format!(
                        "batch {batch} was planned while batch {open} is not committed"
                    ));
                }
                pending = Pending::Batch(*batch, record.write_id);
            }
            Body::Commit { batch, plan, .. } => match pending {
                Pending::Nothing => return Err(format!("batch {batch} was committed without a plan")),
                Pending::Batch(open, id) if open != *batch || id != *plan => {
                    return Err(format!(
                        "batch {batch} was committed under a plan of batch {open}"
                    ));
                }
                _ => pending = Pending::Nothing,
            },
            Body::Position { .. } => {
                if let Pending::Batch(open, _) = pending {
                    return Err(format!(
                        "a position was recorded while batch {open} is not committed"
                    ));
                }
            }
            Body::Fence { .. } | Body::Release { .. } => {
                if record.seq == 0 {
                    pending = Pending::Nothing;
                }
            }
        }
    }
    Ok(())
}

/// I5: visible batches are 0..=k, each once, with k = c or c + 1.
fn each_batch_is_visible_once(facts: &[Fact]) -> Result<(), String> {
    let (mut visible, mut committed): (Option<BatchId>, Option<BatchId>) = (None, None);
    for fact in facts {
        match fact {
            Fact::Published { batch, .. } => {
                let expected = visible.map_or(*batch, BatchId::next);
                if *batch != expected {
                    return Err(format!("batch {batch} became visible after batch {visible:?}"));
                }
                visible = Some(*batch);
            }
            Fact::Appended(record) => {
                let Body::Commit { batch, .. } = record.body else {
                    continue;
                };
                if visible.is_some_and(|visible| batch > visible) {
                    return Err(format!("batch {batch} was committed before it was visible"));
                }
                committed = Some(batch);
            }
            _ => {}
        }
        if let (Some(k), Some(c)) = (visible, committed)
            && k > c.next()
        {
            return Err(format!("batch {k} is visible while only batch {c} is committed"));
        }
    }
    Ok(())
}

/// I6: a marker that is read names a batch between the last commit and the last plan.
fn a_marker_is_near_the_log(facts: &[Fact]) -> Result<(), String> {
    let (mut planned, mut committed): (Option<BatchId>, Option<BatchId>) = (None, None);
    for fact in facts {
        match fact {
            Fact::Appended(record) => match &record.body {
                Body::Plan { batch, .. } => planned = Some(*batch),
                Body::Commit { batch, .. } => committed = Some(*batch),
                _ => {}
            },
            Fact::MarkerRead(_, Marker::At { batch, .. })
                if committed.is_some_and(|c| *batch < c) || planned.is_some_and(|p| *batch > p) =>
            {
                return Err(format!(
                    "the marker is {batch}, with {committed:?} committed and {planned:?} planned"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// I7: nobody publishes in an epoch in which it has not read an older marker, after shutting out older epochs.
fn nobody_publishes_blindly(facts: &[Fact]) -> Result<(), String> {
    let (mut fenced, mut read): (Option<Epoch>, Option<(Epoch, Option<BatchId>)>) = (None, None);
    for fact in facts {
        match fact {
            Fact::SinkFenced(epoch) => {
                fenced = Some(*epoch);
                read = None;
            }
            Fact::MarkerRead(epoch, marker) if fenced == Some(*epoch) => {
                let batch = match marker {
                    Marker::At { batch, .. } => Some(*batch),
                    _ => None,
                };
                read = Some((*epoch, batch));
            }
            Fact::Published { batch, epoch, .. } => match read {
                Some((of, marker)) if of == *epoch && marker.is_none_or(|marker| marker < *batch) => {
                    read = Some((of, Some(*batch)));
                }
                _ => return Err(format!("epoch {epoch} published batch {batch} without looking")),
            },
            _ => {}
        }
    }
    Ok(())
}

/// I9: a release comes when every plan is committed, and its epoch writes no more.
fn a_release_is_the_end(facts: &[Fact]) -> Result<(), String> {
    let (mut open, mut released): (Option<BatchId>, Option<Epoch>) = (None, None);
    for record in records(facts) {
        if let Some(epoch) = released.filter(|epoch| *epoch == record.epoch) {
            return Err(format!(
                "record {} of epoch {epoch} comes after its release",
                record.seq
            ));
        }
        match &record.body {
            Body::Plan { batch, .. } => open = Some(*batch),
            Body::Commit { .. } => open = None,
            Body::Release { .. } => {
                if let Some(batch) = open {
                    return Err(format!(
                        "epoch {} released while batch {batch} is not committed",
                        record.epoch
                    ));
                }
                released = Some(record.epoch);
            }
            _ => {}
        }
    }
    Ok(())
}

/// I10: above the fence of epoch e + 1 there is nothing of epoch e, and slots are written in order.
fn nothing_old_comes_after_a_fence(facts: &[Fact]) -> Result<(), String> {
    let mut fence: Option<(Epoch, u64)> = None;
    let mut slot: Option<(u64, Epoch)> = None;
    for record in records(facts) {
        if let Some((epoch, seq)) = fence
            && record.epoch < epoch
        {
            return Err(format!(
                "record {} of epoch {} lies above fence {seq}",
                record.seq, record.epoch
            ));
        }
        if let Some((before, epoch)) = slot {
            let shares = record.seq == before && record.epoch == epoch;
            // Between fences that are kept, older slots may have been retired.
            if record.seq < before || (record.seq == before && !shares) {
                return Err(format!(
                    "slot {} of epoch {} is written after slot {before}",
                    record.seq, record.epoch
                ));
            }
        }
        if matches!(record.body, Body::Fence { .. }) {
            fence = Some((record.epoch, record.seq));
        }
        slot = Some((record.seq, record.epoch));
    }
    Ok(())
}
