//! Arithmetic over arrays: overflow and division by zero fail, or give null where asked to.

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{
    ArrowNativeTypeOp, DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, i256,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::cast::as_primitive_array;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr_common::datum::apply;
use std::sync::Arc;

use super::kernel::{failed, failing_arrays, failing_columnar};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// `div`
    IntegerDivide,
    /// `%`, with the sign of the dividend.
    Remainder,
    /// `pmod`, never negative for a positive divisor.
    PositiveRemainder,
}

/// What becomes of a row that has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnFailure {
    Fail,
    Null,
}

impl Arithmetic {
    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::IntegerDivide => "div",
            Self::Remainder => "%",
            Self::PositiveRemainder => "pmod",
        }
    }
}

/// The call over two operands of one type (decimals: of their own), with the result type given.
pub(super) fn call(op: Arithmetic, failure: OnFailure, left: Expr, right: Expr, to: &DataType) -> Expr {
    let prefix = match failure {
        OnFailure::Fail => "",
        OnFailure::Null => "try ",
    };
    let name = format!("{prefix}{}", op.symbol());
    let target = to.clone();
    // These run without a look at each row.
    let simple = matches!(op, Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply);
    if simple && failure == OnFailure::Fail && !matches!(to, DataType::Decimal128(..)) {
        return failing_columnar(name, to.clone(), vec![left, right], move |args| {
            let run = match op {
                Arithmetic::Add => numeric::add,
                Arithmetic::Subtract => numeric::sub,
                _ => numeric::mul,
            };
            apply(&args[0], &args[1], run).map_err(overflowed)
        });
    }
    failing_arrays(
        failure == OnFailure::Fail,
        name,
        to.clone(),
        vec![left, right],
        move |args| {
            let (left, right) = (&args[0], &args[1]);
            match (left.data_type(), &target) {
                (DataType::Int8, _) => integers::<Int8Type>(op, failure, left, right),
                (DataType::Int16, _) => integers::<Int16Type>(op, failure, left, right),
                (DataType::Int32, _) => integers::<Int32Type>(op, failure, left, right),
                (DataType::Int64, _) => integers::<Int64Type>(op, failure, left, right),
                (DataType::Float32, _) => floats::<Float32Type>(op, failure, left, right),
                (DataType::Float64, _) => floats::<Float64Type>(op, failure, left, right),
                (DataType::Decimal128(..), target) => decimals(op, failure, left, right, target),
                (other, _) => Err(DataFusionError::Internal(format!("arithmetic over {other}"))),
            }
        },
    )
}

fn overflowed(error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ArrowError(arrow, _)
            if matches!(arrow.as_ref(), ArrowError::ArithmeticOverflow(_)) =>
        {
            no_result(Failure::Overflow)
        }
        _ => error,
    }
}

#[derive(Clone, Copy)]
enum Failure {
    Overflow,
    ZeroDivisor,
}

fn no_result(failure: Failure) -> DataFusionError {
    match failure {
        Failure::Overflow => failed(
            "ARITHMETIC_OVERFLOW",
            "a result does not fit its type; cast to a wider one, or use try_add, try_subtract, try_multiply",
        ),
        Failure::ZeroDivisor => failed(
            "DIVIDE_BY_ZERO",
            "division by zero; use try_divide or nullif(divisor, 0)",
        ),
    }
}

fn zip<T: ArrowPrimitiveType>(
    failure: OnFailure,
    left: &PrimitiveArray<T>,
    right: &PrimitiveArray<T>,
    compute: impl Fn(T::Native, T::Native) -> Result<T::Native, Failure>,
) -> Result<PrimitiveArray<T>> {
    left.iter()
        .zip(right)
        .map(|pair| match pair {
            (Some(left), Some(right)) => match compute(left, right) {
                Ok(value) => Ok(Some(value)),
                Err(_) if failure == OnFailure::Null => Ok(None),
                Err(why) => Err(no_result(why)),
            },
            _ => Ok(None),
        })
        .collect()
}

fn integers<T: ArrowPrimitiveType>(
    op: Arithmetic,
    failure: OnFailure,
    left: &ArrayRef,
    right: &ArrayRef,
) -> Result<ArrayRef> {
    let (left, right) = (left.as_primitive::<T>(), right.as_primitive::<T>());
    let zero = T::Native::ZERO;
    let result = zip(failure, left, right, |a, b| {
        let divides = matches!(
            op,
            Arithmetic::Divide
                | Arithmetic::IntegerDivide
                | Arithmetic::Remainder
                | Arithmetic::PositiveRemainder
        );
        if divides && b == zero {
            return Err(Failure::ZeroDivisor);
        }
        let checked = match op {
            Arithmetic::Add => a.add_checked(b),
            Arithmetic::Subtract => a.sub_checked(b),
            Arithmetic::Multiply => a.mul_checked(b),
            Arithmetic::Divide | Arithmetic::IntegerDivide => a.div_checked(b),
            // The least integer modulo -1 is 0, though the division overflows.
            Arithmetic::Remainder => Ok(a.mod_wrapping(b)),
            Arithmetic::PositiveRemainder => {
                let rest = a.mod_wrapping(b);
                Ok(if rest < zero {
                    rest.add_wrapping(b).mod_wrapping(b)
                } else {
                    rest
                })
            }
        };
        checked.map_err(|_| Failure::Overflow)
    })?;
    Ok(Arc::new(result))
}

fn floats<T: ArrowPrimitiveType>(
    op: Arithmetic,
    failure: OnFailure,
    left: &ArrayRef,
    right: &ArrayRef,
) -> Result<ArrayRef> {
    let (left, right) = (left.as_primitive::<T>(), right.as_primitive::<T>());
    let zero = T::Native::ZERO;
    let result = zip(failure, left, right, |a, b| {
        Ok(match op {
            Arithmetic::Add => a.add_wrapping(b),
            Arithmetic::Subtract => a.sub_wrapping(b),
            Arithmetic::Multiply => a.mul_wrapping(b),
            _ if b.is_zero() => return Err(Failure::ZeroDivisor),
            Arithmetic::Divide | Arithmetic::IntegerDivide => a.div_wrapping(b),
            Arithmetic::Remainder => a.mod_wrapping(b),
            Arithmetic::PositiveRemainder => {
                let rest = a.mod_wrapping(b);
                if rest.is_lt(zero) {
                    rest.add_wrapping(b).mod_wrapping(b)
                } else {
                    rest
                }
            }
        })
    })?;
    Ok(Arc::new(result))
}

fn decimals(
    op: Arithmetic,
    failure: OnFailure,
    left: &ArrayRef,
    right: &ArrayRef,
    to: &DataType,
) -> Result<ArrayRef> {
    let scale_of = |ty: &DataType| match ty {
        DataType::Decimal128(_, scale) => i32::from(*scale),
        _ => 0,
    };
    let (s1, s2) = (scale_of(left.data_type()), scale_of(right.data_type()));
    let (precision, scale) = match to {
        DataType::Decimal128(precision, scale) => (*precision, i32::from(*scale)),
        _ => (38, 0),
    };
    let bound = power_of_ten(i32::from(precision));
    let (left, right) = (
        as_primitive_array::<Decimal128Type>(left)?,
        as_primitive_array::<Decimal128Type>(right)?,
    );
    let result = zip(failure, left, right, |a, b| {
        let (a, b) = (i256::from_i128(a), i256::from_i128(b));
        let zero = i256::from_i128(0);
        let common = s1.max(s2);
        let (x, y) = (
            a.wrapping_mul(power_of_ten(common - s1)),
            b.wrapping_mul(power_of_ten(common - s2)),
        );
        let value = match op {
            Arithmetic::Add => rescaled(x.wrapping_add(y), common, scale),
            Arithmetic::Subtract => rescaled(x.wrapping_sub(y), common, scale),
            Arithmetic::Multiply => rescaled(a.wrapping_mul(b), s1 + s2, scale),
            _ if b == zero => return Err(Failure::ZeroDivisor),
            Arithmetic::Divide => {
                // One digit more than wanted, to round by.
                let shift = scale + 1 - s1 + s2;
                let (a, b) = if shift >= 0 {
                    (a.wrapping_mul(power_of_ten(shift)), b)
                } else {
                    (a, b.wrapping_mul(power_of_ten(-shift)))
                };
                rescaled(a.wrapping_div(b), scale + 1, scale)
            }
            Arithmetic::IntegerDivide => x.wrapping_div(y),
            Arithmetic::Remainder => rescaled(x.wrapping_rem(y), common, scale),
            Arithmetic::PositiveRemainder => {
                let rest = x.wrapping_rem(y);
                let rest = if rest < zero {
                    rest.wrapping_add(y).wrapping_rem(y)
                } else {
                    rest
                };
                rescaled(rest, common, scale)
            }
        };
        if value.wrapping_abs() >= bound {
            return Err(Failure::Overflow);
        }
        value.to_i128().ok_or(Failure::Overflow)
    })?;
    if *to == DataType::Int64 {
        let whole = result.iter().map(|value| match value {
            Some(value) => i64::try_from(value)
                .map(Some)
                .map_err(|_| no_result(Failure::Overflow)),
            None => Ok(None),
        });
        let whole: Result<PrimitiveArray<Int64Type>> = whole.collect();
        return Ok(Arc::new(whole?));
    }
    Ok(Arc::new(result.with_data_type(to.clone())))
}

/// Moves the decimal point, rounding half away from zero.
fn rescaled(value: i256, from: i32, to: i32) -> i256 {
    if to >= from {
        return value.wrapping_mul(power_of_ten(to - from));
    }
    let divisor = power_of_ten(from - to);
    let (quotient, rest) = (value.wrapping_div(divisor), value.wrapping_rem(divisor));
    let half = divisor.wrapping_div(i256::from_i128(2));
    if rest.wrapping_abs() < half {
        quotient
    } else if value.is_negative() {
        quotient.wrapping_sub(i256::from_i128(1))
    } else {
        quotient.wrapping_add(i256::from_i128(1))
    }
}

fn power_of_ten(exponent: i32) -> i256 {
    i256::from_i128(10).wrapping_pow(exponent.max(0).unsigned_abs())
}

/// The negative of a number; of the least integer there is none.
pub(super) fn negate(expr: Expr, ty: &DataType) -> Expr {
    failing_arrays(true, "negative", ty.clone(), vec![expr], |args| {
        numeric::neg(args[0].as_ref()).map_err(|error| overflowed(error.into()))
    })
}
