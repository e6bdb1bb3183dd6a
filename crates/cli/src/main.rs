//! The `baton` binary.
fn main() {}
