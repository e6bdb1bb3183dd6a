//! Spark's row of a Kafka record, and the arrays that records are copied into.

use arrow::array::{
    ArrayRef, BinaryBuilder, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StringBuilder,
    StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;

use crate::{Error, Result};

/// A batch is handed on when it has this many rows …
const MOST_ROWS: usize = 8_192;
/// … or this many bytes of keys, values and headers.
const MOST_BYTES: usize = 2 << 20;

/// The columns, all nullable, in Spark's order.
pub(crate) fn schema(headers: bool) -> SchemaRef {
    let mut fields = vec![
        Field::new("key", DataType::Binary, true),
        Field::new("value", DataType::Binary, true),
        Field::new("topic", DataType::Utf8, true),
        Field::new("partition", DataType::Int32, true),
        Field::new("offset", DataType::Int64, true),
        Field::new(
            "timestamp",
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            true,
        ),
        Field::new("timestampType", DataType::Int32, true),
    ];
    if headers {
        let item = Field::new("item", DataType::Struct(header_fields()), true);
        fields.push(Field::new("headers", DataType::List(Arc::new(item)), true));
    }
    Arc::new(Schema::new(fields))
}

fn header_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Binary, true),
    ])
}

/// One record, borrowed from the client.
pub(crate) struct Record<'a> {
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) offset: i64,
    pub(crate) millis: i64,
    /// Spark's: -1 none, 0 create time, 1 log append time.
    pub(crate) timestamp_type: i32,
}

/// One header, borrowed from the client.
pub(crate) struct Header<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: Option<&'a [u8]>,
}

/// Records on their way into one [`RecordBatch`]. Nothing is allocated per record but what the buffers grow by.
pub(crate) struct Rows {
    schema: SchemaRef,
    key: BinaryBuilder,
    value: BinaryBuilder,
    /// Runs of one partition: its topic, its number and where the run ends.
    runs: Vec<(Arc<str>, i32, usize)>,
    offset: Vec<i64>,
    micros: Vec<i64>,
    timestamp_type: Vec<i32>,
    headers: Option<Headers>,
    bytes: usize,
}

#[derive(Default)]
struct Headers {
    key: StringBuilder,
    value: BinaryBuilder,
    ends: Vec<i32>,
    present: Vec<bool>,
}

impl Rows {
    pub(crate) fn new(schema: SchemaRef) -> Self {
        let headers = (schema.fields().len() > 7).then(Headers::default);
        Self {
            schema,
            key: BinaryBuilder::new(),
            value: BinaryBuilder::new(),
            runs: Vec::new(),
            offset: Vec::new(),
            micros: Vec::new(),
            timestamp_type: Vec::new(),
            headers,
            bytes: 0,
        }
    }

    pub(crate) const fn wants_headers(&self) -> bool {
        self.headers.is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.offset.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= MOST_ROWS || self.bytes >= MOST_BYTES
    }

    /// How many more records fit, judged by rows alone.
    pub(crate) fn room(&self) -> usize {
        MOST_ROWS.saturating_sub(self.len())
    }

    /// Says whose records were pushed since the last call.
    pub(crate) fn end_run(&mut self, topic: &Arc<str>, partition: i32) {
        let end = self.len();
        match self.runs.last_mut() {
            Some((last, number, until)) if *number == partition && last == topic => *until = end,
            Some((_, _, until)) if *until == end => {}
            None if end == 0 => {}
            _ => self.runs.push((Arc::clone(topic), partition, end)),
        }
    }

    /// Copies one record. With headers, [`Rows::headers`] follows.
    #[inline]
    pub(crate) fn push(&mut self, record: &Record<'_>) -> Result<(), Malformed> {
        let micros = record.millis.checked_mul(1_000).ok_or(Malformed)?;
        if self.offset.is_empty() {
            self.reserve();
        }
        self.bytes += record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
        self.key.append_option(record.key);
        self.value.append_option(record.value);
        self.offset.push(record.offset);
        self.micros.push(micros);
        self.timestamp_type.push(record.timestamp_type);
        Ok(())
    }

    /// Copies the headers of the record pushed last; none gives NULL, not an empty list.
    pub(crate) fn headers<'a>(&mut self, of_record: impl Iterator<Item = Header<'a>>) {
        let Some(headers) = &mut self.headers else { return };
        let before = headers.key.values_slice().len() + headers.value.values_slice().len();
        let mut any = false;
        for header in of_record {
            any = true;
            headers.key.append_value(String::from_utf8_lossy(header.key));
            headers.value.append_option(header.value);
        }
        headers.present.push(any);
        let count = i32::try_from(headers.count()).expect("a batch has far fewer than 2^31 headers");
        headers.ends.push(count);
        self.bytes += headers.key.values_slice().len() + headers.value.values_slice().len() - before;
    }

    fn reserve(&mut self) {
        self.offset.reserve(MOST_ROWS);
        self.micros.reserve(MOST_ROWS);
        self.timestamp_type.reserve(MOST_ROWS);
    }

    /// The records so far as a batch; starts anew. The buffers of the next one are sized like this one's.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch> {
        let value_bytes = self.value.values_slice().len();
        let key_bytes = self.key.values_slice().len();
        let rows = self.len();
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.key.finish()),
            Arc::new(self.value.finish()),
            Arc::new(topics(&self.runs)),
            Arc::new(partitions(&self.runs)),
            Arc::new(Int64Array::from(std::mem::take(&mut self.offset))),
            Arc::new(TimestampMicrosecondArray::from(std::mem::take(&mut self.micros)).with_timezone("UTC")),
            Arc::new(Int32Array::from(std::mem::take(&mut self.timestamp_type))),
        ];
        if let Some(headers) = &mut self.headers {
            columns.push(Arc::new(std::mem::take(headers).finish()));
        }
        self.key = BinaryBuilder::with_capacity(rows, key_bytes);
        self.value = BinaryBuilder::with_capacity(rows, value_bytes + value_bytes / 16);
        self.runs.clear();
        self.bytes = 0;
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| Error::bug(format!("the columns of a batch do not fit: {error}")))
    }
}

/// The record's time does not fit.
pub(crate) struct Malformed;

impl Headers {
    fn count(&self) -> usize {
        self.value.offsets_slice().len() - 1
    }

    fn finish(mut self) -> ListArray {
        let entries = StructArray::new(
            header_fields(),
            vec![
                Arc::new(self.key.finish()) as ArrayRef,
                Arc::new(self.value.finish()),
            ],
            None,
        );
        let mut offsets = Vec::with_capacity(self.ends.len() + 1);
        offsets.push(0);
        offsets.extend(self.ends);
        let item = Arc::new(Field::new("item", DataType::Struct(header_fields()), true));
        let nulls = NullBuffer::from(self.present);
        ListArray::new(
            item,
            OffsetBuffer::new(ScalarBuffer::from(offsets)),
            Arc::new(entries),
            Some(nulls),
        )
    }
}

/// The topic of each row; whole runs at a time, because it is the same text for thousands of rows.
fn topics(runs: &[(Arc<str>, i32, usize)]) -> StringArray {
    let rows = runs.last().map_or(0, |(_, _, end)| *end);
    let mut text = Vec::with_capacity(runs.first().map_or(0, |(topic, _, _)| topic.len() * rows));
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0_i32);
    let mut start = 0;
    for (topic, _, end) in runs {
        let mut at = text.len();
        for _ in start..*end {
            text.extend_from_slice(topic.as_bytes());
            at += topic.len();
            offsets.push(at as i32);
        }
        start = *end;
    }
    StringArray::new(
        OffsetBuffer::new(ScalarBuffer::from(offsets)),
        Buffer::from_vec(text),
        None,
    )
}

fn partitions(runs: &[(Arc<str>, i32, usize)]) -> Int32Array {
    let mut numbers = Vec::with_capacity(runs.last().map_or(0, |(_, _, end)| *end));
    for (_, number, end) in runs {
        numbers.resize(*end, *number);
    }
    Int32Array::from(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray, BinaryArray};
    use arrow::datatypes::Int32Type;

    fn record(offset: i64, value: Option<&[u8]>) -> Record<'_> {
        Record {
            key: None,
            value,
            offset,
            millis: 5,
            timestamp_type: 0,
        }
    }

    #[test]
    fn rows_keep_null_and_empty_apart_and_know_their_partition() {
        let mut rows = Rows::new(schema(false));
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        rows.push(&record(7, None)).ok().expect("fits");
        rows.push(&record(8, Some(b""))).ok().expect("fits");
        rows.end_run(&one, 3);
        rows.end_run(&one, 4);
        rows.push(&record(1, Some(b"x"))).ok().expect("fits");
        rows.end_run(&two, 0);
        let batch = rows.finish().expect("fits");
        let value: &BinaryArray = batch.column(1).as_binary();
        assert!(value.is_null(0) && value.is_valid(1) && value.value(1).is_empty());
        let topics: Vec<_> = batch.column(2).as_string::<i32>().iter().flatten().collect();
        assert_eq!(topics, ["one", "one", "two"]);
        assert_eq!(batch.column(3).as_primitive::<Int32Type>().values(), &[3, 3, 0]);
        assert_eq!(rows.len(), 0, "the next batch starts empty");
    }

    #[test]
    fn a_record_without_headers_has_null_and_repeated_headers_stay_in_order() {
        let mut rows = Rows::new(schema(true));
        let topic: Arc<str> = "t".into();
        rows.push(&record(0, None)).ok().expect("fits");
        rows.headers(std::iter::empty());
        rows.push(&record(1, None)).ok().expect("fits");
        let pair = [
            Header {
                key: b"a",
                value: Some(b"1"),
            },
            Header {
                key: b"a",
                value: None,
            },
        ];
        rows.headers(pair.into_iter());
        rows.end_run(&topic, 0);
        let batch = rows.finish().expect("fits");
        let headers: &ListArray = batch.column(7).as_list();
        assert!(headers.is_null(0));
        let entries = headers.value(1);
        let entries = entries.as_struct();
        assert_eq!(
            entries
                .column(0)
                .as_string::<i32>()
                .iter()
                .flatten()
                .collect::<Vec<_>>(),
            ["a", "a"]
        );
        assert!(entries.column(1).is_null(1) && entries.column(1).is_valid(0));
    }

    #[test]
    fn a_time_beyond_microseconds_is_refused() {
        let mut rows = Rows::new(schema(false));
        let late = Record {
            millis: i64::MAX / 10,
            ..record(0, None)
        };
        assert!(rows.push(&late).is_err());
    }
}
