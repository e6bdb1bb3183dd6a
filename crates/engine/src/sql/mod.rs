//! SQL in Spark's dialect over the rows of one batch: planned once, bound to each batch's streams.

mod compiler;
mod error;
mod query;
mod scan;

pub use compiler::Compiler;
pub use error::{Error, Place};
pub use query::Query;
