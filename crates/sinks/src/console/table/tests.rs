use arrow::array::{ArrayRef, Int64Array, StringArray};
use proptest::prelude::*;
use std::sync::Arc;

use super::*;

fn shown(value: &str, width: Width) -> String {
    let mut cells = Cells::default();
    cells.push(value, width);
    cells.text
}

#[track_caller]
fn cut_to(most: usize, text: &str, expected: &str) {
    assert_eq!(shown(text, Width::Cut(most)), expected);
}

fn numbers(count: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new((0..count).collect::<Int64Array>());
    RecordBatch::try_from_iter([("n", column)]).expect("one column")
}

#[test]
fn a_cell_is_cut_where_java_would_cut_it() {
    cut_to(20, "12345678901234567890", "12345678901234567890");
    cut_to(20, "123456789012345678901", "12345678901234567...");
    cut_to(3, "abcd", "abc");
    cut_to(0, "é", "");
    cut_to(5, "ab😀😀", "ab...");
    cut_to(4, "😀😀", "😀😀");
    cut_to(4, "😀😀😀", "?...");
    cut_to(3, "😀😀", "😀?");
}

#[test]
fn characters_that_break_lines_are_written_as_escapes_and_count_as_two() {
    assert_eq!(
        shown("\n\r\t\u{c}\u{8}\u{b}\u{7}\"\\\u{1}", Width::Whole),
        "\\n\\r\\t\\f\\b\\v\\a\"\\\u{1}"
    );
    cut_to(4, "abc\n", "a...");
}

#[test]
fn wide_characters_take_two_columns() {
    assert_eq!(
        (columns("日本"), columns("😀"), columns("é"), columns("ab")),
        (4, 2, 1, 2)
    );
    // The first and the last character of each range, then their neighbours outside.
    let wide = "\u{1100}\u{115f}\u{2e80}\u{a4cf}\u{ac00}\u{d7a3}\u{f900}\u{faff}\
                \u{fe10}\u{fe19}\u{fe30}\u{fe6f}\u{ff00}\u{ff60}\u{ffe0}\u{ffe6}";
    assert_eq!(wide.chars().filter(|c| is_wide(*c)).count(), 16);
    let narrow = "\u{10ff}\u{1160}\u{2e7f}\u{a4d0}\u{abff}\u{d7a4}\u{f8ff}\u{fb00}\
                  \u{fe0f}\u{fe1a}\u{fe2f}\u{fe70}\u{feff}\u{ff61}\u{ffdf}\u{ffe7}";
    assert!(!narrow.chars().any(is_wide));
}

#[test]
fn rows_beyond_the_limit_are_counted_and_not_kept() {
    let mut table = Table::new(1, Width::Cut(20));
    for _ in 0..3 {
        table.push(&numbers(1_000));
    }
    assert_eq!(
        (table.rows(), table.cells.places.len(), table.cells.text.as_str()),
        (3_000, 1, "0")
    );
    let mut out = String::new();
    table.print(&mut out, &numbers(0).schema());
    assert!(out.ends_with("only showing top 1 row"), "{out}");
}

proptest! {
    /// Whatever is in the cells, the table is a grid: all lines are equally wide, and one line is one row.
    #[test]
    fn every_line_is_as_wide_as_the_rule(
        rows in prop::collection::vec((".{0,30}", prop::option::of("[\\x00-\\x7f日本😀é]{0,30}")), 0..20),
        name in ".{0,30}",
        most in 0_usize..25,
        width in prop_oneof![Just(Width::Whole), (0_usize..25).prop_map(Width::Cut)],
    ) {
        let (left, right): (Vec<String>, Vec<Option<String>>) = rows.iter().cloned().unzip();
        let batch = RecordBatch::try_from_iter([
            (name.as_str(), Arc::new(StringArray::from(left)) as ArrayRef),
            ("b", Arc::new(StringArray::from(right)) as ArrayRef),
        ]).expect("columns are equally long");
        let mut table = Table::new(most, width);
        // In two parts, as batches come.
        let half = batch.num_rows() / 2;
        table.push(&batch.slice(0, half));
        table.push(&batch.slice(half, batch.num_rows() - half));
        let mut out = String::new();
        table.print(&mut out, &batch.schema());

        let more = batch.num_rows() > most;
        let lines: Vec<&str> = out.split('\n').collect();
        prop_assert_eq!(lines.len(), 4 + batch.num_rows().min(most) + 1);
        let (last, grid) = lines.split_last().expect("not empty");
        prop_assert_eq!(!last.is_empty(), more);
        for line in grid {
            prop_assert_eq!(columns(line), columns(grid[0]), "{}", out);
        }
    }

    /// Both ways of cutting agree.
    #[test]
    fn ascii_is_cut_like_any_other_text(text in "[ -~]{0,40}", most in 0_usize..30) {
        let (mut short, mut long) = (String::new(), String::new());
        cut_ascii(&mut short, &text, Width::Cut(most));
        cut(&mut long, text.chars(), Width::Cut(most));
        prop_assert_eq!(short, long);
    }
}
