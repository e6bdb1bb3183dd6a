//! The Rust API of a program that wires its own formats.

use async_trait::async_trait;
use baton_core::arrow::array::RecordBatch;
use baton_core::arrow::schema::Schema;
use baton_core::{
    BatchContext, CommitPermit, Epoch, ErrorKind, Fault, Guarantee, Marker, OptionMap, OutputMode, Receipt,
    Sink, SinkContext, SinkFormat, SinkRef, Source, SourceContext, SourceFormat,
};
use baton_engine::{Outcome, Session, Trigger};
use baton_testkit::ScriptedSource;
use std::sync::{Arc, Mutex, PoisonError};

struct Scripted(ScriptedSource);

impl SourceFormat for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn source(&self, _context: &SourceContext, mut options: OptionMap) -> Result<Box<dyn Source>, Fault> {
        drop(options.take("subscribe"));
        options.finish(&["subscribe"])?;
        Ok(Box::new(self.0.clone()))
    }
}

type Columns = Arc<Mutex<Vec<(u64, Vec<String>, usize)>>>;

/// Remembers each batch's number, columns and rows.
#[derive(Clone, Default)]
struct Ledger(Columns, Option<(u64, Vec<String>, usize)>);

impl SinkFormat for Ledger {
    fn name(&self) -> &'static str {
        "ledger"
    }

    fn sink(&self, options: OptionMap) -> Result<Box<dyn Sink>, Fault> {
        options.finish(&[])?;
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Sink for Ledger {
    fn description(&self) -> String {
        "Ledger".to_owned()
    }
    fn guarantee(&self) -> Guarantee {
        Guarantee::MayRepeat("a test")
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
    async fn begin(&mut self, batch: BatchContext) -> Result<(), Fault> {
        self.1 = Some((batch.batch.0, Vec::new(), 0));
        Ok(())
    }
    async fn write(&mut self, rows: RecordBatch) -> Result<(), Fault> {
        if let Some((_, columns, count)) = &mut self.1 {
            *columns = rows
                .schema()
                .fields()
                .iter()
                .map(|field| field.name().clone())
                .collect();
            *count += rows.num_rows();
        }
        Ok(())
    }
    async fn commit(&mut self, _permit: CommitPermit) -> Result<Receipt, Fault> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(self.1.take());
        Ok(Receipt::default())
    }
    async fn abort(&mut self) -> Result<(), Fault> {
        self.1 = None;
        Ok(())
    }
}

fn session(source: &ScriptedSource, ledger: &Ledger) -> Session {
    Session::builder()
        .app_name("app")
        .register(Scripted(source.clone()))
        .register(ledger.clone())
        .build()
        .expect("a plain name")
}

#[tokio::test]
async fn a_program_reads_selects_adds_a_column_writes_and_waits() {
    let (source, ledger) = (ScriptedSource::earliest("t", 1), Ledger::default());
    for text in ["a", "bb", "ccc"] {
        source.push(0, text);
    }
    let dir = tempfile::tempdir().expect("a directory");
    let query = session(&source, &ledger)
        .read_stream()
        .format("Scripted")
        .option("subscribe", "t")
        .load()
        .expect("known options")
        .select_expr(["CAST(value AS STRING) AS message", "offset"])
        .expect("valid expressions")
        .with_column("char_count", "length(message)")
        .expect("a valid expression")
        .with_column("OFFSET", "offset + 1")
        .expect("a replaced column")
        .filter("char_count > 1")
        .expect("a valid condition")
        .write_stream()
        .output_mode("append")
        .format("ledger")
        .option("checkpointLocation", dir.path().join("c").display())
        .trigger(Trigger::AvailableNow)
        .start()
        .await
        .expect("it starts");
    assert_eq!(query.name(), "app");
    assert_eq!(
        query.await_termination().await.expect("a clean end"),
        Outcome::Done
    );
    assert!(!query.is_active() && query.exception().is_none());
    assert_eq!(query.status().message, "Stopped");
    let progress = query.last_progress().expect("one batch");
    assert_eq!(
        (progress.num_input_rows, Some(progress.id.clone())),
        (3, query.id())
    );
    let written = ledger.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let columns = ["message", "OFFSET", "char_count"].map(str::to_owned).to_vec();
    assert_eq!(written, [(0, columns, 2)]);
}

#[tokio::test]
async fn an_unknown_format_is_refused_with_the_nearest_name() {
    let (source, ledger) = (ScriptedSource::latest("t", 1), Ledger::default());
    let refused = session(&source, &ledger)
        .read_stream()
        .format("script")
        .load()
        .err()
        .expect("unknown");
    assert_eq!(
        refused.to_string(),
        "unknown source format `script`; did you mean `scripted`?"
    );
    let frame = session(&source, &ledger)
        .read_stream()
        .format("scripted")
        .load()
        .expect("known");
    let writer = frame
        .write_stream()
        .format("parquet")
        .option("checkpointLocation", "/tmp/never-made");
    let refused = writer.start().await.expect_err("unknown");
    assert_eq!(
        refused.to_string(),
        "unknown sink format `parquet`; known are ledger"
    );
    assert_eq!((refused.kind(), refused.code()), (ErrorKind::Invalid, "E0401"));
}

#[tokio::test]
async fn a_step_that_does_not_fit_is_refused_where_it_is_taken() {
    let (source, ledger) = (ScriptedSource::latest("t", 1), Ledger::default());
    let frame = session(&source, &ledger)
        .read_stream()
        .format("scripted")
        .load()
        .expect("known");
    let refused = frame
        .select_expr(["no_such_column"])
        .err()
        .expect("no such column");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let frame = session(&source, &ledger)
        .read_stream()
        .format("scripted")
        .load()
        .expect("known");
    let refused = frame
        .write_stream()
        .format("ledger")
        .start()
        .await
        .expect_err("no checkpoint");
    assert!(refused.to_string().contains("checkpointLocation"), "{refused}");
    let frame = session(&source, &ledger)
        .read_stream()
        .format("scripted")
        .load()
        .expect("known");
    let writer = frame.write_stream().format("ledger").output_mode("complete");
    let refused = writer
        .option("checkpointLocation", "/tmp/never-made")
        .start()
        .await
        .expect_err("no aggregate");
    assert_eq!(refused.code(), "E0402");
}
