//! Literals, with the types that Spark gives them.

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast::{self, DateTimeField, Value};

use super::cast::{OnMisfit, explicit, parse_date, parse_timestamp, timestamp_literal};
use super::env::Env;
use super::error::{Error, Place};
use super::expression::literal_integer;
use super::scope::Bound;
use super::types::{MAX_PRECISION, as_decimal, from_ast, interval as interval_type, is_integer};

fn bound(value: ScalarValue) -> Bound {
    Bound {
        ty: value.data_type(),
        expr: Expr::Literal(value, None),
    }
}

pub(super) fn text(text: &str) -> Bound {
    bound(ScalarValue::Utf8(Some(text.to_owned())))
}

fn malformed(what: &str, place: Place, reason: &str) -> Error {
    Error::Mismatch {
        what: what.to_owned(),
        place,
        reason: reason.to_owned(),
    }
}

pub(super) fn value(value: &Value, place: Place) -> Result<Bound, Error> {
    match value {
        Value::Number(digits, long) => number(digits, *long, place),
        Value::SingleQuotedString(string) | Value::DoubleQuotedString(string) => Ok(text(string)),
        Value::HexStringLiteral(hex) => {
            let bytes = bytes_of(hex).ok_or_else(|| malformed("X'…'", place, "takes hexadecimal digits"))?;
            Ok(bound(ScalarValue::Binary(Some(bytes))))
        }
        Value::Boolean(value) => Ok(bound(ScalarValue::Boolean(Some(*value)))),
        Value::Null => Ok(bound(ScalarValue::Null)),
        other => Err(Error::Unsupported {
            what: format!("literal {other}"),
            place,
            hint: "write it as Spark's SQL has it".to_owned(),
        }),
    }
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let padded = if hex.len() % 2 == 1 {
        format!("0{hex}")
    } else {
        hex.to_owned()
    };
    padded
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// `42`, `42L`, `1.5`, `1.5D`, `1e3`, …
pub(super) fn number(text: &str, long: bool, place: Place) -> Result<Bound, Error> {
    let (digits, suffix) = match text.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')) {
        Some(at) => text.split_at(at),
        None => (text, if long { "L" } else { "" }),
    };
    let wrong = |reason: &str| malformed(&format!("number {text}"), place, reason);
    let integer = || digits.parse::<i64>();
    Ok(match suffix {
        "L" => bound(ScalarValue::Int64(Some(
            integer().map_err(|_| wrong("does not fit into bigint"))?,
        ))),
        "S" => {
            let value = digits.parse().map_err(|_| wrong("does not fit into smallint"))?;
            bound(ScalarValue::Int16(Some(value)))
        }
        "Y" => {
            let value = digits.parse().map_err(|_| wrong("does not fit into tinyint"))?;
            bound(ScalarValue::Int8(Some(value)))
        }
        "F" => bound(ScalarValue::Float32(Some(
            digits.parse().map_err(|_| wrong("is no float"))?,
        ))),
        "D" => bound(ScalarValue::Float64(Some(
            digits.parse().map_err(|_| wrong("is no double"))?,
        ))),
        "BD" => decimal(digits).ok_or_else(|| wrong("does not fit into a decimal"))?,
        _ if digits.contains(['e', 'E']) => bound(ScalarValue::Float64(Some(
            digits.parse().map_err(|_| wrong("is no double"))?,
        ))),
        _ if digits.contains('.') => decimal(digits).ok_or_else(|| wrong("does not fit into a decimal"))?,
        _ => match (digits.parse::<i32>(), integer()) {
            (Ok(value), _) => bound(ScalarValue::Int32(Some(value))),
            (_, Ok(value)) => bound(ScalarValue::Int64(Some(value))),
            _ => decimal(digits).ok_or_else(|| wrong("does not fit into a decimal"))?,
        },
    })
}

/// Exactly as many digits as are written.
fn decimal(text: &str) -> Option<Bound> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let negative = whole.starts_with('-');
    let whole = whole.trim_start_matches('-').trim_start_matches('0');
    let scale = fraction.len();
    let precision = (whole.len() + scale).max(scale).max(1);
    if precision > usize::from(MAX_PRECISION) {
        return None;
    }
    let digits = format!("0{whole}{fraction}");
    let value: i128 = digits.parse().ok()?;
    let value = if negative { -value } else { value };
    Some(bound(ScalarValue::Decimal128(
        Some(value),
        u8::try_from(precision).ok()?,
        i8::try_from(scale).ok()?,
    )))
}

/// The type an operand counts as beside another: a whole number beside a decimal has only the digits it is written with.
pub(super) fn tight_type(operand: &Bound, beside: &DataType) -> DataType {
    if let DataType::Decimal128(..) = beside
        && is_integer(&operand.ty)
        && let Some(value) = literal_integer(&operand.expr)
    {
        let digits = value.unsigned_abs().to_string().len();
        return DataType::Decimal128(u8::try_from(digits).unwrap_or(MAX_PRECISION), 0);
    }
    operand.ty.clone()
}

/// The precision and scale an operand of decimal arithmetic has.
pub(super) fn tight_decimal(operand: &Bound) -> Option<(u8, i8)> {
    as_decimal(&tight_type(operand, &DataType::Decimal128(1, 0)))
}

/// `DATE'2026-01-02'`, `TIMESTAMP'…'`.
pub(super) fn typed(env: &Env, typed: &ast::TypedString, place: Place) -> Result<Bound, Error> {
    let (Value::SingleQuotedString(written) | Value::DoubleQuotedString(written)) = &typed.value.value else {
        return Err(malformed("a typed literal", place, "takes text in quotes"));
    };
    let what = format!("{}'{written}'", typed.data_type);
    match from_ast(&typed.data_type) {
        Some(DataType::Date32) => {
            let date =
                parse_date(written).ok_or_else(|| malformed(&what, place, "is no date like 2026-01-02"))?;
            Ok(bound(ScalarValue::Date32(Some(date.to_epoch_days()))))
        }
        Some(ty @ DataType::Timestamp(..)) => {
            let micros = parse_timestamp(written)
                .ok_or_else(|| malformed(&what, place, "is no timestamp like 2026-01-02 03:04:05"))?;
            let zoned = matches!(ty, DataType::Timestamp(_, Some(_)));
            Ok(Bound {
                expr: timestamp_literal(micros, zoned),
                ty,
            })
        }
        Some(ty) => {
            let text = text(written);
            explicit(env, text.expr, &text.ty, &ty, OnMisfit::Fail)
                .map(|expr| Bound { expr, ty })
                .ok_or_else(|| malformed(&what, place, "is no literal"))
        }
        None => Err(malformed(&what, place, "is no literal")),
    }
}

/// `INTERVAL 10 SECONDS`, `INTERVAL '1' DAY`, `INTERVAL '1 day 2 hours'`.
pub(super) fn interval(interval: &ast::Interval, place: Place) -> Result<Bound, Error> {
    let wrong = || {
        malformed(
            "INTERVAL",
            place,
            "is like INTERVAL 10 SECONDS, INTERVAL '1' DAY or INTERVAL '1 day 2 hours'",
        )
    };
    if interval.last_field.is_some() {
        return Err(Error::Unsupported {
            what: "INTERVAL … TO …".to_owned(),
            place,
            hint: "write INTERVAL '1 day 2 hours'".to_owned(),
        });
    }
    let (negative, value) = match interval.value.as_ref() {
        ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Minus,
            expr,
        } => (true, expr.as_ref()),
        value => (false, value),
    };
    let written = match value {
        ast::Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.clone(),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    let parsed = match &interval.leading_field {
        Some(field) => one_unit(written.trim(), &unit_of(field)),
        None => parse_interval(&written),
    };
    let (months, days, micros) = parsed.ok_or_else(wrong)?;
    let sign = if negative { -1 } else { 1 };
    let value = IntervalMonthDayNano::new(
        i32::try_from(i64::from(sign) * months).map_err(|_| wrong())?,
        i32::try_from(i64::from(sign) * days).map_err(|_| wrong())?,
        (i64::from(sign) * micros).checked_mul(1_000).ok_or_else(wrong)?,
    );
    Ok(Bound {
        expr: Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), None),
        ty: interval_type(),
    })
}

fn unit_of(field: &DateTimeField) -> String {
    field.to_string().to_lowercase()
}

/// Months, days and microseconds of text like `1 day 2 hours` or `interval 10 seconds`.
pub(super) fn parse_interval(text: &str) -> Option<(i64, i64, i64)> {
    let mut total = (0_i64, 0_i64, 0_i64);
    let mut words = text.split_whitespace().peekable();
    words.next_if(|word| word.eq_ignore_ascii_case("interval"));
    words.peek()?;
    while let Some(amount) = words.next() {
        let (months, days, micros) = one_unit(amount, &words.next()?.to_lowercase())?;
        total.0 = total.0.checked_add(months)?;
        total.1 = total.1.checked_add(days)?;
        total.2 = total.2.checked_add(micros)?;
    }
    Some(total)
}

fn one_unit(amount: &str, unit: &str) -> Option<(i64, i64, i64)> {
    let unit = unit.strip_suffix('s').unwrap_or(unit);
    if unit == "second" {
        let seconds: f64 = amount.parse().ok()?;
        return Some((0, 0, (seconds * 1e6).round() as i64));
    }
    let amount: i64 = amount.parse().ok()?;
    let times = |factor: i64| amount.checked_mul(factor);
    Some(match unit {
        "year" => (times(12)?, 0, 0),
        "month" => (amount, 0, 0),
        "week" => (0, times(7)?, 0),
        "day" => (0, amount, 0),
        "hour" => (0, 0, times(3_600_000_000)?),
        "minute" => (0, 0, times(60_000_000)?),
        "millisecond" => (0, 0, times(1_000)?),
        "microsecond" => (0, 0, amount),
        _ => return None,
    })
}
