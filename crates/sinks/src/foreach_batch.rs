//! Spark's `foreachBatch`, as a Rust closure.

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use async_trait::async_trait;
use baton_core::{
    BatchContext, CommitPermit, Epoch, Fault, Guarantee, Marker, OutputMode, Receipt, Sink, SinkContext,
    SinkRef,
};
use std::fmt;
use std::future::Future;

use crate::Error;

/// A sink that calls `function` once for each batch, with all of its rows, the batch's id and the owner's epoch.
///
/// The batch that a crash interrupts runs again, and then the function is called again with the same rows and the same
/// batch id, by an owner of a higher epoch: make its effect depend on the batch id, and refuse epochs below the highest
/// one seen, where once matters. An owner that was replaced never calls it for a batch after its last.
///
/// A batch's rows are kept in memory until the call; `maxOffsetsPerTrigger` bounds them.
///
/// The future owns what it uses: clone shared state in the closure, before its `async move`. A function that does not
/// wait returns `std::future::ready(…)`.
///
/// ```
/// let sink = baton_sinks::foreach_batch(async |rows: Vec<arrow::array::RecordBatch>, batch| {
///     let count: usize = rows.iter().map(|rows| rows.num_rows()).sum();
///     println!("batch {} of epoch {}: {count} rows", batch.batch, batch.epoch);
///     Ok::<_, std::io::Error>(())
/// });
/// ```
pub fn foreach_batch<F, R, E>(function: F) -> ForeachBatch<F>
where
    F: FnMut(Vec<RecordBatch>, BatchContext) -> R + Send,
    R: Future<Output = Result<(), E>> + Send,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    ForeachBatch {
        function,
        rows: Vec::new(),
    }
}

/// See [`foreach_batch`].
pub struct ForeachBatch<F> {
    function: F,
    rows: Vec<RecordBatch>,
}

impl<F> fmt::Debug for ForeachBatch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeachBatch").finish_non_exhaustive()
    }
}

#[async_trait]
impl<F, R, E> Sink for ForeachBatch<F>
where
    F: FnMut(Vec<RecordBatch>, BatchContext) -> R + Send + 'static,
    R: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
{
    fn description(&self) -> String {
        "ForeachBatchSink".to_owned()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::MayRepeat(
            "a batch that is interrupted by a crash runs again with the same batch id: let the effect depend on it",
        )
    }

    fn check(&self, _schema: &Schema, _mode: OutputMode) -> Result<(), Fault> {
        Ok(())
    }

    async fn open(&mut self, _context: &SinkContext) -> Result<SinkRef, Fault> {
        Ok(SinkRef::default())
    }

    async fn fence(&mut self, _epoch: Epoch, _at: &SinkRef) -> Result<(), Fault> {
        Ok(())
    }

    async fn last_committed(&mut self) -> Result<Marker, Fault> {
        Ok(Marker::Untracked)
    }

    async fn begin(&mut self, _batch: BatchContext) -> Result<(), Fault> {
        self.rows.clear();
        Ok(())
    }

    async fn write(&mut self, rows: RecordBatch) -> Result<(), Fault> {
        self.rows.push(rows);
        Ok(())
    }

    async fn commit(&mut self, permit: CommitPermit) -> Result<Receipt, Fault> {
        let rows = std::mem::take(&mut self.rows);
        let count = rows.iter().map(|batch| batch.num_rows() as u64).sum();
        let batch = BatchContext::new(permit.batch(), permit.epoch());
        let called = (self.function)(rows, batch).await;
        called.map_err(|error| Error::Closure(error.into()))?;
        Ok(Receipt {
            rows: count,
            note: String::new(),
        })
    }

    async fn abort(&mut self) -> Result<(), Fault> {
        self.rows.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
