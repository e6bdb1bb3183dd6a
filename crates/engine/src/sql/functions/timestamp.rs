//! Timestamps from and into text and numbers.

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, StringArray, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, Int64Type, TimestampMicrosecondType};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::Expr;
use std::sync::Arc;

use super::Call;
use super::pattern::Pattern;
use crate::sql::cast::{OnMisfit, explicit, parse_timestamp};
use crate::sql::error::Error;
use crate::sql::kernel::{arrays, failed, failing_arrays};
use crate::sql::scope::Bound;
use crate::sql::types::{is_string, timestamp};

#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "date_format", "dayname", "from_unixtime", "monthname", "timestamp_micros", "timestamp_millis",
    "timestamp_seconds", "to_date", "to_timestamp", "to_unix_timestamp", "try_to_date", "try_to_timestamp",
    "unix_micros", "unix_millis", "unix_seconds", "unix_timestamp",
];

const SECOND: i64 = 1_000_000;
const DEFAULT_PATTERN: &str = "yyyy-MM-dd HH:mm:ss";

pub(super) fn apply(call: &Call<'_>) -> Result<Option<Bound>, Error> {
    Ok(Some(match call.name {
        "date_format" => {
            call.arity(2, 2)?;
            format(call, call.timestamp(0)?, 1, DEFAULT_PATTERN)?
        }
        "from_unixtime" => {
            call.arity(1, 2)?;
            let seconds = Bound {
                expr: call.long(0)?,
                ty: DataType::Int64,
            };
            let at = cast(call, seconds, &timestamp())?;
            format(call, at, 1, DEFAULT_PATTERN)?
        }
        "to_timestamp" => to_timestamp(call, OnMisfit::Fail)?,
        "try_to_timestamp" => to_timestamp(call, OnMisfit::Null)?,
        "to_date" => to_date(call, OnMisfit::Fail)?,
        "try_to_date" => to_date(call, OnMisfit::Null)?,
        "unix_timestamp" | "to_unix_timestamp" => unix_timestamp(call)?,
        "unix_seconds" => units_of(call, SECOND)?,
        "unix_millis" => units_of(call, 1_000)?,
        "unix_micros" => units_of(call, 1)?,
        "timestamp_seconds" => {
            call.arity(1, 1)?;
            Bound {
                expr: cast(call, call.args[0].clone(), &timestamp())?,
                ty: timestamp(),
            }
        }
        "timestamp_millis" => from_units(call, 1_000)?,
        "timestamp_micros" => from_units(call, 1)?,
        "dayname" => {
            call.arity(1, 1)?;
            let at = cast(call, call.args[0].clone(), &timestamp())?;
            printed(call, "dayname", at, Pattern::new("EEE"))?
        }
        "monthname" => {
            call.arity(1, 1)?;
            let at = cast(call, call.args[0].clone(), &timestamp())?;
            printed(call, "monthname", at, Pattern::new("MMM"))?
        }
        _ => return Ok(None),
    }))
}

fn cast(call: &Call<'_>, bound: Bound, to: &DataType) -> Result<Expr, Error> {
    explicit(call.binder.env, bound.expr, &bound.ty, to, OnMisfit::Fail)
        .ok_or_else(|| call.mismatch(format!("does not take {}", call.type_name(0))))
}

/// The pattern among the arguments, which has to be a literal, or a default.
fn pattern(call: &Call<'_>, index: usize, default: &str) -> Result<(String, Pattern), Error> {
    let written = match call.args.get(index) {
        Some(_) => call.literal_text(index)?,
        None => default.to_owned(),
    };
    let pattern = Pattern::new(&written)
        .map_err(|reason| call.mismatch(format!("cannot use pattern `{written}`: {reason}")))?;
    Ok((written, pattern))
}

fn format(call: &Call<'_>, at: Expr, index: usize, default: &str) -> Result<Bound, Error> {
    let (written, pattern) = pattern(call, index, default)?;
    printed(call, &format!("date_format({written})"), at, Ok(pattern))
}

fn printed(call: &Call<'_>, name: &str, at: Expr, pattern: Result<Pattern, String>) -> Result<Bound, Error> {
    let pattern = pattern.map_err(|reason| call.mismatch(reason))?;
    let expr = arrays(name, DataType::Utf8, vec![at], move |args| {
        let micros = args[0].as_primitive::<TimestampMicrosecondType>();
        let text: StringArray = micros
            .iter()
            .map(|micros| micros.and_then(|micros| pattern.format(micros)))
            .collect();
        Ok(Arc::new(text) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Utf8,
    })
}

/// Text as microseconds, by a pattern or as a cast reads it.
fn parsed(call: &Call<'_>, misfit: OnMisfit) -> Result<Expr, Error> {
    let reader: Option<(String, Pattern)> = match call.args.get(1) {
        Some(_) => Some(pattern(call, 1, DEFAULT_PATTERN)?),
        None => None,
    };
    let name = match &reader {
        Some((written, _)) => format!("{misfit:?} to_timestamp({written})"),
        None => format!("{misfit:?} to_timestamp"),
    };
    let text = call.string(0)?;
    Ok(failing_arrays(
        misfit == OnMisfit::Fail,
        name,
        timestamp(),
        vec![text],
        move |args| {
            let micros: DataFusionResult<TimestampMicrosecondArray> = args[0]
                .as_string::<i32>()
                .iter()
                .map(|text| {
                    let Some(text) = text else { return Ok(None) };
                    let micros = match &reader {
                        Some((_, pattern)) => pattern.parse(text),
                        None => parse_timestamp(text),
                    };
                    if micros.is_none() && misfit == OnMisfit::Fail {
                        return Err(failed(
                            "CANNOT_PARSE_TIMESTAMP",
                            format!(
                                "'{text}' does not fit the pattern; use try_to_timestamp to get null instead"
                            ),
                        ));
                    }
                    Ok(micros)
                })
                .collect();
            Ok(Arc::new(micros?.with_data_type(timestamp())) as ArrayRef)
        },
    ))
}

fn to_timestamp(call: &Call<'_>, misfit: OnMisfit) -> Result<Bound, Error> {
    call.arity(1, 2)?;
    let expr = if is_string(&call.args[0].ty) {
        parsed(call, misfit)?
    } else {
        cast(call, call.args[0].clone(), &timestamp())?
    };
    Ok(Bound {
        expr,
        ty: timestamp(),
    })
}

fn to_date(call: &Call<'_>, misfit: OnMisfit) -> Result<Bound, Error> {
    call.arity(1, 2)?;
    let expr = if !is_string(&call.args[0].ty) {
        cast(call, call.args[0].clone(), &DataType::Date32)?
    } else if call.args.len() == 1 {
        let text = call.string(0)?;
        explicit(call.binder.env, text, &DataType::Utf8, &DataType::Date32, misfit)
            .ok_or_else(|| call.mismatch("takes text"))?
    } else {
        let at = Bound {
            expr: parsed(call, misfit)?,
            ty: timestamp(),
        };
        cast(call, at, &DataType::Date32)?
    };
    Ok(Bound {
        expr,
        ty: DataType::Date32,
    })
}

fn unix_timestamp(call: &Call<'_>) -> Result<Bound, Error> {
    call.arity(0, 2)?;
    let at = match call.args.first() {
        None => {
            call.binder
                .apply("current_timestamp", Vec::new(), call.place)?
                .expr
        }
        Some(arg) if is_string(&arg.ty) => {
            let mut args = call.args.clone();
            if args.len() == 1 {
                args.push(crate::sql::literal::text(DEFAULT_PATTERN));
            }
            let with_pattern = Call {
                name: call.name,
                args,
                place: call.place,
                binder: call.binder,
            };
            parsed(&with_pattern, OnMisfit::Fail)?
        }
        Some(_) => call.timestamp(0)?,
    };
    // Not the floor: Spark's own arithmetic rounds towards zero here.
    let expr = arrays("unix_timestamp", DataType::Int64, vec![at], |args| {
        let seconds: Int64Array = args[0]
            .as_primitive::<TimestampMicrosecondType>()
            .unary(|micros| micros / SECOND);
        Ok(Arc::new(seconds) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Int64,
    })
}

fn units_of(call: &Call<'_>, unit: i64) -> Result<Bound, Error> {
    call.arity(1, 1)?;
    let at = call.timestamp(0)?;
    let expr = arrays(call.name, DataType::Int64, vec![at], move |args| {
        let units: Int64Array = args[0]
            .as_primitive::<TimestampMicrosecondType>()
            .unary(|micros| micros.div_euclid(unit));
        Ok(Arc::new(units) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Int64,
    })
}

fn from_units(call: &Call<'_>, unit: i64) -> Result<Bound, Error> {
    call.arity(1, 1)?;
    let count = call.long(0)?;
    let expr = failing_arrays(true, call.name, timestamp(), vec![count], move |args| {
        let micros: DataFusionResult<TimestampMicrosecondArray> = args[0]
            .as_primitive::<Int64Type>()
            .iter()
            .map(|count| match count.map(|count| count.checked_mul(unit)) {
                Some(None) => Err(failed("ARITHMETIC_OVERFLOW", "a timestamp lies out of range")),
                micros => Ok(micros.flatten()),
            })
            .collect();
        Ok(Arc::new(micros?.with_data_type(timestamp())) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: timestamp(),
    })
}
