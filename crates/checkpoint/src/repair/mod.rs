//! Repair from outside: check a checkpoint, move its position, begin another one from it.
//!
//! Nothing here writes around the protocol. [`Rewind::perform`] is an owner like any other, with an epoch of its own
//! that leaves a fence, a position and a release in the log; [`Fork::perform`] owns a checkpoint that did not exist;
//! [`verify`] writes nothing. What a rewind or a fork would do is known before it is done: [`rewind`] and [`fork`] look
//! and say, `perform` does, and refuses when the log has changed in between.

mod error;
#[cfg(feature = "rocksdb")]
mod fork;
#[cfg(any(test, feature = "rocksdb"))]
mod moves;
#[cfg(feature = "rocksdb")]
mod quiet;
#[cfg(feature = "rocksdb")]
mod rewind;
#[cfg(feature = "rocksdb")]
mod slots;
#[cfg(any(test, feature = "rocksdb"))]
mod target;
#[cfg(feature = "rocksdb")]
mod verify;

pub use error::RepairError;
#[cfg(feature = "rocksdb")]
pub use fork::{Fork, Overlap, fork};
#[cfg(any(test, feature = "rocksdb"))]
pub use moves::Move;
#[cfg(feature = "rocksdb")]
pub use rewind::{Rewind, rewind};
#[cfg(any(test, feature = "rocksdb"))]
pub use target::{Offsets, RewindTo};
#[cfg(feature = "rocksdb")]
pub use verify::{Check, Damage, Verified, verify};

#[cfg(all(test, feature = "rocksdb"))]
mod tests;
