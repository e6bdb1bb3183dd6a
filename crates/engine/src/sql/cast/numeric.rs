//! Casts among numbers, booleans, dates and timestamps.

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType,
};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use std::sync::Arc;

use super::OnMisfit;
use crate::sql::kernel::{failed, failing_arrays};
use crate::sql::types::{is_float, is_integer, is_numeric, is_timestamp, spark_name, timestamp};

const MICROS: i64 = 1_000_000;

/// Any timestamp in seconds, its unscaled value being microseconds.
const DECIMAL_SECONDS: DataType = DataType::Decimal128(38, 6);

pub(super) fn convert(
    name: String,
    expr: Expr,
    from: &DataType,
    to: &DataType,
    misfit: OnMisfit,
) -> Option<Expr> {
    let known = match (from, to) {
        (DataType::Boolean, to) => is_numeric(to),
        (from, DataType::Boolean) => is_numeric(from),
        (from, to) if is_numeric(from) && is_numeric(to) => true,
        (DataType::Date32, to) => is_timestamp(to),
        (from, DataType::Date32) => is_timestamp(from),
        (DataType::Timestamp(_, Some(_)), to) => is_numeric(to),
        (from, DataType::Timestamp(_, Some(_))) => is_numeric(from),
        _ => false,
    };
    let (source, target) = (from.clone(), to.clone());
    known.then(|| {
        failing_arrays(
            misfit == OnMisfit::Fail,
            name,
            to.clone(),
            vec![expr],
            move |args| cast(&args[0], &source, &target, misfit),
        )
    })
}

fn cast(values: &ArrayRef, from: &DataType, to: &DataType, misfit: OnMisfit) -> Result<ArrayRef> {
    match (from, to) {
        (DataType::Timestamp(_, Some(_)), to) if is_float(to) => {
            let seconds = values.as_primitive::<TimestampMicrosecondType>();
            let seconds: Float64Array = seconds.unary(|micros| micros as f64 / MICROS as f64);
            plain(&(Arc::new(seconds) as ArrayRef), to, misfit)
        }
        (DataType::Timestamp(_, Some(_)), DataType::Decimal128(..)) => {
            let micros = values.as_primitive::<TimestampMicrosecondType>();
            let seconds: Decimal128Array = micros.unary(i128::from);
            let seconds = seconds.with_data_type(DECIMAL_SECONDS);
            plain(&(Arc::new(seconds) as ArrayRef), to, misfit)
        }
        (DataType::Decimal128(..), DataType::Timestamp(..)) => {
            let seconds = plain(values, &DECIMAL_SECONDS, misfit)?;
            let seconds = seconds.as_primitive::<Decimal128Type>();
            let micros: TimestampMicrosecondArray = seconds.unary_opt(|micros| i64::try_from(micros).ok());
            Ok(Arc::new(micros.with_data_type(timestamp())))
        }
        (DataType::Timestamp(_, Some(_)), to) if is_numeric(to) => {
            let seconds = values.as_primitive::<TimestampMicrosecondType>();
            let seconds: Int64Array = seconds.unary(|micros| micros.div_euclid(MICROS));
            plain(&(Arc::new(seconds) as ArrayRef), to, misfit)
        }
        (from, DataType::Timestamp(..)) if is_integer(from) => {
            let seconds = plain(values, &DataType::Int64, misfit)?;
            let seconds = seconds.as_primitive::<Int64Type>();
            let micros: TimestampMicrosecondArray = seconds.unary(|seconds| seconds.saturating_mul(MICROS));
            Ok(Arc::new(micros.with_data_type(timestamp())))
        }
        (from, DataType::Timestamp(..)) if is_float(from) => {
            let seconds = plain(values, &DataType::Float64, misfit)?;
            let seconds = seconds.as_primitive::<Float64Type>();
            let micros: TimestampMicrosecondArray = seconds.unary_opt(|seconds| {
                let micros = seconds * MICROS as f64;
                micros.is_finite().then_some(micros as i64)
            });
            Ok(Arc::new(micros.with_data_type(timestamp())))
        }
        _ => plain(values, to, misfit),
    }
}

fn plain(values: &ArrayRef, to: &DataType, misfit: OnMisfit) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    let converted = cast_with_options(values, to, &options)?;
    if misfit == OnMisfit::Fail && converted.null_count() > values.null_count() {
        return Err(misfitting(values, &converted, to));
    }
    Ok(converted)
}

fn misfitting(values: &ArrayRef, converted: &ArrayRef, to: &DataType) -> datafusion::error::DataFusionError {
    let row = (0..values.len()).find(|row| values.is_valid(*row) && converted.is_null(*row));
    let value = row
        .and_then(|row| datafusion::arrow::util::display::array_value_to_string(values, row).ok())
        .unwrap_or_default();
    let condition = match to {
        DataType::Decimal128(..) => "NUMERIC_VALUE_OUT_OF_RANGE",
        _ => "CAST_OVERFLOW",
    };
    let to = spark_name(to).to_uppercase();
    failed(
        condition,
        format!("{value} does not fit into {to}; use try_cast to get null instead"),
    )
}
