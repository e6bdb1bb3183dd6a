//! The slot log on shared storage: slot `seq` is the object `log/<seq:020>`, created once.
//!
//! **Requests.** An append without trouble is one PUT. The slot of a claim (a fence) costs one LIST more: see
//! [`ObjectLog::append`]. [`ObjectLog::load`] is two LISTs, one GET of the snapshot and one GET for each slot behind it.

use baton_core::WriteId;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use super::location::Place;
use super::names;
use super::requests::{Failure, Requests};
use super::slot::{Action, Attempt, Budget, Event, PutReply, ReadBack};
use super::snapshot::Snapshot;
use crate::codec::{CodecError, FORMAT, decode_slot, encode_slot};
use crate::protocol::{Body, Record};
use crate::{Deps, Error, Result};

/// How many slots are read at once.
const ABREAST: usize = 8;

/// How often loading starts again because a collector was faster.
const RELOADS: u32 = 5;

/// How often an object that was listed is asked for before it is said to be missing.
const LISTED_TRIES: u32 = 3;

/// How an append ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Appended {
    /// It is durable.
    Written,
    /// Another write has the slot, for ever: this writer is fenced, or this candidate was too late.
    Lost {
        /// Its write id.
        by: WriteId,
    },
    /// The log has gone on past this slot and was collected since it was read: a claim for it is none. Read again.
    Stale,
}

/// One slot and its records.
pub type Slot = (u64, Vec<Record>);

/// What stands in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// From here on all slots are kept; below it only fences.
    pub floor: u64,
    /// The kept slots, in order.
    pub slots: Vec<Slot>,
    /// The last slot that the snapshot covers from which this was read.
    pub snapshot: Option<u64>,
}

impl Loaded {
    /// Every record, in order, as [`crate::protocol::Log::replay`] wants them.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.slots.iter().flat_map(|(_, records)| records)
    }

    /// The last slot.
    #[must_use]
    pub fn tail(&self) -> Option<u64> {
        self.slots.last().map(|(seq, _)| *seq)
    }
}

/// The log of one checkpoint.
#[derive(Debug)]
pub struct ObjectLog {
    pub(super) requests: Requests,
    budget: Budget,
    /// Set while the outcome of an append is not known.
    in_doubt: bool,
}

impl ObjectLog {
    /// The log of the checkpoint at `place`; nothing is asked yet.
    #[must_use]
    pub fn new(place: Place, deps: Deps, budget: Budget) -> Self {
        Self {
            requests: Requests::new(place, deps),
            budget,
            in_doubt: false,
        }
    }

    /// Appends one slot, the one that its records name.
    ///
    /// **Why a fence is looked after.** "The first free slot" of a candidate that read long ago may have been written and
    /// collected since: the store would take its PUT. A collector removes nothing before a snapshot covers it, so that one
    /// LIST of the snapshots after the PUT tells: one that covers the slot means [`Appended::Stale`]. An owner needs no
    /// such look: the slot behind its last one is free, or its own, or a fence, and fences are never collected.
    ///
    /// # Errors
    /// [`Error::Store`] when it is not known whether the slot was written: nothing more can be appended by this value.
    /// [`Error::DamagedRecord`] when the slot holds something unreadable.
    ///
    /// # Cancel safety
    /// A dropped append leaves the outcome unknown; later ones are refused.
    pub async fn append(&mut self, records: &[Record]) -> Result<Appended> {
        let Some(first) = records.first() else {
            return Err(misuse("a slot without records was to be appended"));
        };
        let (seq, mine) = (first.seq, first.write_id);
        if records.iter().any(|record| record.seq != seq) {
            return Err(misuse("records of several slots were to be appended as one"));
        }
        if self.in_doubt {
            return Err(self.doubt(seq, "an earlier append is in doubt"));
        }
        self.in_doubt = true;
        let bytes = Bytes::from(encode_slot(seq, records));
        let appended = self.drive(seq, mine, bytes).await?;
        let claims = records
            .iter()
            .any(|record| matches!(record.body, Body::Fence { .. }));
        let stale = appended == Appended::Written && claims && self.covered(seq).await?;
        self.in_doubt = false;
        Ok(if stale { Appended::Stale } else { appended })
    }

    /// Does what the machine of `slot` says.
    async fn drive(&self, seq: u64, mine: WriteId, bytes: Bytes) -> Result<Appended> {
        let path = names::slot(&self.requests.place.prefix, seq);
        let clock = &self.requests.deps.clock;
        let began = clock.elapsed();
        let mut last = String::new();
        let (mut attempt, mut action) = Attempt::begin(mine, self.budget);
        loop {
            let event = match action {
                Action::Put => Event::Put(match self.requests.create(&path, bytes.clone()).await {
                    Ok(()) => PutReply::Created,
                    Err(Failure::Exists) => PutReply::Exists,
                    Err(Failure::Throttled) => {
                        last = Failure::Throttled.to_string();
                        PutReply::Throttled
                    }
                    Err(failure) => {
                        last = failure.to_string();
                        PutReply::Unknown
                    }
                }),
                Action::ReadBack => Event::Read(match self.requests.read_once(&path).await {
                    Ok(Some(found)) => ReadBack::Found(self.write_id(seq, &found)?),
                    Ok(None) => ReadBack::Absent,
                    Err(failure) => {
                        last = failure.to_string();
                        ReadBack::Unknown
                    }
                }),
                Action::Pause(pause) => {
                    self.requests.pause(pause).await;
                    Event::Waited
                }
                Action::Done => return Ok(Appended::Written),
                Action::Lost { by } => return Ok(Appended::Lost { by }),
                Action::GiveUp => return Err(self.doubt(seq, &last)),
            };
            tracing::trace!(seq, ?event, "append");
            action = attempt.step(event, clock.elapsed().saturating_sub(began));
        }
    }

    fn doubt(&self, seq: u64, last: &str) -> Error {
        Error::Store {
            path: self.requests.place.path().to_owned(),
            reason: format!("whether record {seq} was written is not known: {last}"),
        }
    }

    fn write_id(&self, seq: u64, bytes: &[u8]) -> Result<WriteId> {
        let records = self.decode(seq, bytes)?;
        let first = records.first().map(|record| record.write_id);
        first.ok_or_else(|| self.damaged(seq, "it is empty"))
    }

    async fn covered(&self, seq: u64) -> Result<bool> {
        Ok(self
            .snapshots()
            .await?
            .last()
            .is_some_and(|newest| *newest >= seq))
    }

    /// The numbers of the snapshots, in order.
    pub(super) async fn snapshots(&self) -> Result<Vec<u64>> {
        let folder = names::snapshots(&self.requests.place.prefix);
        Ok(numbers(&self.requests.list(&folder, None).await?))
    }

    /// All that is needed to start: the newest snapshot and the slots behind it.
    ///
    /// # Errors
    /// [`Error::DamagedRecord`] for a damaged object or a hole, [`Error::NewerFormat`], [`Error::Store`].
    pub async fn load(&self) -> Result<Loaded> {
        let mut newest = self.snapshots().await?.last().copied();
        let mut looked_again = false;
        for _ in 0..RELOADS {
            let loaded = self.load_behind(newest).await;
            // A collector may have been faster: what is missing is in a newer snapshot then. And a LIST that runs beside two
            // appends may show the later one alone: a hole is one when it is seen twice.
            if matches!(loaded, Err(Error::DamagedRecord { .. })) {
                let now = self.snapshots().await?.last().copied();
                if now > newest || !looked_again {
                    looked_again |= now <= newest;
                    newest = now;
                    continue;
                }
            }
            return loaded;
        }
        self.load_behind(newest).await
    }

    async fn load_behind(&self, newest: Option<u64>) -> Result<Loaded> {
        let Some(seq) = newest else {
            let slots = self.read_from(0).await?;
            return Ok(Loaded {
                slots,
                ..Loaded::default()
            });
        };
        let Snapshot { floor, mut slots, .. } = self.read_snapshot(seq).await?;
        slots.extend(self.read_from(seq + 1).await?);
        Ok(Loaded {
            floor,
            slots,
            snapshot: newest,
        })
    }

    /// Reads the snapshot that covers the slots up to `seq`.
    pub(super) async fn read_snapshot(&self, seq: u64) -> Result<Snapshot> {
        let path = names::snapshot(&self.requests.place.prefix, seq);
        let found = self.requests.read(&path).await?;
        let bytes = found.ok_or_else(|| self.damaged(seq, &format!("the snapshot `{path}` is missing")))?;
        Snapshot::decode(seq, &bytes).map_err(|error| match error {
            CodecError::Newer(found) => self.newer(&format!("the snapshot `{path}`"), found),
            CodecError::Damaged(reason) => self.damaged(seq, &format!("the snapshot `{path}`: {reason}")),
        })
    }

    /// The slots from `seq` to the end, without a hole.
    ///
    /// # Errors
    /// [`Error::DamagedRecord`] names the first slot that is missing or damaged; [`Error::NewerFormat`], [`Error::Store`].
    pub async fn read_from(&self, seq: u64) -> Result<Vec<Slot>> {
        let listed = self.numbers_from(seq).await?;
        for (expected, found) in (seq..).zip(&listed) {
            if *found != expected {
                return Err(self.damaged(expected, &format!("it is missing, but record {found} is there")));
            }
        }
        let reading = listed.into_iter().map(|seq| self.read_slot(seq));
        futures::stream::iter(reading)
            .buffered(ABREAST)
            .try_collect()
            .await
    }

    async fn read_slot(&self, seq: u64) -> Result<Slot> {
        let path = names::slot(&self.requests.place.prefix, seq);
        for _ in 0..LISTED_TRIES {
            if let Some(bytes) = self.requests.read(&path).await? {
                return Ok((seq, self.decode(seq, &bytes)?));
            }
            // It was listed: the store does not agree with itself, or it was collected.
            self.requests.pause(std::time::Duration::from_millis(20)).await;
        }
        Err(self.damaged(seq, "it was listed and is missing"))
    }

    /// The numbers of the slots from `seq` on, in order.
    pub(super) async fn numbers_from(&self, seq: u64) -> Result<Vec<u64>> {
        let prefix = &self.requests.place.prefix;
        let before = seq.checked_sub(1).map(|before| names::slot(prefix, before));
        let listed = self.requests.list(&names::log(prefix), before.as_ref()).await?;
        Ok(numbers(&listed))
    }

    /// The last slot: two LISTs. What a claim that was [`Appended::Stale`] left behind does not count.
    ///
    /// # Errors
    /// [`Error::Store`] when the store does not answer.
    pub async fn tail(&self) -> Result<Option<u64>> {
        let covered = self.snapshots().await?.last().copied();
        let behind = self.numbers_from(covered.map_or(0, |seq| seq + 1)).await?;
        Ok(behind.last().copied().or(covered))
    }

    /// Whether the slot is still free: one GET. For an observer; whoever reads it as free may be wrong a moment later.
    ///
    /// # Errors
    /// [`Error::Store`] when there is no answer; it is not asked again.
    pub async fn is_free(&self, seq: u64) -> Result<bool> {
        let path = names::slot(&self.requests.place.prefix, seq);
        match self.requests.read_once(&path).await {
            Ok(found) => Ok(found.is_none()),
            Err(failure) => Err(self.requests.failed(&path, &failure)),
        }
    }

    /// What stands in a slot, if it is taken: one GET. Whoever reads it as free may be wrong a moment later.
    ///
    /// # Errors
    /// [`Error::Store`] when there is no answer; it is not asked again. [`Error::DamagedRecord`], [`Error::NewerFormat`].
    pub async fn read_next(&self, seq: u64) -> Result<Option<Slot>> {
        let path = names::slot(&self.requests.place.prefix, seq);
        match self.requests.read_once(&path).await {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => Ok(Some((seq, self.decode(seq, &bytes)?))),
            Err(failure) => Err(self.requests.failed(&path, &failure)),
        }
    }

    fn decode(&self, seq: u64, bytes: &[u8]) -> Result<Vec<Record>> {
        decode_slot(seq, bytes).map_err(|error| match error {
            CodecError::Newer(found) => self.newer(&format!("record {seq}"), found),
            CodecError::Damaged(reason) => self.damaged(seq, &reason),
        })
    }

    fn newer(&self, what: &str, found: u8) -> Error {
        Error::NewerFormat {
            path: self.requests.place.path().to_owned(),
            what: what.to_owned(),
            found: found.into(),
            known: FORMAT.into(),
        }
    }

    fn damaged(&self, seq: u64, reason: &str) -> Error {
        Error::DamagedRecord {
            path: self.requests.place.path().to_owned(),
            seq,
            reason: reason.to_owned(),
        }
    }
}

fn numbers(paths: &[object_store::path::Path]) -> Vec<u64> {
    paths.iter().filter_map(names::number).collect()
}

fn misuse(what: &str) -> Error {
    Error::Misuse {
        what: what.to_owned(),
    }
}
