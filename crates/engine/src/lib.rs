//! Streaming SQL in micro-batches, in Spark Structured Streaming's vocabulary.
//!
//! A query reads sources, computes SQL, and writes into one sink, batch by batch. Each batch takes a range of offsets
//! that is written into the checkpoint before it is read, and is committed there after the sink has published it; whoever
//! goes on after a crash or a hand-over runs the same range or takes over what was published. The engine knows no Kafka
//! and no concrete sink: whoever wires a program registers the formats it wants.
//!
//! ```no_run
//! # use baton_core::{SinkFormat, SourceFormat};
//! # async fn example(kafka: impl SourceFormat + 'static, console: impl SinkFormat + 'static) -> baton_engine::Result<()> {
//! use baton_engine::{Session, Trigger};
//!
//! let session = Session::builder().app_name("KafkaConsumer1").register(kafka).register(console).build()?;
//! let query = session
//!     .read_stream()
//!     .format("kafka")
//!     .option("kafka.bootstrap.servers", "localhost:9092")
//!     .option("subscribe", "test1")
//!     .load()?
//!     .select_expr(["CAST(value AS STRING) AS message"])?
//!     .with_column("char_count", "length(message)")?
//!     .write_stream()
//!     .format("console")
//!     .option("checkpointLocation", "/tmp/checkpoints/kafka_consumer")
//!     .trigger(Trigger::processing_time("1 second")?)
//!     .start()
//!     .await?;
//! query.await_termination().await?;
//! # Ok(())
//! # }
//! ```
//!
//! `sql` plans and binds, `trigger` decides when, `micro_batch` is the loop, `progress` is what it tells. A program that
//! has read a job file of its own starts with [`QuerySpec`] and [`start`].

mod error;
mod event;
mod merge;
mod micro_batch;
mod progress;
mod query;
mod reader;
mod session;
mod spec;
pub mod sql;
mod trigger;
mod vitals;
mod writer;

pub use baton_checkpoint::{Deps, HandOver};
pub use error::{Error, Result};
pub use event::{AbandonReason, QueryEvent};
pub use progress::{SinkProgress, SourceProgress, StreamingQueryProgress, StreamingQueryStatus};
pub use query::{Outcome, StreamingQuery};
pub use reader::{DataFrame, DataStreamReader};
pub use session::{Format, Reads, Session, SessionBuilder, Writes};
pub use spec::{CompiledInfo, QuerySpec, compile, start};
pub use trigger::{Overrun, POLL_DELAY, Trigger};
pub use vitals::{Away, Observer, Vitals};
pub use writer::DataStreamWriter;

/// The checkpoint's types that stand in this crate's public signatures.
pub mod checkpoint {
    pub use baton_checkpoint::{
        AcquireEvent, AcquireOptions, Deps, Error, IfOwned, JobShape, Location, OnDrainTimeout,
    };
}
