//! The lease: the state machine, driven by a directory, a store and a socket.

mod acquire;
mod applicant;
mod directory;
mod filesystem;
mod force;
mod ground;
mod holder;
mod inspect;
mod marker;
mod office;
mod read;
#[cfg(feature = "object-store")]
mod remote;
mod server;
mod shared;
mod wire;

pub use acquire::acquire;
pub(crate) use directory::{Directory, trouble};
pub use inspect::{StopOutcome, inspect, stop};
pub(crate) use marker::{Marker, read_hint};
pub use office::Lease;
pub use read::{Show, preview, show};
pub(crate) use read::{found, look};

#[cfg(test)]
mod tests;
