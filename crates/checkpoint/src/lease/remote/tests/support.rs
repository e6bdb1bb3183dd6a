//! One checkpoint in a store in memory, and a time that passes when everybody waits.

use baton_core::{Clock, Rng, Timestamp};
use futures::StreamExt;
use futures::future::BoxFuture;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

use crate::lease::tests::support::{self, Seeking};
use crate::object::Place;
use crate::{AcquireOptions, Candidate, Deps, Error, JobShape, Lease, Location, Status, acquire, inspect};
pub(super) use support::{batch, next, ready};

/// So many turns without progress mean that everybody waits.
const TURNS: u32 = 100;

#[derive(Debug, Default)]
struct Waiting {
    now: Duration,
    sleepers: Vec<(Duration, oneshot::Sender<()>)>,
}

/// Jumps to whoever wakes first.
#[derive(Clone, Debug, Default)]
struct Jumping(Arc<Mutex<Waiting>>);

impl Jumping {
    async fn pass(&self) {
        loop {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
            let mut waiting = self.0.lock().expect("no panic");
            waiting.sleepers.retain(|(_, wake)| !wake.is_closed());
            if let Some(first) = waiting.sleepers.iter().map(|(at, _)| *at).min() {
                waiting.now = waiting.now.max(first);
                let now = waiting.now;
                let (due, later) = waiting.sleepers.drain(..).partition(|(at, _)| *at <= now);
                waiting.sleepers = later;
                let due: Vec<(Duration, oneshot::Sender<()>)> = due;
                for (_, wake) in due {
                    let _gone = wake.send(());
                }
            }
        }
    }
}

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        Timestamp(i64::try_from(self.elapsed().as_millis()).expect("not so long"))
    }

    fn elapsed(&self) -> Duration {
        self.0.lock().expect("no panic").now
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (wake, woken) = oneshot::channel();
        let mut waiting = self.0.lock().expect("no panic");
        let at = waiting.now + duration;
        waiting.sleepers.push((at, wake));
        Box::pin(async move { drop(woken.await) })
    }
}

pub(super) struct Lab {
    pub(super) location: Location,
    pub(super) deps: Deps,
    store: Arc<InMemory>,
}

impl Lab {
    pub(super) fn elapsed(&self) -> Duration {
        self.deps.clock.elapsed()
    }

    pub(super) async fn sleep(&self, ms: u64) {
        self.deps.clock.sleep(Duration::from_millis(ms)).await;
    }

    pub(super) fn seek(&self, version: &str, options: AcquireOptions) -> Seeking {
        let candidate = Candidate {
            owner: baton_core::OwnerId(self.deps.rng.uuid()),
            job: "job".into(),
            version: version.into(),
            shape: JobShape {
                job: "job".into(),
                ..JobShape::default()
            },
            handover: true,
        };
        let (sender, events) = mpsc::channel(64);
        let (location, deps) = (self.location.clone(), self.deps.clone());
        let task = tokio::spawn(async move { acquire(&location, candidate, options, &deps, sender).await });
        Seeking { task, events }
    }

    pub(super) async fn acquire(&self, version: &str) -> Result<Lease, Error> {
        self.seek(version, AcquireOptions::default()).done().await
    }

    pub(super) async fn owner(&self, version: &str, batches: u64) -> Lease {
        let mut lease = self.acquire(version).await.expect("it is free");
        ready(&mut lease).await;
        for _ in 0..batches {
            batch(&mut lease).await;
        }
        lease
    }

    pub(super) async fn status(&self) -> Status {
        inspect(&self.location, &self.deps).await.expect("a log")
    }

    /// How many objects are in a folder.
    pub(super) async fn objects(&self, folder: &str) -> usize {
        self.store
            .list(Some(&Path::from(format!("jobs/one/{folder}"))))
            .count()
            .await
    }
}

/// Runs a test while time passes.
#[track_caller]
pub(super) fn run(test: impl AsyncFnOnce(&Lab)) {
    let clock = Jumping::default();
    let store = Arc::new(InMemory::new());
    let place = Place::new(
        Arc::clone(&store) as Arc<dyn ObjectStore>,
        Path::from("jobs/one"),
        "s3://bucket/jobs/one",
    );
    let lab = Lab {
        location: Location::from(place),
        deps: Deps {
            clock: Arc::new(clock.clone()),
            rng: Arc::new(Rng::seeded(1)),
        },
        store,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime of one thread").block_on(async {
        tokio::select! {
            () = test(&lab) => {}
            () = clock.pass() => {}
        }
    });
}
