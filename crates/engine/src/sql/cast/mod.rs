//! `CAST` with Spark's rules: which types go into which, and what becomes of a value that does not fit.

mod from_string;
mod numeric;
mod to_string;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Cast, Expr};

use super::env::Env;
use super::types::{
    is_binary, is_float, is_integer, is_numeric, is_string, is_timestamp, spark_name, timestamp,
};

pub(super) use from_string::{parse_date, parse_timestamp};

/// What becomes of a value that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnMisfit {
    /// The batch fails, as with ANSI mode in Spark.
    Fail,
    /// The result is null, as with `try_cast`.
    Null,
}

impl OnMisfit {
    const fn word(self) -> &'static str {
        match self {
            Self::Fail => "cast",
            Self::Null => "try_cast",
        }
    }
}

/// An explicit cast, or none if Spark does not cast between these types.
pub(super) fn explicit(
    env: &Env,
    expr: Expr,
    from: &DataType,
    to: &DataType,
    misfit: OnMisfit,
) -> Option<Expr> {
    if from == to {
        return Some(expr);
    }
    let name = format!("{}({} as {})", misfit.word(), spark_name(from), spark_name(to));
    Some(match (from, to) {
        (DataType::Null, to) => plain(expr, to),
        (from, to) if is_string(from) && is_string(to) => plain(expr, to),
        (from, to) if is_binary(from) && is_binary(to) => plain(expr, to),
        (from, to) if is_string(from) && is_binary(to) => plain(expr, &DataType::Binary),
        (from, DataType::Utf8) if is_binary(from) => {
            to_string::from_binary(env, plain_unless(expr, from, &DataType::Binary))
        }
        (from, DataType::Utf8) if is_printable(from) => to_string::print(name, expr),
        (from, to) if is_string(from) => {
            return from_string::parse(name, plain_unless(expr, from, &DataType::Utf8), to, misfit);
        }
        (from, to) if is_timestamp(from) && is_timestamp(to) => plain(expr, to),
        (from, to) if is_numeric(from) || is_numeric(to) || is_temporal(from) => {
            return numeric::convert(name, expr, from, to, misfit);
        }
        (DataType::List(a), DataType::List(b))
            if widens(a.data_type(), b.data_type()) || a.data_type() == b.data_type() =>
        {
            plain(expr, to)
        }
        (DataType::Struct(a), DataType::Struct(b))
            if a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name() == b.name()) =>
        {
            plain(expr, to)
        }
        _ => return None,
    })
}

/// The cast that Spark puts in by itself where operands differ in type, or none if it does not.
pub(super) fn implicit(env: &Env, expr: Expr, from: &DataType, to: &DataType) -> Option<Expr> {
    if from == to {
        return Some(expr);
    }
    if widens(from, to) {
        return Some(plain(expr, to));
    }
    let allowed = match (from, to) {
        (from, DataType::Utf8) => is_printable(from) || is_string(from) || is_binary(from),
        (from, _) if is_string(from) => true,
        (from, to) if is_binary(from) && is_binary(to) => true,
        (DataType::Date32, to) | (DataType::Timestamp(_, None), to) if is_timestamp(to) => true,
        (DataType::Timestamp(..), DataType::Date32) => true,
        (from, to) if is_timestamp(from) && is_timestamp(to) => true,
        (from, DataType::Float64 | DataType::Decimal128(..)) if is_numeric(from) => true,
        (DataType::List(_), DataType::List(_)) | (DataType::Struct(_), DataType::Struct(_)) => true,
        _ => false,
    };
    if allowed {
        explicit(env, expr, from, to, OnMisfit::Fail)
    } else {
        None
    }
}

/// Whether every value of one type is one of the other, so that the plan's own cast does.
fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType::{Float32, Float64, Int8, Int16, Int32, Int64, Null};
    match (from, to) {
        (Null, _)
        | (Int8, Int16 | Int32 | Int64)
        | (Int16, Int32 | Int64)
        | (Int32, Int64)
        | (Float32, Float64) => true,
        (from, to) if is_integer(from) && is_float(to) => true,
        (from, to) if is_string(from) && is_string(to) => true,
        (DataType::List(a), DataType::List(b)) => widens(a.data_type(), b.data_type()),
        _ => false,
    }
}

fn plain(expr: Expr, to: &DataType) -> Expr {
    match expr {
        Expr::Literal(value, metadata) => match value.cast_to(to) {
            Ok(value) => Expr::Literal(value, metadata),
            Err(_) => Expr::Cast(Cast::new(Box::new(Expr::Literal(value, metadata)), to.clone())),
        },
        expr => Expr::Cast(Cast::new(Box::new(expr), to.clone())),
    }
}

fn plain_unless(expr: Expr, from: &DataType, wanted: &DataType) -> Expr {
    if from == wanted { expr } else { plain(expr, wanted) }
}

const fn is_temporal(ty: &DataType) -> bool {
    matches!(ty, DataType::Date32 | DataType::Timestamp(..))
}

fn is_printable(ty: &DataType) -> bool {
    match ty {
        DataType::Boolean | DataType::Date32 | DataType::Timestamp(TimeUnit::Microsecond, _) => true,
        DataType::List(item) => is_nested_printable(item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_nested_printable(field.data_type())),
        DataType::Map(entries, _) => is_nested_printable(entries.data_type()),
        ty => is_numeric(ty),
    }
}

fn is_nested_printable(ty: &DataType) -> bool {
    *ty == DataType::Utf8 || *ty == DataType::Binary || *ty == DataType::Null || is_printable(ty)
}

/// A literal null of a type.
pub(super) fn null_of(ty: &DataType) -> Option<Expr> {
    ScalarValue::try_from(ty)
        .ok()
        .map(|null| Expr::Literal(null, None))
}

/// A timestamp literal, from microseconds since the epoch.
pub(super) fn timestamp_literal(micros: i64, zoned: bool) -> Expr {
    let zone = match timestamp() {
        DataType::Timestamp(_, zone) if zoned => zone,
        _ => None,
    };
    Expr::Literal(ScalarValue::TimestampMicrosecond(Some(micros), zone), None)
}

/// A literal as a cast to text prints it.
pub(super) fn literal_as_text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(value, _) => to_string::one(&value.to_array().ok()?),
        _ => None,
    }
}
