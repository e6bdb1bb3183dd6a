//! The console: rows that are shown, and rows that are only counted.

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use baton_core::{
    BatchContext, BatchId, CheckpointId, CommitPermit, Epoch, OptionMap, OutputMode, Rng, Sink, SinkFormat,
    WriteId,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;

const ROWS: u64 = 10_000;

fn console(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without drivers");
    let ids = Rng::from_os();
    let rows = messages();
    let mut group = criterion.benchmark_group("console");
    group.throughput(Throughput::Elements(ROWS));
    for (name, shown, truncate) in [
        ("cut", "10000", "true"),
        ("whole", "10000", "false"),
        ("beyond_num_rows", "20", "true"),
    ] {
        let options = OptionMap::from_iter([("numRows", shown), ("truncate", truncate)]);
        let console = baton_sinks::Console::to(std::io::sink());
        let mut sink = console.sink(options).expect("valid options");
        sink.check(&rows.schema(), OutputMode::Append)
            .expect("the console prints anything");
        group.bench_function(name, |bencher| {
            bencher.iter(|| runtime.block_on(print(&mut *sink, black_box(&rows), &ids)));
        });
    }
    group.finish();
}

async fn print(sink: &mut dyn Sink, rows: &RecordBatch, ids: &Rng) {
    let (batch, epoch) = (BatchId(0), Epoch(1));
    sink.begin(BatchContext::new(batch, epoch)).await.expect("begun");
    sink.write(rows.clone()).await.expect("taken");
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing is owned here, the sink alone is measured"
    )]
    let permit = CommitPermit::issue(CheckpointId(ids.uuid()), batch, epoch, WriteId(ids.uuid()));
    let receipt = sink.commit(permit).await.expect("printed");
    assert_eq!(receipt.rows, ROWS);
}

/// Messages of about 100 bytes and their length, as in the README's job.
fn messages() -> RecordBatch {
    let texts: StringArray = (0..ROWS)
        .map(|n| Some(format!(r#"{{"id":{n},"user":"ana","text":"{:060}"}}"#, n * 7919)))
        .collect();
    let counts: Int32Array = texts
        .iter()
        .map(|text| text.and_then(|text| i32::try_from(text.len()).ok()))
        .collect();
    RecordBatch::try_from_iter([
        ("message", Arc::new(texts) as ArrayRef),
        ("char_count", Arc::new(counts) as ArrayRef),
    ])
    .expect("columns are equally long")
}

criterion_group!(benches, console);
criterion_main!(benches);
