//! The micro-batch loop: one batch at a time, each planned in the log before it is read, published before it is
//! committed.
//!
//! ```text
//! start   check SQL, sink ─ open sources ─ own the checkpoint ─ fence the sink ─ resume ─ Position(start)
//!                                                                                  │
//! loop    ┌──────────────────────────────────────────────────────────────────────────┘
//!         ▼
//!       look for data ─► Plan(N) ─► read, compute, write ─► permit ─► sink commit ─► Commit(N) [+ Plan(N+1)] ─┐
//!         ▲                 B1            B2, B3                          B4              B5                  │
//!         └───────────────────────────────────── pause until the trigger ◄───────────────────────────────────┘
//! ```
//! `start` gets there, `run` is the loop, `plan` asks the sources, `attempt` runs a batch once, `execute` moves the rows, `recover` resumes from the
//! log; `helm` hears who wants the query to end, `seat` keeps the sink, `threads` runs it, `publish` and `tell` report.

mod attempt;
mod execute;
mod helm;
mod outage;
mod plan;
mod publish;
mod recover;
mod run;
mod seat;
mod start;
mod tell;
mod threads;

pub(crate) use start::run_query;
