//! A planned range of one partition, from the embedded broker to Arrow rows. The broker runs in this process and takes
//! its share of the time: compare runs of this bench with each other, not with a real broker.

use baton_core::{
    Admission, OpenContext, OptionMap, PartitionRange, Source, SourceContext, SourceFormat, SourceName,
};
use baton_source_kafka::{EmbeddedBroker, Producer};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::TryStreamExt;
use std::time::Duration;

/// Of about 100 bytes: the broker keeps 5 MB of a partition.
const MESSAGES: u64 = 20_000;

fn decode(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let broker = EmbeddedBroker::start(&[("messages", 1)]).expect("a free port");
    runtime.block_on(fill(&broker));
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(MESSAGES)).sample_size(20);
    for (name, headers) in [("rows", "false"), ("rows_with_headers", "true")] {
        let (source, ranges) = runtime.block_on(open(&broker, headers));
        group.bench_function(name, |bencher| {
            bencher.iter(|| runtime.block_on(read(&*source, &ranges)))
        });
    }
    group.finish();
}

async fn fill(broker: &EmbeddedBroker) {
    let producer = Producer::connect(broker.bootstrap_servers()).expect("a client");
    for n in 0..MESSAGES {
        let value = format!(r#"{{"id":{n},"user":"ana","text":"{:060}"}}"#, n * 7919);
        producer
            .send("messages", None, Some(value.as_bytes()))
            .await
            .expect("accepted");
    }
    producer.flush().await.expect("stored");
}

async fn open(broker: &EmbeddedBroker, headers: &str) -> (Box<dyn Source>, Vec<PartitionRange>) {
    let options = OptionMap::from_iter([
        ("kafka.bootstrap.servers", broker.bootstrap_servers()),
        ("subscribe", "messages"),
        ("startingOffsets", "earliest"),
        ("includeHeaders", headers),
    ]);
    let name = SourceName::new("messages").expect("a name");
    let context = SourceContext::new(name, "decode".to_owned());
    let source = baton_source_kafka::format()
        .source(&context, options)
        .expect("valid options");
    source
        .open(&OpenContext::new(Duration::from_secs(10), 1))
        .await
        .expect("the broker answers");
    let start = source.start().await.expect("the broker answers");
    let plan = source
        .plan(&start, &Admission::default())
        .await
        .expect("the broker answers");
    let ranges = plan.from.ranges_until(&plan.until).expect("the topic has grown");
    (source, ranges)
}

async fn read(source: &dyn Source, ranges: &[PartitionRange]) {
    let mut rows = 0;
    for mut stream in source.read(ranges, 1).expect("a planned range") {
        while let Some(batch) = stream.try_next().await.expect("the broker answers") {
            rows += batch.num_rows() as u64;
        }
    }
    assert_eq!(rows, MESSAGES);
}

criterion_group!(benches, decode);
criterion_main!(benches);
