//! One checkpoint in a temporary directory, and those who want it.

use baton_core::{Marker, OwnerId, Position, Receipt, Rng, TokioClock};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::testing::{at, draft};
use crate::{
    AcquireEvent, AcquireOptions, Candidate, Deps, Error, IfOwned, JobShape, Lease, Location, PositionReason,
    Resume, acquire,
};

pub(in crate::lease) struct Lab {
    pub(in crate::lease) dir: TempDir,
    pub(in crate::lease) deps: Deps,
}

impl Lab {
    pub(in crate::lease) fn new() -> Self {
        Self {
            dir: TempDir::new().expect("a directory"),
            deps: Deps {
                clock: Arc::new(TokioClock::start()),
                rng: Arc::new(Rng::from_os()),
            },
        }
    }

    pub(in crate::lease) fn path(&self) -> PathBuf {
        self.dir.path().join("checkpoint")
    }

    pub(in crate::lease) fn location(&self) -> Location {
        Location::parse(self.path().to_str().expect("a plain path")).expect("a local path")
    }

    pub(in crate::lease) fn candidate(&self, version: &str) -> Candidate {
        Candidate {
            owner: OwnerId(self.deps.rng.uuid()),
            job: "job".into(),
            version: version.into(),
            shape: JobShape {
                job: "job".into(),
                ..JobShape::default()
            },
            handover: true,
        }
    }

    /// Wants the checkpoint, in a task of its own.
    pub(in crate::lease) fn seek(&self, version: &str, options: AcquireOptions) -> Seeking {
        let (sender, events) = mpsc::channel(64);
        let (location, candidate, deps) = (self.location(), self.candidate(version), self.deps.clone());
        let task = tokio::spawn(async move { acquire(&location, candidate, options, &deps, sender).await });
        Seeking { task, events }
    }

    pub(in crate::lease) async fn acquire(&self, version: &str) -> Result<Lease, Error> {
        self.seek(version, AcquireOptions::default()).done().await
    }

    /// Owns the checkpoint and has committed so many batches.
    pub(in crate::lease) async fn owner(&self, version: &str, batches: u64) -> Lease {
        let mut lease = self.acquire(version).await.expect("it is free");
        ready(&mut lease).await;
        for _ in 0..batches {
            batch(&mut lease).await;
        }
        lease
    }

    pub(in crate::lease) async fn sleep(&self, ms: u64) {
        self.deps.clock.sleep(Duration::from_millis(ms)).await;
    }
}

pub(in crate::lease) struct Seeking {
    pub(in crate::lease) task: tokio::task::JoinHandle<Result<Lease, Error>>,
    pub(in crate::lease) events: mpsc::Receiver<AcquireEvent>,
}

impl Seeking {
    pub(in crate::lease) async fn done(self) -> Result<Lease, Error> {
        self.task.await.expect("it does not panic")
    }

    pub(in crate::lease) async fn event<T>(
        &mut self,
        mut wanted: impl FnMut(&AcquireEvent) -> Option<T>,
    ) -> T {
        while let Some(event) = self.events.recv().await {
            if let Some(found) = wanted(&event) {
                return found;
            }
        }
        panic!("it ended without the event");
    }
}

pub(in crate::lease) fn options(if_owned: IfOwned) -> AcquireOptions {
    AcquireOptions {
        if_owned,
        ..AcquireOptions::default()
    }
}

/// Makes a new lease ready for batches; runs what was pending.
pub(in crate::lease) async fn ready(lease: &mut Lease) {
    match lease.resume(Marker::Untracked).expect("nothing contradicts") {
        Resume::Idle => {}
        Resume::Rerun(planned) | Resume::Adopt(planned) => {
            drop(lease.permit(&planned).await.expect("it is ours"));
            lease
                .commit(planned, &Receipt::default(), None)
                .await
                .expect("it is durable");
        }
    }
    if next(lease).is_none() {
        lease
            .record_position(at(None, 0), PositionReason::Start)
            .await
            .expect("it is durable");
    }
}

pub(in crate::lease) fn next(lease: &Lease) -> Option<Position> {
    lease.shared_for_tests().look(|owner| owner.log().next().cloned())
}

/// One batch of five records.
pub(in crate::lease) async fn batch(lease: &mut Lease) {
    let planned = lease
        .plan(draft(next(lease).as_ref()))
        .await
        .expect("it is durable");
    drop(lease.permit(&planned).await.expect("it is ours"));
    lease
        .commit(planned, &Receipt::default(), None)
        .await
        .expect("it is durable");
}
