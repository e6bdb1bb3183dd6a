//! Numbers as Java writes them.

use std::fmt::Write as _;

/// `Double.toString`: the shortest digits that mean the number; plain from 10^-3 to below 10^7, else with an exponent.
pub(super) fn double(out: &mut String, value: f64) {
    float(out, value, format_args!("{value:e}"));
}

/// `Float.toString`.
pub(super) fn single(out: &mut String, value: f32) {
    float(out, f64::from(value), format_args!("{value:e}"));
}

/// `scientific` is the value as Rust writes it, `1.5e-7`: its digits are the shortest already.
fn float(out: &mut String, value: f64, scientific: std::fmt::Arguments<'_>) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let scientific = scientific.to_string();
    let (mantissa, exponent) = scientific.split_once('e').expect("`{:e}` always has an exponent");
    let exponent: i32 = exponent.parse().expect("`{:e}` has a whole exponent");
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    out.push_str(sign);
    if value == 0.0 {
        out.push_str("0.0");
    } else if (-3..7).contains(&exponent) {
        plain(out, &digits, exponent);
    } else {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        let _infallible = write!(out, "{first}.{rest}E{exponent}");
    }
}

fn plain(out: &mut String, digits: &str, exponent: i32) {
    if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
        return out.push_str(digits);
    }
    let whole = exponent.unsigned_abs() as usize + 1;
    if digits.len() <= whole {
        out.push_str(digits);
        out.extend(std::iter::repeat_n('0', whole - digits.len()));
        out.push_str(".0");
    } else {
        let (whole, fraction) = digits.split_at(whole);
        let _infallible = write!(out, "{whole}.{fraction}");
    }
}

#[cfg(test)]
mod tests {
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
        check(f64::NAN, "NaN");
    }

    #[test]
    fn floats_have_their_own_shortest_digits() {
        let mut out = String::new();
        single(&mut out, 0.1);
        single(&mut out, 3.4e38);
        assert_eq!(out, "0.13.4E38");
    }
}
