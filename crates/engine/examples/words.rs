//! Runs a query over a source in memory until there is nothing left, and prints what it did.
//!
//! `cargo run -p baton-engine --example words`

use baton_core::{Fault, OptionMap, Source, SourceContext, SourceFormat};
use baton_engine::{Session, Trigger};
use baton_testkit::ScriptedSource;
use std::io::Write;

/// A format that always reads the same records.
struct Words(ScriptedSource);

impl SourceFormat for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn source(&self, _context: &SourceContext, options: OptionMap) -> Result<Box<dyn Source>, Fault> {
        options.finish(&[])?;
        Ok(Box::new(self.0.clone()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words = ScriptedSource::earliest("words", 2);
    for (number, word) in ["to", "be", "or", "not", "to", "be"].into_iter().enumerate() {
        words.push(i32::from(number % 2 == 1), word);
    }
    let checkpoint = tempfile::tempdir()?;
    let session = Session::builder()
        .app_name("words")
        .register(Words(words))
        .register(baton_sinks::console())
        .build()?;
    let query = session
        .read_stream()
        .format("words")
        .load()?
        .select_expr(["value", "length(value) AS char_count"])?
        .write_stream()
        .format("console")
        .option(
            "checkpointLocation",
            checkpoint.path().join("checkpoint").display(),
        )
        .trigger(Trigger::AvailableNow)
        .start()
        .await?;
    let outcome = query.await_termination().await?;
    let mut out = std::io::stdout().lock();
    for progress in query.recent_progress() {
        writeln!(out, "{}", progress.to_json())?;
    }
    writeln!(out, "{outcome:?}")?;
    Ok(())
}
