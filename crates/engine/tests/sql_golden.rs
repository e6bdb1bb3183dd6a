//! Each expression of `testdata/spark-sql/expressions.jsonl` gives what Spark gave, or is on the list of differences.

use baton_core::arrow::array::{
    ArrayRef, BinaryArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use baton_core::arrow::schema::{DataType, Field, Fields, Schema, SchemaRef};
use baton_core::{SourceName, Timestamp};
use baton_engine::sql::{Compiler, Query};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use futures::StreamExt;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

#[derive(Debug, Deserialize)]
struct Line {
    expr: String,
    columns: Option<Vec<(String, String)>>,
    rows: Option<Vec<Vec<Option<String>>>>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Difference {
    expr: String,
    reason: String,
}

fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn lines() -> Vec<Line> {
    read(include_str!("../testdata/spark-sql/expressions.jsonl"))
}

fn differences() -> BTreeMap<String, String> {
    read::<Difference>(include_str!("../testdata/spark-sql/differences.jsonl"))
        .into_iter()
        .map(|difference| (difference.expr, difference.reason))
        .collect()
}

/// The three records that the expressions were tried on.
fn messages() -> RecordBatch {
    let key: Vec<Option<&[u8]>> = vec![Some(b"k1"), None, Some(b"\x00\xFF")];
    let json = br#"{"id":7,"user":"ana","ts":"2026-01-02T03:04:05.678Z","amount":12.34,"tags":["a","b"]}"#;
    let value: Vec<Option<&[u8]>> = vec![Some(json), None, Some(b"\x68\xE9\xFF\x6C\x6C\x6F")];
    let stamps = vec![1_767_323_045_678_000, -1_000, 1_709_251_199_000_000];
    let header_fields = Fields::from(vec![
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Binary, true),
    ]);
    let header_values: Vec<Option<&[u8]>> = vec![Some(b"t-1")];
    let headers = ListArray::new(
        Arc::new(Field::new("item", DataType::Struct(header_fields.clone()), true)),
        OffsetBuffer::from_lengths([1, 0, 0]),
        Arc::new(StructArray::new(
            header_fields,
            vec![
                Arc::new(StringArray::from(vec!["trace"])),
                Arc::new(BinaryArray::from(header_values)),
            ],
            None,
        )),
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("key", Arc::new(BinaryArray::from(key))),
        ("value", Arc::new(BinaryArray::from(value))),
        ("topic", Arc::new(StringArray::from(vec!["test1"; 3]))),
        ("partition", Arc::new(Int32Array::from(vec![0, 1, 2]))),
        ("offset", Arc::new(Int64Array::from(vec![42, 43, i64::MAX]))),
        (
            "timestamp",
            Arc::new(TimestampMicrosecondArray::from(stamps).with_timezone("UTC")),
        ),
        ("timestampType", Arc::new(Int32Array::from(vec![0, 1, 0]))),
        ("headers", Arc::new(headers)),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("equal lengths")
}

fn name() -> SourceName {
    SourceName::new("messages").expect("a name")
}

struct Bench {
    compiler: Compiler,
    rows: RecordBatch,
}

type Rows = Vec<Vec<Option<String>>>;

impl Bench {
    fn new() -> Self {
        let rows = messages();
        let schema: SchemaRef = rows.schema();
        let compiler = Compiler::new(&[(name(), schema)]).expect("one source");
        Self { compiler, rows }
    }

    fn compile(&self, sql: &str) -> Result<Query, String> {
        self.compiler.compile(sql).map_err(|error| {
            let cause =
                std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
            format!("{error}{cause}")
        })
    }

    /// Rows of text.
    fn run(&self, query: &Query) -> Result<Rows, String> {
        let rows = self.rows.clone();
        let inputs = HashMap::from([(name(), vec![futures::stream::iter([Ok(rows)]).boxed()])]);
        let now = Timestamp(1_767_323_045_678);
        let streams = query.run(now, inputs).map_err(|error| error.to_string())?;
        let mut result = Vec::new();
        for mut stream in streams {
            while let Some(batch) = futures::executor::block_on(stream.next()) {
                let batch = batch.map_err(|error| error.strip_backtrace())?;
                for row in 0..batch.num_rows() {
                    let text = |column: &ArrayRef| {
                        let column = column.as_string::<i32>();
                        column.iter().nth(row).flatten().map(str::to_owned)
                    };
                    result.push(batch.columns().iter().map(text).collect());
                }
            }
        }
        Ok(result)
    }

    /// Names and types of an expression's columns, and its rows as text.
    fn evaluate(&self, expr: &str) -> Result<(Vec<(String, String)>, Rows), String> {
        let query = self.compile(&format!("SELECT {expr} FROM messages"))?;
        let names: Vec<String> = query
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        let over = |each: &dyn Fn(usize) -> String| {
            let columns: Vec<String> = (0..names.len()).map(|index| format!("c{index}")).collect();
            let list: Vec<String> = (0..names.len()).map(each).collect();
            let sql = format!(
                "SELECT {} FROM (SELECT {expr} FROM messages) AS t({})",
                list.join(", "),
                columns.join(", ")
            );
            self.run(&self.compile(&sql)?)
        };
        let types = over(&|index| format!("typeof(c{index})"))?;
        let types: Vec<String> = types
            .into_iter()
            .next()
            .unwrap_or_default()
            .into_iter()
            .flatten()
            .collect();
        let rows = over(&|index| match types[index].as_str() {
            "binary" => format!("hex(c{index})"),
            _ => format!("CAST(c{index} AS STRING)"),
        })?;
        Ok((names.into_iter().zip(types).collect(), rows))
    }

    /// What differs from Spark, or none.
    fn differs(&self, line: &Line) -> Option<String> {
        match (self.evaluate(&line.expr), &line.error) {
            (Ok((columns, rows)), None) => {
                let (theirs, their_rows) = (line.columns.as_ref()?, line.rows.as_ref()?);
                if columns != *theirs {
                    return Some(format!("columns {columns:?}, Spark {theirs:?}"));
                }
                (rows != *their_rows).then(|| format!("rows {rows:?}, Spark {their_rows:?}"))
            }
            (Ok((_, rows)), Some(error)) => Some(format!("rows {rows:?}, Spark fails with {error}")),
            // A Java exception has no condition that we could name.
            (Err(ours), Some(error)) => {
                let same = ours.contains(&format!("[{error}]")) || error.ends_with("Exception");
                (!same).then(|| format!("fails with {ours}, Spark with {error}"))
            }
            (Err(ours), None) => Some(format!("fails with {ours}")),
        }
    }
}

#[test]
fn every_expression_gives_what_spark_gives_or_is_listed() {
    let bench = Bench::new();
    let listed = differences();
    let mut wrong = Vec::new();
    for line in lines() {
        match (bench.differs(&line), listed.get(&line.expr)) {
            (Some(difference), None) => wrong.push(format!("{}\n    {difference}", line.expr)),
            (None, Some(_)) => wrong.push(format!("{}\n    is listed, but equals Spark now", line.expr)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_listed_difference_is_an_expression_with_a_reason() {
    let known: Vec<String> = lines().into_iter().map(|line| line.expr).collect();
    for (expr, reason) in differences() {
        assert!(known.contains(&expr), "{expr} is not in the golden file");
        let page = include_str!("../../../docs/sql-differences.md");
        assert!(
            page.contains(&format!("`{expr}` – {reason}")),
            "{expr} is not in docs/sql-differences.md"
        );
    }
}
