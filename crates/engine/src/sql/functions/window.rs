//! `window(timestamp, '10 seconds'[, '5 seconds'])`: the windows that a timestamp lies in.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray, TimestampMicrosecondArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, Fields, TimestampMicrosecondType};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use std::sync::Arc;

use super::Call;
use crate::sql::cast::implicit;
use crate::sql::env::Env;
use crate::sql::error::{Error, Place};
use crate::sql::expression::literal_text;
use crate::sql::kernel::arrays;
use crate::sql::literal::parse_interval;
use crate::sql::scope::Bound;
use crate::sql::types::timestamp;

fn fields() -> Fields {
    Fields::from(vec![
        Field::new("start", timestamp(), true),
        Field::new("end", timestamp(), true),
    ])
}

fn structs(starts: Vec<i64>, length: i64, nulls: Option<NullBuffer>) -> StructArray {
    let ends: Vec<i64> = starts.iter().map(|start| start.saturating_add(length)).collect();
    let column = |micros: Vec<i64>| -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::from(micros).with_data_type(timestamp()))
    };
    StructArray::new(fields(), vec![column(starts), column(ends)], nulls)
}

/// A window without a slide is one struct.
pub(super) fn apply(call: &Call<'_>) -> Result<Option<Bound>, Error> {
    if call.name != "window" {
        return Ok(None);
    }
    call.arity(2, 2)?;
    let length = duration(&call.args[1], call.place)?;
    let ty = DataType::Struct(fields());
    let expr = arrays(
        format!("window({length})"),
        ty.clone(),
        vec![call.timestamp(0)?],
        move |args| {
            let at = args[0].as_primitive::<TimestampMicrosecondType>();
            let starts = at.values().iter().map(|at| at - at.rem_euclid(length)).collect();
            Ok(Arc::new(structs(starts, length, at.nulls().cloned())) as ArrayRef)
        },
    );
    Ok(Some(Bound { expr, ty }))
}

/// A window with a slide is an array of structs, the latest first; a null timestamp lies in none.
pub(in crate::sql) fn sliding(env: &Env, args: Vec<Bound>, place: Place) -> Result<Expr, Error> {
    let wrong = |reason: &str| Error::Mismatch {
        what: "window".to_owned(),
        place,
        reason: reason.to_owned(),
    };
    let (Some(at), Some(length), Some(slide)) = (args.first(), args.get(1), args.get(2)) else {
        return Err(wrong("takes a timestamp, a length, a slide and a start"));
    };
    let (length, slide) = (duration(length, place)?, duration(slide, place)?);
    let offset = match args.get(3) {
        Some(offset) => duration(offset, place)?,
        None => 0,
    };
    if slide > length {
        return Err(wrong("has a slide longer than the window"));
    }
    let at =
        implicit(env, at.expr.clone(), &at.ty, &timestamp()).ok_or_else(|| wrong("takes a timestamp"))?;
    let item = Arc::new(Field::new("item", DataType::Struct(fields()), true));
    let ty = DataType::List(Arc::clone(&item));
    Ok(arrays(
        format!("window({length}, {slide}, {offset})"),
        ty,
        vec![at],
        move |args| {
            let at = args[0].as_primitive::<TimestampMicrosecondType>();
            let mut starts = Vec::new();
            let mut lengths = Vec::with_capacity(at.len());
            for at in at {
                let before = starts.len();
                if let Some(at) = at {
                    let mut start = at - (at - offset).rem_euclid(slide);
                    while start + length > at {
                        starts.push(start);
                        start -= slide;
                    }
                }
                lengths.push(starts.len() - before);
            }
            let windows = structs(starts, length, None);
            let list = ListArray::new(
                Arc::clone(&item),
                OffsetBuffer::from_lengths(lengths),
                Arc::new(windows),
                None,
            );
            Ok(Arc::new(list) as ArrayRef)
        },
    ))
}

/// A duration written as text or as an interval, in microseconds.
fn duration(bound: &Bound, place: Place) -> Result<i64, Error> {
    let parts = match &bound.expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => Some((
            i64::from(interval.months),
            i64::from(interval.days),
            interval.nanoseconds / 1_000,
        )),
        expr => literal_text(expr).and_then(parse_interval),
    };
    match parts {
        Some((0, days, micros)) if days * 86_400_000_000 + micros > 0 => Ok(days * 86_400_000_000 + micros),
        _ => Err(Error::Mismatch {
            what: "window".to_owned(),
            place,
            reason: "takes durations like '10 seconds' or '1 day', without months".to_owned(),
        }),
    }
}
