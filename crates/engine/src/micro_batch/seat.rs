//! The sink, in a task of its own.

use baton_core::{Clock, Guarantee, Sink};
use futures::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::threads::Threads;
use crate::{Error, Result};

/// How long an abandoned sink call is waited for before the lease is left to its end.
const FAREWELL: Duration = Duration::from_millis(500);

/// The sink, and where it is when it is at work.
///
/// Each call runs in a task, on [`Threads`] of its own: a sink (or a user's closure in one) that blocks its thread, or rows
/// that take long to compute, must not keep the loop from hearing a stop. The price is that an abandoned call may still be at work when the loop is gone; as long as it is, the
/// lease must not be given up, or two owners could publish at once. [`SinkSeat::vacated`] waits for that.
pub(super) struct SinkSeat {
    /// Absent while a call is at work, and for good after one that was abandoned. Never contended: the mutex makes the
    /// seat `Sync`, which a sink need not be.
    sink: Mutex<Option<Box<dyn Sink>>>,
    pub(super) format: String,
    threads: Threads,
    at_work: Option<(AbortHandle, CancellationToken)>,
}

impl SinkSeat {
    pub(super) fn new(sink: Box<dyn Sink>, format: String, threads: Threads) -> Self {
        Self {
            sink: Mutex::new(Some(sink)),
            format,
            threads,
            at_work: None,
        }
    }

    /// What the sink promises; none while a call is at work.
    pub(super) fn guarantee(&self) -> Option<Guarantee> {
        self.seated().as_ref().map(|sink| sink.guarantee())
    }

    pub(super) fn description(&self) -> String {
        self.seated()
            .as_ref()
            .map_or_else(|| self.format.clone(), |sink| sink.description())
    }

    fn seated(&self) -> MutexGuard<'_, Option<Box<dyn Sink>>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one call.
    ///
    /// # Cancel safety
    /// The call goes on and the sink is lost to this seat; [`SinkSeat::vacated`] ends it.
    pub(super) async fn call<T, F>(&mut self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut Box<dyn Sink>) -> BoxFuture<'a, T> + Send + 'static,
    {
        let mut sink = self.seated().take().ok_or(Error::Panicked { task: "sink" })?;
        let ended = CancellationToken::new();
        // Fires when the task's future is dropped, whether it was done, aborted or panicked.
        let guard = ended.clone().drop_guard();
        let task = self.threads.spawn(async move {
            let _guard = guard;
            let result = work(&mut sink).await;
            (sink, result)
        });
        self.at_work = Some((task.abort_handle(), ended));
        match task.await {
            Ok((sink, result)) => {
                *self.seated() = Some(sink);
                self.at_work = None;
                Ok(result)
            }
            Err(_) => Err(Error::Panicked { task: "sink" }),
        }
    }

    /// Ends a call that was abandoned and waits for it, then drops `lease`; a call that does not end in time keeps the
    /// lease until it does.
    pub(super) async fn vacated<L: Send + 'static>(self, lease: L, clock: &Arc<dyn Clock>) {
        let Some((task, ended)) = self.at_work else {
            return drop(lease);
        };
        task.abort();
        tokio::select! {
            () = ended.cancelled() => drop(lease),
            () = clock.sleep(FAREWELL) => {
                tracing::warn!("the sink does not return from an abandoned call; ownership is kept until it does");
                drop(tokio::spawn(async move {
                    ended.cancelled().await;
                    drop(lease);
                }));
            }
        }
    }
}
