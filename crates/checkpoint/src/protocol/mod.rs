//! The ownership protocol: pure functions from facts to decisions, without I/O.
//!
//! The log is a sequence of write-once slots. An owner claims a checkpoint by appending a [`Body::Fence`] with the next
//! epoch into the first free slot; from then on each batch is a [`Body::Plan`] before it runs and a [`Body::Commit`]
//! after it is published. [`step`] decides what an owner does next, [`Log`] is what a sequence of records means, and
//! [`invariants`] says what must never be seen, whoever wrote the log.
//!
//! ```text
//!            Acquired            LogRead              Appended(Fence)
//! Candidate ─────────► Reading ──────────► Appending ────────────────► Owner ◄──┐ Appended
//!                         │                                             │ │     │
//!                         │ another is named: Unlock                    │ └► Appending  (Position, Plan, Commit)
//!                         ▼                                             ▼
//!                       Ended ◄───────────────────────────────────── Release, LockLost, Abandon, AppendLost
//! ```
//!
//! | log's tail | sink's marker | [`step`] answers [`Event::MarkerRead`] with |
//! |---|---|---|
//! | Commit(c) or nothing | c, none, or none kept | [`Action::Idle`] |
//! | Plan(p) | p, with Plan(p)'s write id | [`Action::Adopt`] |
//! | Plan(p) | p−1, none, or none kept | [`Action::Run`] |
//! | anything | anything else | [`Action::Halt`] |

mod batch;
mod claim;
pub mod invariants;
mod log;
#[cfg(feature = "rocksdb")]
mod permit;
mod record;
mod state;

pub use claim::{Claim, Claimant, Refusal, answer_takeover, claim};
pub use invariants::{Fact, Violation};
pub use log::{Committed, Log, Released};
#[cfg(feature = "rocksdb")]
pub(crate) use permit::permit;
pub use record::{Body, FenceReason, Record};
pub use state::{Action, End, Event, NewFence, Owner, step};

#[cfg(test)]
mod tests;
