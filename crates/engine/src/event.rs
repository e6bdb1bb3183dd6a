//! What a running query tells whoever started it.

use baton_checkpoint::{AcquireEvent, HandOver};
use baton_core::{BatchId, CheckpointId, Clock, Epoch, Gap, Position, RunId, SourceName, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

use crate::progress::StreamingQueryProgress;
use crate::{Error, Overrun};

/// What happens to a query, in the order in which it happens. The `cli` prints these; nothing in the engine prints.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueryEvent {
    /// Something the user should know before the first batch: an option that is ignored, what the sink may repeat.
    Notice {
        /// The source or sink it is about.
        about: String,
        /// The text.
        text: String,
    },
    /// A step on the way to owning the checkpoint: waiting, asked, differences, …
    Acquire(AcquireEvent),
    /// The checkpoint is ours.
    Acquired {
        /// Its id.
        checkpoint: CheckpointId,
        /// Our epoch.
        epoch: Epoch,
        /// This start.
        run: RunId,
        /// The last batch committed before us.
        last_committed: Option<BatchId>,
        /// When that was, by its owner's wall clock.
        last_commit_at: Option<Timestamp>,
    },
    /// A fresh checkpoint: the first batch will start here.
    StartsAt(Position),
    /// A batch that an earlier owner planned and did not commit is run again, with the same range.
    Replaying {
        /// Which batch.
        batch: BatchId,
        /// Where it starts.
        from: Position,
        /// Where it ends.
        until: Position,
    },
    /// A batch that an earlier owner published and did not commit is taken over; its output is not repeated.
    Adopted {
        /// Which batch.
        batch: BatchId,
    },
    /// Planned records no longer exist, and the job goes on behind them (`failOnDataLoss = false`).
    Gap {
        /// In which source.
        source: SourceName,
        /// What is lost.
        gap: Gap,
    },
    /// A batch is committed.
    BatchDone(Arc<StreamingQueryProgress>),
    /// Bytes that are not UTF-8 were cast to text; so many characters were replaced in this batch.
    ReplacedCharacters {
        /// In which batch.
        batch: BatchId,
        /// How many.
        count: u64,
    },
    /// There has been no new data for this long.
    Idle {
        /// How long.
        since: Duration,
    },
    /// A batch took longer than the trigger's interval.
    Overrun(Overrun),
    /// A source does not answer. The query waits for it and goes on by itself.
    SourceWaiting {
        /// Which.
        source: SourceName,
        /// Why.
        error: Error,
        /// For how long by now.
        since: Duration,
    },
    /// A source that did not answer answers again.
    SourceBack {
        /// Which.
        source: SourceName,
        /// How long it did not.
        after: Duration,
    },
    /// The sink did not take the batch; it is asked what it has, and the batch is tried again.
    SinkRetry {
        /// Which batch.
        batch: BatchId,
        /// Why.
        error: Error,
        /// Which attempt comes next.
        attempt: u32,
    },
    /// A source could not be told its position. The checkpoint has it; only tools that look at the source are behind.
    PublishFailed {
        /// Which.
        source: SourceName,
        /// Why.
        error: Error,
    },
    /// The first batch after a hand-over is committed.
    HandedOver(HandOver),
    /// Somebody asked for the checkpoint; the running batch is finished first.
    HandOverRequested {
        /// Who, in words.
        by: String,
    },
    /// Whoever asked has given up; the query goes on.
    HandOverWithdrawn,
    /// A stop was asked for; the running batch is finished first.
    Stopping,
    /// The running batch was abandoned; the next start runs it again.
    Abandoned {
        /// Which batch, if it was planned.
        batch: Option<BatchId>,
        /// Why.
        why: AbandonReason,
    },
}

/// Why a batch was abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbandonReason {
    /// It was asked for.
    Asked,
    /// A stop's `stopTimeout` passed.
    StopTimeout,
}

/// Where events go. A consumer that has gone is no failure; one that is slow slows the query for a moment at most.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    sender: mpsc::Sender<QueryEvent>,
    clock: Arc<dyn Clock>,
}

/// How long a full channel is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

impl Events {
    pub(crate) const fn new(sender: mpsc::Sender<QueryEvent>, clock: Arc<dyn Clock>) -> Self {
        Self { sender, clock }
    }

    pub(crate) async fn emit(&self, event: QueryEvent) {
        let Err(mpsc::error::TrySendError::Full(event)) = self.sender.try_send(event) else {
            return;
        };
        tokio::select! {
            sent = self.sender.send(event) => drop(sent),
            () = self.clock.sleep(PATIENCE) => tracing::warn!("an event was dropped: nobody reads them"),
        }
    }
}
