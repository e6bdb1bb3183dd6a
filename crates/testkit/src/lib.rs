//! Development only: manual clock, scripted sources, conformance suites, the Kafka lab.

mod clock;
mod source;

pub use clock::ManualClock;
pub use source::{ScriptedSource, scripted_schema};
