//! Who may end a batch, and how: stops, time-outs, requests of other owners.

use baton_checkpoint::{Lease, OwnerInfo, Request};
use baton_core::Clock;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::event::{AbandonReason, Events, QueryEvent};
use crate::query::Shared;

/// The lease, and everything that may ask the query to end while it holds it.
///
/// All waiting of the loop goes through [`Helm::watch`], so that no wait, however long, makes the query deaf.
pub(super) struct Helm {
    pub(super) lease: Lease,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: Events,
    pub(super) shared: Arc<Shared>,
    stop_timeout: Duration,
    /// On the monotonic clock: when a stop's patience ends. Set once the stop has been noticed.
    deadline: Option<Duration>,
    /// Who has asked for the checkpoint and has not withdrawn.
    pub(super) successor: Option<OwnerInfo>,
    /// The lease hears no requests any more.
    deaf: bool,
}

/// Whether a wait may be cut short by a polite request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// A batch is running: finish it first.
    Finish,
    /// Nothing is running: leave at once.
    Interrupt,
}

/// How a watched wait ended.
#[derive(Debug)]
#[must_use]
pub(super) enum Watched<T> {
    /// By itself.
    Done(T),
    /// By a stop or a hand-over request, where [`Patience::Interrupt`] allows it.
    Interrupted,
    /// By somebody who does not wait for the batch.
    Abandoned(AbandonReason),
}

impl Helm {
    pub(super) fn new(
        lease: Lease,
        clock: Arc<dyn Clock>,
        events: Events,
        shared: Arc<Shared>,
        stop_timeout: Duration,
    ) -> Self {
        Self {
            lease,
            clock,
            events,
            shared,
            stop_timeout,
            deadline: None,
            successor: None,
            deaf: false,
        }
    }

    /// Whether the query should end after the running batch.
    pub(super) fn is_leaving(&self) -> bool {
        self.shared.stop.is_cancelled() || self.shared.abandon.is_cancelled() || self.successor.is_some()
    }

    /// Takes requests that have come in, without waiting for any.
    pub(super) async fn look(&mut self) {
        while let Ok(request) = self.lease.requests().try_recv() {
            self.heed(request).await;
        }
    }

    /// Waits for `work`, but hears everything that may end it.
    ///
    /// # Cancel safety
    /// `work` is dropped unless it is done.
    pub(super) async fn watch<F: Future>(&mut self, patience: Patience, work: F) -> Watched<F::Output> {
        tokio::pin!(work);
        let shared = Arc::clone(&self.shared);
        loop {
            if patience == Patience::Interrupt && self.is_leaving() {
                return Watched::Interrupted;
            }
            let left = self
                .deadline
                .map(|deadline| deadline.saturating_sub(self.clock.elapsed()));
            let clock = Arc::clone(&self.clock);
            let timeout = async move {
                match left {
                    Some(left) => clock.sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = shared.abandon.cancelled() => return Watched::Abandoned(AbandonReason::Asked),
                done = &mut work => return Watched::Done(done),
                () = timeout => return Watched::Abandoned(AbandonReason::StopTimeout),
                () = shared.stop.cancelled(), if self.deadline.is_none() => {
                    self.deadline = Some(self.clock.elapsed() + self.stop_timeout);
                    self.events.emit(QueryEvent::Stopping).await;
                }
                request = self.lease.requests().recv(), if !self.deaf => match request {
                    Some(request) => self.heed(request).await,
                    None => self.deaf = true,
                },
            }
        }
    }

    async fn heed(&mut self, request: Request) {
        match request {
            Request::HandOver { candidate } => {
                self.events
                    .emit(QueryEvent::HandOverRequested {
                        by: candidate.to_string(),
                    })
                    .await;
                self.successor = Some(candidate);
            }
            Request::HandOverWithdrawn => {
                self.successor = None;
                self.events.emit(QueryEvent::HandOverWithdrawn).await;
            }
            Request::Stop { now: false } => self.shared.stop.cancel(),
            Request::Stop { now: true } => self.shared.abandon.cancel(),
        }
    }
}
