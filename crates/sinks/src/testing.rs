//! What the sinks' unit tests share.

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use baton_core::{
    BatchContext, BatchId, CheckpointId, CommitPermit, Epoch, Fault, Receipt, Rng, Sink, SinkContext, WriteId,
};
use std::sync::Arc;

/// Waits for one call.
pub(crate) fn block_on<T>(call: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without drivers");
    runtime.block_on(call)
}

/// A checkpoint of its own.
pub(crate) fn context(rng: &Rng) -> SinkContext {
    SinkContext::new(CheckpointId(rng.uuid()), "test".to_owned())
}

/// The right to publish a batch, as the ownership protocol would give it.
#[expect(
    clippy::disallowed_methods,
    reason = "the sinks are tried without a checkpoint"
)]
pub(crate) fn permit(rng: &Rng, batch: u64, epoch: u64) -> CommitPermit {
    CommitPermit::issue(
        CheckpointId(rng.uuid()),
        BatchId(batch),
        Epoch(epoch),
        WriteId(rng.uuid()),
    )
}

/// A column `id` with the numbers from 0.
pub(crate) fn ids(count: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new((0..count).collect::<Int64Array>());
    RecordBatch::try_from_iter([("id", column)]).expect("one column")
}

/// Begins, writes and commits one batch, as the owner of this epoch.
pub(crate) fn publish(
    sink: &mut dyn Sink,
    batch: u64,
    epoch: u64,
    rows: &[RecordBatch],
) -> Result<Receipt, Fault> {
    let rng = Rng::seeded(batch);
    block_on(async {
        sink.begin(BatchContext::new(BatchId(batch), Epoch(epoch)))
            .await?;
        for rows in rows {
            sink.write(rows.clone()).await?;
        }
        sink.commit(permit(&rng, batch, epoch)).await
    })
}
