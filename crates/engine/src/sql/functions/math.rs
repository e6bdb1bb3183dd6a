//! Functions over numbers.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, PrimitiveArray, StringArray};
use datafusion::arrow::compute::unary;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Case, Expr, Operator};
use std::sync::Arc;

use super::Call;
use crate::sql::arithmetic::{Arithmetic, OnFailure, negate};
use crate::sql::error::Error;
use crate::sql::kernel::{arrays, failed, failing_arrays};
use crate::sql::literal;
use crate::sql::operators;
use crate::sql::scope::Bound;
use crate::sql::types::{as_decimal, bounded_decimal, is_integer};

#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "abs", "acos", "asin", "atan", "atan2", "bin", "bround", "cbrt", "ceil", "ceiling", "conv", "cos", "cosh",
    "cot", "degrees", "div", "e", "exp", "expm1", "floor", "hypot", "ln", "log", "log10", "log1p", "log2",
    "mod", "negative", "pi", "pmod", "positive", "pow", "power", "radians", "round", "sign", "signum", "sin",
    "sinh", "sqrt", "tan", "tanh", "try_add", "try_divide", "try_mod", "try_multiply", "try_subtract",
];

pub(super) fn apply(call: &Call<'_>) -> Result<Option<Bound>, Error> {
    if let Some(function) = of_one_double(call.name) {
        call.arity(1, 1)?;
        return doubles(call, function).map(Some);
    }
    if let Some((op, failure)) = operator(call.name) {
        call.arity(2, 2)?;
        let [left, right] = [call.args[0].clone(), call.args[1].clone()];
        return operators::arithmetic(call.binder, op, failure, left, right, call.place).map(Some);
    }
    Ok(Some(match call.name {
        "abs" => abs(call)?,
        "negative" => {
            call.arity(1, 1)?;
            operators::negate(call.binder, call.args[0].clone(), call.place)?
        }
        "positive" => {
            call.arity(1, 1)?;
            call.args[0].clone()
        }
        "log" => {
            call.arity(1, 2)?;
            if call.args.len() == 1 {
                return doubles(call, |x| positive(x).map(f64::ln)).map(Some);
            }
            of_two_doubles(call, |base, x| {
                let (base, x) = (positive(base)?, positive(x)?);
                // As many digits right as log2 and log10 have where those are asked for.
                Some(if base == 2.0 {
                    x.log2()
                } else if base == 10.0 {
                    x.log10()
                } else {
                    x.ln() / base.ln()
                })
            })?
        }
        "pow" | "power" => of_two_doubles(call, |x, y| Some(x.powf(y)))?,
        "atan2" => of_two_doubles(call, |y, x| Some((y + 0.0).atan2(x + 0.0)))?,
        "hypot" => of_two_doubles(call, |x, y| Some(x.hypot(y)))?,
        "pi" => literal::number("3.141592653589793D", false, call.place)?,
        "e" => literal::number("2.718281828459045D", false, call.place)?,
        "ceil" | "ceiling" => whole(call, Rounding::Ceiling)?,
        "floor" => whole(call, Rounding::Floor)?,
        "round" => round(call, Rounding::HalfUp)?,
        "bround" => round(call, Rounding::HalfEven)?,
        "bitwise_not" => {
            call.arity(1, 1)?;
            let ty = call.args[0].ty.clone();
            if !is_integer(&ty) {
                return Err(call.mismatch(format!("takes a whole number, not {}", call.type_name(0))));
            }
            Bound {
                expr: call.spark("bitwise_not")?.expr,
                ty,
            }
        }
        "bin" => {
            call.arity(1, 1)?;
            let value = call.long(0)?;
            call.binder.spark_call("bin", vec![value], call.place)?
        }
        "conv" => conv(call)?,
        _ => return Ok(None),
    }))
}

fn operator(name: &str) -> Option<(Arithmetic, OnFailure)> {
    Some(match name {
        "mod" => (Arithmetic::Remainder, OnFailure::Fail),
        "pmod" => (Arithmetic::PositiveRemainder, OnFailure::Fail),
        "div" => (Arithmetic::IntegerDivide, OnFailure::Fail),
        "try_add" => (Arithmetic::Add, OnFailure::Null),
        "try_subtract" => (Arithmetic::Subtract, OnFailure::Null),
        "try_multiply" => (Arithmetic::Multiply, OnFailure::Null),
        "try_divide" => (Arithmetic::Divide, OnFailure::Null),
        "try_mod" => (Arithmetic::Remainder, OnFailure::Null),
        _ => return None,
    })
}

fn positive(x: f64) -> Option<f64> {
    (x > 0.0 || x.is_nan()).then_some(x)
}

type OfOneDouble = fn(f64) -> Option<f64>;

fn of_one_double(name: &str) -> Option<OfOneDouble> {
    Some(match name {
        "sqrt" => |x| Some(x.sqrt()),
        "cbrt" => |x| Some(x.cbrt()),
        "exp" => |x| Some(x.exp()),
        "expm1" => |x| Some(x.exp_m1()),
        "ln" => |x| positive(x).map(f64::ln),
        "log10" => |x| positive(x).map(f64::log10),
        "log2" => |x| positive(x).map(f64::log2),
        "log1p" => |x| positive(x + 1.0).map(|_| x.ln_1p()),
        "sin" => |x| Some(x.sin()),
        "cos" => |x| Some(x.cos()),
        "tan" => |x| Some(x.tan()),
        "cot" => |x| Some(1.0 / x.tan()),
        "asin" => |x| Some(x.asin()),
        "acos" => |x| Some(x.acos()),
        "atan" => |x| Some(x.atan()),
        "sinh" => |x| Some(x.sinh()),
        "cosh" => |x| Some(x.cosh()),
        "tanh" => |x| Some(x.tanh()),
        "degrees" => |x| Some(x.to_degrees()),
        "radians" => |x| Some(x.to_radians()),
        "sign" | "signum" => |x| Some(if x == 0.0 || x.is_nan() { x } else { x.signum() }),
        _ => return None,
    })
}

fn doubles(call: &Call<'_>, function: OfOneDouble) -> Result<Bound, Error> {
    let value = call.double(0)?;
    let expr = arrays(call.name, DataType::Float64, vec![value], move |args| {
        let values = args[0].as_primitive::<Float64Type>();
        let values: Float64Array = values.iter().map(|value| value.and_then(function)).collect();
        Ok(Arc::new(values) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Float64,
    })
}

fn of_two_doubles(call: &Call<'_>, function: fn(f64, f64) -> Option<f64>) -> Result<Bound, Error> {
    call.arity(2, 2)?;
    let args = vec![call.double(0)?, call.double(1)?];
    let expr = arrays(call.name, DataType::Float64, args, move |args| {
        let (left, right) = (
            args[0].as_primitive::<Float64Type>(),
            args[1].as_primitive::<Float64Type>(),
        );
        let values: Float64Array = left
            .iter()
            .zip(right)
            .map(|(left, right)| function(left?, right?))
            .collect();
        Ok(Arc::new(values) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Float64,
    })
}

/// The value, or its negative where it is negative, which fails for the least integer.
fn abs(call: &Call<'_>) -> Result<Bound, Error> {
    call.arity(1, 1)?;
    let bound = match call.args[0].ty {
        DataType::Utf8 | DataType::Null => Bound {
            expr: call.double(0)?,
            ty: DataType::Float64,
        },
        _ => call.args[0].clone(),
    };
    let zero = literal::number("0", false, call.place)?;
    let negative = operators::compare(call.binder, Operator::Lt, bound.clone(), zero, call.place)?;
    let ty = bound.ty;
    let turned = negate(bound.expr.clone(), &ty);
    let case = Case::new(
        None,
        vec![(Box::new(negative.expr), Box::new(turned))],
        Some(Box::new(bound.expr)),
    );
    Ok(Bound {
        expr: Expr::Case(case),
        ty,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounding {
    Ceiling,
    Floor,
    HalfUp,
    HalfEven,
}

impl Rounding {
    /// Drops the digits below a divisor.
    fn divide(self, value: i128, divisor: i128) -> i128 {
        let (quotient, rest) = (value.div_euclid(divisor), value.rem_euclid(divisor));
        if rest == 0 {
            return quotient;
        }
        let twice = rest.saturating_mul(2);
        let up = match self {
            Self::Ceiling => true,
            Self::Floor => false,
            // The quotient is the floor: of a negative value the half goes down, away from zero.
            Self::HalfUp => twice > divisor || (twice == divisor && value > 0),
            Self::HalfEven => twice > divisor || (twice == divisor && quotient % 2 != 0),
        };
        quotient + i128::from(up)
    }
}

fn whole(call: &Call<'_>, rounding: Rounding) -> Result<Bound, Error> {
    call.arity(1, 2)?;
    if call.args.len() == 2 {
        return scaled(call, rounding);
    }
    match call.args[0].ty {
        DataType::Decimal128(precision, scale) => {
            let ty = bounded_decimal(i32::from(precision) - i32::from(scale) + i32::from(scale > 0), 0);
            Ok(decimals(call, rounding, call.args[0].expr.clone(), 0, ty))
        }
        ref ty if is_integer(ty) => Ok(Bound {
            expr: call.long(0)?,
            ty: DataType::Int64,
        }),
        _ => {
            let value = call.double(0)?;
            let expr = arrays(call.name, DataType::Int64, vec![value], move |args| {
                let values = args[0].as_primitive::<Float64Type>();
                let whole: PrimitiveArray<Int64Type> = unary(values, |value| {
                    // As Java: the nearest long where it does not fit, 0 for NaN.
                    (if rounding == Rounding::Ceiling {
                        value.ceil()
                    } else {
                        value.floor()
                    }) as i64
                });
                Ok(Arc::new(whole) as ArrayRef)
            });
            Ok(Bound {
                expr,
                ty: DataType::Int64,
            })
        }
    }
}

fn scaled(call: &Call<'_>, rounding: Rounding) -> Result<Bound, Error> {
    let places = i32::try_from(call.literal_integer(1)?)
        .map_err(|_| call.mismatch("takes a small number of places"))?;
    let (precision, scale) = match &call.args[0].ty {
        ty if is_integer(ty) => as_decimal(ty).unwrap_or((20, 0)),
        DataType::Decimal128(precision, scale) => (*precision, *scale),
        _ => (30, 15),
    };
    let kept = places.clamp(0, i32::from(scale));
    let ty = bounded_decimal(i32::from(precision) - i32::from(scale) + kept + 1, kept);
    let value = call.as_type(0, &DataType::Decimal128(precision, scale))?;
    Ok(decimals(call, rounding, value, places, ty))
}

fn round(call: &Call<'_>, rounding: Rounding) -> Result<Bound, Error> {
    call.arity(1, 2)?;
    let places = if call.args.len() == 2 {
        call.literal_integer(1)?
    } else {
        0
    };
    let places = i32::try_from(places).map_err(|_| call.mismatch("takes a small number of places"))?;
    match call.args[0].ty.clone() {
        DataType::Decimal128(precision, scale) => {
            let (precision, scale) = (i32::from(precision), i32::from(scale));
            let integral = precision - scale + 1;
            let ty = if places < 0 {
                bounded_decimal(integral.max(1 - places), 0)
            } else {
                let kept = scale.min(places);
                bounded_decimal(integral + kept, kept)
            };
            Ok(decimals(call, rounding, call.args[0].expr.clone(), places, ty))
        }
        DataType::Int8 => Ok(integers::<Int8Type>(call, rounding, places, DataType::Int8)),
        DataType::Int16 => Ok(integers::<Int16Type>(call, rounding, places, DataType::Int16)),
        DataType::Int32 => Ok(integers::<Int32Type>(call, rounding, places, DataType::Int32)),
        DataType::Int64 => Ok(integers::<Int64Type>(call, rounding, places, DataType::Int64)),
        _ => {
            let value = call.double(0)?;
            let name = format!("{}({places})", call.name);
            let expr = arrays(name, DataType::Float64, vec![value], move |args| {
                let values = args[0].as_primitive::<Float64Type>();
                let rounded: Float64Array = unary(values, |value| round_double(value, places, rounding));
                Ok(Arc::new(rounded) as ArrayRef)
            });
            Ok(Bound {
                expr,
                ty: DataType::Float64,
            })
        }
    }
}

/// Rounds the shortest decimal that stands for the double, as Spark does.
fn round_double(value: f64, places: i32, rounding: Rounding) -> f64 {
    if !value.is_finite() {
        return value;
    }
    let written = format!("{value}");
    let (digits, scale) = match written.split_once('.') {
        Some((whole, fraction)) => (format!("{whole}{fraction}"), fraction.len() as i32),
        None => (written, 0),
    };
    let Ok(digits) = digits.parse::<i128>() else {
        return value;
    };
    let cut = scale - places;
    if cut <= 0 {
        return value;
    }
    if cut > 37 {
        return 0.0;
    }
    let rounded = rounding.divide(digits, 10_i128.pow(cut.unsigned_abs()));
    format!("{rounded}e{}", -places).parse().unwrap_or(value)
}

fn integers<T>(call: &Call<'_>, rounding: Rounding, places: i32, ty: DataType) -> Bound
where
    T: ArrowPrimitiveType,
    T::Native: Into<i128> + TryFrom<i128>,
{
    if places >= 0 {
        return call.args[0].clone();
    }
    let name = format!("{}({places})", call.name);
    let expr = failing_arrays(true, name, ty.clone(), call.exprs()[..1].to_vec(), move |args| {
        let values = args[0].as_primitive::<T>();
        let unit = 10_i128.checked_pow(places.unsigned_abs()).unwrap_or(i128::MAX);
        let rounded: DataFusionResult<PrimitiveArray<T>> = values
            .iter()
            .map(|value| {
                let Some(value) = value else { return Ok(None) };
                let rounded = rounding.divide(value.into(), unit).saturating_mul(unit);
                T::Native::try_from(rounded)
                    .map(Some)
                    .map_err(|_| failed("ARITHMETIC_OVERFLOW", "a rounded number does not fit its type"))
            })
            .collect();
        Ok(Arc::new(rounded?) as ArrayRef)
    });
    Bound { expr, ty }
}

fn decimals(call: &Call<'_>, rounding: Rounding, value: Expr, places: i32, ty: DataType) -> Bound {
    let to = ty.clone();
    let name = format!("{}({places})", call.name);
    let expr = failing_arrays(true, name, ty.clone(), vec![value], move |args| {
        let values = args[0].as_primitive::<Decimal128Type>();
        let scale = i32::from(values.scale());
        let (precision, kept) = match to {
            DataType::Decimal128(precision, kept) => (precision, i32::from(kept)),
            _ => (38, 0),
        };
        let bound = 10_i128.pow(u32::from(precision.min(38)));
        let power = |exponent: i32| {
            10_i128
                .checked_pow(exponent.max(0).unsigned_abs())
                .unwrap_or(i128::MAX)
        };
        let rounded: DataFusionResult<PrimitiveArray<Decimal128Type>> = values
            .iter()
            .map(|value| {
                let Some(value) = value else { return Ok(None) };
                let cut = scale - places;
                let value = if cut <= 0 {
                    value.saturating_mul(power(kept - scale))
                } else {
                    // Back to as many digits as the result keeps: more than `places` if that is negative.
                    rounding
                        .divide(value, power(cut))
                        .saturating_mul(power(kept - places))
                };
                if value.abs() >= bound {
                    return Err(failed(
                        "NUMERIC_VALUE_OUT_OF_RANGE",
                        "a rounded decimal does not fit its type",
                    ));
                }
                Ok(Some(value))
            })
            .collect();
        Ok(Arc::new(rounded?.with_data_type(to.clone())) as ArrayRef)
    });
    Bound { expr, ty }
}

/// A number written in one base, written in another.
fn conv(call: &Call<'_>) -> Result<Bound, Error> {
    call.arity(3, 3)?;
    let args = vec![
        call.string(0)?,
        call.as_type(1, &DataType::Int32)?,
        call.as_type(2, &DataType::Int32)?,
    ];
    let expr = arrays("conv", DataType::Utf8, args, |args| {
        let text = args[0].as_string::<i32>();
        let (from, to) = (
            args[1].as_primitive::<Int32Type>(),
            args[2].as_primitive::<Int32Type>(),
        );
        let written: StringArray = (0..text.len())
            .map(|row| {
                let valid = text.is_valid(row) && from.is_valid(row) && to.is_valid(row);
                valid
                    .then(|| converted(text.value(row), from.value(row), to.value(row)))
                    .flatten()
            })
            .collect();
        Ok(Arc::new(written) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Utf8,
    })
}

fn converted(text: &str, from: i32, to: i32) -> Option<String> {
    let (from, base) = (u32::try_from(from).ok()?, to.unsigned_abs());
    if !(2..=36).contains(&from) || !(2..=36).contains(&base) || text.is_empty() {
        return None;
    }
    let (negative, digits) = text
        .trim()
        .strip_prefix('-')
        .map_or((false, text.trim()), |rest| (true, rest));
    let mut value: u64 = 0;
    for digit in digits.chars().map_while(|c| c.to_digit(from)) {
        value = value
            .checked_mul(u64::from(from))
            .and_then(|value| value.checked_add(u64::from(digit)))
            .unwrap_or(u64::MAX);
    }
    if negative {
        value = value.wrapping_neg();
    }
    // A negative target base means a signed result.
    let (sign, mut value) = match (to < 0, value.cast_signed()) {
        (true, signed) if signed < 0 => ("-", signed.unsigned_abs()),
        _ => ("", value),
    };
    let mut written = Vec::new();
    loop {
        let digit = u32::try_from(value % u64::from(base)).ok()?;
        written.push(char::from_digit(digit, base)?.to_ascii_uppercase());
        value /= u64::from(base);
        if value == 0 {
            break;
        }
    }
    let digits: String = written.into_iter().rev().collect();
    Some(format!("{sign}{digits}"))
}
