use async_trait::async_trait;
use baton_core::Rng;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What goes wrong, in per cent of all requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) rate: u64,
    pub(super) ignores_conditions: bool,
    pub(super) knows_no_conditions: bool,
}

/// Requests that came in.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) puts: AtomicUsize,
    pub(super) gets: AtomicUsize,
    pub(super) lists: AtomicUsize,
    pub(super) deletes: AtomicUsize,
}

/// A store in memory that counts, and does not always do or say what it should.
#[derive(Clone, Debug)]
pub(super) struct FaultyStore {
    pub(super) inner: Arc<InMemory>,
    pub(super) counts: Arc<Counts>,
    faults: Faults,
    rng: Arc<Rng>,
    /// When set, only so many more removals are done.
    pub(super) removals_left: Option<Arc<AtomicUsize>>,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    LostBefore,
    LostAfter,
    Late,
    Slow,
    Conflict,
    Precondition,
    Absent,
    Throttled,
}

fn generic(text: &'static str) -> Error {
    Error::Generic {
        store: "faulty",
        source: text.into(),
    }
}

fn lost() -> Error {
    generic("Server returned non-2xx status code: 500 Internal Server Error: ")
}

fn throttled() -> Error {
    generic("Server returned non-2xx status code: 503 Service Unavailable: <Code>SlowDown</Code>")
}

fn absent(path: &Path) -> Error {
    Error::NotFound {
        path: path.to_string(),
        source: "injected".into(),
    }
}

impl FaultyStore {
    pub(super) fn new(faults: Faults, seed: u64) -> Self {
        Self {
            inner: Arc::new(InMemory::new()),
            counts: Arc::default(),
            faults,
            rng: Arc::new(Rng::seeded(seed)),
            removals_left: None,
        }
    }

    /// `[puts, gets, lists, removals]` since the last time.
    pub(super) fn requests(&self) -> [usize; 4] {
        let Counts {
            puts,
            gets,
            lists,
            deletes,
        } = &*self.counts;
        [puts, gets, lists, deletes].map(|count| count.swap(0, Ordering::Relaxed))
    }

    fn fault(&self) -> Fault {
        if self.rng.next_u64() % 100 >= self.faults.rate {
            return Fault::None;
        }
        let all = [
            Fault::LostBefore,
            Fault::LostAfter,
            Fault::Late,
            Fault::Slow,
            Fault::Conflict,
            Fault::Precondition,
            Fault::Absent,
            Fault::Throttled,
        ];
        all[usize::try_from(self.rng.next_u64() % 8).expect("less than 8")]
    }

    async fn turns(&self) {
        for _ in 0..self.rng.next_u64() % 9000 {
            tokio::task::yield_now().await;
        }
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        self.counts.puts.fetch_add(1, Ordering::Relaxed);
        if options.mode == PutMode::Create && self.faults.knows_no_conditions {
            return Err(Error::NotImplemented {
                operation: "put".into(),
                implementer: "faulty".into(),
            });
        }
        if self.faults.ignores_conditions {
            options.mode = PutMode::Overwrite;
        }
        tokio::task::yield_now().await;
        match self.fault() {
            Fault::None => self.inner.put_opts(path, payload, options).await,
            Fault::LostBefore => Err(lost()),
            Fault::LostAfter => {
                self.inner.put_opts(path, payload, options).await?;
                Err(lost())
            }
            Fault::Late => {
                // Applied when nobody waits for it any more.
                let (store, path) = (self.clone(), path.clone());
                tokio::spawn(async move {
                    store.turns().await;
                    store.inner.put_opts(&path, payload, options).await
                });
                Err(lost())
            }
            Fault::Slow => {
                self.turns().await;
                let done = self.inner.put_opts(path, payload, options).await;
                self.turns().await;
                done
            }
            Fault::Conflict => Err(Error::AlreadyExists {
                path: path.to_string(),
                source: "409 injected".into(),
            }),
            Fault::Precondition => Err(Error::Precondition {
                path: path.to_string(),
                source: "412 injected".into(),
            }),
            Fault::Absent => Err(absent(path)),
            Fault::Throttled => Err(throttled()),
        }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.counts.gets.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        match self.fault() {
            Fault::None | Fault::Conflict | Fault::Precondition => self.inner.get_opts(path, options).await,
            Fault::LostBefore | Fault::LostAfter | Fault::Late => Err(lost()),
            Fault::Slow => {
                let found = self.inner.get_opts(path, options).await;
                self.turns().await;
                found
            }
            Fault::Absent => Err(absent(path)),
            Fault::Throttled => Err(throttled()),
        }
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.counts.deletes.fetch_add(1, Ordering::Relaxed);
        let Some(left) = self.removals_left.clone() else {
            return self.inner.delete_stream(paths);
        };
        let inner = Arc::clone(&self.inner);
        let removing = paths.and_then(move |path| {
            let (inner, left) = (Arc::clone(&inner), Arc::clone(&left));
            async move {
                let may = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                may.map_err(|_| lost())?;
                object_store::ObjectStoreExt::delete(&*inner, &path).await?;
                Ok(path)
            }
        });
        removing.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counts.lists.fetch_add(1, Ordering::Relaxed);
        match self.fault() {
            Fault::LostBefore | Fault::Throttled => futures::stream::iter([Err(lost())]).boxed(),
            _ => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
