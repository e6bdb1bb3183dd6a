//! Durations as people write them: `10s` on a command line, `1 minute 30 seconds` in Spark.

use std::time::Duration;

use crate::{Error, Result};

/// Reads a duration: one or more numbers, each with a unit.
///
/// Units are `us ms s m min h d w` and their English names, singular and plural. Months and years have no fixed length
/// and are refused, as Spark does for triggers. A bare number is refused: its unit would be a guess; `0` alone is zero.
///
/// ```
/// use baton_core::parse_duration;
/// use std::time::Duration;
/// assert_eq!(parse_duration("250ms")?, Duration::from_millis(250));
/// assert_eq!(parse_duration("1 minute 30 seconds")?, Duration::from_secs(90));
/// assert!(parse_duration("10").is_err());
/// # Ok::<(), baton_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidDuration`] for anything else, negative numbers included.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let invalid = || Error::InvalidDuration {
        text: text.to_owned(),
    };
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    // Spark accepts the SQL word in front.
    rest = rest.strip_prefix("interval ").unwrap_or(rest).trim_start();
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(invalid)?;
        let number: f64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let seconds = match rest[..letters].to_ascii_lowercase().as_str() {
            "us" | "microsecond" | "microseconds" => 1e-6,
            "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1e-3,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            "w" | "week" | "weeks" => 604_800.0,
            _ => return Err(invalid()),
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| invalid())?;
        total = total.checked_add(part).ok_or_else(invalid)?;
        rest = rest[letters..].trim_start();
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, millis: Option<u64>) {
        assert_eq!(
            parse_duration(text).ok(),
            millis.map(Duration::from_millis),
            "{text}"
        );
    }

    #[test]
    fn words_and_short_units_are_read() {
        check("1 second", Some(1_000));
        check("10 seconds", Some(10_000));
        check("15m", Some(900_000));
        check("interval 2 hours", Some(7_200_000));
        check("1.5s", Some(1_500));
        check("0", Some(0));
        check("0 seconds", Some(0));
    }

    #[test]
    fn what_has_no_fixed_length_is_refused() {
        for text in [
            "",
            "10",
            "1 month",
            "1 year",
            "-1 second",
            "second",
            "1 second 5",
            "1e3 s",
            "9999999999999999 weeks",
        ] {
            check(text, None);
        }
    }
}
