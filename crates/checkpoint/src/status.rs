//! What a checkpoint says of itself, as `baton status` prints it.

use baton_core::{BatchId, CheckpointId, OwnerId, Position, Timestamp};
use serde::{Deserialize, Serialize};

use crate::OwnerInfo;
use crate::protocol::Log;

/// The state of a checkpoint; serialises to the JSON of `baton status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// The location.
    pub checkpoint: String,
    /// Its id; absent while it is empty.
    pub checkpoint_id: Option<CheckpointId>,
    /// The query's name.
    pub job: Option<String>,
    /// Whether somebody owns it.
    pub state: State,
    /// Who owns it now.
    pub owner: Option<OwnerInfo>,
    /// Who waits for it.
    pub standby: Option<Standby>,
    /// The last batch that was planned.
    pub last_planned_batch: Option<BatchId>,
    /// The last batch that was committed.
    pub last_committed_batch: Option<BatchId>,
    /// When.
    #[serde(with = "crate::stamp::optional")]
    pub last_commit_at: Option<Timestamp>,
    /// The next record each source will read, after the last committed batch.
    pub offsets: Option<Position>,
    /// How far the sources are ahead, as the owner last saw it.
    pub lag: Option<Position>,
    /// When it saw that.
    #[serde(with = "crate::stamp::optional")]
    pub lag_at: Option<Timestamp>,
    /// Whether the owner answers; absent when there is none.
    pub responding: Option<bool>,
    /// What goes or went wrong.
    pub last_error: Option<String>,
    /// Whether it is guarded for another program, of whose batches nothing is known here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guard: bool,
}

/// Whether somebody owns a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// Nobody ever has.
    Empty,
    /// Its owner is alive.
    Running,
    /// Its owner has released it.
    Released,
    /// Its owner is gone without releasing it; the next start resumes.
    Interrupted,
    /// On shared storage: its owner was not seen alive just now, but it has not been silent for its whole lease.
    Unknown,
}

/// Who waits for a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Standby {
    /// Its machine.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Since when.
    #[serde(with = "crate::stamp")]
    pub waiting_since: Timestamp,
}

/// The status file: the status, and what a later start compares the log with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hint {
    #[serde(flatten)]
    pub(crate) status: Status,
    /// The last slot that was acknowledged.
    pub(crate) seq: Option<u64>,
    /// Who is expected after a release.
    pub(crate) successor: Option<OwnerInfo>,
}

impl Status {
    /// A checkpoint that nobody ever owned.
    pub(crate) fn empty(checkpoint: String) -> Self {
        Self {
            checkpoint,
            checkpoint_id: None,
            job: None,
            state: State::Empty,
            owner: None,
            standby: None,
            last_planned_batch: None,
            last_committed_batch: None,
            last_commit_at: None,
            offsets: None,
            lag: None,
            lag_at: None,
            responding: None,
            last_error: None,
            guard: false,
        }
    }

    /// What the log says.
    pub(crate) fn of_log(checkpoint: String, id: CheckpointId, log: &Log) -> Self {
        let committed = log.committed();
        let mut status = Self::empty(checkpoint);
        let Some(_) = log.owner() else { return status };
        status.checkpoint_id = Some(id);
        status.job = log.shape().map(|shape| shape.job.clone());
        status.state = if log.released().is_some() {
            State::Released
        } else {
            State::Interrupted
        };
        let last = committed.map(|committed| committed.batch);
        status.last_planned_batch = log.pending().map(|pending| pending.batch).or(last);
        status.last_committed_batch = last;
        status.last_commit_at = committed.map(|committed| committed.at);
        status.offsets = log.next().cloned();
        status
    }
}

impl Standby {
    pub(crate) fn of(info: &OwnerInfo) -> Self {
        Self {
            host: info.host.clone(),
            pid: info.pid,
            version: info.version.clone(),
            waiting_since: info.since,
        }
    }
}

impl Hint {
    pub(crate) fn expects(&self, id: OwnerId) -> Option<&OwnerInfo> {
        self.successor.as_ref().filter(|successor| successor.id == id)
    }
}
