//! One value as Spark prints it.

use arrow::array::{
    Array, AsArray, Decimal128Array, Decimal256Array, FixedSizeBinaryArray, GenericListArray, MapArray,
    OffsetSizeTrait, StructArray, downcast_dictionary_array,
};
use arrow::datatypes::{
    ArrowNativeType, DataType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalUnit, IntervalYearMonthType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use chrono::DateTime;
use std::fmt::{Display, Write as _};
use std::ops::Range;

use super::java;

const NULL: &str = "NULL";
const SECOND_US: i64 = 1_000_000;
const DAY_S: i64 = 86_400;

/// Appends the value at `row`.
pub(super) fn write(out: &mut String, array: &dyn Array, row: usize) {
    use DataType as T;
    if array.is_null(row) || *array.data_type() == T::Null {
        return out.push_str(NULL);
    }
    match array.data_type() {
        T::Boolean => text(out, array.as_boolean().value(row)),
        T::Int8 => text(out, array.as_primitive::<Int8Type>().value(row)),
        T::Int16 => text(out, array.as_primitive::<Int16Type>().value(row)),
        T::Int32 => text(out, array.as_primitive::<Int32Type>().value(row)),
        T::Int64 => text(out, array.as_primitive::<Int64Type>().value(row)),
        T::UInt8 => text(out, array.as_primitive::<UInt8Type>().value(row)),
        T::UInt16 => text(out, array.as_primitive::<UInt16Type>().value(row)),
        T::UInt32 => text(out, array.as_primitive::<UInt32Type>().value(row)),
        T::UInt64 => text(out, array.as_primitive::<UInt64Type>().value(row)),
        T::Float16 => java::single(out, array.as_primitive::<Float16Type>().value(row).to_f32()),
        T::Float32 => java::single(out, array.as_primitive::<Float32Type>().value(row)),
        T::Float64 => java::double(out, array.as_primitive::<Float64Type>().value(row)),
        T::Utf8 => out.push_str(array.as_string::<i32>().value(row)),
        T::LargeUtf8 => out.push_str(array.as_string::<i64>().value(row)),
        T::Utf8View => out.push_str(array.as_string_view().value(row)),
        T::Binary => binary(out, array.as_binary::<i32>().value(row)),
        T::LargeBinary => binary(out, array.as_binary::<i64>().value(row)),
        T::BinaryView => binary(out, array.as_binary_view().value(row)),
        T::FixedSizeBinary(_) => binary(out, cast::<FixedSizeBinaryArray>(array).value(row)),
        T::Decimal128(..) => out.push_str(&cast::<Decimal128Array>(array).value_as_string(row)),
        T::Decimal256(..) => out.push_str(&cast::<Decimal256Array>(array).value_as_string(row)),
        T::Date32 => date(out, i64::from(array.as_primitive::<Date32Type>().value(row))),
        T::Date64 => date(
            out,
            array
                .as_primitive::<Date64Type>()
                .value(row)
                .div_euclid(DAY_S * 1_000),
        ),
        T::Timestamp(unit, _) => timestamp(out, micros(array, row, *unit)),
        T::Duration(unit) => duration(out, duration_micros(array, row, *unit)),
        T::Interval(IntervalUnit::YearMonth) => {
            year_month(out, array.as_primitive::<IntervalYearMonthType>().value(row));
        }
        T::List(_) => list(out, array.as_list::<i32>(), row),
        T::LargeList(_) => list(out, array.as_list::<i64>(), row),
        T::FixedSizeList(..) => {
            let entries = array.as_fixed_size_list().value(row);
            run(out, &*entries, 0..entries.len());
        }
        T::Struct(_) => fields(out, array.as_struct(), row),
        T::Map(..) => map(out, array.as_map(), row),
        T::Dictionary(..) => dictionary(out, array, row),
        _ => other(out, array, row),
    }
}

fn text(out: &mut String, value: impl Display) {
    let _infallible = write!(out, "{value}");
}

fn cast<T: 'static>(array: &dyn Array) -> &T {
    array
        .as_any()
        .downcast_ref()
        .expect("the data type says which array it is")
}

fn binary(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(3 * bytes.len() + 2);
    out.push('[');
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out.push(']');
}

fn list<O: OffsetSizeTrait>(out: &mut String, array: &GenericListArray<O>, row: usize) {
    let ends = array.value_offsets();
    run(
        out,
        array.values(),
        ends[row].as_usize()..ends[row + 1].as_usize(),
    );
}

fn run(out: &mut String, entries: &dyn Array, range: Range<usize>) {
    out.push('[');
    for entry in range.clone() {
        if entry > range.start {
            out.push_str(", ");
        }
        write(out, entries, entry);
    }
    out.push(']');
}

fn fields(out: &mut String, array: &StructArray, row: usize) {
    out.push('{');
    for (index, column) in array.columns().iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write(out, column, row);
    }
    out.push('}');
}

fn map(out: &mut String, array: &MapArray, row: usize) {
    let ends = array.value_offsets();
    let range = ends[row].as_usize()..ends[row + 1].as_usize();
    out.push('{');
    for entry in range.clone() {
        if entry > range.start {
            out.push_str(", ");
        }
        write(out, array.keys(), entry);
        out.push_str(" -> ");
        write(out, array.values(), entry);
    }
    out.push('}');
}

fn dictionary(out: &mut String, array: &dyn Array, row: usize) {
    downcast_dictionary_array!(
        array => match array.key(row) {
            Some(key) => write(out, array.values(), key),
            None => out.push_str(NULL),
        },
        _ => other(out, array, row)
    );
}

/// What Spark has no type for.
fn other(out: &mut String, array: &dyn Array, row: usize) {
    match ArrayFormatter::try_new(array, &FormatOptions::default()) {
        Ok(formatter) => text(out, formatter.value(row)),
        Err(error) => text(out, error),
    }
}

fn date(out: &mut String, days: i64) {
    match DateTime::from_timestamp(days.saturating_mul(DAY_S), 0) {
        Some(at) => text(out, at.format("%Y-%m-%d")),
        None => text(out, days),
    }
}

fn micros(array: &dyn Array, row: usize, unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => array
            .as_primitive::<TimestampSecondType>()
            .value(row)
            .saturating_mul(SECOND_US),
        TimeUnit::Millisecond => array
            .as_primitive::<TimestampMillisecondType>()
            .value(row)
            .saturating_mul(1_000),
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(row),
        TimeUnit::Nanosecond => array
            .as_primitive::<TimestampNanosecondType>()
            .value(row)
            .div_euclid(1_000),
    }
}

fn timestamp(out: &mut String, micros: i64) {
    match DateTime::from_timestamp_micros(micros) {
        Some(at) => {
            text(out, at.format("%Y-%m-%d %H:%M:%S"));
            fraction(out, micros.rem_euclid(SECOND_US));
        }
        None => text(out, micros),
    }
}

/// `.123456` without zeros at its end; nothing for 0.
fn fraction(out: &mut String, micros: i64) {
    if micros != 0 {
        let _infallible = write!(out, ".{micros:06}");
        out.truncate(out.trim_end_matches('0').len());
    }
}

fn duration_micros(array: &dyn Array, row: usize, unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => array
            .as_primitive::<DurationSecondType>()
            .value(row)
            .saturating_mul(SECOND_US),
        TimeUnit::Millisecond => array
            .as_primitive::<DurationMillisecondType>()
            .value(row)
            .saturating_mul(1_000),
        TimeUnit::Microsecond => array.as_primitive::<DurationMicrosecondType>().value(row),
        TimeUnit::Nanosecond => array.as_primitive::<DurationNanosecondType>().value(row) / 1_000,
    }
}

/// Spark's day-time interval.
fn duration(out: &mut String, micros: i64) {
    let sign = if micros < 0 { "-" } else { "" };
    let whole = micros.unsigned_abs();
    let (seconds, rest) = (whole / 1_000_000, whole % 1_000_000);
    let (days, in_day) = (seconds / 86_400, seconds % 86_400);
    if in_day == 0 && rest == 0 {
        let _infallible = write!(out, "INTERVAL '{sign}{days}' DAY");
        return;
    }
    let (hours, minutes) = (in_day / 3_600, in_day / 60 % 60);
    let _infallible = write!(
        out,
        "INTERVAL '{sign}{days} {hours:02}:{minutes:02}:{:02}",
        in_day % 60
    );
    fraction(out, i64::try_from(rest).unwrap_or(0));
    out.push_str("' DAY TO SECOND");
}

/// Spark's year-month interval.
fn year_month(out: &mut String, months: i32) {
    let sign = if months < 0 { "-" } else { "" };
    let months = months.unsigned_abs();
    let _infallible = write!(
        out,
        "INTERVAL '{sign}{}-{}' YEAR TO MONTH",
        months / 12,
        months % 12
    );
}

#[cfg(test)]
mod tests;
