//! Functions over text and bytes.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, StringArray};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, DecimalType, Float64Type, Int32Type, Int64Type,
};
use datafusion::logical_expr::Expr;
use std::sync::Arc;

use super::Call;
use crate::sql::error::Error;
use crate::sql::kernel::arrays;
use crate::sql::literal;
use crate::sql::scope::Bound;
use crate::sql::types::{is_binary, is_string};

#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "ascii", "base64", "bit_length", "btrim", "char", "char_length", "character_length", "charindex", "chr",
    "concat", "concat_ws", "contains", "crc32", "elt", "endswith", "format_number", "initcap", "instr",
    "lcase", "left", "len", "length", "levenshtein", "locate", "lower", "lpad", "ltrim", "md5",
    "octet_length", "position", "repeat", "replace", "reverse", "right", "rpad", "rtrim", "sha", "sha1",
    "soundex", "split_part", "startswith", "substr", "substring", "substring_index", "translate", "trim",
    "ucase", "upper",
];

pub(super) fn apply(call: &Call<'_>) -> Result<Option<Bound>, Error> {
    Ok(Some(match call.name {
        "length" | "len" | "char_length" | "character_length" => {
            call.arity(1, 1)?;
            if is_binary(&call.args[0].ty) {
                bytes_length("octet_length", call.bytes(0)?, 1)
            } else {
                let text = call.string(0)?;
                int(call
                    .binder
                    .core_call("character_length", vec![text], call.place)?)
            }
        }
        "bit_length" => {
            call.arity(1, 1)?;
            if is_binary(&call.args[0].ty) {
                bytes_length("bit_length", call.bytes(0)?, 8)
            } else {
                let text = call.string(0)?;
                int(call.binder.core_call("bit_length", vec![text], call.place)?)
            }
        }
        "octet_length" => {
            call.arity(1, 1)?;
            if is_binary(&call.args[0].ty) {
                bytes_length("octet_length", call.bytes(0)?, 1)
            } else {
                let text = call.string(0)?;
                int(call.binder.core_call("octet_length", vec![text], call.place)?)
            }
        }
        "upper" | "ucase" => strings(call, "upper", 1)?,
        "lower" | "lcase" => strings(call, "lower", 1)?,
        "initcap" => mapped(call, initcap)?,
        "trim" | "btrim" => trim(call, "btrim", false)?,
        // Of two arguments the first is the characters to drop.
        "ltrim" => trim(call, "ltrim", true)?,
        "rtrim" => trim(call, "rtrim", true)?,
        "trim_leading" => trim(call, "ltrim", false)?,
        "trim_trailing" => trim(call, "rtrim", false)?,
        "lpad" | "rpad" => {
            call.arity(2, 3)?;
            let mut args = vec![call.string(0)?, call.long(1)?];
            if call.args.len() == 3 {
                args.push(call.string(2)?);
            }
            call.binder.core_call(call.name, args, call.place)?
        }
        "substring" | "substr" => substring(call)?,
        "left" => {
            call.arity(2, 2)?;
            cut(call, |text, count| {
                let end = text.char_indices().nth(usize::try_from(count).unwrap_or(0));
                end.map_or(text, |(end, _)| &text[..end])
            })?
        }
        "right" => {
            call.arity(2, 2)?;
            cut(call, |text, count| match usize::try_from(count) {
                Ok(count) if count > 0 => {
                    let start = text.char_indices().rev().nth(count - 1);
                    start.map_or(text, |(start, _)| &text[start..])
                }
                _ => "",
            })?
        }
        "concat" => concat(call)?,
        "concat_ws" => {
            call.arity(1, usize::MAX)?;
            let args: Result<Vec<Expr>, Error> = (0..call.args.len())
                .map(|index| match call.args[index].ty {
                    DataType::List(_) => Ok(call.args[index].expr.clone()),
                    _ => call.string(index),
                })
                .collect();
            call.binder.spark_call("concat_ws", args?, call.place)?
        }
        "repeat" => {
            call.arity(2, 2)?;
            let args = vec![call.string(0)?, call.long(1)?];
            call.binder.core_call("repeat", args, call.place)?
        }
        "reverse" => {
            call.arity(1, 1)?;
            if let DataType::List(_) = call.args[0].ty {
                call.core("array_reverse")?
            } else {
                strings(call, "reverse", 1)?
            }
        }
        "replace" => {
            call.arity(2, 3)?;
            let search = match call.args.get(2) {
                Some(_) => call.string(2)?,
                None => literal::text("").expr,
            };
            replace(vec![call.string(0)?, call.string(1)?, search])
        }
        "translate" => strings(call, "translate", 3)?,
        "levenshtein" => int(strings(call, "levenshtein", 2)?),
        "contains" => strings(call, "contains", 2)?,
        "startswith" => strings(call, "starts_with", 2)?,
        "endswith" => strings(call, "ends_with", 2)?,
        "soundex" => {
            call.arity(1, 1)?;
            let text = call.string(0)?;
            call.binder.spark_call("soundex", vec![text], call.place)?
        }
        "ascii" => {
            call.arity(1, 1)?;
            let text = call.string(0)?;
            int(call.binder.spark_call("ascii", vec![text], call.place)?)
        }
        "md5" | "sha1" | "sha" | "crc32" => {
            call.arity(1, 1)?;
            let bytes = call.bytes(0)?;
            match call.name {
                "md5" => call.binder.core_call("md5", vec![bytes], call.place)?,
                "crc32" => call.binder.spark_call("crc32", vec![bytes], call.place)?,
                _ => call.binder.spark_call("sha1", vec![bytes], call.place)?,
            }
        }
        "base64" => {
            call.arity(1, 1)?;
            let bytes = call.bytes(0)?;
            call.binder.spark_call("base64", vec![bytes], call.place)?
        }
        "elt" => {
            call.arity(2, usize::MAX)?;
            let mut args = vec![call.as_type(0, &DataType::Int32)?];
            for index in 1..call.args.len() {
                args.push(call.string(index)?);
            }
            call.binder.spark_call("elt", args, call.place)?
        }
        "split_part" => {
            call.arity(3, 3)?;
            let args = vec![call.string(0)?, call.string(1)?, call.long(2)?];
            call.binder.core_call("split_part", args, call.place)?
        }
        "substring_index" => {
            call.arity(3, 3)?;
            let args = vec![call.string(0)?, call.string(1)?, call.long(2)?];
            call.binder.core_call("substr_index", args, call.place)?
        }
        "instr" => {
            call.arity(2, 2)?;
            position(vec![call.string(0)?, call.string(1)?])
        }
        "locate" | "position" | "charindex" => {
            call.arity(2, 3)?;
            let mut args = vec![call.string(1)?, call.string(0)?];
            if call.args.len() == 3 {
                args.push(call.as_type(2, &DataType::Int32)?);
            }
            position(args)
        }
        "chr" | "char" => {
            call.arity(1, 1)?;
            let code = call.long(0)?;
            Bound {
                expr: arrays("char", DataType::Utf8, vec![code], |args| {
                    let text: StringArray = args[0]
                        .as_primitive::<Int64Type>()
                        .iter()
                        .map(|code| code.map(character))
                        .collect();
                    Ok(Arc::new(text) as ArrayRef)
                }),
                ty: DataType::Utf8,
            }
        }
        "format_number" => format_number(call)?,
        _ => return Ok(None),
    }))
}

/// Lengths are `int` in Spark.
fn int(bound: Bound) -> Bound {
    if bound.ty == DataType::Int32 {
        return bound;
    }
    let cast = datafusion::logical_expr::Cast::new(Box::new(bound.expr), DataType::Int32);
    Bound {
        expr: Expr::Cast(cast),
        ty: DataType::Int32,
    }
}

fn strings(call: &Call<'_>, name: &str, count: usize) -> Result<Bound, Error> {
    call.arity(count, count)?;
    let args: Result<Vec<Expr>, Error> = (0..count).map(|index| call.string(index)).collect();
    call.binder.core_call(name, args?, call.place)
}

impl Call<'_> {
    /// Bytes, or the bytes of text.
    pub(super) fn bytes(&self, index: usize) -> Result<Expr, Error> {
        match self.args.get(index) {
            Some(arg) if is_binary(&arg.ty) || is_string(&arg.ty) || arg.ty == DataType::Null => {
                self.as_type(index, &DataType::Binary)
            }
            _ => Err(self.mismatch(format!("takes text or bytes, not {}", self.type_name(index)))),
        }
    }
}

/// A function of one text, row by row.
fn mapped(call: &Call<'_>, map: fn(&str) -> String) -> Result<Bound, Error> {
    call.arity(1, 1)?;
    let text = call.string(0)?;
    let expr = arrays(call.name, DataType::Utf8, vec![text], move |args| {
        let text: StringArray = args[0]
            .as_string::<i32>()
            .iter()
            .map(|row| row.map(map))
            .collect();
        Ok(Arc::new(text) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Utf8,
    })
}

/// Upper case after a blank, lower case elsewhere.
fn initcap(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut first = true;
    for c in text.chars() {
        if first {
            result.extend(c.to_uppercase());
        } else {
            result.extend(c.to_lowercase());
        }
        first = c == ' ';
    }
    result
}

/// Lengths from the offsets alone.
fn bytes_length(name: &str, bytes: Expr, unit: i32) -> Bound {
    let expr = arrays(
        format!("{name}(binary)"),
        DataType::Int32,
        vec![bytes],
        move |args| {
            let bytes = args[0].as_binary::<i32>();
            let lengths = bytes
                .offsets()
                .windows(2)
                .map(|pair| (pair[1] - pair[0]).saturating_mul(unit))
                .collect();
            Ok(Arc::new(Int32Array::new(lengths, bytes.nulls().cloned())) as ArrayRef)
        },
    );
    Bound {
        expr,
        ty: DataType::Int32,
    }
}

fn trim(call: &Call<'_>, name: &str, characters_first: bool) -> Result<Bound, Error> {
    call.arity(1, 2)?;
    let args = match (call.args.len(), characters_first) {
        (1, _) => vec![call.string(0)?],
        (_, true) => vec![call.string(1)?, call.string(0)?],
        (_, false) => vec![call.string(0)?, call.string(1)?],
    };
    call.binder.core_call(name, args, call.place)
}

fn substring(call: &Call<'_>) -> Result<Bound, Error> {
    call.arity(2, 3)?;
    let first = if is_binary(&call.args[0].ty) {
        call.args[0].expr.clone()
    } else {
        call.string(0)?
    };
    let mut args = vec![first, call.long(1)?];
    if call.args.len() == 3 {
        args.push(call.long(2)?);
    }
    call.binder.spark_call("substring", args, call.place)
}

fn cut(call: &Call<'_>, cut: for<'t> fn(&'t str, i32) -> &'t str) -> Result<Bound, Error> {
    let args = vec![call.string(0)?, call.as_type(1, &DataType::Int32)?];
    let expr = arrays(call.name, DataType::Utf8, args, move |args| {
        let text = args[0].as_string::<i32>();
        let count = args[1].as_primitive::<Int32Type>();
        let text: StringArray = text
            .iter()
            .zip(count)
            .map(|(text, count)| Some(cut(text?, count?)))
            .collect();
        Ok(Arc::new(text) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Utf8,
    })
}

fn concat(call: &Call<'_>) -> Result<Bound, Error> {
    if call.args.iter().any(|arg| matches!(arg.ty, DataType::List(_))) {
        let (exprs, ty) = call.binder.to_common(call.args.clone(), call.name, call.place)?;
        let expr = call.binder.core_call("array_concat", exprs, call.place)?.expr;
        return Ok(Bound { expr, ty });
    }
    if !call.args.is_empty() && call.args.iter().all(|arg| is_binary(&arg.ty)) {
        return Err(call.unsupported("bytes as arguments", "cast them to string"));
    }
    let args: Result<Vec<Expr>, Error> = (0..call.args.len()).map(|index| call.string(index)).collect();
    call.binder.spark_call("concat", args?, call.place)
}

fn replace(args: Vec<Expr>) -> Bound {
    let expr = arrays("replace", DataType::Utf8, args, |args| {
        let (text, search, with) = (
            args[0].as_string::<i32>(),
            args[1].as_string::<i32>(),
            args[2].as_string::<i32>(),
        );
        let text: StringArray = text
            .iter()
            .zip(search)
            .zip(with)
            .map(|((text, search), with)| {
                let (text, search, with) = (text?, search?, with?);
                // An empty text is found nowhere.
                Some(if search.is_empty() {
                    text.to_owned()
                } else {
                    text.replace(search, with)
                })
            })
            .collect();
        Ok(Arc::new(text) as ArrayRef)
    });
    Bound {
        expr,
        ty: DataType::Utf8,
    }
}

/// Where the second text is in the first, in characters from 1, from a position on; 0 if nowhere.
fn position(args: Vec<Expr>) -> Bound {
    let expr = arrays("locate", DataType::Int32, args, |args| {
        let (text, search) = (args[0].as_string::<i32>(), args[1].as_string::<i32>());
        let starts = args.get(2).map(|starts| starts.as_primitive::<Int32Type>());
        let found: Int32Array = (0..text.len())
            .map(|row| {
                if text.is_null(row) || search.is_null(row) {
                    return None;
                }
                let start = match starts {
                    Some(starts) if starts.is_null(row) => return Some(0),
                    Some(starts) => starts.value(row),
                    None => 1,
                };
                Some(locate(text.value(row), search.value(row), start))
            })
            .collect();
        Ok(Arc::new(found) as ArrayRef)
    });
    Bound {
        expr,
        ty: DataType::Int32,
    }
}

fn locate(text: &str, search: &str, start: i32) -> i32 {
    let Some(skipped) = usize::try_from(start).ok().and_then(|start| start.checked_sub(1)) else {
        return 0;
    };
    let Some(from) = text
        .char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .nth(skipped)
    else {
        return 0;
    };
    text[from..].find(search).map_or(0, |at| {
        i32::try_from(skipped + text[from..from + at].chars().count() + 1).unwrap_or(i32::MAX)
    })
}

/// The character of a code modulo 256; nothing for negative codes.
fn character(code: i64) -> String {
    u8::try_from(code.rem_euclid(256))
        .ok()
        .filter(|_| code >= 0)
        .map_or_else(String::new, |code| char::from(code).to_string())
}

/// `12,345.68`
fn format_number(call: &Call<'_>) -> Result<Bound, Error> {
    call.arity(2, 2)?;
    let places = call.as_type(1, &DataType::Int32)?;
    let number = match call.args[0].ty {
        DataType::Decimal128(..) => call.args[0].expr.clone(),
        _ => call.double(0)?,
    };
    let expr = arrays("format_number", DataType::Utf8, vec![number, places], |args| {
        let places = args[1].as_primitive::<Int32Type>();
        let text: StringArray = (0..places.len())
            .map(|row| {
                if args[0].is_null(row) || places.is_null(row) {
                    return None;
                }
                let places = usize::try_from(places.value(row)).ok()?;
                let plain = match args[0].data_type() {
                    DataType::Decimal128(precision, scale) => {
                        let value = args[0].as_primitive::<Decimal128Type>().value(row);
                        let exact = Decimal128Type::format_decimal(value, *precision, *scale);
                        half_even(&exact, places)
                    }
                    _ => {
                        let value = args[0].as_primitive::<Float64Type>().value(row);
                        half_even(&format!("{value}"), places)
                    }
                };
                Some(grouped(&plain))
            })
            .collect();
        Ok(Arc::new(text) as ArrayRef)
    });
    Ok(Bound {
        expr,
        ty: DataType::Utf8,
    })
}

/// Rounds written digits as Java's `DecimalFormat` does: a half goes to the even neighbour.
fn half_even(written: &str, places: usize) -> String {
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    if fraction.len() <= places {
        let mut text = whole.to_owned();
        if places > 0 {
            text.push_str(&format!(".{fraction:0<places$}"));
        }
        return text;
    }
    let (kept, cut) = fraction.split_at(places);
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(rest) => ("-", format!("{rest}{kept}")),
        None => ("", format!("{whole}{kept}")),
    };
    let half = format!("{:0<width$}", "5", width = cut.len());
    let odd = digits.bytes().last().is_some_and(|digit| digit % 2 == 1);
    let up = cut > half.as_str() || (cut == half && odd);
    let digits = if up { incremented(&digits) } else { digits };
    let (whole, fraction) = digits.split_at(digits.len() - places);
    if places == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

fn incremented(digits: &str) -> String {
    let mut digits: Vec<u8> = digits.bytes().collect();
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return String::from_utf8_lossy(&digits).into_owned();
        }
        *digit = b'0';
    }
    format!("1{}", String::from_utf8_lossy(&digits))
}

/// A comma between each three digits before the point.
fn grouped(plain: &str) -> String {
    let (sign, rest) = plain.strip_prefix('-').map_or(("", plain), |rest| ("-", rest));
    let (whole, fraction) = rest
        .split_once('.')
        .map_or((rest, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut text = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}
