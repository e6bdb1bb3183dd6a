//! Prints two batches as Spark's console does: `cargo run -p baton-sinks --example print`.
//!
//! In a query the engine does all this: it opens and fences the sink, and `baton_checkpoint` issues the permits.

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use baton_core::{
    BatchContext, BatchId, CheckpointId, CommitPermit, Epoch, OptionMap, OutputMode, Rng, SinkContext,
    SinkFormat, WriteId,
};
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ids = Rng::from_os();
    let (checkpoint, epoch) = (CheckpointId(ids.uuid()), Epoch(1));
    let options = OptionMap::from_iter([("numRows", "2"), ("truncate", "false")]);
    let mut console = baton_sinks::console().sink(options)?;

    let rows = messages(&["hello", "日本語", "a third message"])?;
    console.check(&rows.schema(), OutputMode::Append)?;
    let at = console
        .open(&SinkContext::new(checkpoint, "print".to_owned()))
        .await?;
    console.fence(epoch, &at).await?;
    for (number, rows) in [rows.slice(0, 1), rows].into_iter().enumerate() {
        let batch = BatchId(number as u64);
        console.begin(BatchContext::new(batch, epoch)).await?;
        console.write(rows).await?;
        #[expect(clippy::disallowed_methods, reason = "nobody else could own these rows")]
        let permit = CommitPermit::issue(checkpoint, batch, epoch, WriteId(ids.uuid()));
        console.commit(permit).await?;
    }
    Ok(())
}

fn messages(texts: &[&str]) -> Result<RecordBatch, arrow::error::ArrowError> {
    let counts: Int32Array = texts
        .iter()
        .map(|text| i32::try_from(text.chars().count()).ok())
        .collect();
    RecordBatch::try_from_iter([
        ("message", Arc::new(StringArray::from(texts.to_vec())) as ArrayRef),
        ("char_count", Arc::new(counts) as ArrayRef),
    ])
}
