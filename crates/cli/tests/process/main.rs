//! Real `baton` processes on a real Kafka, judged from outside.
//!
//! `BATON_TEST_KAFKA=host:port` names the broker; without it the tests say that they were left out, or fail when
//! `BATON_REQUIRE_KAFKA=1`. `BATON_SOAK=1` takes the long counts, `BATON_SEED` repeats a run; a failing test prints its
//! seed and keeps its directory.

mod exec;
mod handover;
mod health;
mod input;
mod kills;
mod lab;
mod outage;
mod ownership;
mod rates;
mod repair;
mod shared;
mod signals;
mod starts;
mod status;
