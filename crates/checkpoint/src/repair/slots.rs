//! What can be read of a log, whatever is wrong with the rest of it.
//!
//! A start wants the log whole and stops at the first flaw. Whoever repairs wants to know all of them, and how far what
//! is readable can be relied on: the records behind the last flaw say exactly where the next batch starts, because all
//! rules of the log hold for one whose beginning is cut off.

use baton_core::{CheckpointId, Position};
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::JobShape;
use crate::codec::{CodecError, decode_slot};
use crate::protocol::{Body, Log, Record};
use crate::store::{Found, follow_the_rules};

/// The log, slot by slot.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Whose it is, by its own word.
    pub(super) checkpoint: Option<CheckpointId>,
    pub(super) floor: Option<u64>,
    pub(super) last: Option<u64>,
    pub(super) readable: BTreeMap<u64, Vec<Record>>,
    /// In order.
    pub(super) flaws: Vec<Flaw>,
}

/// Slots that are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) from: u64,
    /// The last of them, in a row.
    pub(super) to: u64,
    pub(super) what: String,
    /// The format version, where it is a newer one.
    pub(super) newer: Option<u8>,
}

/// Where what is readable ends.
#[derive(Debug)]
pub(super) struct End {
    pub(super) log: Log,
    pub(super) next: Position,
}

impl Slots {
    pub(super) fn of(found: &Found) -> Self {
        let number = |bytes: &Option<Vec<u8>>| {
            let bytes = bytes.as_deref()?.try_into().ok()?;
            Some(u64::from_be_bytes(bytes))
        };
        let mut slots = Self {
            checkpoint: found
                .checkpoint
                .as_ref()
                .and_then(|bytes| Uuid::from_slice(bytes).ok())
                .map(CheckpointId),
            floor: number(&found.floor),
            last: number(&found.last),
            ..Self::default()
        };
        for (key, value) in &found.slots {
            // A key that is no number is no slot; the check of the whole names it.
            let Some(seq) = key.as_slice().try_into().ok().map(u64::from_be_bytes) else {
                continue;
            };
            match decode_slot(seq, value) {
                Ok(records) => drop(slots.readable.insert(seq, records)),
                Err(error) => slots.flaws.push(Flaw {
                    from: seq,
                    to: seq,
                    newer: match error {
                        CodecError::Newer(version) => Some(version),
                        CodecError::Damaged(_) => None,
                    },
                    what: error.to_string(),
                }),
            }
        }
        slots.find_holes();
        slots.flaws.sort_by_key(|flaw| flaw.from);
        slots
    }

    /// Below the floor only fences are kept; from there to the last every slot has to be there, and none behind it.
    fn find_holes(&mut self) {
        let (Some(floor), Some(last)) = (self.floor, self.last) else {
            return;
        };
        let mut there: Vec<u64> = self.readable.keys().copied().collect();
        there.extend(self.flaws.iter().map(|flaw| flaw.from));
        there.sort_unstable();
        let mut flaw = |from: u64, to: u64, what: &str| {
            self.flaws.push(Flaw {
                from,
                to,
                what: what.to_owned(),
                newer: None,
            });
        };
        let mut expected = Some(floor);
        for seq in there.iter().copied().filter(|seq| *seq >= floor) {
            if seq > last {
                flaw(seq, seq, "it stands behind the log's end");
                continue;
            }
            if let Some(hole) = expected.filter(|expected| *expected < seq) {
                flaw(hole, seq - 1, "it is missing");
            }
            expected = seq.checked_add(1);
        }
        if let Some(hole) = expected.filter(|expected| *expected <= last) {
            flaw(hole, last, "it is missing");
        }
        if floor > 0 && !there.contains(&0) {
            flaw(0, 0, "it is missing");
        }
    }

    /// All records that can be read.
    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        self.readable.values().flatten()
    }

    /// The last readable owner's job.
    pub(super) fn shape(&self) -> Option<JobShape> {
        self.records()
            .filter_map(|record| match &record.body {
                Body::Fence { shape, .. } => Some(shape.clone()),
                _ => None,
            })
            .last()
    }

    /// The parts between the flaws, each a row of records without a hole.
    fn parts(&self) -> Vec<Vec<Record>> {
        let mut parts = vec![Vec::new()];
        let mut flaws = self.flaws.iter().peekable();
        for (seq, records) in &self.readable {
            while flaws.next_if(|flaw| flaw.from < *seq).is_some() {
                parts.push(Vec::new());
            }
            if let Some(part) = parts.last_mut() {
                part.extend(records.iter().cloned());
            }
        }
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// The first record that breaks a rule of the log, and which.
    pub(super) fn chain(&self) -> Result<(), (u64, String)> {
        self.parts().iter().try_for_each(|part| follow_the_rules(part))
    }

    /// What the records behind the last flaw say. `None` where the log's very end is what is flawed.
    pub(super) fn tail(&self) -> Option<Log> {
        self.chain().ok()?;
        let behind = self.flaws.last().map(|flaw| flaw.to);
        let records: Vec<Record> = self
            .readable
            .iter()
            .filter(|(seq, _)| behind.is_none_or(|flaw| **seq > flaw))
            .flat_map(|(_, records)| records.iter().cloned())
            .collect();
        (records.last()?.seq == self.last?).then(|| Log::replay(&records))
    }

    /// The same, with where the next batch starts. `None` where these records do not say.
    pub(super) fn end(&self) -> Option<End> {
        let log = self.tail()?;
        let next = starts_at(&log)?;
        Some(End { log, next })
    }

    /// Where the next batch started before the first flaw: an older position than the last.
    pub(super) fn before_the_first_flaw(&self) -> Option<Position> {
        let flaw = self.flaws.first()?;
        let records: Vec<Record> = self
            .readable
            .range(..flaw.from)
            .flat_map(|(_, records)| records.iter().cloned())
            .collect();
        follow_the_rules(&records).ok()?;
        starts_at(&Log::replay(&records))
    }
}

/// Where the batch starts that is to be run next: the interrupted one, if there is one.
pub(super) fn starts_at(log: &Log) -> Option<Position> {
    let pending = log.pending().map(|pending| pending.from.clone());
    pending.or_else(|| log.next().cloned())
}
