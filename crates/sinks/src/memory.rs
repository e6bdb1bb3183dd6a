//! The sink that keeps rows for the program that made it.

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use async_trait::async_trait;
use baton_core::{
    BatchContext, CheckpointId, CommitPermit, Epoch, Fault, Guarantee, Marker, OptionMap, OutputMode,
    Receipt, Sink, SinkContext, SinkFormat, SinkRef,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Error;

/// The format `memory`: keeps the rows of all committed batches. For tests and small results, in the Rust API only: the
/// rows are lost with the program, and nothing bounds them.
///
/// ```
/// let memory = baton_sinks::memory();
/// let handle = memory.clone();
/// // … register `memory`, run a query into it …
/// assert!(handle.rows().is_empty());
/// ```
#[must_use]
pub fn memory() -> Memory {
    Memory::default()
}

/// See [`memory`]. Clones are handles of the same rows.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<BTreeMap<CheckpointId, Table>>>);

/// What one checkpoint's queries have published.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<RecordBatch>,
    marker: Option<Marker>,
    epoch: Epoch,
}

impl Memory {
    /// The rows of all committed batches, in order of commit.
    #[must_use]
    pub fn rows(&self) -> Vec<RecordBatch> {
        self.tables()
            .values()
            .flat_map(|table| table.rows.iter().cloned())
            .collect()
    }

    fn tables(&self) -> MutexGuard<'_, BTreeMap<CheckpointId, Table>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SinkFormat for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn sink(&self, options: OptionMap) -> Result<Box<dyn Sink>, Fault> {
        options.finish(&[])?;
        Ok(Box::new(Writer {
            memory: self.clone(),
            checkpoint: None,
            epoch: Epoch::default(),
            open: Vec::new(),
        }))
    }
}

/// One query's access to the rows.
#[derive(Debug)]
struct Writer {
    memory: Memory,
    checkpoint: Option<CheckpointId>,
    epoch: Epoch,
    open: Vec<RecordBatch>,
}

impl Writer {
    fn change<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let checkpoint = self.checkpoint.expect("`open` comes first in a sink's life");
        change(self.memory.tables().entry(checkpoint).or_default())
    }

    fn refuse(&self, newest: Epoch) -> Fault {
        Error::Fenced {
            ours: self.epoch,
            newest,
        }
        .into()
    }
}

#[async_trait]
impl Sink for Writer {
    fn description(&self) -> String {
        "MemorySink".to_owned()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::ExactlyOnce
    }

    fn check(&self, _schema: &Schema, _mode: OutputMode) -> Result<(), Fault> {
        Ok(())
    }

    async fn open(&mut self, context: &SinkContext) -> Result<SinkRef, Fault> {
        self.checkpoint = Some(context.checkpoint);
        Ok(SinkRef::default())
    }

    async fn fence(&mut self, epoch: Epoch, _at: &SinkRef) -> Result<(), Fault> {
        self.epoch = epoch;
        let newest = self.change(|table| {
            table.epoch = table.epoch.max(epoch);
            table.epoch
        });
        if newest > epoch {
            Err(self.refuse(newest))
        } else {
            Ok(())
        }
    }

    async fn last_committed(&mut self) -> Result<Marker, Fault> {
        // Nothing in a new program's memory says nothing about what an earlier one has published.
        Ok(self
            .change(|table| table.marker.clone())
            .unwrap_or(Marker::Untracked))
    }

    async fn begin(&mut self, _batch: BatchContext) -> Result<(), Fault> {
        self.open.clear();
        Ok(())
    }

    async fn write(&mut self, rows: RecordBatch) -> Result<(), Fault> {
        self.open.push(rows);
        Ok(())
    }

    async fn commit(&mut self, permit: CommitPermit) -> Result<Receipt, Fault> {
        let open = std::mem::take(&mut self.open);
        let rows = open.iter().map(|batch| batch.num_rows() as u64).sum();
        let refused = self.change(|table| {
            if table.epoch > permit.epoch() {
                return Some(table.epoch);
            }
            table.rows.extend(open);
            table.marker = Some(Marker::At {
                batch: permit.batch(),
                epoch: permit.epoch(),
                plan: permit.plan(),
            });
            None
        });
        match refused {
            Some(newest) => Err(self.refuse(newest)),
            None => Ok(Receipt {
                rows,
                note: String::new(),
            }),
        }
    }

    async fn abort(&mut self) -> Result<(), Fault> {
        self.open.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
