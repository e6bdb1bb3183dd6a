//! Threads for work that does not yield.

use std::future::Future;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::JoinHandle;

/// Where rows are computed and the sink is called: on threads beside the caller's.
///
/// An expression may compute for seconds between two points where it yields, and a sink may block. On the caller's threads
/// that would make the loop deaf to signals, and the checkpoint to whoever asks for it. A caller whose runtime has one
/// thread only wants everything on that one, in a fixed order; so it is there.
pub(super) struct Threads {
    handle: Handle,
    own: Option<Runtime>,
}

impl Threads {
    /// Starts at least two of them: one may be blocked by the sink.
    pub(super) fn start(count: usize) -> Self {
        let callers = Handle::current();
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(count.max(2))
            .thread_name("baton-batch")
            .enable_all();
        let own = match callers.runtime_flavor() {
            RuntimeFlavor::CurrentThread => None,
            _ => builder
                .build()
                .inspect_err(|error| tracing::warn!(%error, "batches run on the loop's threads"))
                .ok(),
        };
        let handle = own.as_ref().map_or(callers, |own| own.handle().clone());
        Self { handle, own }
    }

    pub(super) fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(work)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            // What still computes was abandoned; nobody waits for it.
            own.shutdown_background();
        }
    }
}
