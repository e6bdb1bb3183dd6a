//! What was measured, as a table and as JSON.

use std::fmt::Write as _;

/// One number and what it should be.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// Its name for machines.
    key: &'static str,
    /// Its name for people.
    name: &'static str,
    unit: &'static str,
    value: f64,
    target: Option<Target>,
    /// The measurements it comes from, in order.
    each: Vec<f64>,
}

/// A bound, in the figure's unit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Figure {
    pub(crate) fn new(key: &'static str, name: &'static str, unit: &'static str, value: f64) -> Self {
        Self {
            key,
            name,
            unit,
            value,
            target: None,
            each: Vec::new(),
        }
    }

    /// The median of several measurements.
    pub(crate) fn median(key: &'static str, name: &'static str, unit: &'static str, each: &[f64]) -> Self {
        Self::quantile(key, name, unit, each, 0.5)
    }

    /// Another quantile of several measurements; 1.0 is the largest.
    pub(crate) fn quantile(
        key: &'static str,
        name: &'static str,
        unit: &'static str,
        each: &[f64],
        part: f64,
    ) -> Self {
        Self {
            each: each.to_vec(),
            ..Self::new(key, name, unit, quantile(each, part))
        }
    }

    pub(crate) fn target(self, target: Target) -> Self {
        Self {
            target: Some(target),
            ..self
        }
    }

    fn is_met(&self) -> Option<bool> {
        self.target.map(|target| match target {
            Target::AtLeast(bound) => self.value >= bound,
            Target::AtMost(bound) => self.value <= bound,
        })
    }
}

/// The nearest-rank quantile; NaN of nothing.
fn quantile(each: &[f64], part: f64) -> f64 {
    let mut sorted = each.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// The table.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut table = format!("{:<58}{:>14}  {:>14}\n", "", "measured", "target");
    for figure in figures {
        let measured = format!("{} {}", short(figure.value), figure.unit);
        let target = match figure.target {
            None => String::new(),
            Some(Target::AtLeast(bound)) => format!("≥ {} {}", short(bound), figure.unit),
            Some(Target::AtMost(bound)) => format!("≤ {} {}", short(bound), figure.unit),
        };
        let met = match figure.is_met() {
            None => "",
            Some(true) => "  met",
            Some(false) => "  MISSED",
        };
        let line = format!(
            "{:<58}{:>14}  {:>14}{met}",
            figure.name,
            measured.trim_end(),
            target.trim_end()
        );
        writeln!(table, "{}", line.trim_end()).expect("a string takes everything");
    }
    table
}

/// Three digits at least, thousands apart.
fn short(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut parts = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            parts.push(' ');
        }
        parts.push(digit);
    }
    parts
}

/// A JSON document; `about` are names and JSON values that go first.
pub(crate) fn json(about: &[(&str, String)], figures: &[Figure]) -> String {
    let mut json = String::from("{\n");
    for (name, value) in about {
        writeln!(json, "  \"{name}\": {value},").expect("a string takes everything");
    }
    let lines: Vec<String> = figures.iter().map(line).collect();
    write!(json, "  \"figures\": [\n{}\n  ]\n}}\n", lines.join(",\n")).expect("a string takes everything");
    json
}

fn line(figure: &Figure) -> String {
    let each: Vec<String> = figure.each.iter().map(|value| number(*value)).collect();
    let target = match figure.target {
        None => "null".to_owned(),
        Some(Target::AtLeast(bound)) => format!("{{\"atLeast\": {}}}", number(bound)),
        Some(Target::AtMost(bound)) => format!("{{\"atMost\": {}}}", number(bound)),
    };
    let met = figure
        .is_met()
        .map_or_else(|| "null".to_owned(), |met| met.to_string());
    format!(
        "    {{\"key\": \"{}\", \"name\": {}, \"unit\": \"{}\", \"value\": {}, \"target\": {target}, \"met\": {met}, \"each\": [{}]}}",
        figure.key,
        text(figure.name),
        figure.unit,
        number(figure.value),
        each.join(", ")
    )
}

fn number(value: f64) -> String {
    if value.is_finite() {
        format!("{}", (value * 1_000.0).round() / 1_000.0)
    } else {
        "null".to_owned()
    }
}

/// A JSON string.
pub(crate) fn text(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            json.push('\\');
        }
        json.push(c);
    }
    json + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_values() {
        let each: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let found = [0.5, 0.95, 1.0].map(|part| quantile(&each, part));
        assert_eq!(found, [50.0, 95.0, 100.0]);
        assert_eq!(quantile(&[7.0, 3.0, 5.0], 0.5), 5.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn a_missed_target_is_called_that() {
        let met = |value| {
            Figure::new("gap", "gap", "ms", value)
                .target(Target::AtMost(150.0))
                .is_met()
        };
        assert_eq!(
            (met(150.0), met(151.0), met(f64::NAN)),
            (Some(true), Some(false), Some(false))
        );
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [0.8, 52.34, 1_234_567.0].map(short),
            ["0.80", "52.3", "1 234 567"]
        );
    }

    #[test]
    fn what_is_no_number_is_null_in_json() {
        assert_eq!([f64::NAN, 1.23456, 2e6].map(number), ["null", "1.235", "2000000"]);
        assert_eq!(text("a \"b\" \\"), r#""a \"b\" \\""#);
    }
}
