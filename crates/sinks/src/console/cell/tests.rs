use arrow::array::{
    ArrayRef, BinaryViewArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray,
    DurationMicrosecondArray, DurationMillisecondArray, FixedSizeListArray, Int32Array, Int32Builder,
    IntervalYearMonthArray, ListArray, MapBuilder, StringArray, StringBuilder, StringViewArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt64Array,
};
use std::sync::Arc;

use super::*;

/// Each row of the array, and what it is printed as.
#[track_caller]
fn check<const N: usize>(array: impl Array, expected: [&str; N]) {
    let printed: Vec<String> = (0..array.len())
        .map(|row| {
            let mut out = String::new();
            write(&mut out, &array, row);
            out
        })
        .collect();
    assert_eq!(printed, expected);
}

#[test]
fn timestamps_of_all_units_show_no_zeros_at_their_end() {
    check(
        TimestampSecondArray::from(vec![0, -1]),
        ["1970-01-01 00:00:00", "1969-12-31 23:59:59"],
    );
    check(
        TimestampMillisecondArray::from(vec![1_500]),
        ["1970-01-01 00:00:01.5"],
    );
    check(
        TimestampMicrosecondArray::from(vec![-1, 10]),
        ["1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.00001"],
    );
    check(
        TimestampNanosecondArray::from(vec![-1]),
        ["1969-12-31 23:59:59.999999"],
    );
    check(
        TimestampMicrosecondArray::from(vec![253_402_300_800_000_000]),
        ["+10000-01-01 00:00:00"],
    );
}

#[test]
fn dates_before_1970_are_dates_too() {
    check(Date32Array::from(vec![-1, 19_782]), ["1969-12-31", "2024-02-29"]);
    check(Date64Array::from(vec![-1]), ["1969-12-31"]);
}

#[test]
fn values_out_of_range_are_printed_and_not_panicked_at() {
    check(
        TimestampSecondArray::from(vec![i64::MAX]),
        ["9223372036854775807"],
    );
    check(Date32Array::from(vec![i32::MIN]), ["-2147483648"]);
}

#[test]
fn decimals_keep_their_scale() {
    let decimals = |scale| {
        Decimal128Array::from(vec![-5, 0, 123_450])
            .with_precision_and_scale(10, scale)
            .expect("it fits")
    };
    check(decimals(2), ["-0.05", "0.00", "1234.50"]);
    check(decimals(0), ["-5", "0", "123450"]);
}

#[test]
fn intervals_are_written_as_sql() {
    check(
        DurationMicrosecondArray::from(vec![3_661_500_000, -1, 0]),
        [
            "INTERVAL '0 01:01:01.5' DAY TO SECOND",
            "INTERVAL '-0 00:00:00.000001' DAY TO SECOND",
            "INTERVAL '0' DAY",
        ],
    );
    check(
        DurationMillisecondArray::from(vec![90_000_000]),
        ["INTERVAL '1 01:00:00' DAY TO SECOND"],
    );
    check(
        IntervalYearMonthArray::from(vec![14, -1]),
        ["INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-0-1' YEAR TO MONTH"],
    );
}

#[test]
fn arrow_s_other_layouts_print_like_the_plain_ones() {
    check(StringViewArray::from(vec![Some("a"), None]), ["a", "NULL"]);
    check(BinaryViewArray::from(vec![b"Hi".as_slice()]), ["[48 69]"]);
    check(UInt64Array::from(vec![u64::MAX]), ["18446744073709551615"]);
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
    let keys = Int32Array::from(vec![Some(0), None, Some(1)]);
    check(
        DictionaryArray::try_new(keys, values).expect("keys in range"),
        ["x", "NULL", "NULL"],
    );
    check(Time64MicrosecondArray::from(vec![1_500_000]), ["00:00:01.500"]);
}

#[test]
fn a_slice_of_lists_prints_its_own_entries() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        None,
        Some(vec![None]),
    ]);
    check(lists.slice(1, 2), ["NULL", "[NULL]"]);
    let pairs =
        FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), Some(2)]), None], 2);
    check(pairs.slice(0, 2), ["[1, 2]", "NULL"]);
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for (key, value) in [("a", 1), ("b", 2)] {
        maps.keys().append_value(key);
        maps.values().append_value(value);
        maps.append(true).expect("as many keys as values");
    }
    check(maps.finish().slice(1, 1), ["{b -> 2}"]);
}
