//! Health and metrics over HTTP: `--listen`.
//!
//! ```text
//! query's events ──► board ──► verdict ──► /healthz, /readyz
//! query's vitals ──►      └──► page    ──► /metrics
//! ```
//! The board keeps what the events add up to and looks at the query when somebody asks. What follows from that is
//! decided by pure functions: `verdict` says whether the job lives and is ready, `page` writes the metrics that
//! `metrics` names. The server has a thread of its own: it answers while batches compute, and also when the loop does
//! not turn, which is when it is needed most.

mod address;
mod board;
mod counts;
mod door;
mod metrics;
mod page;
mod server;
mod verdict;

pub(crate) use address::listen;
pub(crate) use board::{About, Board};
