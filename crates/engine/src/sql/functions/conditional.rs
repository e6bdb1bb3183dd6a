//! Functions that choose, and a few that tell about their argument.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Case, Expr, Operator};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Call;
use crate::sql::cast::{OnMisfit, explicit};
use crate::sql::error::Error;
use crate::sql::expression::{boolean, typed_null};
use crate::sql::kernel::volatile;
use crate::sql::literal;
use crate::sql::operators;
use crate::sql::scope::Bound;
use crate::sql::types::{spark_name, timestamp};

#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "bigint", "binary", "boolean", "coalesce", "date", "decimal", "double", "float", "int", "smallint", "string",
    "timestamp", "tinyint", "curdate", "current_date", "current_timestamp", "greatest", "if", "ifnull", "isnan",
    "isnotnull", "isnull", "least", "nanvl", "now", "nullif", "nvl", "nvl2", "rand", "random", "typeof",
    "uuid",
];

pub(super) fn apply(call: &Call<'_>) -> Result<Option<Bound>, Error> {
    Ok(Some(match call.name {
        "isnull" | "isnotnull" => {
            call.arity(1, 1)?;
            let inner = Box::new(call.args[0].expr.clone());
            boolean(if call.name == "isnull" {
                Expr::IsNull(inner)
            } else {
                Expr::IsNotNull(inner)
            })
        }
        "coalesce" | "nvl" | "ifnull" => common_call(call, "coalesce")?,
        "greatest" | "least" => common_call(call, call.name)?,
        "nullif" => nullif(call)?,
        "if" => {
            call.arity(3, 3)?;
            let condition = call.as_type(0, &DataType::Boolean)?;
            choose(call, condition, 1, 2)?
        }
        "nvl2" => {
            call.arity(3, 3)?;
            let given = Expr::IsNotNull(Box::new(call.args[0].expr.clone()));
            choose(call, given, 1, 2)?
        }
        name if type_of(name).is_some() => {
            call.arity(1, 1)?;
            let (ty, arg) = (type_of(name).unwrap_or(DataType::Null), call.args[0].clone());
            let expr = explicit(call.binder.env, arg.expr, &arg.ty, &ty, OnMisfit::Fail)
                .ok_or_else(|| call.mismatch(format!("does not take {}", call.type_name(0))))?;
            Bound { expr, ty }
        }
        "typeof" => {
            call.arity(1, 1)?;
            literal::text(&spark_name(&call.args[0].ty))
        }
        "isnan" => {
            call.arity(1, 1)?;
            let value = call.double(0)?;
            let nan = call.binder.core_call("isnan", vec![value], call.place)?;
            // Of null it is false, not null.
            boolean(Expr::IsTrue(Box::new(nan.expr)))
        }
        "nanvl" => {
            call.arity(2, 2)?;
            let args = vec![call.double(0)?, call.double(1)?];
            call.binder.core_call("nanvl", args, call.place)?
        }
        "uuid" => {
            call.arity(0, 0)?;
            call.core("uuid")?
        }
        "rand" | "random" => {
            call.arity(0, 1)?;
            call.binder.core_call("random", Vec::new(), call.place)?
        }
        "current_timestamp" | "now" => {
            call.arity(0, 0)?;
            now(call)
        }
        "current_date" | "curdate" => {
            call.arity(0, 0)?;
            let now = now(call);
            Bound {
                expr: call
                    .binder
                    .as_type(now, &DataType::Date32, call.name, call.place)?,
                ty: DataType::Date32,
            }
        }
        _ => return Ok(None),
    }))
}

/// The type to which the function of its name casts.
fn type_of(name: &str) -> Option<DataType> {
    Some(match name {
        "bigint" => DataType::Int64,
        "binary" => DataType::Binary,
        "boolean" => DataType::Boolean,
        "date" => DataType::Date32,
        "decimal" => DataType::Decimal128(10, 0),
        "double" => DataType::Float64,
        "float" => DataType::Float32,
        "int" => DataType::Int32,
        "smallint" => DataType::Int16,
        "string" => DataType::Utf8,
        "timestamp" => timestamp(),
        "tinyint" => DataType::Int8,
        _ => return None,
    })
}

fn common_call(call: &Call<'_>, name: &str) -> Result<Bound, Error> {
    call.arity(1, usize::MAX)?;
    let (exprs, ty) = call.binder.to_common(call.args.clone(), call.name, call.place)?;
    if ty == DataType::Null {
        return Ok(typed_null(&ty));
    }
    let expr = call.binder.core_call(name, exprs, call.place)?.expr;
    Ok(Bound { expr, ty })
}

fn choose(call: &Call<'_>, condition: Expr, then: usize, otherwise: usize) -> Result<Bound, Error> {
    let both = vec![call.args[then].clone(), call.args[otherwise].clone()];
    let (mut both, ty) = call.binder.to_common(both, call.name, call.place)?;
    let otherwise = both.pop().map(Box::new);
    let then = both.pop().map(Box::new);
    let pairs = then
        .into_iter()
        .map(|then| (Box::new(condition.clone()), then))
        .collect();
    Ok(Bound {
        expr: Expr::Case(Case::new(None, pairs, otherwise)),
        ty,
    })
}

fn nullif(call: &Call<'_>) -> Result<Bound, Error> {
    call.arity(2, 2)?;
    let [left, right] = [call.args[0].clone(), call.args[1].clone()];
    let equal = operators::compare(call.binder, Operator::Eq, left.clone(), right, call.place)?;
    let null = typed_null(&left.ty);
    Ok(Bound {
        expr: Expr::Case(Case::new(
            None,
            vec![(Box::new(equal.expr), Box::new(null.expr))],
            Some(Box::new(left.expr)),
        )),
        ty: left.ty,
    })
}

/// The batch's time, the same in all its rows.
fn now(call: &Call<'_>) -> Bound {
    let now = Arc::clone(&call.binder.env.now_micros);
    let expr = volatile("current_timestamp", timestamp(), move |_| {
        let micros = now.load(Ordering::Relaxed);
        let zone = match timestamp() {
            DataType::Timestamp(_, zone) => zone,
            _ => None,
        };
        Ok(ScalarValue::TimestampMicrosecond(Some(micros), zone).into())
    });
    Bound {
        expr,
        ty: timestamp(),
    }
}
