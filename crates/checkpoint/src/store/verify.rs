//! Checks that what is read is what was written, and names what is not.

use baton_core::{CheckpointId, Epoch};
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

use super::rocks::Found;
use crate::codec::{CodecError, FORMAT, decode_slot};
use crate::layout::OWNER;
use crate::protocol::{Body, Fact, Log, Record, invariants};
use crate::{Error, Result};

/// The log, whole.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) records: Vec<Record>,
    pub(crate) floor: u64,
}

impl Contents {
    pub(crate) fn log(&self) -> Log {
        Log::replay(&self.records)
    }
}

/// Checks all that was found: every slot from the floor to the last is there and readable, there are only fences below,
/// all follow the rules of the log, and none that was acknowledged is missing at the end.
///
/// # Errors
/// Names the record or the file.
pub(crate) fn verify(
    path: &Path,
    id: CheckpointId,
    found: Found,
    acknowledged: Option<u64>,
) -> Result<Contents> {
    let damaged = |seq: u64, reason: &str| Error::DamagedRecord {
        path: path.to_owned(),
        seq,
        reason: reason.to_owned(),
    };
    let meta = |reason: &str| Error::DamagedFile {
        path: path.to_owned(),
        file: path.join(crate::layout::LOG).display().to_string(),
        reason: reason.to_owned(),
    };
    let whose = found.checkpoint.and_then(|bytes| Uuid::from_slice(&bytes).ok());
    if whose.ok_or_else(|| meta("it does not say whose it is"))? != id.0 {
        return Err(Error::DamagedMarker {
            path: path.to_owned(),
            reason: "that of another checkpoint".to_owned(),
        });
    }
    let number = |bytes: Option<Vec<u8>>| {
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .map(u64::from_be_bytes)
    };
    let floor = number(found.floor).ok_or_else(|| meta("it does not say where it begins"))?;
    let last = number(found.last);

    let mut records: Vec<Record> = Vec::new();
    let mut expected = floor;
    for (key, value) in found.slots {
        let seq = key
            .try_into()
            .map(u64::from_be_bytes)
            .map_err(|_| meta("it has a key that is no slot's"))?;
        if seq >= floor && seq != expected {
            return Err(damaged(expected, "it is missing"));
        }
        let slot = decode_slot(seq, &value).map_err(|error| match error {
            CodecError::Newer(found) => Error::NewerFormat {
                path: path.to_owned(),
                what: format!("record {seq}"),
                found: found.into(),
                known: FORMAT.into(),
            },
            CodecError::Damaged(reason) => damaged(seq, &reason),
        })?;
        if seq >= floor {
            expected = seq.saturating_add(1);
        }
        records.extend(slot);
    }
    if let Some(last) = last.filter(|last| expected <= *last) {
        return Err(damaged(expected.min(last), "it is missing"));
    }
    if last.is_none_or(|last| last.saturating_add(1) != expected) && !records.is_empty() {
        return Err(damaged(
            expected.saturating_sub(1),
            "it stands behind the log's end",
        ));
    }
    let begins = records
        .first()
        .is_some_and(|first| first.epoch == Epoch(1) && matches!(first.body, Body::Fence { .. }));
    let is_empty = records.is_empty() && floor == 0 && last.is_none();
    if !begins && !is_empty {
        return Err(damaged(0, "it is missing"));
    }
    follow_the_rules(&records).map_err(|(seq, reason)| damaged(seq, &reason))?;
    let tail = expected.saturating_sub(1);
    if let Some(acknowledged) = acknowledged.filter(|seq| *seq > tail || records.is_empty()) {
        let way_out = match Log::replay(&records).next() {
            Some(_) => format!(
                "accept that what came after record {tail} runs again: rm {}",
                path.join(OWNER).display()
            ),
            // To go on without a position would resolve the starting offsets again, and lose what came in between.
            None => "give the job a new checkpoint and startingOffsets: no position is left in this one"
                .to_owned(),
        };
        return Err(Error::LostRecords {
            path: path.to_owned(),
            last: tail,
            acknowledged,
            way_out,
        });
    }
    Ok(Contents { records, floor })
}

/// The first record that breaks a rule of the log, and which.
pub(crate) fn follow_the_rules(records: &[Record]) -> Result<(), (u64, String)> {
    let facts: Vec<Fact> = records
        .iter()
        .cloned()
        .map(|record| Fact::Appended(Arc::new(record)))
        .collect();
    if invariants::check_log(&facts).is_ok() {
        return Ok(());
    }
    // The first record with which a rule is broken, and the rule that it breaks.
    let first = (1..=facts.len()).find_map(|end| Some((end, invariants::check_log(&facts[..end]).err()?)));
    first.map_or(Ok(()), |(end, violation)| {
        Err((records[end - 1].seq, format!("it breaks {violation}")))
    })
}
