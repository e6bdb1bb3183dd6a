//! Functions over dates and timestamps. The session's time zone is UTC.

use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Float64Array, Int32Array, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Int32Type, TimestampMicrosecondType,
};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::Expr;
use std::sync::Arc;

use super::Call;
use crate::sql::error::Error;
use crate::sql::kernel::{arrays, failed, failing_arrays};
use crate::sql::scope::Bound;
use crate::sql::types::timestamp;

#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "add_months", "date_add", "date_diff", "date_from_unix_date", "date_part", "date_sub", "date_trunc",
    "dateadd", "datediff", "datepart", "day", "dayofmonth", "dayofweek", "dayofyear", "hour", "last_day",
    "make_date", "minute", "month", "months_between", "next_day", "quarter", "second", "trunc", "unix_date",
    "weekday", "weekofyear", "year",
];

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

pub(super) fn apply(call: &Call<'_>) -> Result<Option<Bound>, Error> {
    if let Some(part) = date_part(call.name) {
        call.arity(1, 1)?;
        return of_date(call.name, call.date(0)?, part).map(Some);
    }
    if let Some((unit, modulus)) = clock_part(call.name) {
        call.arity(1, 1)?;
        return Ok(Some(of_clock(call.name, call.timestamp(0)?, unit, modulus)));
    }
    Ok(Some(match call.name {
        "date_part" | "datepart" => extract(call)?,
        "unix_date" => {
            call.arity(1, 1)?;
            let date = call.date(0)?;
            Bound {
                expr: arrays("unix_date", DataType::Int32, vec![date], |args| {
                    let days: Int32Array = args[0].as_primitive::<Date32Type>().unary(|days| days);
                    Ok(Arc::new(days) as ArrayRef)
                }),
                ty: DataType::Int32,
            }
        }
        "date_from_unix_date" => {
            call.arity(1, 1)?;
            let days = call.as_type(0, &DataType::Int32)?;
            dates("date_from_unix_date", vec![days], |args, row| {
                Some(args[0].as_primitive::<Int32Type>().value(row))
            })
        }
        "date_trunc" => {
            call.arity(2, 2)?;
            date_trunc(call.string(0)?, call.timestamp(1)?)
        }
        "trunc" => {
            call.arity(2, 2)?;
            dates("trunc", vec![call.date(0)?, call.string(1)?], |args, row| {
                let unit = Unit::of(args[1].as_string::<i32>().value(row))?;
                unit.is_of_days()
                    .then(|| unit.first_day(date_at(&args[0], row)?))
                    .flatten()
            })
        }
        "date_add" | "dateadd" | "date_sub" => {
            call.arity(2, 2)?;
            let sign = if call.name == "date_sub" { -1 } else { 1 };
            let args = vec![call.date(0)?, call.as_type(1, &DataType::Int32)?];
            dates(call.name, args, move |args, row| {
                let days = args[1].as_primitive::<Int32Type>().value(row);
                args[0]
                    .as_primitive::<Date32Type>()
                    .value(row)
                    .checked_add(days.checked_mul(sign)?)
            })
        }
        "add_months" => {
            call.arity(2, 2)?;
            let args = vec![call.date(0)?, call.as_type(1, &DataType::Int32)?];
            dates("add_months", args, |args, row| {
                let (date, months) = (
                    date_at(&args[0], row)?,
                    args[1].as_primitive::<Int32Type>().value(row),
                );
                let count = Months::new(months.unsigned_abs());
                let moved = if months < 0 {
                    date.checked_sub_months(count)
                } else {
                    date.checked_add_months(count)
                };
                moved.map(|date| date.to_epoch_days())
            })
        }
        "last_day" => {
            call.arity(1, 1)?;
            dates("last_day", vec![call.date(0)?], |args, row| {
                last_of_month(date_at(&args[0], row)?).map(|date| date.to_epoch_days())
            })
        }
        "next_day" => {
            call.arity(2, 2)?;
            let args = vec![call.date(0)?, call.string(1)?];
            call.binder.spark_call("next_day", args, call.place)?
        }
        "make_date" => make_date(call)?,
        "datediff" | "date_diff" => {
            call.arity(2, 2)?;
            let expr = arrays(
                "datediff",
                DataType::Int32,
                vec![call.date(0)?, call.date(1)?],
                |args| {
                    let (end, start) = (
                        args[0].as_primitive::<Date32Type>(),
                        args[1].as_primitive::<Date32Type>(),
                    );
                    let days: Int32Array = end
                        .iter()
                        .zip(start)
                        .map(|(end, start)| end?.checked_sub(start?))
                        .collect();
                    Ok(Arc::new(days) as ArrayRef)
                },
            );
            Bound {
                expr,
                ty: DataType::Int32,
            }
        }
        "months_between" => months_between(call)?,
        _ => return Ok(None),
    }))
}

fn date_at(dates: &ArrayRef, row: usize) -> Option<NaiveDate> {
    NaiveDate::from_epoch_days(dates.as_primitive::<Date32Type>().value(row))
}

/// A function that makes a date; null where an argument is.
fn dates(
    name: &str,
    args: Vec<Expr>,
    compute: impl Fn(&[ArrayRef], usize) -> Option<i32> + Send + Sync + 'static,
) -> Bound {
    let expr = arrays(name, DataType::Date32, args, move |args| {
        let rows = args.first().map_or(0, |arg| arg.len());
        let dates: Date32Array = (0..rows)
            .map(|row| {
                let valid = args.iter().all(|arg| arg.is_valid(row));
                valid.then(|| compute(args, row)).flatten()
            })
            .collect();
        Ok(Arc::new(dates) as ArrayRef)
    });
    Bound {
        expr,
        ty: DataType::Date32,
    }
}

type OfDate = fn(NaiveDate) -> u32;

fn date_part(name: &str) -> Option<OfDate> {
    Some(match name {
        "year" => |date| date.year().cast_unsigned(),
        "quarter" => |date| date.month0() / 3 + 1,
        "month" => |date| date.month(),
        "day" | "dayofmonth" => |date| date.day(),
        "dayofyear" => |date| date.ordinal(),
        "dayofweek" => |date| date.weekday().number_from_sunday(),
        "weekday" => |date| date.weekday().num_days_from_monday(),
        "weekofyear" => |date| date.iso_week().week(),
        _ => return None,
    })
}

fn of_date(name: &str, date: Expr, part: OfDate) -> Result<Bound, Error> {
    let expr = arrays(name, DataType::Int32, vec![date], move |args| {
        let parts: Int32Array = args[0]
            .as_primitive::<Date32Type>()
            .iter()
            .map(|days| {
                days.and_then(NaiveDate::from_epoch_days)
                    .map(|date| part(date).cast_signed())
            })
            .collect();
        Ok(Arc::new(parts) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Int32,
    })
}

fn clock_part(name: &str) -> Option<(i64, i64)> {
    Some(match name {
        "hour" => (3_600 * SECOND, 24),
        "minute" => (60 * SECOND, 60),
        "second" => (SECOND, 60),
        _ => return None,
    })
}

fn of_clock(name: &str, at: Expr, unit: i64, modulus: i64) -> Bound {
    let expr = arrays(name, DataType::Int32, vec![at], move |args| {
        let micros = args[0].as_primitive::<TimestampMicrosecondType>();
        let parts: Int32Array =
            micros.unary(|micros| i32::try_from(micros.div_euclid(unit).rem_euclid(modulus)).unwrap_or(0));
        Ok(Arc::new(parts) as ArrayRef)
    });
    Bound {
        expr,
        ty: DataType::Int32,
    }
}

/// `EXTRACT(field FROM …)`
fn extract(call: &Call<'_>) -> Result<Bound, Error> {
    call.arity(2, 2)?;
    let field = call.literal_text(0)?.to_lowercase();
    let name = match field.as_str() {
        "year" | "y" | "years" | "yr" | "yrs" => "year",
        "quarter" | "qtr" => "quarter",
        "month" | "mon" | "mons" | "months" => "month",
        "week" | "w" | "weeks" => "weekofyear",
        "day" | "d" | "days" => "day",
        "dayofweek" | "dow" => "dayofweek",
        "doy" => "dayofyear",
        "hour" | "h" | "hours" | "hr" | "hrs" => "hour",
        "minute" | "m" | "min" | "mins" | "minutes" => "minute",
        "second" | "s" | "sec" | "secs" | "seconds" => return Ok(decimal_seconds(call.timestamp(1)?)),
        _ => return Err(call.mismatch(format!("does not know the field {field}"))),
    };
    if let Some(part) = date_part(name) {
        return of_date(name, call.date(1)?, part);
    }
    let (unit, modulus) = clock_part(name).unwrap_or((SECOND, 60));
    Ok(of_clock(name, call.timestamp(1)?, unit, modulus))
}

fn decimal_seconds(at: Expr) -> Bound {
    let ty = DataType::Decimal128(8, 6);
    let to = ty.clone();
    let expr = arrays("seconds", ty.clone(), vec![at], move |args| {
        let micros = args[0].as_primitive::<TimestampMicrosecondType>();
        let seconds: datafusion::arrow::array::PrimitiveArray<Decimal128Type> =
            micros.unary(|micros| i128::from(micros.rem_euclid(60 * SECOND)));
        Ok(Arc::new(seconds.with_data_type(to.clone())) as ArrayRef)
    });
    Bound { expr, ty }
}

/// What dates and timestamps are cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    /// Of so many microseconds.
    Fixed(i64),
}

impl Unit {
    fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "YEAR" | "YYYY" | "YY" => Self::Year,
            "QUARTER" => Self::Quarter,
            "MONTH" | "MM" | "MON" => Self::Month,
            "WEEK" => Self::Week,
            "DAY" | "DD" => Self::Fixed(DAY),
            "HOUR" => Self::Fixed(3_600 * SECOND),
            "MINUTE" => Self::Fixed(60 * SECOND),
            "SECOND" => Self::Fixed(SECOND),
            "MILLISECOND" => Self::Fixed(1_000),
            "MICROSECOND" => Self::Fixed(1),
            _ => return None,
        })
    }

    const fn is_of_days(self) -> bool {
        !matches!(self, Self::Fixed(_))
    }

    fn first_day(self, date: NaiveDate) -> Option<i32> {
        let first = match self {
            Self::Year => NaiveDate::from_ymd_opt(date.year(), 1, 1)?,
            Self::Quarter => NaiveDate::from_ymd_opt(date.year(), date.month0() / 3 * 3 + 1, 1)?,
            Self::Month => date.with_day(1)?,
            Self::Week => {
                let back = date.weekday().num_days_from_monday();
                return date.to_epoch_days().checked_sub(i32::try_from(back).ok()?);
            }
            Self::Fixed(_) => date,
        };
        Some(first.to_epoch_days())
    }

    fn cut(self, micros: i64) -> Option<i64> {
        match self {
            Self::Fixed(unit) => Some(micros.div_euclid(unit) * unit),
            _ => {
                let date = DateTime::from_timestamp_micros(micros)?.date_naive();
                i64::from(self.first_day(date)?).checked_mul(DAY)
            }
        }
    }
}

fn date_trunc(unit: Expr, at: Expr) -> Bound {
    let expr = arrays("date_trunc", timestamp(), vec![unit, at], |args| {
        let units = args[0].as_string::<i32>();
        let micros = args[1].as_primitive::<TimestampMicrosecondType>();
        let mut last: Option<(&str, Option<Unit>)> = None;
        let cut: TimestampMicrosecondArray = units
            .iter()
            .zip(micros)
            .map(|(name, micros)| {
                let (name, micros) = (name?, micros?);
                let unit = match last {
                    Some((known, unit)) if known == name => unit,
                    _ => Unit::of(name),
                };
                last = Some((name, unit));
                unit?.cut(micros)
            })
            .collect();
        Ok(Arc::new(cut.with_data_type(timestamp())) as ArrayRef)
    });
    Bound {
        expr,
        ty: timestamp(),
    }
}

fn make_date(call: &Call<'_>) -> Result<Bound, Error> {
    call.arity(3, 3)?;
    let args = vec![
        call.as_type(0, &DataType::Int32)?,
        call.as_type(1, &DataType::Int32)?,
        call.as_type(2, &DataType::Int32)?,
    ];
    let expr = failing_arrays(true, "make_date", DataType::Date32, args, |args| {
        let part = |index: usize| args[index].as_primitive::<Int32Type>();
        let dates: DataFusionResult<Date32Array> = (0..args[0].len())
            .map(|row| {
                if args.iter().any(|arg| arg.is_null(row)) {
                    return Ok(None);
                }
                let (year, month, day) = (part(0).value(row), part(1).value(row), part(2).value(row));
                let date = u32::try_from(month)
                    .ok()
                    .zip(u32::try_from(day).ok())
                    .and_then(|(month, day)| NaiveDate::from_ymd_opt(year, month, day));
                match date {
                    Some(date) => Ok(Some(date.to_epoch_days())),
                    None => Err(failed(
                        "DATETIME_FIELD_OUT_OF_BOUNDS",
                        format!("{year}-{month}-{day} is no date"),
                    )),
                }
            })
            .collect();
        Ok(Arc::new(dates?) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Date32,
    })
}

fn last_of_month(date: NaiveDate) -> Option<NaiveDate> {
    date.with_day(1)?.checked_add_months(Months::new(1))?.pred_opt()
}

fn months_between(call: &Call<'_>) -> Result<Bound, Error> {
    call.arity(2, 3)?;
    let rounded = match call.args.get(2) {
        None => true,
        Some(arg) => match &arg.expr {
            Expr::Literal(datafusion::common::ScalarValue::Boolean(Some(round)), _) => *round,
            _ => return Err(call.unsupported("an argument 3 that is not a literal", "write true or false")),
        },
    };
    let name = format!("months_between({rounded})");
    let args = vec![call.timestamp(0)?, call.timestamp(1)?];
    let expr = arrays(name, DataType::Float64, args, move |args| {
        let (end, start) = (
            args[0].as_primitive::<TimestampMicrosecondType>(),
            args[1].as_primitive::<TimestampMicrosecondType>(),
        );
        let months: Float64Array = end
            .iter()
            .zip(start)
            .map(|(end, start)| {
                let months = months_from(start?, end?)?;
                Some(if rounded {
                    (months * 1e8).round() / 1e8
                } else {
                    months
                })
            })
            .collect();
        Ok(Arc::new(months) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Float64,
    })
}

/// Whole months between equal days of the month or last days, otherwise with 31sts of a month.
fn months_from(start: i64, end: i64) -> Option<f64> {
    let day_of = |micros: i64| Some(DateTime::from_timestamp_micros(micros)?.naive_utc());
    let (start, end) = (day_of(start)?, day_of(end)?);
    let months = (end.year() - start.year()) * 12 + end.month().cast_signed() - start.month().cast_signed();
    let is_last = |date: NaiveDate| last_of_month(date) == Some(date);
    if start.day() == end.day() || (is_last(start.date()) && is_last(end.date())) {
        return Some(f64::from(months));
    }
    let seconds = |at: chrono::NaiveDateTime| {
        let of_day = at.time().signed_duration_since(NaiveTime::MIN).num_seconds();
        (i64::from(at.day()) * 86_400 + of_day) as f64
    };
    Some(f64::from(months) + (seconds(end) - seconds(start)) / (31.0 * 86_400.0))
}
