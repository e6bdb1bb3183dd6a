//! Numbers as Java writes them.

use std::fmt::{Arguments, Write as _};
use std::io::Write as _;

/// `Double.toString` of JDK 19 and later: the fewest digits that mean the number, but two at least; plain from 10^-3 to
/// below 10^7, else with an exponent.
pub(super) fn double(out: &mut String, value: f64) {
    float(out, value, format_args!("{value:e}"), format_args!("{value:.1e}"));
}

/// `Float.toString`, likewise.
pub(super) fn single(out: &mut String, value: f32) {
    float(
        out,
        f64::from(value),
        format_args!("{value:e}"),
        format_args!("{value:.1e}"),
    );
}

/// `fewest` is the value as Rust writes it, `1.5e-7`, and `two` the same with two digits. Where one digit is enough,
/// Java takes the two nearest to the value: `4.9E-324`, not `5.0E-324`.
fn float(out: &mut String, value: f64, fewest: Arguments<'_>, two: Arguments<'_>) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let mut space = [0; 32];
    let mut number = written(&mut space, fewest);
    if !number.contains('.') {
        number = written(&mut space, two);
    }
    let (mantissa, exponent) = number.split_once('e').expect("`{:e}` always has an exponent");
    let (first, rest) = mantissa
        .split_once('.')
        .expect("two digits have a point between them");
    let exponent: i32 = exponent.parse().expect("`{:e}` has a whole exponent");
    out.push_str(first);
    if (-3..7).contains(&exponent) {
        plain(out, first, rest, exponent);
    } else {
        let _infallible = write!(out, ".{rest}E{exponent}");
    }
}

/// The text, written without an allocation.
fn written<'a>(space: &'a mut [u8; 32], text: Arguments<'_>) -> &'a str {
    let mut free = &mut space[..];
    free.write_fmt(text)
        .expect("a sign, 17 digits, a point and an exponent take 24 bytes");
    let used = 32 - free.len();
    str::from_utf8(&space[..used]).expect("numbers are ASCII")
}

/// Goes on after the first digit.
fn plain(out: &mut String, first: &str, rest: &str, exponent: i32) {
    let places = exponent.unsigned_abs() as usize;
    if exponent < 0 {
        // The first digit belongs behind the point.
        out.truncate(out.len() - 1);
        out.push_str("0.");
        zeros(out, places - 1);
        out.push_str(&first[first.len() - 1..]);
        return out.push_str(if rest == "0" { "" } else { rest });
    }
    let (whole, fraction) = rest.split_at(places.min(rest.len()));
    out.push_str(whole);
    zeros(out, places - whole.len());
    out.push('.');
    out.push_str(if fraction.is_empty() { "0" } else { fraction });
}

fn zeros(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n('0', count));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(value: f64, expected: &str) {
        let mut out = String::new();
        double(&mut out, value);
        assert_eq!(out, expected);
    }

    #[test]
    fn doubles_are_those_of_java() {
        check(0.0, "0.0");
        check(-0.0, "-0.0");
        check(1.0, "1.0");
        check(0.001, "0.001");
        check(0.000_999, "9.99E-4");
        check(9_999_999.0, "9999999.0");
        check(1.0e7, "1.0E7");
        check(12_345_678.9, "1.23456789E7");
        check(100.0, "100.0");
        check(-1.5e-7, "-1.5E-7");
        check(2.0e-3, "0.002");
        check(f64::MIN_POSITIVE, "2.2250738585072014E-308");
        check(f64::from_bits(1), "4.9E-324");
        check(f64::MAX, "1.7976931348623157E308");
        check(-0.012_5, "-0.0125");
        check(123.456, "123.456");
        check(1.0e23, "1.0E23");
        check(f64::NAN, "NaN");
        check(f64::NEG_INFINITY, "-Infinity");
    }

    #[test]
    fn floats_have_their_own_shortest_digits() {
        let mut out = String::new();
        single(&mut out, 0.1);
        single(&mut out, 3.4e38);
        single(&mut out, f32::from_bits(1));
        assert_eq!(out, "0.13.4E381.4E-45");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_the_same_number(bits: u64) {
            let value = f64::from_bits(bits);
            let mut out = String::new();
            double(&mut out, value);
            let read: f64 = out.replace("Infinity", "inf").parse().expect("a number");
            prop_assert!(read.to_bits() == bits || value.is_nan() && read.is_nan(), "{} is not {}", out, value);
        }
    }
}
