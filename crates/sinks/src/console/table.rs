//! Spark's `show()`: rows as a table in text.

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
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

/// The first rows of a batch as text, and the number of all of them.
///
/// Rows become text when they come, so that nothing of the batch has to be kept for the end, and all cells share one
/// string, so that a row costs no allocation.
#[derive(Debug)]
pub(super) struct Table {
    most: usize,
    width: Width,
    cells: Cells,
    shown: usize,
    rows: u64,
    /// Holds one value while it is made ready.
    value: String,
}

/// Cells one after the other.
#[derive(Debug, Default)]
struct Cells {
    text: String,
    places: Vec<Place>,
}

/// Where a cell ends in the text, and how many columns of a terminal it takes.
#[derive(Clone, Copy, Debug)]
struct Place {
    end: usize,
    columns: usize,
}

impl Table {
    /// An empty table that will show the first `most` rows.
    pub(super) const fn new(most: usize, width: Width) -> Self {
        let cells = Cells {
            text: String::new(),
            places: Vec::new(),
        };
        Self {
            most,
            width,
            cells,
            shown: 0,
            rows: 0,
            value: String::new(),
        }
    }

    /// How many rows are shown at most.
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    /// How cells are shown.
    pub(super) const fn width(&self) -> Width {
        self.width
    }

    /// How many rows were pushed.
    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes rows: those within the first `most` as text, the others as a number.
    pub(super) fn push(&mut self, rows: &RecordBatch) {
        let wanted = (self.most - self.shown).min(rows.num_rows());
        for row in 0..wanted {
            for column in rows.columns() {
                self.value.clear();
                cell::write(&mut self.value, column, row);
                self.cells.push(&self.value, self.width);
            }
        }
        self.shown += wanted;
        self.rows += rows.num_rows() as u64;
    }

    /// Forgets all rows, and keeps their space for the next batch.
    pub(super) fn clear(&mut self) {
        self.cells.text.clear();
        self.cells.places.clear();
        self.shown = 0;
        self.rows = 0;
    }

    /// Appends the table as Spark's `show()` prints it. Ends with a line end, except after `only showing top …`.
    pub(super) fn print(&self, out: &mut String, schema: &Schema) {
        let mut header = Cells::default();
        for field in schema.fields() {
            // Spark never cuts a column's name.
            header.push(field.name(), Width::Whole);
        }
        let count = header.places.len();
        let mut columns: Vec<usize> = header
            .places
            .iter()
            .map(|cell| cell.columns.max(NARROWEST))
            .collect();
        for row in 0..self.shown {
            for (column, cell) in columns.iter_mut().zip(&self.cells.places[row * count..]) {
                *column = (*column).max(cell.columns);
            }
        }
        let rule = rule(&columns);
        out.reserve((self.shown + 4) * rule.len() + self.cells.text.len());
        out.push_str(&rule);
        header.line(out, 0, &columns, self.width);
        out.push_str(&rule);
        for row in 0..self.shown {
            self.cells.line(out, row, &columns, self.width);
        }
        out.push_str(&rule);
        if self.rows > self.shown as u64 {
            let noun = if self.most == 1 { "row" } else { "rows" };
            let _infallible = write!(out, "only showing top {} {noun}", self.most);
        }
    }
}

impl Cells {
    fn push(&mut self, value: &str, width: Width) {
        let start = self.text.len();
        if value.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
            cut_ascii(&mut self.text, value, width);
        } else {
            cut(&mut self.text, escaped(value), width);
        }
        let columns = columns(&self.text[start..]);
        self.places.push(Place {
            end: self.text.len(),
            columns,
        });
    }

    /// Appends one row.
    fn line(&self, out: &mut String, row: usize, columns: &[usize], width: Width) {
        let first = row * columns.len();
        let mut start = first.checked_sub(1).map_or(0, |last| self.places[last].end);
        out.push('|');
        for (index, (place, column)) in self.places[first..].iter().zip(columns).enumerate() {
            if index > 0 {
                out.push('|');
            }
            let text = &self.text[start..place.end];
            let pad = column - place.columns;
            match width {
                Width::Cut(_) => {
                    fill(out, ' ', pad);
                    out.push_str(text);
                }
                Width::Whole => {
                    out.push_str(text);
                    fill(out, ' ', pad);
                }
            }
            start = place.end;
        }
        out.push_str("|\n");
    }
}

fn rule(columns: &[usize]) -> String {
    let mut out = String::from("+");
    for (index, width) in columns.iter().enumerate() {
        if index > 0 {
            out.push('+');
        }
        fill(&mut out, '-', *width);
    }
    out.push_str("+\n");
    out
}

fn fill(out: &mut String, c: char, times: usize) {
    out.extend(std::iter::repeat_n(c, times));
}

/// Characters that would break the table, as Spark writes them.
fn escaped(text: &str) -> impl Iterator<Item = char> {
    text.chars()
        .flat_map(|c| {
            let letter = match c {
                '\n' => 'n',
                '\r' => 'r',
                '\t' => 't',
                '\u{c}' => 'f',
                '\u{8}' => 'b',
                '\u{b}' => 'v',
                '\u{7}' => 'a',
                c => return [Some(c), None],
            };
            [Some('\\'), Some(letter)]
        })
        .flatten()
}

/// How many characters are kept of a longer text, and what follows them.
const fn kept(most: usize) -> (usize, &'static str) {
    // Too narrow for dots.
    if most < 4 { (most, "") } else { (most - 3, "...") }
}

fn cut_ascii(out: &mut String, text: &str, width: Width) {
    match width {
        Width::Cut(most) if text.len() > most => {
            let (kept, dots) = kept(most);
            out.push_str(&text[..kept]);
            out.push_str(dots);
        }
        _ => out.push_str(text),
    }
}

fn cut(out: &mut String, text: impl Iterator<Item = char>, width: Width) {
    let Width::Cut(most) = width else {
        return out.extend(text);
    };
    let (kept, dots) = kept(most);
    let (mut units, start, mut end) = (0, out.len(), None);
    for c in text {
        units += c.len_utf16();
        if units > kept && end.is_none() {
            // Java cuts a character in half and prints that half as a question mark.
            end = Some((out.len(), if units - c.len_utf16() < kept { "?" } else { "" }));
        }
        if units > most {
            let (end, half) = end.unwrap_or((start, ""));
            out.truncate(end);
            out.push_str(half);
            return out.push_str(dots);
        }
        out.push(c);
    }
}

/// The columns of a terminal that Spark reckons with: Java's length, and one more for each wide character.
fn columns(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars()
        .map(|c| c.len_utf16() + usize::from(is_wide(c)))
        .sum()
}

/// Spark's own list.
const fn is_wide(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{115F}' | '\u{2E80}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7A3}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FE10}'..='\u{FE19}' | '\u{FE30}'..='\u{FE6F}' | '\u{FF00}'..='\u{FF60}' | '\u{FFE0}'..='\u{FFE6}')
}

#[cfg(test)]
mod tests;
