//! Where the rows of a batch go: console, noop, memory, foreachBatch.
//!
//! Each sink is a small implementation of [`baton_core::Sink`] and needs no engine: open it, fence it, and hand it
//! batches of Arrow rows. `examples/print.rs` does that with the console.
//!
//! | sink | what it does | what it promises |
//! |---|---|---|
//! | [`console`] | prints each batch as Spark does | may repeat the one batch that a crash interrupted |
//! | [`noop`] | counts and drops | nothing to repeat |
//! | [`memory`] | keeps rows for the program that made it | each batch once |
//! | [`foreach_batch`] | calls a closure with rows, batch id and epoch | may repeat the one batch that a crash interrupted |

mod console;
mod error;
mod foreach_batch;
mod memory;
mod noop;
#[cfg(test)]
mod testing;

pub use console::{Console, console};
pub use error::{Error, Result};
pub use foreach_batch::{ForeachBatch, foreach_batch};
pub use memory::{Memory, memory};
pub use noop::{Noop, noop};
