//! The sink that drops everything, for measuring and for trying a job out.

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use async_trait::async_trait;
use baton_core::{
    BatchContext, CommitPermit, Epoch, Fault, Guarantee, Marker, OptionMap, OutputMode, Receipt, Sink,
    SinkContext, SinkFormat, SinkRef,
};

/// The format `noop`: computes each row and drops it.
#[must_use]
pub const fn noop() -> Noop {
    Noop { rows: 0 }
}

/// See [`noop`].
#[derive(Clone, Debug)]
pub struct Noop {
    rows: u64,
}

impl SinkFormat for Noop {
    fn name(&self) -> &'static str {
        "noop"
    }

    fn sink(&self, options: OptionMap) -> Result<Box<dyn Sink>, Fault> {
        options.finish(&[])?;
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Sink for Noop {
    fn description(&self) -> String {
        "Noop".to_owned()
    }

    fn guarantee(&self) -> Guarantee {
        // What publishes nothing repeats nothing.
        Guarantee::ExactlyOnce
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
        self.rows = 0;
        Ok(())
    }

    async fn write(&mut self, rows: RecordBatch) -> Result<(), Fault> {
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    async fn commit(&mut self, _permit: CommitPermit) -> Result<Receipt, Fault> {
        Ok(Receipt {
            rows: self.rows,
            note: String::new(),
        })
    }

    async fn abort(&mut self) -> Result<(), Fault> {
        // The next `begin` counts from 0.
        Ok(())
    }
}

#[cfg(test)]
mod tests;
