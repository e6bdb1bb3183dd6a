//! A checkpoint in a temporary directory, used through the public interface alone.

use baton_core::{Marker, OwnerId, Position, Receipt, Rng, TokioClock};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::testing::{at, draft};
use crate::{
    AcquireOptions, Candidate, Deps, JobShape, Lease, Location, PositionReason, Result, Resume, acquire,
    preview, show,
};

pub(super) struct Lab {
    dir: TempDir,
    pub(super) deps: Deps,
}

impl Lab {
    pub(super) fn new() -> Self {
        Self {
            dir: TempDir::new().expect("a directory"),
            deps: Deps {
                clock: Arc::new(TokioClock::start()),
                rng: Arc::new(Rng::from_os()),
            },
        }
    }

    /// A checkpoint whose owner has committed so many batches of five records, and released.
    pub(super) async fn released(batches: u64) -> Self {
        let lab = Self::new();
        lab.owner(batches).await.release(None).await.expect("idle");
        lab
    }

    pub(super) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn path(&self) -> PathBuf {
        self.root().join("checkpoint")
    }

    pub(super) fn location(&self) -> Location {
        self.place("checkpoint")
    }

    pub(super) fn place(&self, name: &str) -> Location {
        let path = self.root().join(name);
        Location::parse(path.to_str().expect("a plain path")).expect("a local path")
    }

    /// Owns a checkpoint as a job of one shape.
    pub(super) async fn own(&self, location: &Location) -> Lease {
        self.want(location, AcquireOptions::default())
            .await
            .expect("it is free")
    }

    /// What a start on the checkpoint comes to.
    pub(super) async fn try_own(&self) -> Result<()> {
        self.want(&self.location(), AcquireOptions::default())
            .await
            .map(drop)
    }

    async fn want(&self, location: &Location, options: AcquireOptions) -> Result<Lease> {
        let candidate = Candidate {
            owner: OwnerId(self.deps.rng.uuid()),
            job: "job".into(),
            version: "v1".into(),
            shape: shape(),
            handover: true,
        };
        let (events, _nobody_listens) = mpsc::channel(1);
        acquire(location, candidate, options, &self.deps, events).await
    }

    /// Owns the checkpoint and commits so many more batches.
    pub(super) async fn owner(&self, batches: u64) -> Lease {
        self.owner_that_keeps(100, batches).await
    }

    /// The same, retaining so many in the log.
    pub(super) async fn owner_that_keeps(&self, keep: u64, batches: u64) -> Lease {
        let options = AcquireOptions {
            min_batches_to_retain: keep,
            ..AcquireOptions::default()
        };
        let mut lease = self.want(&self.location(), options).await.expect("it is free");
        let Resume::Idle = lease.resume(Marker::Untracked).expect("nothing contradicts") else {
            panic!("nothing is pending");
        };
        let mut next = lease.recovery().next.clone();
        if next.is_none() {
            let start = at(None, 0);
            lease
                .record_position(start.clone(), PositionReason::Start)
                .await
                .expect("it is durable");
            next = Some(start);
        }
        for _ in 0..batches {
            let planned = lease.plan(draft(next.as_ref())).await.expect("it is durable");
            next = Some(planned.until.clone());
            drop(lease.permit(&planned).await.expect("it is ours"));
            lease
                .commit(planned, &Receipt::default(), None)
                .await
                .expect("it is durable");
        }
        lease
    }

    /// The same, with one more batch planned; the owner has ended in the middle of it.
    pub(super) async fn interrupted(batches: u64) -> Self {
        let lab = Self::new();
        let mut lease = lab.owner(batches).await;
        let next = at(None, i64::try_from(batches).expect("few") * 5);
        lease.plan(draft(Some(&next))).await.expect("it is durable");
        drop(lease);
        lab
    }

    pub(super) async fn records(&self, location: &Location) -> Vec<Value> {
        show(location, &self.deps).await.expect("a log").records
    }

    /// Where the next start goes on.
    pub(super) async fn next(&self, location: &Location) -> Option<Position> {
        preview(location, &self.deps)
            .await
            .expect("a log")
            .expect("there is one")
            .next
    }
}

pub(super) fn shape() -> JobShape {
    JobShape {
        job: "job".into(),
        sql: "SELECT 1".into(),
        ..JobShape::default()
    }
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("it is there").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}

/// Every file of a directory with its bytes, and every directory in it.
pub(super) fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).expect("it is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path.clone());
                found.push((path, Vec::new()));
            } else {
                let bytes = fs::read(&path).unwrap_or_default();
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    found
}
