//! How a batch follows from the log: the bodies of its records, and what to do with one that was interrupted.

use baton_core::{BatchId, Marker, Position, Receipt};

use super::log::Log;
use super::record::Body;
use super::state::Action;
use crate::{PlanDraft, Planned};

/// A plan that would leave a gap or repeat records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discontinuity {
    /// Which batch.
    pub batch: BatchId,
    /// Which partition, `source/topic-0`.
    pub partition: String,
    /// Where it would start.
    pub found: i64,
    /// Where the batch before ended.
    pub expected: i64,
}

/// The plan of the batch that follows `next`, completed by the partitions that have no part in it, so that each plan
/// says of every partition where it stands.
pub(super) fn plan(batch: BatchId, next: &Position, draft: PlanDraft) -> Result<Body, Discontinuity> {
    let PlanDraft {
        mut from,
        mut until,
        sink,
    } = draft;
    for (name, offsets) in &next.0 {
        let start = from.0.entry(name.clone()).or_default();
        let end = until.0.entry(name.clone()).or_default();
        for (partition, expected) in offsets.iter() {
            match start.of(&partition) {
                None => {
                    start.set(partition.clone(), expected);
                    end.set(partition, expected);
                }
                Some(found) if found != expected => {
                    return Err(Discontinuity {
                        batch,
                        partition: format!("{name}/{partition}"),
                        found: found.0,
                        expected: expected.0,
                    });
                }
                Some(_) => {}
            }
        }
    }
    Ok(Body::Plan {
        batch,
        from,
        until,
        sink,
    })
}

/// The records that end a batch, and start the next one if it is due.
pub(super) fn commit(
    planned: &Planned,
    receipt: Receipt,
    next: Option<PlanDraft>,
) -> Result<Vec<Body>, Discontinuity> {
    let mut bodies = vec![Body::Commit {
        batch: planned.batch,
        plan: planned.write_id,
        receipt,
    }];
    if let Some(draft) = next {
        bodies.push(plan(planned.batch.next(), &planned.until, draft)?);
    }
    Ok(bodies)
}

/// R4 and R5: compares the log's end with what the sink says it has.
pub(super) fn resume(log: &Log, marker: &Marker) -> Action {
    let halt = |found: String| Action::Halt {
        found,
        expected: expected(log),
    };
    let committed = log.committed();
    match (log.pending(), marker) {
        (None, Marker::Untracked | Marker::Nothing) => Action::Idle,
        (None, Marker::At { batch, .. }) if committed.is_some_and(|c| c.batch == *batch) => Action::Idle,
        (Some(pending), Marker::Untracked) => Action::Run(pending.clone()),
        (Some(pending), Marker::Nothing) => {
            // A sink that kept a record of the batch before cannot have lost it.
            let same_sink = committed.is_some_and(|c| c.sink.as_ref() == Some(&pending.sink));
            if same_sink {
                halt("it has published nothing".to_owned())
            } else {
                Action::Run(pending.clone())
            }
        }
        (Some(pending), Marker::At { batch, plan, .. }) if *batch == pending.batch => {
            if *plan == pending.write_id {
                Action::Adopt(pending.clone())
            } else {
                halt(format!("batch {batch} was published under another plan, {plan}"))
            }
        }
        (Some(pending), Marker::At { batch, .. }) if batch.next() == pending.batch => {
            Action::Run(pending.clone())
        }
        (_, Marker::At { batch, .. }) => halt(format!("its last batch is {batch}")),
        // A kind of marker that this version does not know says nothing that could be relied on.
        (_, marker) => halt(format!("{marker:?}")),
    }
}

fn expected(log: &Log) -> String {
    let committed = match log.committed() {
        Some(committed) => format!("batch {} committed", committed.batch),
        None => "no batch committed".to_owned(),
    };
    match log.pending() {
        Some(pending) => format!(
            "{committed} and batch {} planned as {}",
            pending.batch, pending.write_id
        ),
        None => committed,
    }
}
