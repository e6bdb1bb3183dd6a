//! What a real Spark 4.2 prints, byte for byte: `testdata/console.jsonl`, one print a line.

use arrow::array::{
    ArrayRef, BinaryArray, BinaryBuilder, BooleanArray, Date32Array, Decimal128Array,
    DurationMicrosecondArray, Float32Array, Float64Array, Int8Array, Int32Array, Int64Array, ListBuilder,
    MapBuilder, NullArray, RecordBatch, RecordBatchOptions, StringArray, StringBuilder, StructArray,
    StructBuilder, TimestampMicrosecondArray,
};
use arrow::array::{Int32Builder, NullBuilder};
use arrow::datatypes::{DataType, Field, Schema};
use serde_json::Value;
use std::sync::Arc;

use super::table::{Table, Width};

const GOLDEN: &str = include_str!("../../testdata/console.jsonl");

#[test]
fn each_print_of_spark_is_reproduced_byte_for_byte() {
    let mut names = Vec::new();
    for line in GOLDEN.lines() {
        let golden: Value = serde_json::from_str(line).expect("one JSON object a line");
        let number = |key: &str| {
            golden[key]
                .as_u64()
                .and_then(|n| usize::try_from(n).ok())
                .expect("a number")
        };
        let name = golden["name"].as_str().expect("each print has a name");
        let rows = result(name);
        let width = match number("truncate") {
            0 => Width::Whole,
            most => Width::Cut(most),
        };
        let mut table = Table::new(number("numRows"), width);
        table.push(&rows);
        let mut printed = String::new();
        table.print(&mut printed, &rows.schema());
        let expected = golden["text"].as_str().expect("a text");
        assert_eq!(
            printed, expected,
            "{name}: printed\n{printed}\nSpark prints\n{expected}"
        );
        names.push(name.to_owned());
    }
    assert_eq!(names.len(), 19, "{names:?}");
}

/// The rows of the print of this name, as its `sql` would give them.
fn result(name: &str) -> RecordBatch {
    match name {
        "job" | "job-untruncated" => columns([
            (
                "message",
                array(StringArray::from(vec![
                    Some(JSON),
                    None,
                    Some("h\u{fffd}\u{fffd}llo"),
                ])),
            ),
            (
                "char_count",
                array(Int32Array::from(vec![Some(85), None, Some(4)])),
            ),
        ]),
        "all-columns" | "all-columns-untruncated" => messages(),
        "empty" => columns([("message", strings(&[]))]),
        "limit" | "limit-2" => columns([("id", numbers(30))]),
        "limit-0" => columns([("id", numbers(3))]),
        "exactly-20" => columns([("id", numbers(20))]),
        "wide" => columns([
            (
                "s",
                strings(&["日本語", "한국어 텍스트", "ascii", "😀", "e\u{301}"]),
            ),
            ("n", array(Int32Array::from(vec![1, 22, 333, 4, 5]))),
        ]),
        "truncate" => {
            let wide = "日本語".repeat(8);
            columns([(
                "s",
                strings(&["12345678901234567890", "123456789012345678901", &wide]),
            )])
        }
        "truncate-3" => columns([("s", strings(&["ab", "abc", "abcd", "abcdefgh"]))]),
        "truncate-5" => columns([("s", strings(&["ab", "abcdef", "日本語日本語"]))]),
        "types" => types(),
        "doubles" => columns([(
            "d",
            array(Float64Array::from(vec![
                1.0e10,
                1.0e-5,
                0.1,
                1_234_567.0,
                12_345_678.9,
                f64::NAN,
                f64::NEG_INFINITY,
                0.0,
                -0.0,
            ])),
        )]),
        "nested" => nested(),
        "control" => columns([(
            "s",
            strings(&["a\nb", "tab\there", "cr\rx", "quote\"", "back\\slash", ""]),
        )]),
        "names" => columns([
            ("long column name here", array(Int32Array::from(vec![1]))),
            ("日本", array(Int32Array::from(vec![2]))),
            ("x", array(Int32Array::from(vec![3]))),
        ]),
        "no-columns" => {
            let options = RecordBatchOptions::new().with_row_count(Some(3));
            RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
                .expect("no columns")
        }
        name => panic!("testdata/console.jsonl has a print `{name}` whose rows this test does not know"),
    }
}

const JSON: &str = r#"{"id":7,"user":"ana","ts":"2026-01-02T03:04:05.678Z","amount":12.34,"tags":["a","b"]}"#;

fn columns<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns are equally long")
}

fn array(array: impl arrow::array::Array + 'static) -> ArrayRef {
    Arc::new(array)
}

fn strings(values: &[&str]) -> ArrayRef {
    array(StringArray::from(values.to_vec()))
}

fn numbers(count: i64) -> ArrayRef {
    array((0..count).collect::<Int64Array>())
}

fn timestamps(micros: &[i64]) -> TimestampMicrosecondArray {
    TimestampMicrosecondArray::from(micros.to_vec())
}

/// 2026-01-02 03:04:05 UTC.
const JANUARY: i64 = 1_767_323_045_000_000;

/// The view `messages` of `make_fixtures.py`, in the Kafka source's schema.
fn messages() -> RecordBatch {
    let at = [JANUARY + 678_000, -1_000, 1_709_251_199_000_000];
    let header = vec![
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Binary, true),
    ];
    let mut headers = ListBuilder::new(StructBuilder::from_fields(header, 1));
    let one = headers.values();
    one.field_builder::<StringBuilder>(0)
        .expect("a string")
        .append_value("trace");
    one.field_builder::<BinaryBuilder>(1)
        .expect("bytes")
        .append_value(b"t-1");
    one.append(true);
    headers.append(true);
    headers.append(false);
    headers.append(true);
    columns([
        (
            "key",
            array(BinaryArray::from(vec![
                Some(b"k1".as_slice()),
                None,
                Some(b"\x00\xff"),
            ])),
        ),
        (
            "value",
            array(BinaryArray::from(vec![
                Some(JSON.as_bytes()),
                None,
                Some(b"h\xe9\xffllo"),
            ])),
        ),
        ("topic", strings(&["test1"; 3])),
        ("partition", array(Int32Array::from(vec![0, 1, 2]))),
        ("offset", array(Int64Array::from(vec![42, 43, i64::MAX]))),
        ("timestamp", array(timestamps(&at).with_timezone("UTC"))),
        ("timestampType", array(Int32Array::from(vec![0, 1, 0]))),
        ("headers", array(headers.finish())),
    ])
}

fn types() -> RecordBatch {
    let decimal = Decimal128Array::from(vec![12_340])
        .with_precision_and_scale(5, 3)
        .expect("five digits");
    columns([
        ("a", array(Int8Array::from(vec![1]))),
        ("b", array(Int64Array::from(vec![2]))),
        ("c", array(Float64Array::from(vec![1.5]))),
        ("d", array(Float32Array::from(vec![1.0]))),
        ("e", array(decimal)),
        ("f", array(BooleanArray::from(vec![true]))),
        ("g", array(Date32Array::from(vec![20_455]))),
        ("h", array(timestamps(&[JANUARY]).with_timezone("UTC"))),
        ("i", array(timestamps(&[JANUARY + 120_000]).with_timezone("UTC"))),
        ("j", array(BinaryArray::from(vec![b"\x00\xff\x10".as_slice()]))),
        ("k", array(NullArray::new(1))),
        ("l", array(DurationMicrosecondArray::from(vec![86_400_000_000]))),
        ("m", array(timestamps(&[JANUARY]))),
    ])
}

fn nested() -> RecordBatch {
    let mut list = ListBuilder::new(Int32Builder::new());
    list.append_value([Some(1), None, Some(3)]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("k");
    map.values().append_value(1);
    map.keys().append_value("j");
    map.values().append_null();
    map.append(true).expect("as many keys as values");
    let fields = StructArray::from(vec![
        (
            Arc::new(Field::new("x", DataType::Int32, true)),
            array(Int32Array::from(vec![1])),
        ),
        (
            Arc::new(Field::new("y", DataType::Null, true)),
            array(NullArray::new(1)),
        ),
        (Arc::new(Field::new("z", DataType::Utf8, true)), strings(&["q"])),
    ]);
    let inner = vec![Field::new("x", DataType::Binary, true)];
    let mut structs = ListBuilder::new(StructBuilder::from_fields(inner, 1));
    structs
        .values()
        .field_builder::<BinaryBuilder>(0)
        .expect("bytes")
        .append_value([1]);
    structs.values().append(true);
    structs.append(true);
    let mut empty = ListBuilder::new(NullBuilder::new());
    empty.append(true);
    columns([
        ("a", array(list.finish())),
        ("m", array(map.finish())),
        ("s", array(fields)),
        ("n", array(structs.finish())),
        ("e", array(empty.finish())),
    ])
}
