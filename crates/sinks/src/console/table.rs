//! Spark's `show()`: rows as a table in text.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use std::fmt::Write as _;

use super::cell;

/// A column is never narrower.
const NARROWEST: usize = 3;

/// How much of a cell is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// All of it, aligned to the left.
    Whole,
    /// At most so many characters (UTF-16 units, as in Java), the last three of them dots, aligned to the right.
    Cut(usize),
}

/// One cell, ready to print.
struct Cell {
    text: String,
    columns: usize,
}

/// Appends the first `most` rows of `batches` as Spark's `show()` prints them. Ends with a line end, except after
/// `only showing top …`.
pub(super) fn show(out: &mut String, schema: &SchemaRef, batches: &[RecordBatch], most: usize, width: Width) {
    let header: Vec<Cell> = schema.fields().iter().map(|field| Cell::new(escaped(field.name()))).collect();
    let (rows, more) = cells(batches, most, width);
    let mut columns: Vec<usize> = header.iter().map(|cell| cell.columns.max(NARROWEST)).collect();
    for row in &rows {
        for (column, cell) in columns.iter_mut().zip(row) {
            *column = (*column).max(cell.columns);
        }
    }
    rule(out, &columns);
    line(out, &header, &columns, width);
    rule(out, &columns);
    for row in &rows {
        line(out, row, &columns, width);
    }
    rule(out, &columns);
    if more {
        let noun = if most == 1 { "row" } else { "rows" };
        let _infallible = write!(out, "only showing top {most} {noun}");
    }
}

fn cells(batches: &[RecordBatch], most: usize, width: Width) -> (Vec<Vec<Cell>>, bool) {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            if rows.len() == most {
                return (rows, true);
            }
            let cell = |column: &ArrayRef| {
                let mut text = String::new();
                cell::write(&mut text, column, row);
                Cell::new(cut(escaped(&text), width))
            };
            rows.push(batch.columns().iter().map(cell).collect());
        }
    }
    (rows, false)
}

impl Cell {
    fn new(text: String) -> Self {
        let columns = columns(&text);
        Self { text, columns }
    }
}

fn rule(out: &mut String, columns: &[usize]) {
    out.push('+');
    for (index, width) in columns.iter().enumerate() {
        if index > 0 {
            out.push('+');
        }
        out.extend(std::iter::repeat_n('-', *width));
    }
    out.push_str("+\n");
}

fn line(out: &mut String, cells: &[Cell], columns: &[usize], width: Width) {
    out.push('|');
    for (index, (cell, column)) in cells.iter().zip(columns).enumerate() {
        if index > 0 {
            out.push('|');
        }
        let pad = std::iter::repeat_n(' ', column - cell.columns);
        match width {
            Width::Cut(_) => {
                out.extend(pad);
                out.push_str(&cell.text);
            }
            Width::Whole => {
                out.push_str(&cell.text);
                out.extend(pad);
            }
        }
    }
    out.push_str("|\n");
}

/// Characters that would break the table, as Spark writes them.
fn escaped(text: &str) -> String {
    if !text.bytes().any(|byte| byte < 0x20) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{c}' => out.push_str("\\f"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{7}' => out.push_str("\\a"),
            c => out.push(c),
        }
    }
    out
}

fn cut(text: String, width: Width) -> String {
    let Width::Cut(most) = width else { return text };
    if most == 0 || text.encode_utf16().count() <= most {
        return text;
    }
    // Too narrow for dots.
    let (kept, dots) = if most < 4 { (most, "") } else { (most - 3, "...") };
    let units: Vec<u16> = text.encode_utf16().take(kept).collect();
    // Half a character is a question mark in Java's output.
    char::decode_utf16(units).map(|c| c.unwrap_or('?')).chain(dots.chars()).collect()
}

/// The columns of a terminal that Spark reckons with: Java's length, and one more for each wide character.
fn columns(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().map(|c| c.len_utf16() + usize::from(is_wide(c))).sum()
}

/// Spark's own list.
const fn is_wide(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{115F}' | '\u{2E80}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7A3}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FE10}'..='\u{FE19}' | '\u{FE30}'..='\u{FE6F}' | '\u{FF00}'..='\u{FF60}' | '\u{FFE0}'..='\u{FFE6}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn cut_to(most: usize, text: &str, expected: &str) {
        assert_eq!(cut(text.to_owned(), Width::Cut(most)), expected);
    }

    #[test]
    fn a_cell_is_cut_where_java_would_cut_it() {
        cut_to(20, "12345678901234567890", "12345678901234567890");
        cut_to(20, "123456789012345678901", "12345678901234567...");
        cut_to(3, "abcd", "abc");
        cut_to(5, "ab😀😀", "ab...");
        cut_to(4, "😀😀😀", "?...");
    }

    #[test]
    fn characters_that_break_lines_are_written_as_escapes() {
        assert_eq!(escaped("a\nb\tc\u{7}\"\\"), "a\\nb\\tc\\a\"\\");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!((columns("日本"), columns("😀"), columns("é"), columns("ab")), (4, 2, 1, 2));
    }
}
