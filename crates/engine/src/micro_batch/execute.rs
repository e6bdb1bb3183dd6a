//! One batch's rows: from the sources through the query into the sink.

use baton_core::arrow::array::{Array, RecordBatch, TimestampMicrosecondArray, TimestampMillisecondArray};
use baton_core::{BatchContext, BatchStream, Fault, Position, Sink, SourceName};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

use super::plan::{SourceFault, SourceSeat};
use crate::merge::{LaneSender, Merge};
use crate::vitals::Pulse;
use crate::{Error, Result};

/// The column by which the delay of a record is measured, where a source has it.
const STAMP: &str = "timestamp";

/// What one batch's streams count while they are read.
#[derive(Debug, Default)]
pub(super) struct Meters {
    rows: Vec<(SourceName, Arc<AtomicU64>)>,
    oldest_ms: Arc<AtomicI64>,
    /// The first failure of a source, which the query's own error hides in layers of its own.
    fault: Arc<Mutex<Option<SourceFault>>>,
}

impl Meters {
    pub(super) fn rows_of(&self, name: &SourceName) -> u64 {
        self.rows
            .iter()
            .filter(|(of, _)| of == name)
            .map(|(_, rows)| rows.load(Ordering::Relaxed))
            .sum()
    }

    /// The oldest record's timestamp, in ms.
    pub(super) fn oldest_ms(&self) -> Option<i64> {
        Some(self.oldest_ms.load(Ordering::Relaxed)).filter(|oldest| *oldest != i64::MAX)
    }

    pub(super) fn take_fault(&self) -> Option<SourceFault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What the query is given to read.
pub(super) type Inputs = HashMap<SourceName, Vec<BatchStream>>;

/// Opens the planned ranges of all sources, as at most `streams` streams each.
pub(super) fn open_ranges(
    sources: &[SourceSeat],
    from: &Position,
    until: &Position,
    streams: usize,
    with_stamps: bool,
    pulse: &Arc<Pulse>,
) -> Result<Result<(Inputs, Meters), SourceFault>> {
    let mut meters = Meters {
        oldest_ms: Arc::new(AtomicI64::new(i64::MAX)),
        ..Meters::default()
    };
    let mut inputs = HashMap::new();
    for seat in sources {
        let start = from.source(&seat.name).cloned().unwrap_or_default();
        let end = until.source(&seat.name).cloned().unwrap_or_default();
        let ranges = start.ranges_until(&end)?;
        let opened = if ranges.is_empty() {
            Ok(Vec::new())
        } else {
            seat.source.read(&ranges, streams)
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(fault) => return Ok(Err(seat.fault(fault))),
        };
        let rows = Arc::new(AtomicU64::new(0));
        meters.rows.push((seat.name.clone(), Arc::clone(&rows)));
        let oldest = with_stamps.then(|| Arc::clone(&meters.oldest_ms));
        let metered: Vec<BatchStream> = opened
            .into_iter()
            .map(|stream| {
                metered(
                    stream,
                    seat.name.clone(),
                    Arc::clone(&rows),
                    oldest.clone(),
                    Arc::clone(&meters.fault),
                    Arc::clone(pulse),
                )
            })
            .collect();
        // The query is bound to at least one stream of each source, however empty.
        let bound = if metered.is_empty() {
            vec![futures::stream::empty().boxed()]
        } else {
            metered
        };
        inputs.insert(seat.name.clone(), bound);
    }
    Ok(Ok((inputs, meters)))
}

fn metered(
    stream: BatchStream,
    name: SourceName,
    rows: Arc<AtomicU64>,
    oldest: Option<Arc<AtomicI64>>,
    fault: Arc<Mutex<Option<SourceFault>>>,
    pulse: Arc<Pulse>,
) -> BatchStream {
    stream
        .map(move |batch| match batch {
            Ok(batch) => {
                pulse.beat();
                rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                if let Some(oldest) = &oldest
                    && let Some(stamp) = oldest_stamp(&batch)
                {
                    oldest.fetch_min(stamp, Ordering::Relaxed);
                }
                Ok(batch)
            }
            Err(original) => {
                let copy = Fault::new(original.kind, original.code, original.to_string());
                let mut first = fault.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert_with(|| SourceFault {
                    name: name.clone(),
                    fault: original,
                });
                Err(copy)
            }
        })
        .boxed()
}

fn oldest_stamp(batch: &RecordBatch) -> Option<i64> {
    let column = batch.column_by_name(STAMP)?;
    if let Some(stamps) = column.as_any().downcast_ref::<TimestampMicrosecondArray>() {
        return stamps.iter().flatten().min().map(|us| us.div_euclid(1_000));
    }
    column
        .as_any()
        .downcast_ref::<TimestampMillisecondArray>()?
        .iter()
        .flatten()
        .min()
}

/// Why rows did not reach the sink.
#[derive(Debug)]
pub(super) enum WriteFailure {
    /// The query or, behind it, a source.
    Rows(Arc<dyn std::error::Error + Send + Sync>),
    /// The sink.
    Sink(Fault),
    /// A stream's task.
    Panicked,
}

/// Starts a batch in the sink and writes all rows of the query's streams, which run in parallel.
///
/// # Cancel safety
/// Dropping it ends the streams; the sink has an open batch.
pub(super) async fn write_all(
    sink: &mut Box<dyn Sink>,
    context: BatchContext,
    streams: Vec<SendableRecordBatchStream>,
    pulse: Arc<Pulse>,
) -> Result<u64, WriteFailure> {
    sink.begin(context).await.map_err(WriteFailure::Sink)?;
    let (merge, lanes) = Merge::new(streams.len());
    let mut pumps = JoinSet::new();
    for (stream, lane) in streams.into_iter().zip(lanes) {
        pumps.spawn(pump(stream, lane));
    }
    let mut rows = 0;
    while let Some(batch) = merge.next().await {
        let batch = batch.map_err(WriteFailure::Rows)?;
        if batch.num_rows() > 0 {
            rows += batch.num_rows() as u64;
            sink.write(batch).await.map_err(WriteFailure::Sink)?;
            pulse.beat();
        }
    }
    // A pump that panicked ended its lane like one that was done: only its result tells.
    while let Some(ended) = pumps.join_next().await {
        ended.map_err(|_| WriteFailure::Panicked)?;
    }
    Ok(rows)
}

type Item = Result<RecordBatch, Arc<dyn std::error::Error + Send + Sync>>;

async fn pump(mut stream: SendableRecordBatchStream, lane: LaneSender<Item>) {
    while let Some(batch) = stream.next().await {
        let failed = batch.is_err();
        lane.send(batch.map_err(|error| Arc::new(error) as _)).await;
        if failed {
            return;
        }
    }
}

impl WriteFailure {
    /// The same as an error of batch and sink; a source's own failure has been looked for before.
    pub(super) fn into_error(self, batch: baton_core::BatchId, sink: &str) -> Error {
        match self {
            Self::Rows(cause) => Error::Compute { batch, cause },
            Self::Sink(fault) => Error::sink_failed(sink, fault),
            Self::Panicked => Error::Panicked { task: "batch" },
        }
    }
}
