//! Owning a checkpoint on shared storage. There is no lock: the slot log alone decides, and a fence in the slot that the old
//! owner would write next ends its ownership, whatever it does later.
//!
//! | part | what it does |
//! |---|---|
//! | [`ledger`] | the owner's appends |
//! | [`attend`](mod@attend) | what the owner does beside: renews, reads its mail, looks whether it was replaced, writes snapshots |
//! | [`seek`] | the way from a candidate to an owner |
//! | [`look`] | reading, and stopping, from outside |

mod attend;
mod ledger;
mod look;
mod seek;

pub(super) use attend::attend;
pub(crate) use ledger::Ledger;
pub(super) use look::{inspect, preview, show, stop};
pub(super) use seek::acquire;

use std::time::Duration;

use super::wire::Ask;
use crate::object::{Letter, Loaded, Place};
use crate::protocol::{Body, Record};
use crate::store::follow_the_rules;
use crate::{Error, Result};
use baton_core::{CheckpointId, Epoch};

/// How often an owner renews. A request is seen after so long at most.
const RENEWAL: Duration = Duration::from_secs(1);

/// By how many parts in a thousand two clocks may differ in speed.
const DRIFT: u32 = 10;

/// How often somebody who waits for an answer repeats its letter, to show that it is still there.
const REFRESH: Duration = Duration::from_secs(2);

/// A letter that was not repeated for so long is a dead one's.
const FORGOTTEN: Duration = Duration::from_secs(7);

/// The checkpoint that a log belongs to, after the rules of the log were checked; `None` for an empty one. Its first record,
/// which is never removed, names it.
fn checked(place: &Place, loaded: &Loaded) -> Result<Option<CheckpointId>> {
    let records: Vec<Record> = loaded.records().cloned().collect();
    let Some(first) = records.first() else {
        return Ok(None);
    };
    let damaged = |seq: u64, reason: String| Error::DamagedRecord {
        path: place.path().to_owned(),
        seq,
        reason,
    };
    if first.epoch != Epoch(1) || first.seq != 0 || !matches!(first.body, Body::Fence { .. }) {
        return Err(damaged(0, "it is missing".to_owned()));
    }
    follow_the_rules(&records).map_err(|(seq, reason)| damaged(seq, reason))?;
    Ok(Some(CheckpointId(first.write_id.0)))
}

/// A letter to an owner.
type Asked = Letter<Ask>;

#[cfg(test)]
mod tests;
