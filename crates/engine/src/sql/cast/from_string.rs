//! Text read as Spark's `CAST('…' AS …)` reads it.

use chrono::{NaiveDate, NaiveTime};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray, StringArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::cast::as_string_array;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use std::sync::Arc;

use super::OnMisfit;
use crate::sql::kernel::{failed, failing_arrays};
use crate::sql::types::spark_name;

/// The kernel that reads text as a type, or none if no text is such a value.
pub(super) fn parse(name: String, expr: Expr, to: &DataType, misfit: OnMisfit) -> Option<Expr> {
    let target = to.clone();
    let readable = matches!(
        to,
        DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal128(..)
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Microsecond, _)
    );
    readable.then(|| {
        failing_arrays(
            misfit == OnMisfit::Fail,
            name,
            to.clone(),
            vec![expr],
            move |args| read(as_string_array(&args[0])?, &target, misfit),
        )
    })
}

fn read(text: &StringArray, to: &DataType, misfit: OnMisfit) -> Result<ArrayRef> {
    match to {
        DataType::Boolean => booleans(text, misfit),
        DataType::Int8 => each::<Int8Type>(text, to, misfit, parse_integer),
        DataType::Int16 => each::<Int16Type>(text, to, misfit, parse_integer),
        DataType::Int32 => each::<Int32Type>(text, to, misfit, parse_integer),
        DataType::Int64 => each::<Int64Type>(text, to, misfit, parse_integer),
        DataType::Float32 => each::<Float32Type>(text, to, misfit, parse_float::<f32>),
        DataType::Float64 => each::<Float64Type>(text, to, misfit, parse_float::<f64>),
        DataType::Date32 => each::<Date32Type>(text, to, misfit, |text| {
            parse_date(text).map(|date| date.to_epoch_days())
        }),
        DataType::Timestamp(_, zone) => {
            let parsed = each::<TimestampMicrosecondType>(text, to, misfit, parse_timestamp)?;
            let parsed = parsed.as_primitive::<TimestampMicrosecondType>().clone();
            Ok(Arc::new(parsed.with_timezone_opt(zone.clone())))
        }
        DataType::Decimal128(..) => decimals(text, to, misfit),
        other => Err(malformed("", other)),
    }
}

fn each<T: ArrowPrimitiveType>(
    text: &StringArray,
    to: &DataType,
    misfit: OnMisfit,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let parsed: Result<PrimitiveArray<T>> = text
        .iter()
        .map(|row| match row {
            None => Ok(None),
            Some(row) => match parse(row) {
                None if misfit == OnMisfit::Fail => Err(malformed(row, to)),
                parsed => Ok(parsed),
            },
        })
        .collect();
    Ok(Arc::new(parsed?))
}

fn booleans(text: &StringArray, misfit: OnMisfit) -> Result<ArrayRef> {
    let parsed: Result<BooleanArray> = text
        .iter()
        .map(|row| {
            let Some(row) = row else { return Ok(None) };
            match trimmed(row).to_ascii_lowercase().as_str() {
                "t" | "true" | "y" | "yes" | "1" => Ok(Some(true)),
                "f" | "false" | "n" | "no" | "0" => Ok(Some(false)),
                _ if misfit == OnMisfit::Fail => Err(malformed(row, &DataType::Boolean)),
                _ => Ok(None),
            }
        })
        .collect();
    Ok(Arc::new(parsed?))
}

fn decimals(text: &StringArray, to: &DataType, misfit: OnMisfit) -> Result<ArrayRef> {
    let trimmed: StringArray = text.iter().map(|row| row.map(trimmed)).collect();
    let lenient = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    let parsed = cast_with_options(&trimmed, to, &lenient)?;
    if misfit == OnMisfit::Fail
        && let Some(row) = (0..text.len()).find(|row| parsed.is_null(*row) && text.is_valid(*row))
    {
        return Err(malformed(text.value(row), to));
    }
    Ok(parsed)
}

fn malformed(text: &str, to: &DataType) -> datafusion::error::DataFusionError {
    let to = spark_name(to).to_uppercase();
    failed(
        "CAST_INVALID_INPUT",
        format!("'{text}' cannot be cast to {to}; use try_cast to get null instead"),
    )
}

/// Spark drops control characters and blanks at both ends.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ')
}

fn parse_integer<N: TryFrom<i64>>(text: &str) -> Option<N> {
    let text = trimmed(text);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse::<i64>().ok().and_then(|value| N::try_from(value).ok())
}

fn parse_float<N: std::str::FromStr>(text: &str) -> Option<N> {
    let text = trimmed(text);
    // Java's `1.5d` and `1.5f` are numbers too.
    let number = match text.strip_suffix(['d', 'D', 'f', 'F']) {
        Some(rest) if rest.ends_with(|c: char| c.is_ascii_digit() || c == '.') => rest,
        _ => text,
    };
    number.parse().ok()
}

/// `2026-1-2`, `2026-01`, `2026`, and whatever follows a `T` or a blank after a full date.
pub(crate) fn parse_date(text: &str) -> Option<NaiveDate> {
    let text = trimmed(text);
    let day = match text.find(['T', ' ']) {
        Some(end) => &text[..end],
        None => text,
    };
    let (date, parts) = day_of(day)?;
    (parts == 3 || day.len() == text.len()).then_some(date)
}

/// The day, and how many of its three parts were there.
fn day_of(text: &str) -> Option<(NaiveDate, usize)> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = text.split('-');
    let year = digits(parts.next()?, 4..=6)?;
    let year = i32::try_from(year).ok()? * if negative { -1 } else { 1 };
    let mut count = 1;
    let mut next = |default: u32| match parts.next() {
        None => Some(default),
        Some(part) => {
            count += 1;
            digits(part, 1..=2)
        }
    };
    let (month, day) = (next(1)?, next(1)?);
    if parts.next().is_some() {
        return None;
    }
    Some((NaiveDate::from_ymd_opt(year, month, day)?, count))
}

fn digits(text: &str, length: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let fits = length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

/// Microseconds since the epoch: a date, or a date and a time with an offset; UTC where none is given.
pub(crate) fn parse_timestamp(text: &str) -> Option<i64> {
    let text = trimmed(text);
    let Some(split) = text.find(['T', ' ']) else {
        return Some(
            day_of(text)?
                .0
                .and_time(NaiveTime::MIN)
                .and_utc()
                .timestamp_micros(),
        );
    };
    let (date, parts) = day_of(&text[..split])?;
    if parts != 3 {
        return None;
    }
    let rest = &text[split + 1..];
    let zone = rest
        .find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.'))
        .unwrap_or(rest.len());
    let of_day = time_of(&rest[..zone])?;
    let offset = offset_of(rest[zone..].trim())?;
    let midnight = date.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
    midnight.checked_add(of_day)?.checked_sub(offset * 1_000_000)
}

/// Microseconds of the day, from `h:m[:s[.fraction]]`.
fn time_of(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, fraction),
        None => (text, ""),
    };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut parts = clock.split(':');
    let hour = digits(parts.next()?, 1..=2).filter(|hour| *hour < 24)?;
    let minute = digits(parts.next().unwrap_or("0"), 1..=2).filter(|minute| *minute < 60)?;
    let second = digits(parts.next().unwrap_or("0"), 1..=2).filter(|second| *second < 60)?;
    if parts.next().is_some() {
        return None;
    }
    let mut micros = 0;
    for position in 0..6 {
        let digit = fraction
            .as_bytes()
            .get(position)
            .map_or(0, |byte| i64::from(byte - b'0'));
        micros = micros * 10 + digit;
    }
    Some((i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second)) * 1_000_000 + micros)
}

/// Seconds east of UTC. Names of regions are not known.
fn offset_of(text: &str) -> Option<i64> {
    let text = match text {
        "" | "Z" | "z" | "UTC" | "GMT" => return Some(0),
        text => text
            .strip_prefix("UTC")
            .or_else(|| text.strip_prefix("GMT"))
            .unwrap_or(text),
    };
    let (sign, text) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(rest), _) => (1, rest),
        (_, Some(rest)) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match text.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if text.len() == 4 => text.split_at(2),
        None => (text, "0"),
    };
    let hours = digits(hours, 1..=2).filter(|hours| *hours <= 18)?;
    let minutes = digits(minutes, 1..=2).filter(|minutes| *minutes < 60)?;
    Some(sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60))
}
