//! Benchmarks of the parts: `cargo bench -p baton-benches`, or one of them with `--bench console`. The whole pipe, on a
//! real broker, is measured by `cargo xtask bench`.
//!
//! | bench | what it measures |
//! |---|---|
//! | `append` | one batch's commit in the checkpoint, beside a plain append of the same size and `fdatasync` |
//! | `console` | printing 10 000 rows, and counting those that are not shown |
//! | `decode` | a planned range of the embedded broker as Arrow rows |
//!
//! `commit-cost DIR COUNT` measures what `append` does in any directory, and prints one line of JSON.

mod commits;

pub use commits::{Commits, Failure, Plain, pair};
