//! Values as Spark's `CAST(… AS STRING)` prints them.

use chrono::{DateTime, Datelike, NaiveDate};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, StringArray, StringBuilder, downcast_integer_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DecimalType, Float32Type, Float64Type, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::cast::as_binary_array;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sql::env::Env;
use crate::sql::kernel::{arrays, failed};

/// Bytes as text: what is not UTF-8 becomes U+FFFD, and is counted.
pub(super) fn from_binary(env: &Env, expr: Expr) -> Expr {
    let replaced = Arc::clone(&env.replaced);
    arrays(
        "cast(binary as string)",
        DataType::Utf8,
        vec![expr],
        move |args| Ok(Arc::new(decode(as_binary_array(&args[0])?, &replaced))),
    )
}

/// Checks all rows' bytes at once and copies nothing, if all are UTF-8.
fn decode(bytes: &BinaryArray, replaced: &AtomicU64) -> StringArray {
    let offsets = bytes.offsets();
    let first = offsets[0];
    let (start, end) = (first as usize, offsets[bytes.len()] as usize);
    let used = bytes.values().slice_with_length(start, end - start);
    let offsets = if first == 0 {
        offsets.clone()
    } else {
        OffsetBuffer::new(offsets.iter().map(|offset| offset - first).collect())
    };
    if let Ok(text) = StringArray::try_new(offsets, used, bytes.nulls().cloned()) {
        return text;
    }
    let mut text = StringBuilder::with_capacity(bytes.len(), end - start);
    let mut count = 0;
    for value in bytes {
        let Some(value) = value else {
            text.append_null();
            continue;
        };
        if let Ok(valid) = std::str::from_utf8(value) {
            text.append_value(valid);
            continue;
        }
        for chunk in value.utf8_chunks() {
            write_str(&mut text, chunk.valid());
            if !chunk.invalid().is_empty() {
                write_str(&mut text, "\u{FFFD}");
                count += 1;
            }
        }
        text.append_value("");
    }
    replaced.fetch_add(count, Ordering::Relaxed);
    text.finish()
}

/// Adds to the row that the next `append_value` ends.
fn write_str(builder: &mut StringBuilder, text: &str) {
    builder.write_str(text).expect("a string builder takes all text");
}

/// Any other value as text.
pub(super) fn print(name: String, expr: Expr) -> Expr {
    arrays(name, DataType::Utf8, vec![expr], |args| {
        let values = &args[0];
        let mut text = StringBuilder::with_capacity(values.len(), values.len() * 8);
        for row in 0..values.len() {
            if values.is_null(row) {
                text.append_null();
            } else {
                write_value(&mut text, values, row)?;
                text.append_value("");
            }
        }
        let text: ArrayRef = Arc::new(text.finish());
        Ok(text)
    })
}

/// The first value as text.
pub(super) fn one(values: &ArrayRef) -> Option<String> {
    let mut text = String::new();
    write_or_null(&mut text, values, 0).ok()?;
    Some(text)
}

/// Writes a value that is not null.
fn write_value(out: &mut impl Write, values: &ArrayRef, row: usize) -> Result<()> {
    let values = values.as_ref();
    macro_rules! integer {
        ($array:ident) => {
            write!(out, "{}", $array.value(row))
        };
    }
    let written = downcast_integer_array!(
        values => integer!(values),
        DataType::Boolean => write!(out, "{}", values.as_boolean().value(row)),
        DataType::Utf8 => out.write_str(values.as_string::<i32>().value(row)),
        DataType::Binary => out.write_str(&String::from_utf8_lossy(values.as_binary::<i32>().value(row))),
        DataType::Float64 => write_double(out, values.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => write_float(out, values.as_primitive::<Float32Type>().value(row)),
        DataType::Decimal128(precision, scale) => {
            let value = values.as_primitive::<Decimal128Type>().value(row);
            out.write_str(&Decimal128Type::format_decimal(value, *precision, *scale))
        }
        DataType::Date32 => write_date(out, values.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            write_timestamp(out, values.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::List(_) => return write_list(out, &values.as_list::<i32>().value(row)),
        DataType::Struct(_) => return write_struct(out, values.as_struct().columns(), row),
        DataType::Map(_, _) => return write_map(out, &values.as_map().value(row)),
        other => return Err(failed("DATATYPE_MISMATCH", format!("{other} has no text form"))),
    );
    written.map_err(|error| failed("INTERNAL_ERROR", error))
}

fn write_or_null(out: &mut impl Write, values: &ArrayRef, row: usize) -> Result<()> {
    if values.is_null(row) {
        return put(out, "null");
    }
    write_value(out, values, row)
}

fn put(out: &mut impl Write, text: &str) -> Result<()> {
    out.write_str(text)
        .map_err(|error| failed("INTERNAL_ERROR", error))
}

fn write_list(out: &mut impl Write, items: &ArrayRef) -> Result<()> {
    put(out, "[")?;
    for row in 0..items.len() {
        if row > 0 {
            put(out, ", ")?;
        }
        write_or_null(out, items, row)?;
    }
    put(out, "]")
}

fn write_struct(out: &mut impl Write, columns: &[ArrayRef], row: usize) -> Result<()> {
    put(out, "{")?;
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            put(out, ", ")?;
        }
        write_or_null(out, column, row)?;
    }
    put(out, "}")
}

fn write_map(out: &mut impl Write, entries: &datafusion::arrow::array::StructArray) -> Result<()> {
    put(out, "{")?;
    for row in 0..entries.len() {
        if row > 0 {
            put(out, ", ")?;
        }
        write_or_null(out, entries.column(0), row)?;
        put(out, " -> ")?;
        write_or_null(out, entries.column(1), row)?;
    }
    put(out, "}")
}

/// Java's `Double.toString`: plain between 10^-3 and 10^7, otherwise with an exponent; always with a decimal point.
fn write_double(out: &mut impl Write, value: f64) -> std::fmt::Result {
    if value.is_nan() {
        return out.write_str("NaN");
    }
    if value.is_infinite() {
        return out.write_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return write!(out, "{value:?}");
    }
    write_scientific(out, &format!("{value:e}"))
}

fn write_float(out: &mut impl Write, value: f32) -> std::fmt::Result {
    if !value.is_finite() {
        return write_double(out, f64::from(value));
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return write!(out, "{value:?}");
    }
    write_scientific(out, &format!("{value:e}"))
}

fn write_scientific(out: &mut impl Write, text: &str) -> std::fmt::Result {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    write!(out, "{mantissa}{point}E{exponent}")
}

fn write_date(out: &mut impl Write, days: i32) -> std::fmt::Result {
    match NaiveDate::from_epoch_days(days) {
        Some(date) => write_day(out, date),
        None => write!(out, "{days} days"),
    }
}

fn write_day(out: &mut impl Write, date: NaiveDate) -> std::fmt::Result {
    let sign = if date.year() > 9999 { "+" } else { "" };
    write!(
        out,
        "{sign}{:04}-{:02}-{:02}",
        date.year(),
        date.month(),
        date.day()
    )
}

/// `2026-01-02 03:04:05.678`, without trailing zeros, from microseconds since the epoch.
fn write_timestamp(out: &mut impl Write, micros: i64) -> std::fmt::Result {
    let Some(at) = DateTime::from_timestamp_micros(micros) else {
        return write!(out, "{micros} us");
    };
    write_day(out, at.date_naive())?;
    write!(out, " {}", at.format("%H:%M:%S"))?;
    let fraction = micros.rem_euclid(1_000_000);
    if fraction == 0 {
        return Ok(());
    }
    let digits = format!("{fraction:06}");
    write!(out, ".{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(rows: &[Option<&[u8]>]) -> (Vec<Option<String>>, u64) {
        let replaced = AtomicU64::new(0);
        let text = decode(&BinaryArray::from(rows.to_vec()), &replaced);
        let text = text.iter().map(|row| row.map(str::to_owned)).collect();
        (text, replaced.into_inner())
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn text_that_is_utf8_is_not_copied() {
        let bytes = BinaryArray::from(vec![Some("ab".as_bytes()), None, Some("é".as_bytes())]);
        let text = decode(&bytes, &AtomicU64::new(0));
        assert_eq!(text.values().as_ptr(), bytes.values().as_ptr());
        assert_eq!(text.value(2), "é");
    }

    #[test]
    fn each_broken_sequence_becomes_one_replacement_character_and_is_counted() {
        let rows: &[Option<&[u8]>] = &[Some(b"h\xE9\xFFllo"), None, Some(b"ok")];
        assert_eq!(
            decoded(rows),
            (vec![some("h\u{FFFD}\u{FFFD}llo"), None, some("ok")], 2)
        );
    }

    #[test]
    fn a_character_split_over_two_rows_is_broken_in_both() {
        let rows: &[Option<&[u8]>] = &[Some(b"\xC3"), Some(b"\xA9")];
        assert_eq!(decoded(rows), (vec![some("\u{FFFD}"), some("\u{FFFD}")], 2));
    }

    #[test]
    fn a_slice_reads_only_its_own_rows() {
        let rows: Vec<Option<&[u8]>> = vec![Some(b"\xFF"), Some(b"a"), Some(b"b")];
        let slice = BinaryArray::from(rows).slice(1, 2);
        let replaced = AtomicU64::new(0);
        let text = decode(&slice, &replaced);
        assert_eq!(
            (text.value(0), text.value(1), replaced.into_inner()),
            ("a", "b", 0)
        );
    }
}
