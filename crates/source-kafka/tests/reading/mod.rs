//! From options to rows, for the tests of this crate.

use arrow::array::{Array, AsArray, BinaryArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use baton_core::{
    BatchStream, Fault, Offset, OffsetRange, OpenContext, OptionMap, PartitionRange, Source, SourceContext,
    SourceFormat, SourceName, TopicPartition,
};
use futures::TryStreamExt;
use std::time::Duration;

/// A row as tests compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
}

pub(crate) fn source(address: &str, options: &[(&str, &str)]) -> Result<Box<dyn Source>, Fault> {
    let mut map = OptionMap::from_iter([("kafka.bootstrap.servers", address)]);
    for (key, value) in options {
        map.set(*key, *value);
    }
    let context = SourceContext::new(SourceName::new("messages").expect("a name"), "test".to_owned());
    baton_source_kafka::format().source(&context, map)
}

pub(crate) async fn open(address: &str, options: &[(&str, &str)]) -> Box<dyn Source> {
    let source = source(address, options).expect("valid options");
    source
        .open(&OpenContext::new(Duration::from_secs(20), 2))
        .await
        .expect("a broker that answers");
    source
}

pub(crate) fn ranges(of: &[(&str, i32, i64, i64)]) -> Vec<PartitionRange> {
    of.iter()
        .map(|(topic, partition, from, until)| PartitionRange {
            partition: TopicPartition::new(*topic, *partition),
            range: OffsetRange::new(Offset(*from), Offset(*until)).expect("a range"),
        })
        .collect()
}

/// All batches, one stream after the other.
pub(crate) async fn all(streams: Vec<BatchStream>) -> Result<Vec<RecordBatch>, Fault> {
    let mut batches = Vec::new();
    for stream in streams {
        batches.extend(stream.try_collect::<Vec<_>>().await?);
    }
    Ok(batches)
}

pub(crate) async fn rows(source: &dyn Source, ranges: &[PartitionRange]) -> Result<Vec<Row>, Fault> {
    Ok(of(&all(source.read(ranges, 1)?).await?))
}

pub(crate) fn of(batches: &[RecordBatch]) -> Vec<Row> {
    let text = |array: &BinaryArray, at| {
        (!array.is_null(at)).then(|| String::from_utf8(array.value(at).to_vec()).expect("text"))
    };
    let mut rows = Vec::new();
    for batch in batches {
        for at in 0..batch.num_rows() {
            rows.push(Row {
                key: text(batch.column(0).as_binary(), at),
                value: text(batch.column(1).as_binary(), at),
                partition: batch.column(3).as_primitive::<Int32Type>().value(at),
                offset: batch.column(4).as_primitive::<Int64Type>().value(at),
            });
        }
    }
    rows
}
