//! Regular expressions. Patterns are Java's in Spark; here look-around and back references do not exist.

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListBuilder, StringArray, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::logical_expr::Expr;
use regex::Regex;
use std::sync::Arc;

use super::Call;
use crate::sql::error::Error;
use crate::sql::expression::literal_text;
use crate::sql::kernel::{arrays, failed};
use crate::sql::literal;
use crate::sql::scope::Bound;
use crate::sql::types::list_of;

#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "regexp", "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_like", "regexp_replace",
    "rlike", "split",
];

pub(super) fn apply(call: &Call<'_>) -> Result<Option<Bound>, Error> {
    if !NAMES.contains(&call.name) {
        return Ok(None);
    }
    call.arity(2, 4)?;
    check_literal(call)?;
    let (text, pattern) = (call.string(0)?, call.string(1)?);
    let integer = |index: usize, default: i64| match call.args.get(index) {
        Some(_) => call.as_type(index, &DataType::Int32),
        None => {
            let default = literal::number(&default.to_string(), false, call.place)?;
            Ok(default.expr)
        }
    };
    Ok(Some(match call.name {
        "regexp_replace" => {
            call.arity(3, 3)?;
            replace(text, pattern, call.string(2)?)
        }
        "regexp_extract" => extract(text, pattern, integer(2, 1)?),
        "regexp_extract_all" => extract_all(text, pattern, integer(2, 1)?),
        "regexp_count" => return Ok(Some(count(text, pattern))),
        "split" => split(text, pattern, integer(2, -1)?),
        _ => like(text, pattern),
    }))
}

/// A pattern written out is checked before the query starts.
fn check_literal(call: &Call<'_>) -> Result<(), Error> {
    match literal_text(&call.args[1].expr) {
        Some(pattern) => match compiled(pattern) {
            Ok(_) => Ok(()),
            Err(error) => Err(call.mismatch(format!("cannot use its pattern: {error}"))),
        },
        None => Ok(()),
    }
}

fn compiled(pattern: &str) -> DataFusionResult<Regex> {
    Regex::new(pattern).map_err(|error| {
        let reason = error.to_string();
        let reason = reason
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned();
        failed(
            "INVALID_PARAMETER_VALUE.PATTERN",
            format!("`{pattern}`: {reason}"),
        )
    })
}

/// The regular expression of each row, compiled once for equal neighbours.
struct Patterns<'a> {
    patterns: &'a StringArray,
    last: Option<(&'a str, Regex)>,
}

impl<'a> Patterns<'a> {
    fn new(patterns: &'a ArrayRef) -> Self {
        Self {
            patterns: patterns.as_string::<i32>(),
            last: None,
        }
    }

    fn of(&mut self, row: usize) -> DataFusionResult<Option<&Regex>> {
        if self.patterns.is_null(row) {
            return Ok(None);
        }
        let pattern = self.patterns.value(row);
        if self.last.as_ref().is_none_or(|(last, _)| *last != pattern) {
            self.last = Some((pattern, compiled(pattern)?));
        }
        Ok(self.last.as_ref().map(|(_, regex)| regex))
    }
}

fn like(text: Expr, pattern: Expr) -> Bound {
    let expr = arrays("rlike", DataType::Boolean, vec![text, pattern], |args| {
        let text = args[0].as_string::<i32>();
        let mut patterns = Patterns::new(&args[1]);
        let matched: DataFusionResult<BooleanArray> = (0..text.len())
            .map(|row| {
                let regex = patterns.of(row)?;
                Ok(regex
                    .filter(|_| text.is_valid(row))
                    .map(|regex| regex.is_match(text.value(row))))
            })
            .collect();
        Ok(Arc::new(matched?) as ArrayRef)
    });
    Bound {
        expr,
        ty: DataType::Boolean,
    }
}

fn count(text: Expr, pattern: Expr) -> Bound {
    let expr = arrays("regexp_count", DataType::Int32, vec![text, pattern], |args| {
        let text = args[0].as_string::<i32>();
        let mut patterns = Patterns::new(&args[1]);
        let counts: DataFusionResult<datafusion::arrow::array::Int32Array> = (0..text.len())
            .map(|row| {
                let regex = patterns.of(row)?;
                Ok(regex
                    .filter(|_| text.is_valid(row))
                    .map(|regex| i32::try_from(regex.find_iter(text.value(row)).count()).unwrap_or(i32::MAX)))
            })
            .collect();
        Ok(Arc::new(counts?) as ArrayRef)
    });
    Bound {
        expr,
        ty: DataType::Int32,
    }
}

fn replace(text: Expr, pattern: Expr, with: Expr) -> Bound {
    let expr = arrays(
        "regexp_replace",
        DataType::Utf8,
        vec![text, pattern, with],
        |args| {
            let text = args[0].as_string::<i32>();
            let with = args[2].as_string::<i32>();
            let mut patterns = Patterns::new(&args[1]);
            let replaced: DataFusionResult<StringArray> = (0..text.len())
                .map(|row| {
                    let Some(regex) = patterns.of(row)? else {
                        return Ok(None);
                    };
                    if text.is_null(row) || with.is_null(row) {
                        return Ok(None);
                    }
                    let with = java_replacement(with.value(row));
                    Ok(Some(
                        regex.replace_all(text.value(row), with.as_str()).into_owned(),
                    ))
                })
                .collect();
            Ok(Arc::new(replaced?) as ArrayRef)
        },
    );
    Bound {
        expr,
        ty: DataType::Utf8,
    }
}

/// Java's `$1` ends after the digits, here it would take letters too; `\$` is a dollar sign.
fn java_replacement(with: &str) -> String {
    let mut result = String::with_capacity(with.len());
    let mut rest = with.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('$') => result.push_str("$$"),
                Some(other) => result.push(other),
                None => result.push('\\'),
            },
            '$' => {
                let mut group = String::new();
                while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                    group.push(digit);
                }
                if group.is_empty() {
                    result.push('$');
                } else {
                    result.push_str(&format!("${{{group}}}"));
                }
            }
            other => result.push(other),
        }
    }
    result
}

/// The group's index, if the pattern has it.
fn group_of(regex: &Regex, index: i32) -> DataFusionResult<usize> {
    usize::try_from(index)
        .ok()
        .filter(|index| *index < regex.captures_len())
        .ok_or_else(|| {
            failed(
                "INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX",
                format!(
                    "group {index} is not among the {} of the pattern",
                    regex.captures_len() - 1
                ),
            )
        })
}

fn extract(text: Expr, pattern: Expr, group: Expr) -> Bound {
    let expr = arrays(
        "regexp_extract",
        DataType::Utf8,
        vec![text, pattern, group],
        |args| {
            let text = args[0].as_string::<i32>();
            let groups = args[2].as_primitive::<Int32Type>();
            let mut patterns = Patterns::new(&args[1]);
            let extracted: DataFusionResult<StringArray> = (0..text.len())
                .map(|row| {
                    let Some(regex) = patterns.of(row)? else {
                        return Ok(None);
                    };
                    if text.is_null(row) || groups.is_null(row) {
                        return Ok(None);
                    }
                    let group = group_of(regex, groups.value(row))?;
                    let found = regex
                        .captures(text.value(row))
                        .and_then(|captures| captures.get(group));
                    Ok::<_, DataFusionError>(Some(found.map_or("", |found| found.as_str())))
                })
                .collect();
            Ok(Arc::new(extracted?) as ArrayRef)
        },
    );
    Bound {
        expr,
        ty: DataType::Utf8,
    }
}

fn lists(
    args: &[ArrayRef],
    mut each: impl FnMut(&Regex, &str, i32, &mut StringBuilder) -> DataFusionResult<()>,
) -> DataFusionResult<ArrayRef> {
    let text = args[0].as_string::<i32>();
    let numbers = args[2].as_primitive::<Int32Type>();
    let mut patterns = Patterns::new(&args[1]);
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..text.len() {
        let regex = patterns.of(row)?;
        match regex {
            Some(regex) if text.is_valid(row) && numbers.is_valid(row) => {
                each(regex, text.value(row), numbers.value(row), lists.values())?;
                lists.append(true);
            }
            _ => lists.append(false),
        }
    }
    Ok(Arc::new(lists.finish()))
}

fn extract_all(text: Expr, pattern: Expr, group: Expr) -> Bound {
    let ty = list_of(DataType::Utf8);
    let expr = arrays(
        "regexp_extract_all",
        ty.clone(),
        vec![text, pattern, group],
        |args| {
            lists(args, |regex, text, group, found| {
                let group = group_of(regex, group)?;
                for captures in regex.captures_iter(text) {
                    found.append_value(captures.get(group).map_or("", |found| found.as_str()));
                }
                Ok(())
            })
        },
    );
    Bound { expr, ty }
}

/// An empty pattern splits between characters, and leaves no empty text at the end.
fn characters(text: &str, limit: i32, parts: &mut StringBuilder) {
    let most = usize::try_from(limit)
        .ok()
        .filter(|limit| *limit > 0)
        .unwrap_or(usize::MAX);
    let mut rest = text;
    for _ in 1..most {
        let Some(second) = rest.char_indices().nth(1) else {
            break;
        };
        let (first, after) = rest.split_at(second.0);
        parts.append_value(first);
        rest = after;
    }
    parts.append_value(rest);
}

fn split(text: Expr, pattern: Expr, limit: Expr) -> Bound {
    let ty = list_of(DataType::Utf8);
    let expr = arrays("split", ty.clone(), vec![text, pattern, limit], |args| {
        lists(args, |regex, text, limit, parts| {
            if regex.as_str().is_empty() && !text.is_empty() {
                characters(text, limit, parts);
                return Ok(());
            }
            // Java drops the empty text before a match of no characters at the start.
            let skipped =
                usize::from(!text.is_empty() && regex.find(text).is_some_and(|found| found.end() == 0));
            let most = usize::try_from(limit).ok().filter(|limit| *limit > 0);
            let most = most.map_or(usize::MAX, |most| most.saturating_add(skipped));
            for part in regex.splitn(text, most).skip(skipped) {
                parts.append_value(part);
            }
            Ok(())
        })
    });
    Bound { expr, ty }
}
