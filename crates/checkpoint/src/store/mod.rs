//! The slots on disk: RocksDB, a thread that owns it, and the checks of what is read.

mod keeper;
mod rocks;
mod verify;

pub(crate) use keeper::{Append, Keeper};
pub(crate) use rocks::{Failure, Found, Rocks};
pub(crate) use verify::{Contents, follow_the_rules, verify};
