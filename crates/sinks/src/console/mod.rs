//! The console sink: prints each batch as Spark does, byte for byte.

mod cell;
mod java;
mod table;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use baton_core::{
    BatchContext, BatchId, CommitPermit, Epoch, Fault, Guarantee, Marker, OptionMap, OutputMode, Receipt,
    Sink, SinkContext, SinkFormat, SinkRef,
};
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::Error;
use table::{Table, Width};

/// Where a console prints.
type Out = Arc<Mutex<dyn Write + Send>>;

/// Cells are cut to this many characters unless `truncate` is false.
const CUT: usize = 20;

/// The format `console`: prints the first rows of each batch to stdout when the batch is committed, an empty batch too.
///
/// Options, as in Spark: `numRows` (default 20), the rows that are printed of each batch; `truncate` (default true),
/// whether cells are cut to 20 characters and aligned to the right.
#[must_use]
pub fn console() -> Console {
    Console::to(std::io::stdout())
}

/// See [`console`].
#[derive(Clone)]
pub struct Console {
    out: Out,
}

impl Console {
    /// Prints somewhere else than to stdout.
    pub fn to(out: impl Write + Send + 'static) -> Self {
        Self {
            out: Arc::new(Mutex::new(out)),
        }
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

impl SinkFormat for Console {
    fn name(&self) -> &'static str {
        "console"
    }

    fn sink(&self, mut options: OptionMap) -> Result<Box<dyn Sink>, Fault> {
        let most = options
            .take_parsed::<usize>("numRows", "a whole number, 0 or above")?
            .unwrap_or(20);
        let truncate = options.take_bool("truncate")?.unwrap_or(true);
        options.finish(&["numRows", "truncate", "checkpointLocation"])?;
        Ok(Box::new(Printer {
            out: Arc::clone(&self.out),
            table: Table::new(most, if truncate { Width::Cut(CUT) } else { Width::Whole }),
            schema: OnceLock::new(),
        }))
    }
}

/// One query's console.
struct Printer {
    out: Out,
    /// The batch so far.
    table: Table,
    /// Known since the check: a batch without rows prints its columns all the same.
    schema: OnceLock<SchemaRef>,
}

impl Printer {
    /// All that is printed of a batch.
    fn text(&self, batch: BatchId) -> String {
        let rule = "-------------------------------------------";
        let mut text = format!("{rule}\nBatch: {batch}\n{rule}\n");
        match self.schema.get() {
            Some(schema) => self.table.print(&mut text, schema),
            None => self.table.print(&mut text, &Schema::empty()),
        }
        text.push('\n');
        text
    }
}

#[async_trait]
impl Sink for Printer {
    fn description(&self) -> String {
        let truncate = matches!(self.table.width(), Width::Cut(_));
        format!("ConsoleTable[numRows={}, truncate={truncate}]", self.table.most())
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::MayRepeat(
            "a console cannot be asked what it has shown: after a crash it may print the interrupted batch again",
        )
    }

    fn check(&self, schema: &Schema, _mode: OutputMode) -> Result<(), Fault> {
        // Checked again, it is the same query.
        self.schema.get_or_init(|| Arc::new(schema.clone()));
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
        self.table.clear();
        Ok(())
    }

    async fn write(&mut self, rows: RecordBatch) -> Result<(), Fault> {
        // A query that was never checked still has columns.
        self.schema.get_or_init(|| rows.schema());
        self.table.push(&rows);
        Ok(())
    }

    async fn commit(&mut self, permit: CommitPermit) -> Result<Receipt, Fault> {
        let text = self.text(permit.batch());
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // One write: what another program prints to the same place comes before or after the batch.
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .map_err(Error::Print)?;
        Ok(Receipt {
            rows: self.table.rows(),
            note: String::new(),
        })
    }

    async fn abort(&mut self) -> Result<(), Fault> {
        // The next `begin` forgets the rows.
        Ok(())
    }
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
