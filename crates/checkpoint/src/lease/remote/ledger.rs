//! The owner's hand on the log.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::lease::ground::{Entry, NotWritten};
use crate::object::slot::Budget;
use crate::object::{Appended, Loaded, ObjectLog, Place, Snapshot};
use crate::protocol::{Body, Record};
use crate::{Deps, Error, Result};

/// A snapshot is due after so many slots, and after half as many as it would hold.
const SNAPSHOT: u64 = 100;

/// How long a last look may take.
const LOOK: Duration = Duration::from_secs(30);

/// Appends of one owner, one at a time, and what they left in the log.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(super) place: Place,
    pub(super) deps: Deps,
    /// How long it may be silent before others may think it dead.
    pub(super) lease: Duration,
    log: tokio::sync::Mutex<ObjectLog>,
    kept: Mutex<Kept>,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Kept {
    /// What a snapshot would hold.
    loaded: Loaded,
    /// When the newest renewal was sent that was answered, on the monotonic clock.
    renewed: Duration,
}

impl Ledger {
    pub(super) fn new(place: Place, deps: Deps, lease: Duration, loaded: Loaded) -> Self {
        let log = ObjectLog::new(place.clone(), deps.clone(), Budget::default());
        let renewed = deps.clock.elapsed();
        Self {
            place,
            deps,
            lease,
            log: tokio::sync::Mutex::new(log),
            kept: Mutex::new(Kept { loaded, renewed }),
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it: nothing is written any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) async fn append(&self, entry: Entry<'_>) -> Result<(), NotWritten> {
        let mut log = self.log.lock().await;
        if self.is_closed() {
            return Err(NotWritten::Failed(Error::Store {
                path: self.path().to_owned(),
                reason: "it is closed".to_owned(),
            }));
        }
        match log.append(entry.records).await {
            Ok(Appended::Written) => {
                let mut kept = self.kept();
                let Loaded { floor, slots, .. } = &mut kept.loaded;
                *floor = entry.floor;
                slots.retain(|(seq, _)| entry.retired.binary_search(seq).is_err());
                slots.push((entry.seq, entry.records.to_vec()));
                Ok(())
            }
            Ok(Appended::Lost { .. }) => Err(NotWritten::Lost(self.rival(&log, entry.seq).await)),
            Ok(Appended::Stale) => Err(NotWritten::Lost(
                "others owned and released it since it was looked at".to_owned(),
            )),
            Err(error) => Err(NotWritten::Failed(error)),
        }
    }

    /// Whose record stands in a slot, in words.
    async fn rival(&self, log: &ObjectLog, seq: u64) -> String {
        match log.read_next(seq).await {
            Ok(Some((_, records))) => said(&records),
            _ => "another owner has written the next record".to_owned(),
        }
    }

    /// Whether it is still ours, before something is published that nobody can take back. Asked only when the last renewal
    /// is so old that others may have thought us dead: a process that slept finds out here.
    pub(crate) async fn look_again(&self, free: u64) -> Result<Option<String>> {
        let clock = &self.deps.clock;
        let began = clock.elapsed();
        if began.saturating_sub(self.kept().renewed) < self.lease {
            return Ok(None);
        }
        let log = ObjectLog::new(self.place.clone(), self.deps.clone(), Budget::default());
        loop {
            match log.read_next(free).await {
                Ok(found) => return Ok(found.map(|(_, records)| said(&records))),
                Err(error) if clock.elapsed().saturating_sub(began) >= LOOK => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, "the checkpoint's owner cannot be looked up; nothing is published before")
                }
            }
            clock.sleep(Duration::from_millis(500)).await;
        }
    }

    /// A renewal that was sent then was answered.
    pub(super) fn renewed(&self, sent: Duration) {
        self.kept().renewed = sent;
    }

    /// The snapshot that is due.
    pub(super) fn due(&self) -> Option<Snapshot> {
        let kept = self.kept();
        let Loaded {
            floor,
            slots,
            snapshot,
        } = &kept.loaded;
        let tail = slots.last()?.0;
        let new = tail.saturating_sub(snapshot.unwrap_or(0));
        let size = u64::try_from(slots.len()).unwrap_or(u64::MAX);
        (new >= SNAPSHOT.max(size / 2))
            .then(|| Snapshot::of(*floor, slots))
            .flatten()
    }

    pub(super) fn snapshot_written(&self, seq: u64) {
        self.kept().loaded.snapshot = Some(seq);
    }
}

/// Who wrote these, in words.
pub(super) fn said(records: &[Record]) -> String {
    match records.first() {
        Some(Record {
            version,
            epoch,
            body: Body::Fence {
                host, pid, reason, ..
            },
            ..
        }) => format!(
            "{version} (pid {pid} on {host}) took it as epoch {epoch} ({})",
            reason.as_str()
        ),
        Some(record) => format!("{} has written to it as epoch {}", record.version, record.epoch),
        None => "somebody has written to it".to_owned(),
    }
}
