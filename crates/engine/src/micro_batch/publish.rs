//! Telling the sources' outside where the query is.

use baton_core::{Claimant, Clock, ErrorKind, Position};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::plan::SourceSeat;
use crate::Error;
use crate::event::{Events, QueryEvent};

/// How long a leaving owner waits for the last position to get out. A release must not hang on a broker.
const FAREWELL: Duration = Duration::from_millis(250);

/// Publishes positions beside the loop.
///
/// A batch does not wait for it, and when positions come faster than they get out, only the newest is published: the
/// outside is for tools that look at it, the checkpoint for going on.
pub(super) struct Publisher {
    position: watch::Sender<Option<Position>>,
    /// Another checkpoint has taken a source's outside name.
    lost: oneshot::Receiver<Error>,
    task: JoinHandle<()>,
}

impl Publisher {
    pub(super) fn start(sources: Vec<SourceSeat>, claimant: Claimant, events: Events) -> Self {
        let (position, news) = watch::channel(None);
        let (loss, lost) = oneshot::channel();
        let task = tokio::spawn(async move {
            if let Some(error) = publish_all(sources, claimant, events, news).await {
                drop(loss.send(error));
            }
        });
        Self { position, lost, task }
    }

    pub(super) fn publish(&self, position: Position) {
        self.position.send_replace(Some(position));
    }

    /// Whether another checkpoint has taken a source's outside name since: two jobs would go on reading the same.
    pub(super) fn lost(&mut self) -> Option<Error> {
        self.lost.try_recv().ok()
    }

    /// Publishes what is left, for a moment at most, and ends.
    pub(super) async fn finish(self, clock: &Arc<dyn Clock>) {
        drop(self.position);
        let abort = self.task.abort_handle();
        tokio::select! {
            ended = self.task => drop(ended),
            () = clock.sleep(FAREWELL) => abort.abort(),
        }
    }
}

/// Until the sender is gone, or an outside name is another checkpoint's.
async fn publish_all(
    sources: Vec<SourceSeat>,
    claimant: Claimant,
    events: Events,
    mut news: watch::Receiver<Option<Position>>,
) -> Option<Error> {
    // One event per outage and source; the next success ends it.
    let mut failing = vec![false; sources.len()];
    // Once the sender is gone, `changed` still reports a last value that has not been seen.
    while news.changed().await.is_ok() {
        let Some(position) = news.borrow_and_update().clone() else {
            continue;
        };
        for (seat, failing) in sources.iter().zip(&mut failing) {
            let Some(until) = position.source(&seat.name) else {
                continue;
            };
            match seat.source.publish(&claimant, until).await {
                Ok(()) => *failing = false,
                Err(fault) if fault.kind == ErrorKind::Held => {
                    return Some(Error::source_failed(&seat.name, fault));
                }
                Err(_) if *failing => {}
                Err(fault) => {
                    *failing = true;
                    let error = Error::source_failed(&seat.name, fault);
                    events
                        .emit(QueryEvent::PublishFailed {
                            source: seat.name.clone(),
                            error,
                        })
                        .await;
                }
            }
        }
    }
    None
}
