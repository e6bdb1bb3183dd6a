//! Kafka offset ranges as streams of Arrow record batches.
//!
//! # What it is
//! The source behind `format = "kafka"`: Spark's options, Spark's row, Spark's arithmetic of a batch, over librdkafka.
//! It knows no engine and no checkpoint. Whoever drives it asks [`Source::plan`](baton_core::Source::plan) how far a
//! batch may go, writes that down wherever it keeps such things, and has [`Source::read`](baton_core::Source::read)
//! bring exactly that range – today, or again after a crash.
//!
//! # What it guarantees
//! - **A planned range is read to its end**, each record once and in order within its partition, also when its last
//!   offsets hold no record: compaction, aborted transactions and control records leave holes.
//! - **Reading ahead is bounded**, by messages and by bytes over all partitions, whatever the backlog.
//! - **Every call is bounded in time.** A broker that is away is [`Unavailable`](baton_core::ErrorKind::Unavailable);
//!   the same call works again when it is back.
//! - **Lost records are named**: with `failOnDataLoss` (the default) they end the query, without it they become a
//!   [`Gap`](baton_core::Gap) of the plan. Offsets without records are not loss.
//! - **`kafka.group.id` names one owner.** The reader is no member of the group; it stores its position there, with the
//!   checkpoint's id beside it, and refuses a group that bears another checkpoint's.
//!
//! # What differs from Spark
//! `isolation.level` is `read_committed` unless set otherwise. Starting offsets out of range, and a partition of
//! `assign` that does not exist, are refused at the start instead of at the first batch or never. Unknown options are
//! refused. [`Source::notices`](baton_core::Source::notices) tells what a user should know of these.
//!
//! # Example
//! ```
//! use baton_core::{Admission, OpenContext, OptionMap, SourceContext, SourceFormat, SourceName};
//! use baton_source_kafka::{EmbeddedBroker, Producer, format};
//! use futures::TryStreamExt;
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let broker = EmbeddedBroker::start(&[("greetings", 1)])?;
//! let producer = Producer::connect(broker.bootstrap_servers())?;
//! producer.send("greetings", None, Some(b"hello")).await?;
//! producer.flush().await?;
//!
//! let options = OptionMap::from_iter([
//!     ("kafka.bootstrap.servers", broker.bootstrap_servers()),
//!     ("subscribe", "greetings"),
//!     ("startingOffsets", "earliest"),
//! ]);
//! let context = SourceContext::new(SourceName::new("greetings")?, "example".to_owned());
//! let source = format().source(&context, options)?;
//! source.open(&OpenContext::new(Duration::from_secs(10), 1)).await?;
//! let plan = source.plan(&source.start().await?, &Admission::default()).await?;
//! let mut streams = source.read(&plan.from.ranges_until(&plan.until)?, 1)?;
//! let batch = streams.remove(0).try_next().await?.expect("one message was sent");
//! assert_eq!(batch.num_rows(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Types of other crates in signatures
//! `baton_core`'s, and through it Arrow's. librdkafka shows nowhere.

mod client;
mod control;
mod embedded;
mod error;
mod fetch;
mod ffi;
mod group;
mod loss;
mod options;
mod plan;
mod producer;
mod properties;
mod rows;
mod source;
mod split;

pub use embedded::EmbeddedBroker;
pub use error::{Error, Result};
#[doc(hidden)]
pub use fetch::reader_settings;
pub use producer::Producer;
pub use source::format;
