//! What the slots up to one mean, in one object, and the removal of what it makes superfluous.
//!
//! A snapshot is the kept slots, as they stand in the log: all from the floor on, and the fences below it. Folding them
//! gives the same [`crate::protocol::Log`] as folding all slots ever written; there is no second format to keep true.
//!
//! ```text
//! snapshot = version u8 (1) · floor u64 · count u32 · (seq u64 · length u32 · slot) × count · crc32c u32      all LE
//! crc32c over seq of the snapshot · everything before it
//! ```

use baton_core::Epoch;
use bytes::Bytes;

use super::log::{ObjectLog, Slot};
use super::names;
use super::requests::Failure;
use crate::codec::{CodecError, FORMAT, decode_slot, encode_slot};
use crate::protocol::{Body, Record};
use crate::{Error, Result};

/// The kept slots up to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last slot that it covers.
    pub seq: u64,
    /// From here on all slots are kept; below it only fences. As `Log::retire` says.
    pub floor: u64,
    /// The kept slots, in order; the last is `seq`.
    pub slots: Vec<Slot>,
}

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Slots that were removed.
    pub slots: usize,
    /// Older snapshots that were removed.
    pub snapshots: usize,
}

fn is_fence(records: &[Record]) -> bool {
    records
        .iter()
        .any(|record| matches!(record.body, Body::Fence { .. }))
}

impl Snapshot {
    /// The snapshot of `slots`, of which those below `floor` without a fence are left out.
    #[must_use]
    pub fn of(floor: u64, slots: &[Slot]) -> Option<Self> {
        let seq = slots.last()?.0;
        // The tail is never among what is left out.
        let floor = floor.min(seq);
        let kept = slots
            .iter()
            .filter(|(seq, records)| *seq >= floor || is_fence(records));
        Some(Self {
            seq,
            floor,
            slots: kept.cloned().collect(),
        })
    }

    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.floor.to_le_bytes());
        bytes.extend(length(self.slots.len()));
        for (seq, records) in &self.slots {
            let slot = encode_slot(*seq, records);
            bytes.extend(seq.to_le_bytes());
            bytes.extend(length(slot.len()));
            bytes.extend(slot);
        }
        let sum = checksum(self.seq, &bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// Reads what [`Snapshot::encode`] wrote for `seq`.
    ///
    /// # Errors
    /// [`CodecError`], also when the slots in it cannot be all that it must have.
    pub fn decode(seq: u64, bytes: &[u8]) -> Result<Self, CodecError> {
        let damaged = |reason: &str| CodecError::Damaged(reason.to_owned());
        match bytes.first() {
            None => return Err(damaged("it is empty")),
            Some(version) if *version > FORMAT => return Err(CodecError::Newer(*version)),
            Some(_) => {}
        }
        let (body, sum) = bytes
            .split_last_chunk::<4>()
            .ok_or_else(|| damaged("it is cut off"))?;
        if checksum(seq, body) != u32::from_le_bytes(*sum) {
            return Err(damaged("its checksum does not match"));
        }
        let mut rest = body.get(1..).unwrap_or_default();
        let floor = u64::from_le_bytes(take(&mut rest)?);
        let count = u32::from_le_bytes(take(&mut rest)?);
        let mut slots: Vec<Slot> = Vec::new();
        for _ in 0..count {
            let number = u64::from_le_bytes(take(&mut rest)?);
            let length = usize::try_from(u32::from_le_bytes(take(&mut rest)?)).unwrap_or(usize::MAX);
            let (slot, behind) = rest
                .split_at_checked(length)
                .ok_or_else(|| damaged("it is cut off"))?;
            slots.push((number, decode_slot(number, slot)?));
            rest = behind;
        }
        let found = Self { seq, floor, slots };
        if rest.is_empty() && found.is_whole() {
            Ok(found)
        } else {
            Err(damaged("it does not hold the slots that it should"))
        }
    }

    /// Every slot from the floor to the end, and before it fences in order.
    fn is_whole(&self) -> bool {
        let fences = self.slots.iter().take_while(|(seq, _)| *seq < self.floor).count();
        let (below, kept) = self.slots.split_at(fences);
        let epochs: Vec<Epoch> = below
            .iter()
            .flat_map(|(_, of)| of.first())
            .map(|of| of.epoch)
            .collect();
        below.iter().all(|(_, records)| is_fence(records))
            && below.is_sorted_by(|a, b| a.0 < b.0)
            && epochs.is_sorted()
            && kept.iter().map(|(seq, _)| *seq).eq(self.floor..=self.seq)
    }
}

fn length(of: usize) -> [u8; 4] {
    u32::try_from(of)
        .expect("a snapshot is far below 4 GiB")
        .to_le_bytes()
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], CodecError> {
    let (found, behind) = rest
        .split_first_chunk::<N>()
        .ok_or_else(|| CodecError::Damaged("it is cut off".to_owned()))?;
    *rest = behind;
    Ok(*found)
}

fn checksum(seq: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&seq.to_le_bytes()), bytes)
}

impl ObjectLog {
    /// Makes a snapshot durable: one PUT. One of the same number that is there already is as good, if it can be read.
    ///
    /// # Errors
    /// [`Error::Store`]: perhaps it is there and perhaps not; nothing depends on it, the next one may succeed.
    pub async fn write_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        // What cannot be read back would hide the log from every later start.
        if !snapshot.is_whole() {
            return Err(Error::Misuse {
                what: format!(
                    "a snapshot up to record {} with a hole was to be written",
                    snapshot.seq
                ),
            });
        }
        let path = names::snapshot(&self.requests.place.prefix, snapshot.seq);
        match self.requests.create(&path, Bytes::from(snapshot.encode())).await {
            Ok(()) => Ok(()),
            Err(Failure::Exists) => self.read_snapshot(snapshot.seq).await.map(drop),
            Err(failure) => Err(self.requests.failed(&path, &failure)),
        }
    }

    /// Removes what the newest snapshot makes superfluous: slots below its floor that are no fence of it, and older
    /// snapshots. The snapshot is read and checked first. May be interrupted anywhere, and repeated by anybody: nobody
    /// reads below a snapshot. Two LISTs, one GET, and one removal of up to 1000 objects a request where the store can.
    ///
    /// # Errors
    /// [`Error::DamagedRecord`] when the snapshot cannot be read: nothing is removed then. [`Error::Store`].
    pub async fn collect(&self) -> Result<Collected> {
        let snapshots = self.snapshots().await?;
        let Some((newest, older)) = snapshots.split_last() else {
            return Ok(Collected::default());
        };
        let snapshot = self.read_snapshot(*newest).await?;
        let is_kept = |seq: u64| seq >= snapshot.floor || snapshot.slots.iter().any(|(kept, _)| *kept == seq);
        let mut slots = self.numbers_from(0).await?;
        slots.retain(|seq| !is_kept(*seq));
        let prefix = &self.requests.place.prefix;
        let paths = slots.iter().map(|seq| names::slot(prefix, *seq));
        let paths = paths.chain(older.iter().map(|seq| names::snapshot(prefix, *seq)));
        let removed = self.requests.remove(paths.collect()).await;
        removed.map_err(|failure| Error::Store {
            path: self.requests.place.path().to_owned(),
            reason: format!("old slots could not be removed: {failure}"),
        })?;
        Ok(Collected {
            slots: slots.len(),
            snapshots: older.len(),
        })
    }
}
