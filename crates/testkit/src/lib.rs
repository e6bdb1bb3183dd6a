//! Development only: manual clock, scripted sources, conformance suites, the Kafka lab.
//!
//! The lab is for tests with real processes on a real broker: [`Process`] starts and ends them, [`Kafka`] makes topics
//! and messages that say where they belong, and [`oracle`] decides from outside (what was printed, what the log says)
//! whether every record was handled exactly once.

mod clock;
mod kafka;
pub mod oracle;
mod process;
pub mod realtime;
mod source;

pub use clock::ManualClock;
pub use kafka::{Flow, Kafka, PrivateBroker, Record, numbered};
pub use process::Process;
pub use rustix::process::Signal;
pub use source::{ScriptedSource, scripted_schema};
