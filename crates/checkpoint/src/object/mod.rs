//! A checkpoint on shared storage: the log as objects that are created once, and the hints beside it.
//!
//! | part | what it is |
//! |---|---|
//! | [`slot`] | one conditional append, decided without I/O; the truth table |
//! | [`log`], [`snapshot`] | the slots, what they mean in one object, and the removal of old ones |
//! | [`probe`](probe()) | refuses a store that does not keep its word |
//! | [`register`], [`observer`] | the owner's renewal counter, and who judges it: pure, by its own clock |
//! | [`mailbox`] | hand-over requests |
//! | [`location`] | where it is, and with which credentials |
//!
//! The log is the fence; the rest are hints. **Requests**: one PUT for each slot, so one per batch in the steady state when
//! the commit carries the next plan; one PUT and one LIST per renewal; an idle standby one GET per second.

pub mod location;
pub mod log;
pub mod mailbox;
mod names;
pub mod observer;
mod probe;
pub mod register;
mod requests;
pub mod slot;
pub mod snapshot;

#[cfg(test)]
mod tests;

pub use location::Place;
pub use log::{Appended, Loaded, ObjectLog};
pub use mailbox::{Letter, Mailbox};
pub use observer::Observer;
pub use probe::probe;
pub use register::{Register, Renewal};
pub use snapshot::{Collected, Snapshot};
