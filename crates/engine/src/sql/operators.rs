//! Operators with Spark's types: arithmetic that fails on overflow, comparisons of what can be compared.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::arithmetic::{self, Arithmetic, OnFailure};
use super::error::{Error, Place};
use super::expression::{Binder, boolean};
use super::literal::tight_decimal;
use super::scope::Bound;
use super::types::{
    bounded_decimal, common, is_float, is_integer, is_numeric, is_string, is_timestamp, spark_name, timestamp,
};

pub(super) fn binary(
    binder: &Binder<'_>,
    op: &BinaryOperator,
    left: Bound,
    right: Bound,
    place: Place,
) -> Result<Bound, Error> {
    match op {
        BinaryOperator::Plus => sum(binder, Arithmetic::Add, left, right, place),
        BinaryOperator::Minus => sum(binder, Arithmetic::Subtract, left, right, place),
        BinaryOperator::Multiply => {
            arithmetic(binder, Arithmetic::Multiply, OnFailure::Fail, left, right, place)
        }
        BinaryOperator::Divide => arithmetic(binder, Arithmetic::Divide, OnFailure::Fail, left, right, place),
        BinaryOperator::Modulo => {
            arithmetic(binder, Arithmetic::Remainder, OnFailure::Fail, left, right, place)
        }
        BinaryOperator::MyIntegerDivide => arithmetic(
            binder,
            Arithmetic::IntegerDivide,
            OnFailure::Fail,
            left,
            right,
            place,
        ),
        BinaryOperator::StringConcat => binder.apply("concat", vec![left, right], place),
        BinaryOperator::And => logical(binder, Operator::And, left, right, place),
        BinaryOperator::Or => logical(binder, Operator::Or, left, right, place),
        BinaryOperator::Eq => compare(binder, Operator::Eq, left, right, place),
        BinaryOperator::NotEq => compare(binder, Operator::NotEq, left, right, place),
        BinaryOperator::Lt => compare(binder, Operator::Lt, left, right, place),
        BinaryOperator::LtEq => compare(binder, Operator::LtEq, left, right, place),
        BinaryOperator::Gt => compare(binder, Operator::Gt, left, right, place),
        BinaryOperator::GtEq => compare(binder, Operator::GtEq, left, right, place),
        BinaryOperator::Spaceship => compare(binder, Operator::IsNotDistinctFrom, left, right, place),
        BinaryOperator::BitwiseAnd => bits(binder, Operator::BitwiseAnd, left, right, place),
        BinaryOperator::BitwiseOr => bits(binder, Operator::BitwiseOr, left, right, place),
        BinaryOperator::BitwiseXor => bits(binder, Operator::BitwiseXor, left, right, place),
        BinaryOperator::Regexp => binder.apply("rlike", vec![left, right], place),
        other => Err(Error::Unsupported {
            what: format!("operator {other}"),
            place,
            hint: "see docs/sql-differences.md for what there is".to_owned(),
        }),
    }
}

fn infix(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

fn mismatch(what: &str, left: &DataType, right: &DataType, place: Place) -> Error {
    Error::Mismatch {
        what: format!("`{what}`"),
        place,
        reason: format!(
            "does not go with {} and {}; cast one of them",
            spark_name(left),
            spark_name(right)
        ),
    }
}

pub(super) fn compare(
    binder: &Binder<'_>,
    op: Operator,
    left: Bound,
    right: Bound,
    place: Place,
) -> Result<Bound, Error> {
    let ty =
        common(&left.ty, &right.ty).ok_or_else(|| mismatch(&op.to_string(), &left.ty, &right.ty, place))?;
    let what = op.to_string();
    let left = binder.as_type(left, &ty, &what, place)?;
    let right = binder.as_type(right, &ty, &what, place)?;
    Ok(boolean(infix(left, op, right)))
}

fn logical(
    binder: &Binder<'_>,
    op: Operator,
    left: Bound,
    right: Bound,
    place: Place,
) -> Result<Bound, Error> {
    let what = op.to_string();
    let left = binder.as_type(left, &DataType::Boolean, &what, place)?;
    let right = binder.as_type(right, &DataType::Boolean, &what, place)?;
    Ok(boolean(infix(left, op, right)))
}

fn bits(binder: &Binder<'_>, op: Operator, left: Bound, right: Bound, place: Place) -> Result<Bound, Error> {
    let ty = common(&left.ty, &right.ty).filter(|ty| is_integer(ty) || *ty == DataType::Null);
    let ty = ty.ok_or_else(|| mismatch(&op.to_string(), &left.ty, &right.ty, place))?;
    let what = op.to_string();
    let expr = infix(
        binder.as_type(left, &ty, &what, place)?,
        op,
        binder.as_type(right, &ty, &what, place)?,
    );
    Ok(Bound { expr, ty })
}

/// `+` and `-`, which go with dates and intervals too.
fn sum(binder: &Binder<'_>, op: Arithmetic, left: Bound, right: Bound, place: Place) -> Result<Bound, Error> {
    let is_interval = |ty: &DataType| matches!(ty, DataType::Interval(_));
    let operator = match op {
        Arithmetic::Add => Operator::Plus,
        _ => Operator::Minus,
    };
    match (&left.ty, &right.ty) {
        (DataType::Date32, days) if is_integer(days) => {
            let name = if op == Arithmetic::Add {
                "date_add"
            } else {
                "date_sub"
            };
            binder.apply(name, vec![left, right], place)
        }
        (days, DataType::Date32) if is_integer(days) && op == Arithmetic::Add => {
            binder.apply("date_add", vec![right, left], place)
        }
        (at, interval) if is_interval(interval) && (is_timestamp(at) || *at == DataType::Date32) => {
            moved(binder, operator, left, right, place)
        }
        (interval, at)
            if is_interval(interval)
                && op == Arithmetic::Add
                && (is_timestamp(at) || *at == DataType::Date32) =>
        {
            moved(binder, operator, right, left, place)
        }
        (a, b)
            if (is_timestamp(a) || *a == DataType::Date32) && (is_timestamp(b) || *b == DataType::Date32) =>
        {
            Err(Error::Unsupported {
                what: "the interval between two dates or timestamps".to_owned(),
                place,
                hint: "use datediff, or subtract unix_micros of both".to_owned(),
            })
        }
        _ => arithmetic(binder, op, OnFailure::Fail, left, right, place),
    }
}

/// A date or timestamp and an interval. A date moved by hours is a timestamp.
fn moved(
    binder: &Binder<'_>,
    op: Operator,
    at: Bound,
    interval: Bound,
    place: Place,
) -> Result<Bound, Error> {
    let days_only = matches!(
        &interval.expr,
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), _) if value.nanoseconds == 0
    );
    let ty = if at.ty == DataType::Date32 && !days_only {
        timestamp()
    } else {
        at.ty.clone()
    };
    let at = binder.as_type(at, &ty, &op.to_string(), place)?;
    Ok(Bound {
        expr: infix(at, op, interval.expr),
        ty,
    })
}

pub(super) fn arithmetic(
    binder: &Binder<'_>,
    op: Arithmetic,
    failure: OnFailure,
    left: Bound,
    right: Bound,
    place: Place,
) -> Result<Bound, Error> {
    let unfit = || mismatch(op.symbol(), &left.ty, &right.ty, place);
    // Text counts as the number that the other side is, or as a double.
    let as_number = |ty: &DataType, other: &DataType| -> Option<DataType> {
        match ty {
            ty if is_string(ty) && is_string(other) => Some(DataType::Float64),
            ty if is_string(ty) => common(ty, other).filter(is_numeric),
            DataType::Null => Some(DataType::Null),
            ty => is_numeric(ty).then(|| ty.clone()),
        }
    };
    let left_type = as_number(&left.ty, &right.ty).ok_or_else(unfit)?;
    let right_type = as_number(&right.ty, &left.ty).ok_or_else(unfit)?;
    let is_decimal = |ty: &DataType| matches!(ty, DataType::Decimal128(..));
    let decimals = (is_decimal(&left_type) || is_decimal(&right_type))
        && !is_float(&left_type)
        && !is_float(&right_type);
    if decimals {
        return decimal(binder, op, failure, left, right, place);
    }
    let mut ty = common(&left_type, &right_type).ok_or_else(unfit)?;
    if op == Arithmetic::Divide || ty == DataType::Null {
        ty = DataType::Float64;
    }
    if op == Arithmetic::IntegerDivide {
        ty = DataType::Int64;
    }
    let what = op.symbol();
    let left = binder.as_type(left, &ty, what, place)?;
    let right = binder.as_type(right, &ty, what, place)?;
    Ok(Bound {
        expr: arithmetic::call(op, failure, left, right, &ty),
        ty,
    })
}

fn decimal(
    binder: &Binder<'_>,
    op: Arithmetic,
    failure: OnFailure,
    left: Bound,
    right: Bound,
    place: Place,
) -> Result<Bound, Error> {
    let unfit = || mismatch(op.symbol(), &left.ty, &right.ty, place);
    let own = |bound: &Bound| match bound.ty {
        DataType::Null => Some((1, 0)),
        _ => tight_decimal(bound),
    };
    let ((p1, s1), (p2, s2)) = (own(&left).ok_or_else(unfit)?, own(&right).ok_or_else(unfit)?);
    let ty = decimal_result(op, (i32::from(p1), i32::from(s1)), (i32::from(p2), i32::from(s2)));
    let what = op.symbol();
    let left = binder.as_type(left, &DataType::Decimal128(p1, s1), what, place)?;
    let right = binder.as_type(right, &DataType::Decimal128(p2, s2), what, place)?;
    Ok(Bound {
        expr: arithmetic::call(op, failure, left, right, &ty),
        ty,
    })
}

/// Spark's precision and scale of a result.
fn decimal_result(op: Arithmetic, (p1, s1): (i32, i32), (p2, s2): (i32, i32)) -> DataType {
    let whole = (p1 - s1).max(p2 - s2);
    match op {
        Arithmetic::Add | Arithmetic::Subtract => {
            let scale = s1.max(s2);
            bounded_decimal(whole + scale + 1, scale)
        }
        Arithmetic::Multiply => bounded_decimal(p1 + p2 + 1, s1 + s2),
        Arithmetic::Divide => {
            let scale = (s1 + p2 + 1).max(6);
            bounded_decimal(p1 - s1 + s2 + scale, scale)
        }
        Arithmetic::Remainder | Arithmetic::PositiveRemainder => {
            let scale = s1.max(s2);
            bounded_decimal((p1 - s1).min(p2 - s2) + scale, scale)
        }
        Arithmetic::IntegerDivide => DataType::Int64,
    }
}

/// A minus sign before something that is no literal.
pub(super) fn negate(binder: &Binder<'_>, bound: Bound, place: Place) -> Result<Bound, Error> {
    let ty = match &bound.ty {
        ty if is_string(ty) => DataType::Float64,
        DataType::Interval(_) => {
            return Ok(Bound {
                expr: Expr::Negative(Box::new(bound.expr)),
                ty: bound.ty,
            });
        }
        ty if is_numeric(ty) || *ty == DataType::Null => ty.clone(),
        ty => {
            return Err(Error::Mismatch {
                what: "`-`".to_owned(),
                place,
                reason: format!("takes a number, not {}", spark_name(ty)),
            });
        }
    };
    let expr = binder.as_type(bound, &ty, "-", place)?;
    Ok(Bound {
        expr: arithmetic::negate(expr, &ty),
        ty,
    })
}
