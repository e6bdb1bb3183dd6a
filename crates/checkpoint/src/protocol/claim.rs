//! Who may claim a checkpoint, and who may ask for it.

use baton_core::OwnerId;
use std::fmt;

use super::log::Log;
use super::record::FenceReason;

/// What a candidate that holds the lock knows beside the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// Who it is.
    pub id: OwnerId,
    /// Whether it ended the owner before.
    pub forced: bool,
    /// Whether the successor that a release named is known to be gone, or has not come in time.
    pub successor_is_gone: bool,
}

/// Whether a candidate that holds the lock may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Claim {
    /// Write a fence.
    Fence {
        /// Why it may.
        reason: FenceReason,
        /// The version that is replaced.
        replaces: Option<String>,
    },
    /// The owner before released to somebody else, who is on the way: let go of the lock.
    HoldBack {
        /// Who.
        successor: OwnerId,
    },
}

/// Decides whether a candidate that holds the lock may claim the checkpoint (C1, C2, C3 and C5 of the design).
pub fn claim(log: &Log, candidate: Claimant) -> Claim {
    let Some(owner) = log.owner() else {
        return Claim::Fence {
            reason: FenceReason::Fresh,
            replaces: None,
        };
    };
    let before = Some(owner.version.clone());
    match log.released() {
        _ if candidate.forced => Claim::Fence {
            reason: FenceReason::Forced,
            replaces: before,
        },
        None => Claim::Fence {
            reason: FenceReason::Expired,
            replaces: None,
        },
        Some(released) => match released.successor {
            Some(named) if named == candidate.id => Claim::Fence {
                reason: FenceReason::Released,
                replaces: before,
            },
            // A take-over outranks a waiter, whatever order the kernel wakes them in.
            Some(successor) if !candidate.successor_is_gone => Claim::HoldBack { successor },
            _ => Claim::Fence {
                reason: FenceReason::Released,
                replaces: None,
            },
        },
    }
}

/// Why an owner does not hand over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Its job does not allow it.
    Policy,
    /// Both have the same version: nothing would change.
    SameVersion,
    /// The candidate's version was replaced before: it waits instead.
    Replaced,
    /// Another candidate was first.
    OtherCandidate(String),
    /// The owner is leaving already.
    Leaving,
}

impl Refusal {
    /// Whether the candidate waits instead of giving up.
    #[must_use]
    pub const fn degrades(&self) -> bool {
        match self {
            Self::SameVersion | Self::Replaced | Self::Leaving => true,
            Self::Policy | Self::OtherCandidate(_) => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy => f.write_str("its job says handover = \"deny\""),
            Self::SameVersion => f.write_str("the owner has the same version"),
            Self::Replaced => f.write_str("this version was replaced by a take-over before"),
            Self::OtherCandidate(who) => write!(f, "it hands over to {who}"),
            Self::Leaving => f.write_str("it is leaving already"),
        }
    }
}

/// Decides what the owner of `log` answers to a take-over request of `version`. Orchestrators restart a process that
/// exited with 0: without the first two rules, two versions under one would replace each other for ever.
///
/// # Errors
/// Why not.
pub fn answer_takeover(log: &Log, version: &str, handover: bool) -> Result<(), Refusal> {
    if log.owner().is_some_and(|owner| owner.version == version) {
        return Err(Refusal::SameVersion);
    }
    if log.replaced().contains(version) {
        return Err(Refusal::Replaced);
    }
    if handover { Ok(()) } else { Err(Refusal::Policy) }
}
