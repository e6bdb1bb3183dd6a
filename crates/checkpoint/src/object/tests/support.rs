use baton_core::{Clock, Epoch, OutputMode, OwnerId, Rng, Timestamp, WriteId};
use futures::future::BoxFuture;
use object_store::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use uuid::Uuid;

use super::faulty::{Faults, FaultyStore};
use crate::object::slot::Budget;
use crate::object::{ObjectLog, Place};
use crate::protocol::{Body, FenceReason, Record};
use crate::{Deps, JobShape, PositionReason};

/// A clock whose time passes by being waited for: a millisecond a turn of the executor.
#[derive(Debug, Default)]
pub(super) struct Turns(Arc<AtomicU64>);

impl Clock for Turns {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let time = Arc::clone(&self.0);
        let turns = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Box::pin(async move {
            for turn in 0..turns {
                tokio::task::yield_now().await;
                if turn + 1 == turns {
                    time.fetch_add(turns, Ordering::Relaxed);
                }
            }
        })
    }
}

pub(super) fn deps(seed: u64) -> Deps {
    Deps {
        clock: Arc::new(Turns::default()),
        rng: Arc::new(Rng::seeded(seed)),
    }
}

pub(super) fn place(store: &FaultyStore) -> Place {
    Place::new(
        Arc::new(store.clone()),
        Path::from("jobs/one"),
        "s3://bucket/jobs/one",
    )
}

pub(super) fn quiet() -> FaultyStore {
    FaultyStore::new(Faults::default(), 1)
}

pub(super) fn log(store: &FaultyStore) -> ObjectLog {
    ObjectLog::new(place(store), deps(7), Budget::default())
}

pub(super) fn id(of: u128) -> WriteId {
    WriteId(Uuid::from_u128(of))
}

pub(super) fn record(seq: u64, write: u128, body: Body) -> Record {
    Record {
        seq,
        epoch: Epoch(1),
        write_id: id(write),
        owner: OwnerId(Uuid::from_u128(9)),
        at: Timestamp(0),
        version: "v1".into(),
        body,
        handover: None,
    }
}

pub(super) fn plain(seq: u64, write: u128) -> Record {
    let body = Body::Position {
        next: baton_core::Position::default(),
        reason: PositionReason::Start,
    };
    record(seq, write, body)
}

pub(super) fn fence(seq: u64, write: u128) -> Record {
    let shape = JobShape {
        job: "j".into(),
        sources: std::collections::BTreeMap::new(),
        sql: String::new(),
        schema: Vec::new(),
        sink: "noop".into(),
        output_mode: OutputMode::Append,
    };
    let body = Body::Fence {
        reason: FenceReason::Fresh,
        host: "h".into(),
        pid: 1,
        replaces: None,
        shape,
    };
    record(seq, write, body)
}

#[track_caller]
pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime of one thread").block_on(future)
}
