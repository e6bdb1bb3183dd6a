//! Judges a run from outside: what was printed against what the log says was committed.
//!
//! The job under test prints `partition`, `offset` and the message (console sink, `truncate` off). [`Printed`] reads
//! that back, [`Log`] reads `baton checkpoint show --output json`, and [`judge`] holds one against the other.

mod log;
mod printed;
#[cfg(test)]
mod tests;

pub use log::{Batch, Log, Ranges};
pub use printed::{Printed, Row};

use std::collections::BTreeMap;

/// What a run that was in order amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Committed batches.
    pub batches: u64,
    /// Offsets in committed batches.
    pub committed: u64,
    /// Rows that were printed more than once, all of them of batches that were interrupted and run again.
    pub repeated: u64,
    /// The batches that were planned by one owner and committed by another.
    pub reran: Vec<u64>,
    /// Where each partition ends, by the log.
    pub ends: BTreeMap<i32, i64>,
}

/// Holds what was printed by all processes against the log of their checkpoint.
///
/// Every offset of a committed batch must have been printed, and once; a batch that was planned in one epoch and
/// committed in a later one was interrupted, and a sink that cannot refuse may have shown its rows again. What was
/// printed and never committed can only be the batch that is planned last.
///
/// # Errors
/// Every complaint, in words; at most twenty.
pub fn judge(log: &Log, printed: &[Printed]) -> Result<Verdict, Vec<String>> {
    let mut complaints = log.complaints();
    let mut counts: BTreeMap<(i32, i64), u64> = BTreeMap::new();
    for row in printed.iter().flat_map(Printed::rows) {
        *counts.entry((row.partition, row.offset)).or_default() += 1;
        if let Some((partition, number)) = row.number()
            && (partition != row.partition || number != row.offset)
        {
            complaints.push(format!(
                "row {}@{} shows message {:?}",
                row.partition, row.offset, row.value
            ));
        }
    }
    let mut verdict = Verdict {
        reran: log.reran(),
        ..Verdict::default()
    };
    for batch in log.batches().filter(|batch| batch.committed_in.is_some()) {
        verdict.batches += 1;
        for (partition, from, until) in batch.ranges() {
            verdict.ends.insert(partition, until);
            for offset in from..until {
                verdict.committed += 1;
                let shown = counts.remove(&(partition, offset)).unwrap_or(0);
                if shown == 0 {
                    complaints.push(format!(
                        "{partition}@{offset} of batch {} was never shown",
                        batch.id
                    ));
                } else if shown > 1 && verdict.reran.contains(&batch.id) {
                    verdict.repeated += shown - 1;
                } else if shown > 1 {
                    complaints.push(format!(
                        "{partition}@{offset} of batch {} was shown {shown} times",
                        batch.id
                    ));
                }
            }
        }
    }
    let pending = log.batches().find(|batch| batch.committed_in.is_none());
    for (partition, offset) in counts.into_keys() {
        let planned = pending.is_some_and(|batch| {
            batch
                .ranges()
                .any(|(p, from, until)| p == partition && from <= offset && offset < until)
        });
        if !planned {
            complaints.push(format!(
                "{partition}@{offset} was shown but is in no batch of the log"
            ));
        }
    }
    complaints.truncate(20);
    if complaints.is_empty() {
        Ok(verdict)
    } else {
        Err(complaints)
    }
}
