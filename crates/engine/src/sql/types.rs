//! Spark's types as Arrow's: names, widening, decimal arithmetic.

use baton_core::arrow::schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

/// The greatest precision and scale of a decimal.
pub(super) const MAX_PRECISION: u8 = 38;

/// `TIMESTAMP`: an instant, printed in UTC.
pub(super) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

pub(super) fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", item, true)))
}

pub(super) const fn is_string(ty: &DataType) -> bool {
    matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

pub(super) const fn is_binary(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
    )
}

pub(super) const fn is_timestamp(ty: &DataType) -> bool {
    matches!(ty, DataType::Timestamp(..))
}

pub(super) const fn is_integer(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64
    )
}

pub(super) const fn is_float(ty: &DataType) -> bool {
    matches!(ty, DataType::Float32 | DataType::Float64)
}

pub(super) const fn is_numeric(ty: &DataType) -> bool {
    is_integer(ty) || is_float(ty) || matches!(ty, DataType::Decimal128(..))
}

/// Spark's name of a type, as `typeof` gives it.
pub(super) fn spark_name(ty: &DataType) -> String {
    match ty {
        DataType::Null => "void".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "tinyint".to_owned(),
        DataType::Int16 => "smallint".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamp".to_owned(),
        DataType::Timestamp(_, None) => "timestamp_ntz".to_owned(),
        DataType::Interval(_) => "interval".to_owned(),
        ty if is_string(ty) => "string".to_owned(),
        ty if is_binary(ty) => "binary".to_owned(),
        DataType::List(item) | DataType::LargeList(item) => {
            format!("array<{}>", spark_name(item.data_type()))
        }
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{}:{}", field.name(), spark_name(field.data_type())))
                .collect();
            format!("struct<{}>", fields.join(","))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => format!(
                "map<{},{}>",
                spark_name(fields[0].data_type()),
                spark_name(fields[1].data_type())
            ),
            other => format!("map<{other}>"),
        },
        other => other.to_string().to_lowercase(),
    }
}

/// A type as written in SQL; none if Spark has it and this version has not, or if there is no such type.
pub(super) fn from_ast(ty: &ast::DataType) -> Option<DataType> {
    Some(match ty {
        ast::DataType::Boolean | ast::DataType::Bool => DataType::Boolean,
        ast::DataType::TinyInt(_) => DataType::Int8,
        ast::DataType::SmallInt(_) => DataType::Int16,
        ast::DataType::Int(_) | ast::DataType::Integer(_) => DataType::Int32,
        ast::DataType::BigInt(_) => DataType::Int64,
        ast::DataType::Float(_) | ast::DataType::Real => DataType::Float32,
        ast::DataType::Double(_) => DataType::Float64,
        ast::DataType::Decimal(info) | ast::DataType::Dec(info) | ast::DataType::Numeric(info) => {
            decimal(info)?
        }
        ast::DataType::String(_) | ast::DataType::Varchar(_) | ast::DataType::Text => DataType::Utf8,
        ast::DataType::Binary(_) => DataType::Binary,
        ast::DataType::Date => DataType::Date32,
        ast::DataType::Timestamp(None, ast::TimezoneInfo::None) => timestamp(),
        ast::DataType::TimestampNtz(_) => DataType::Timestamp(TimeUnit::Microsecond, None),
        ast::DataType::Array(
            ast::ArrayElemTypeDef::AngleBracket(item) | ast::ArrayElemTypeDef::Parenthesis(item),
        ) => list_of(from_ast(item)?),
        ast::DataType::Struct(fields, _) => {
            let fields: Option<Vec<Field>> = fields
                .iter()
                .map(|field| {
                    let name = field.field_name.as_ref()?.value.clone();
                    Some(Field::new(name, from_ast(&field.field_type)?, true))
                })
                .collect();
            DataType::Struct(Fields::from(fields?))
        }
        ast::DataType::Custom(name, arguments) if arguments.is_empty() => {
            match name.to_string().to_ascii_uppercase().as_str() {
                "LONG" => DataType::Int64,
                "SHORT" => DataType::Int16,
                "BYTE" => DataType::Int8,
                "STRING" => DataType::Utf8,
                "TIMESTAMP_LTZ" => timestamp(),
                "TIMESTAMP_NTZ" => DataType::Timestamp(TimeUnit::Microsecond, None),
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn decimal(info: &ast::ExactNumberInfo) -> Option<DataType> {
    let (precision, scale) = match info {
        ast::ExactNumberInfo::None => (10, 0),
        ast::ExactNumberInfo::Precision(precision) => (u8::try_from(*precision).ok()?, 0),
        ast::ExactNumberInfo::PrecisionAndScale(precision, scale) => {
            (u8::try_from(*precision).ok()?, i8::try_from(*scale).ok()?)
        }
    };
    let fits = (1..=MAX_PRECISION).contains(&precision) && scale >= 0 && scale.unsigned_abs() <= precision;
    fits.then_some(DataType::Decimal128(precision, scale))
}

/// The decimal that holds every value of an integer type, or the decimal itself.
pub(super) const fn as_decimal(ty: &DataType) -> Option<(u8, i8)> {
    match ty {
        DataType::Int8 => Some((3, 0)),
        DataType::Int16 => Some((5, 0)),
        DataType::Int32 => Some((10, 0)),
        DataType::Int64 => Some((20, 0)),
        DataType::Decimal128(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

/// Spark's rule for a result that needs more than 38 digits: integral digits are kept, at least six decimals too.
pub(super) fn bounded_decimal(precision: i32, scale: i32) -> DataType {
    const MAX: i32 = MAX_PRECISION as i32;
    let (precision, scale) = if precision <= MAX {
        (precision, scale)
    } else {
        let integral = precision - scale;
        (MAX, (MAX - integral).max(scale.min(6)))
    };
    DataType::Decimal128(
        u8::try_from(precision).unwrap_or(MAX_PRECISION),
        i8::try_from(scale).unwrap_or(0),
    )
}

/// The type to which two operands of a comparison, a CASE or a UNION are brought, by Spark's ANSI rules.
pub(super) fn common(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType::{Boolean, Date32, Decimal128, Float32, Float64, Int64, List, Null, Struct};
    if left == right {
        return Some(left.clone());
    }
    match (left, right) {
        (Null, other) | (other, Null) => Some(other.clone()),
        (a, b) if is_string(a) && is_string(b) => Some(DataType::Utf8),
        (a, b) if is_binary(a) && is_binary(b) => Some(DataType::Binary),
        (text, other) | (other, text) if is_string(text) => match other {
            other if is_integer(other) => Some(Int64),
            Float32 | Float64 | Decimal128(..) => Some(Float64),
            Boolean | Date32 | DataType::Timestamp(..) | DataType::Binary => Some(other.clone()),
            _ => None,
        },
        (a, b) if is_integer(a) && is_integer(b) => {
            Some(if rank(a) > rank(b) { a.clone() } else { b.clone() })
        }
        (a, b) if is_float(a) && is_float(b) => Some(Float64),
        (Float32 | Float64, Decimal128(..)) | (Decimal128(..), Float32 | Float64) => Some(Float64),
        // A float cannot hold every int.
        (float, other) | (other, float) if is_float(float) && is_integer(other) => Some(Float64),
        (a, b) if is_numeric(a) && is_numeric(b) => {
            let ((p1, s1), (p2, s2)) = (as_decimal(a)?, as_decimal(b)?);
            let (p1, s1, p2, s2) = (i32::from(p1), i32::from(s1), i32::from(p2), i32::from(s2));
            let scale = s1.max(s2);
            Some(bounded_decimal((p1 - s1).max(p2 - s2) + scale, scale))
        }
        (Date32, ts) | (ts, Date32) if is_timestamp(ts) => Some(ts.clone()),
        (a, b) if is_timestamp(a) && is_timestamp(b) => Some(timestamp()),
        (List(a), List(b)) => Some(list_of(common(a.data_type(), b.data_type())?)),
        (Struct(a), Struct(b)) if a.len() == b.len() => {
            let fields: Option<Vec<Field>> = a
                .iter()
                .zip(b)
                .map(|(a, b)| Some(Field::new(a.name(), common(a.data_type(), b.data_type())?, true)))
                .collect();
            Some(Struct(Fields::from(fields?)))
        }
        _ => None,
    }
}

const fn rank(ty: &DataType) -> u8 {
    match ty {
        DataType::Int8 => 1,
        DataType::Int16 => 2,
        DataType::Int32 => 3,
        _ => 4,
    }
}

pub(super) const fn interval() -> DataType {
    DataType::Interval(IntervalUnit::MonthDayNano)
}
