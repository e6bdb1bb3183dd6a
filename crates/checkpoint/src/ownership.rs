//! Who wants a checkpoint, how much, and what happens on the way.

use baton_core::{BatchId, Clock, Epoch, OwnerId, Position, Rng, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, JobShape, Result};

/// What the checkpoint needs from outside: time and randomness.
#[derive(Clone, Debug)]
pub struct Deps {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub rng: Arc<Rng>,
}

/// A process that wants the checkpoint.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Names this start of this process.
    pub owner: OwnerId,
    /// The query's name.
    pub job: String,
    /// Free text, shown to people and compared to prevent ping-pong.
    pub version: String,
    /// What the job is.
    pub shape: JobShape,
    /// Whether it will honour take-over requests once it is the owner.
    pub handover: bool,
}

/// What to do when somebody else owns the checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfOwned {
    /// End at once, saying who.
    #[default]
    Fail,
    /// Wait until the owner releases or dies.
    Wait,
    /// Ask the owner to finish its batch and release.
    Takeover,
    /// End the owner.
    Force,
}

impl FromStr for IfOwned {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "fail" => Ok(Self::Fail),
            "wait" => Ok(Self::Wait),
            "takeover" => Ok(Self::Takeover),
            "force" => Ok(Self::Force),
            _ => Err(Error::Option {
                name: "if-owned",
                text: text.to_owned(),
                allowed: "fail, wait, takeover or force",
            }),
        }
    }
}

impl fmt::Display for IfOwned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fail => "fail",
            Self::Wait => "wait",
            Self::Takeover => "takeover",
            Self::Force => "force",
        })
    }
}

/// What to do when an owner that was asked does not release in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnDrainTimeout {
    /// Withdraw; the owner goes on.
    #[default]
    #[serde(rename = "giveup")]
    GiveUp,
    /// End the owner.
    #[serde(rename = "force")]
    Force,
}

impl FromStr for OnDrainTimeout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "giveup" => Ok(Self::GiveUp),
            "force" => Ok(Self::Force),
            _ => Err(Error::Option {
                name: "on-drain-timeout",
                text: text.to_owned(),
                allowed: "giveup or force",
            }),
        }
    }
}

/// How a candidate goes about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireOptions {
    /// When somebody else owns the checkpoint.
    pub if_owned: IfOwned,
    /// How long to wait for an owner that was not asked; for ever by default.
    pub wait_timeout: Option<Duration>,
    /// How long an owner that was asked may take to release.
    pub drain_timeout: Duration,
    /// What to do then.
    pub on_drain_timeout: OnDrainTimeout,
    /// Go on although the job differs from the one that the checkpoint knows.
    pub accept_changes: bool,
    /// How many committed batches the log keeps (`minBatchesToRetain`).
    pub min_batches_to_retain: u64,
    /// How long an owner on shared storage may be silent before others may think it dead. Candidates wait for the longer of
    /// the owner's and their own. A directory needs none: the kernel knows who lives.
    pub lease: Duration,
    /// The directory belongs to another program, which runs while it is owned: it may hold anything, and what this crate
    /// keeps there stays out of that program's way. Give the checkpoint up by `Lease::surrender`.
    pub guard: bool,
}

impl Default for AcquireOptions {
    fn default() -> Self {
        Self {
            if_owned: IfOwned::Fail,
            wait_timeout: None,
            drain_timeout: Duration::from_secs(60),
            on_drain_timeout: OnDrainTimeout::GiveUp,
            accept_changes: false,
            min_batches_to_retain: 100,
            lease: Duration::from_secs(10),
            guard: false,
        }
    }
}

/// A process that owns, owned or wants a checkpoint, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerInfo {
    /// Names its start.
    pub id: OwnerId,
    /// Its machine.
    pub host: String,
    /// Its process id, in its own namespace.
    pub pid: u32,
    /// The version of its job.
    pub version: String,
    /// The epoch it owns or owned; absent for a candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
    /// Since when it owns, or waits.
    #[serde(with = "crate::stamp")]
    pub since: Timestamp,
}

impl fmt::Display for OwnerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host, pid, version, ..
        } = self;
        write!(f, "{version} (pid {pid} on {host}")?;
        if let Some(epoch) = self.epoch {
            write!(f, ", epoch {epoch}")?;
        }
        write!(f, ", since {})", crate::stamp::format(self.since))
    }
}

/// What happens on the way to owning a checkpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AcquireEvent {
    /// The job differs from the one that the checkpoint knows.
    Difference {
        /// What may differ.
        notes: Vec<String>,
        /// What was accepted by `--accept-changes`.
        refusals: Vec<String>,
    },
    /// Waits for the holder; said at once and every 30 s.
    Waiting {
        /// Who owns it; absent when nobody says.
        holder: Option<OwnerInfo>,
        /// In words.
        why: String,
    },
    /// A take-over becomes a wait.
    Degraded {
        /// In words.
        reason: String,
    },
    /// The holder was asked to hand over.
    Asked {
        /// Who.
        holder: OwnerInfo,
    },
    /// The holder will hand over after its running batch. Where it ends is a guess until then.
    Accepted {
        /// The batch it finishes; absent when it is idle.
        batch: Option<BatchId>,
        /// Where the next batch will start, if nothing happens to that one.
        end: Position,
    },
    /// The holder was ended.
    Forced {
        /// Who.
        holder: OwnerInfo,
    },
}

/// What others ask of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Finish the running batch and release to this candidate.
    HandOver {
        /// Who asks.
        candidate: OwnerInfo,
    },
    /// Whoever asked has gone; go on.
    HandOverWithdrawn,
    /// End.
    Stop {
        /// Without finishing the running batch.
        now: bool,
    },
}

/// What an owner tells `status`, beyond what its log records say. Hints: never needed, and coalesced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How far the sources are ahead; `None` keeps what was reported before.
    pub lag: Option<Position>,
    /// What goes wrong at the moment.
    pub last_error: Option<String>,
}
