//! Functions over arrays, maps and structs.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::Expr;
use std::sync::Arc;

use super::Call;
use crate::sql::error::{Error, Place};
use crate::sql::expression::{Binder, typed_null};
use crate::sql::kernel::{arrays, failed, failing_arrays};
use crate::sql::literal;
use crate::sql::scope::Bound;
use crate::sql::types::{common, list_of, spark_name};

#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "array", "array_append", "array_contains", "array_join", "array_remove", "array_size", "array_sort",
    "cardinality", "element_at", "exists", "explode", "explode_outer", "filter", "get", "map", "named_struct",
    "size", "sort_array", "struct", "transform", "try_element_at", "window",
];

pub(super) fn apply(call: &Call<'_>) -> Result<Option<Bound>, Error> {
    Ok(Some(match call.name {
        "array" => {
            let (exprs, ty) = call.binder.to_common(call.args.clone(), "array", call.place)?;
            let expr = call.binder.core_call("make_array", exprs, call.place)?.expr;
            Bound {
                expr,
                ty: list_of(ty),
            }
        }
        "map" => map(call)?,
        "named_struct" => named_struct(call)?,
        "size" | "cardinality" | "array_size" => {
            call.arity(1, 1)?;
            size(call)?
        }
        "element_at" => {
            call.arity(2, 2)?;
            element_at(call, Missing::Fail)?
        }
        "try_element_at" => {
            call.arity(2, 2)?;
            element_at(call, Missing::Null)?
        }
        "get" => {
            call.arity(2, 2)?;
            let (array, index) = (call.args[0].clone(), call.as_type(1, &DataType::Int32)?);
            item(array, index, Counting::FromZero, Missing::Null)
                .ok_or_else(|| call.mismatch("takes an array"))?
        }
        "array_contains" => {
            call.arity(2, 2)?;
            let (array, value) = with_item(call)?;
            let expr = call
                .binder
                .spark_call("array_contains", vec![array, value], call.place)?
                .expr;
            Bound {
                expr,
                ty: DataType::Boolean,
            }
        }
        "array_remove" | "array_append" => {
            call.arity(2, 2)?;
            let (array, value) = with_item(call)?;
            let name = if call.name == "array_remove" {
                "array_remove_all"
            } else {
                call.name
            };
            call.binder.core_call(name, vec![array, value], call.place)?
        }
        "array_join" => {
            call.arity(2, 3)?;
            let strings = list_of(DataType::Utf8);
            let mut args = vec![call.as_type(0, &strings)?, call.string(1)?];
            if call.args.len() == 3 {
                args.push(call.string(2)?);
            }
            call.binder.core_call("array_to_string", args, call.place)?
        }
        "sort_array" => {
            call.arity(1, 2)?;
            let descending = match call.args.get(1).map(|arg| &arg.expr) {
                None => false,
                Some(Expr::Literal(datafusion::common::ScalarValue::Boolean(Some(ascending)), _)) => {
                    !ascending
                }
                Some(_) => {
                    return Err(call.unsupported("an order that is not a literal", "write true or false"));
                }
            };
            let (order, nulls) = if descending {
                ("DESC", "NULLS LAST")
            } else {
                ("ASC", "NULLS FIRST")
            };
            sorted(call, order, nulls)?
        }
        "array_sort" => {
            call.arity(1, 1)?;
            sorted(call, "ASC", "NULLS LAST")?
        }
        _ => return Ok(None),
    }))
}

/// What becomes of an index or key that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Fail,
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counting {
    /// `array[0]`
    FromZero,
    /// `element_at(array, 1)`, and -1 is the last.
    FromOne,
}

/// `array[0]`, `map['key']`
pub(in crate::sql) fn subscript(
    binder: &Binder<'_>,
    root: Bound,
    key: Bound,
    place: Place,
) -> Result<Bound, Error> {
    match &root.ty {
        DataType::List(_) => {
            let index = binder.as_type(key, &DataType::Int32, "[…]", place)?;
            Ok(item(root, index, Counting::FromZero, Missing::Fail).expect("the root is a list"))
        }
        DataType::Map(..) => value_of(binder, root, key, place),
        other => Err(Error::Mismatch {
            what: "[…]".to_owned(),
            place,
            reason: format!(
                "takes an element of an array or a map, not of {}",
                spark_name(other)
            ),
        }),
    }
}

fn element_at(call: &Call<'_>, missing: Missing) -> Result<Bound, Error> {
    let [root, key] = [call.args[0].clone(), call.args[1].clone()];
    match &root.ty {
        DataType::List(_) => {
            let index = call.as_type(1, &DataType::Int32)?;
            item(root, index, Counting::FromOne, missing)
                .ok_or_else(|| call.mismatch("takes an array or a map"))
        }
        DataType::Map(..) => value_of(call.binder, root, key, call.place),
        _ => Err(call.mismatch(format!("takes an array or a map, not {}", call.type_name(0)))),
    }
}

/// The value of a key, null where there is none.
fn value_of(binder: &Binder<'_>, root: Bound, key: Bound, place: Place) -> Result<Bound, Error> {
    let DataType::Map(entries, _) = &root.ty else {
        return Ok(root);
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return Ok(root);
    };
    let (key_type, value_type) = (fields[0].data_type().clone(), fields[1].data_type().clone());
    let key = binder.as_type(key, &key_type, "[…]", place)?;
    // It gives the values of a key as an array of at most one.
    let found = binder.core_call("map_extract", vec![root.expr, key], place)?;
    let values = Bound {
        expr: found.expr,
        ty: list_of(value_type),
    };
    let first = literal::number("0", false, place)?;
    Ok(item(values, first.expr, Counting::FromZero, Missing::Null).expect("map_extract gives a list"))
}

/// An element of an array, or none if it is no array.
fn item(array: Bound, index: Expr, counting: Counting, missing: Missing) -> Option<Bound> {
    let DataType::List(field) = &array.ty else {
        return None;
    };
    let ty = field.data_type().clone();
    let name = format!("item({counting:?}, {missing:?})");
    let can_fail = missing == Missing::Fail || counting == Counting::FromOne;
    let expr = failing_arrays(can_fail, name, ty.clone(), vec![array.expr, index], move |args| {
        let list = args[0].as_list::<i32>();
        let indices = args[1].as_primitive::<Int32Type>();
        let picked: DataFusionResult<UInt32Array> = (0..list.len())
            .map(|row| {
                if list.is_null(row) || indices.is_null(row) {
                    return Ok(None);
                }
                let start = list.value_offsets()[row];
                let length = list.value_length(row);
                let index = indices.value(row);
                let found = match counting {
                    Counting::FromZero => Some(index),
                    Counting::FromOne if index > 0 => Some(index - 1),
                    Counting::FromOne if index < 0 => length.checked_add(index),
                    Counting::FromOne => {
                        return Err(failed("INVALID_INDEX_OF_ZERO", "the first element has index 1"));
                    }
                };
                match found.filter(|found| (0..length).contains(found)) {
                    Some(found) => Ok(Some((start + found).cast_unsigned())),
                    None if missing == Missing::Null => Ok(None),
                    None => Err(out_of_bounds(counting, index, length)),
                }
            })
            .collect();
        Ok(take(list.values().as_ref(), &picked?, None)?)
    });
    Some(Bound { expr, ty })
}

fn out_of_bounds(counting: Counting, index: i32, length: i32) -> datafusion::error::DataFusionError {
    let (condition, instead) = match counting {
        Counting::FromZero => ("INVALID_ARRAY_INDEX", "get"),
        Counting::FromOne => ("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "try_element_at"),
    };
    failed(
        condition,
        format!("index {index} is not in an array of {length}; use {instead} to get null instead"),
    )
}

fn size(call: &Call<'_>) -> Result<Bound, Error> {
    let ty = DataType::Int32;
    match call.args[0].ty {
        DataType::Null => return Ok(typed_null(&ty)),
        DataType::List(_) | DataType::Map(..) => {}
        _ => return Err(call.mismatch(format!("takes an array or a map, not {}", call.type_name(0)))),
    }
    let expr = arrays("size", ty.clone(), call.exprs(), |args| {
        let (offsets, nulls) = match args[0].data_type() {
            DataType::Map(..) => (args[0].as_map().offsets().clone(), args[0].nulls().cloned()),
            _ => (
                args[0].as_list::<i32>().offsets().clone(),
                args[0].nulls().cloned(),
            ),
        };
        let sizes = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
        Ok(Arc::new(Int32Array::new(sizes, nulls)) as ArrayRef)
    });
    Ok(Bound { expr, ty })
}

/// An array and a value, as an array of a type and a value of that type.
fn with_item(call: &Call<'_>) -> Result<(Expr, Expr), Error> {
    let DataType::List(field) = &call.args[0].ty else {
        return Err(call.mismatch(format!("takes an array, not {}", call.type_name(0))));
    };
    let ty = common(field.data_type(), &call.args[1].ty)
        .ok_or_else(|| call.mismatch(format!("has no {} in {}", call.type_name(1), call.type_name(0))))?;
    Ok((call.as_type(0, &list_of(ty.clone()))?, call.as_type(1, &ty)?))
}

fn sorted(call: &Call<'_>, order: &str, nulls: &str) -> Result<Bound, Error> {
    let ty = call.args[0].ty.clone();
    let args = vec![
        call.args[0].expr.clone(),
        literal::text(order).expr,
        literal::text(nulls).expr,
    ];
    let expr = call.binder.core_call("array_sort", args, call.place)?.expr;
    Ok(Bound { expr, ty })
}

fn map(call: &Call<'_>) -> Result<Bound, Error> {
    if call.args.is_empty() || !call.args.len().is_multiple_of(2) {
        return Err(call.mismatch("takes keys and values in turn"));
    }
    let every_other = |from: usize| {
        call.args
            .iter()
            .skip(from)
            .step_by(2)
            .cloned()
            .collect::<Vec<_>>()
    };
    let (keys, _) = call.binder.to_common(every_other(0), "map", call.place)?;
    let (values, _) = call.binder.to_common(every_other(1), "map", call.place)?;
    let keys = call.binder.core_call("make_array", keys, call.place)?.expr;
    let values = call.binder.core_call("make_array", values, call.place)?.expr;
    call.binder.core_call("map", vec![keys, values], call.place)
}

fn named_struct(call: &Call<'_>) -> Result<Bound, Error> {
    if call.args.is_empty() || !call.args.len().is_multiple_of(2) {
        return Err(call.mismatch("takes names and values in turn"));
    }
    for index in (0..call.args.len()).step_by(2) {
        call.literal_text(index)?;
    }
    call.core("named_struct")
}
