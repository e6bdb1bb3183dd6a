//! SQL in Spark's dialect over the rows of one batch: planned once, bound to each batch's streams.
//!
//! [`Compiler`] reads the text with Spark's grammar (`dialect`), resolves names and types by Spark's rules into a plan
//! in which every cast is explicit (`relation`, `expression`, `functions`), and refuses what needs more than a batch
//! (`streamable`). DataFusion optimizes and runs that plan. A [`Query`] puts each batch's streams into its scans.

mod arithmetic;
mod call;
mod cast;
mod compiler;
mod dialect;
mod env;
mod error;
mod expression;
mod functions;
mod generator;
mod guard;
mod kernel;
mod literal;
mod names;
mod operators;
mod query;
mod relation;
mod scan;
mod scope;
mod streamable;
mod types;

pub use compiler::Compiler;
pub use error::{Error, Place};
pub use query::Query;
