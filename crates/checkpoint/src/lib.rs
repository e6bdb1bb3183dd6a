//! Exclusive ownership of a checkpoint, its write-ahead log, and the hand-over between owners.

pub mod codec;
mod error;
mod handover;
#[cfg(feature = "rocksdb")]
mod layout;
#[cfg(feature = "rocksdb")]
mod lease;
mod location;
#[cfg(feature = "object-store")]
pub mod object;
mod ownership;
pub mod protocol;
mod recovery;
mod repair;
mod shape;
mod stamp;
#[cfg(feature = "rocksdb")]
mod status;
#[cfg(feature = "rocksdb")]
mod store;
#[cfg(test)]
mod testing;

pub use error::{Error, Result};
pub use handover::HandOver;
#[cfg(feature = "rocksdb")]
pub use lease::{Lease, Show, StopOutcome, acquire, inspect, preview, show, stop};
pub use location::Location;
pub use ownership::{
    AcquireEvent, AcquireOptions, Candidate, Deps, IfOwned, OnDrainTimeout, OwnerInfo, Report, Request,
};
pub use recovery::{HandedOverBy, PlanDraft, Planned, PositionReason, Recovery, Resume};
pub use repair::RepairError;
#[cfg(feature = "rocksdb")]
pub use repair::{Check, Damage, Fork, Overlap, Rewind, Verified, fork, rewind, verify};
#[cfg(any(test, feature = "rocksdb"))]
pub use repair::{Move, Offsets, RewindTo};
pub use shape::{Comparison, JobShape};
#[cfg(feature = "rocksdb")]
pub use status::{Standby, State, Status};
