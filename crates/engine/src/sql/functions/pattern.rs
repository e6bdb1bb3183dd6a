//! Java's patterns for dates and times: `yyyy-MM-dd HH:mm:ss.SSS`, in English and UTC.

use chrono::{DateTime, Datelike, NaiveDate, Timelike};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// A pattern that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Literal(String),
    /// A letter and how often it stands.
    Field(char, usize),
    /// What may be absent when reading.
    Optional(Vec<Item>),
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A letter that has no meaning, or brackets and quotes that do not close.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let chars: Vec<char> = pattern.chars().collect();
        let mut at = 0;
        let items = read(&chars, &mut at, false)?;
        Ok(Self { items })
    }

    /// Prints microseconds since the epoch.
    pub(super) fn format(&self, micros: i64) -> Option<String> {
        let at = DateTime::from_timestamp_micros(micros)?.naive_utc();
        let mut out = String::new();
        print(&self.items, at, &mut out);
        Some(out)
    }

    /// Reads text as microseconds since the epoch.
    pub(super) fn parse(&self, text: &str) -> Option<i64> {
        let mut parts = Parts::default();
        let rest = parts.read(&self.items, text)?;
        if rest.is_empty() { parts.micros() } else { None }
    }
}

fn read(chars: &[char], at: &mut usize, inside: bool) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    while let Some(&c) = chars.get(*at) {
        *at += 1;
        match c {
            '\'' => items.push(Item::Literal(quoted(chars, at)?)),
            '[' => items.push(Item::Optional(read(chars, at, true)?)),
            ']' if inside => return Ok(items),
            ']' => return Err("`]` has no `[`".to_owned()),
            c if c.is_ascii_alphabetic() => {
                let mut count = 1;
                while chars.get(*at) == Some(&c) {
                    *at += 1;
                    count += 1;
                }
                if !"yuMLdDEHhkKmsSaQqXxZzVO".contains(c) {
                    return Err(format!("`{c}` is not supported"));
                }
                items.push(Item::Field(c, count));
            }
            c => items.push(Item::Literal(c.to_string())),
        }
    }
    if inside {
        Err("`[` is not closed".to_owned())
    } else {
        Ok(items)
    }
}

fn quoted(chars: &[char], at: &mut usize) -> Result<String, String> {
    if chars.get(*at) == Some(&'\'') {
        *at += 1;
        return Ok("'".to_owned());
    }
    let mut text = String::new();
    while let Some(&c) = chars.get(*at) {
        *at += 1;
        if c != '\'' {
            text.push(c);
        } else if chars.get(*at) == Some(&'\'') {
            *at += 1;
            text.push('\'');
        } else {
            return Ok(text);
        }
    }
    Err("a quote is not closed".to_owned())
}

fn print(items: &[Item], at: chrono::NaiveDateTime, out: &mut String) {
    for item in items {
        match item {
            Item::Literal(text) => out.push_str(text),
            Item::Optional(items) => print(items, at, out),
            Item::Field(letter, count) => print_field(*letter, *count, at, out),
        }
    }
}

fn print_field(letter: char, count: usize, at: chrono::NaiveDateTime, out: &mut String) {
    let month = MONTHS[at.month0() as usize];
    let weekday = DAYS[at.weekday().num_days_from_monday() as usize];
    let (afternoon, hour12) = at.hour12();
    let number = |value: u32| format!("{value:0count$}");
    let quarter = at.month0() / 3 + 1;
    let text = match (letter, count) {
        ('y' | 'u', 2) => format!("{:02}", at.year().rem_euclid(100)),
        ('y' | 'u', _) => format!("{:0count$}", at.year()),
        ('M' | 'L', 1 | 2) => number(at.month()),
        ('M' | 'L', 3) => month[..3].to_owned(),
        ('M' | 'L', _) => month.to_owned(),
        ('d', _) => number(at.day()),
        ('D', _) => number(at.ordinal()),
        ('E', 1..=3) => weekday[..3].to_owned(),
        ('E', _) => weekday.to_owned(),
        ('H', _) => number(at.hour()),
        ('k', _) => number(if at.hour() == 0 { 24 } else { at.hour() }),
        ('h', _) => number(hour12),
        ('K', _) => number(hour12 % 12),
        ('m', _) => number(at.minute()),
        ('s', _) => number(at.second()),
        ('S', _) => format!("{:09}", at.nanosecond())
            .chars()
            .chain("0".repeat(9).chars())
            .take(count)
            .collect(),
        ('a', _) => (if afternoon { "PM" } else { "AM" }).to_owned(),
        ('Q' | 'q', 3) => format!("Q{quarter}"),
        ('Q' | 'q', 4..) => ["1st", "2nd", "3rd", "4th"][(quarter - 1) as usize].to_owned() + " quarter",
        ('Q' | 'q', _) => number(quarter),
        ('X', _) => "Z".to_owned(),
        ('x', 1) => "+00".to_owned(),
        ('x', 2 | 4) | ('Z', 1..=3) => "+0000".to_owned(),
        ('x', _) => "+00:00".to_owned(),
        ('Z', 4) | ('O', _) => "GMT".to_owned(),
        ('Z', _) => "Z".to_owned(),
        ('z', 4..) => "Coordinated Universal Time".to_owned(),
        _ => "UTC".to_owned(),
    };
    out.push_str(&text);
}

/// What has been read so far.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    hour: u32,
    hour12: Option<u32>,
    minute: u32,
    second: u32,
    nanos: u32,
    afternoon: bool,
    offset_seconds: i64,
}

impl Parts {
    fn read<'t>(&mut self, items: &[Item], mut text: &'t str) -> Option<&'t str> {
        for (index, item) in items.iter().enumerate() {
            text = match item {
                Item::Literal(literal) => text.strip_prefix(literal.as_str())?,
                Item::Optional(inner) => {
                    let mut attempt = *self;
                    match attempt.read(inner, text) {
                        Some(rest) => {
                            *self = attempt;
                            rest
                        }
                        None => text,
                    }
                }
                Item::Field(letter, count) => {
                    let adjacent = matches!(items.get(index + 1), Some(Item::Field(next, _)) if next.is_ascii_alphabetic() && "yuMdDHhkKmsS".contains(*next));
                    self.field(*letter, *count, adjacent, text)?
                }
            };
        }
        Some(text)
    }

    fn field<'t>(&mut self, letter: char, count: usize, adjacent: bool, text: &'t str) -> Option<&'t str> {
        match (letter, count) {
            ('M' | 'L', 3..) => {
                let (index, rest) = named(&MONTHS, count == 3, text)?;
                self.month = Some(index + 1);
                return Some(rest);
            }
            ('E', _) => return Some(named(&DAYS, count <= 3, text)?.1),
            ('a', _) => {
                let marker = text.get(..2)?;
                self.afternoon = marker.eq_ignore_ascii_case("PM");
                return (self.afternoon || marker.eq_ignore_ascii_case("AM")).then(|| &text[2..]);
            }
            ('X' | 'x' | 'Z' | 'z' | 'V' | 'O', _) => return self.zone(text),
            _ => {}
        }
        let negative = matches!(letter, 'y' | 'u') && text.starts_with('-');
        let text = if negative { &text[1..] } else { text };
        let length = text.bytes().take_while(u8::is_ascii_digit).count();
        let most = match (letter, count) {
            ('S', _) => count,
            _ if adjacent => count,
            ('y' | 'u', 2) => 2,
            ('y' | 'u', _) => length,
            (_, 1) => length.min(if letter == 'D' { 3 } else { 2 }),
            _ => count,
        };
        let length = length.min(most);
        if length == 0 || length < count {
            return None;
        }
        let (digits, rest) = text.split_at(length);
        let value: u32 = digits.parse().ok()?;
        match letter {
            'y' | 'u' => {
                let year = i32::try_from(value).ok()?;
                self.year = Some(match (count, negative) {
                    (2, _) => 2000 + year,
                    (_, true) => -year,
                    _ => year,
                });
            }
            'M' | 'L' => self.month = Some(value),
            'd' => self.day = Some(value),
            'D' => self.day_of_year = Some(value),
            'H' => self.hour = value,
            'k' => self.hour = value % 24,
            'h' | 'K' => self.hour12 = Some(value % 12),
            'm' => self.minute = value,
            's' => self.second = value,
            'S' => self.nanos = format!("{digits:0<9}").get(..9)?.parse().ok()?,
            _ => return None,
        }
        Some(rest)
    }

    fn zone<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        for utc in ["Z", "UTC", "GMT"] {
            if let Some(rest) = text.strip_prefix(utc) {
                return Some(rest);
            }
        }
        let sign = match text.bytes().next()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours: i64 = text.get(1..3)?.parse().ok()?;
        let rest = &text[3..];
        let minutes_at = rest.strip_prefix(':').unwrap_or(rest);
        let (minutes, rest) = match minutes_at.get(..2).and_then(|digits| digits.parse::<i64>().ok()) {
            Some(minutes) => (minutes, &minutes_at[2..]),
            None => (0, rest),
        };
        self.offset_seconds = sign * (hours * 3600 + minutes * 60);
        Some(rest)
    }

    fn micros(self) -> Option<i64> {
        let year = self.year.unwrap_or(1970);
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_yo_opt(year, day)?,
            None => NaiveDate::from_ymd_opt(year, self.month.unwrap_or(1), self.day.unwrap_or(1))?,
        };
        let hour = match self.hour12 {
            Some(hour) => hour + if self.afternoon { 12 } else { 0 },
            None => self.hour,
        };
        let at = date.and_hms_nano_opt(hour, self.minute, self.second, self.nanos)?;
        at.and_utc()
            .timestamp_micros()
            .checked_sub(self.offset_seconds * 1_000_000)
    }
}

/// The index of the name that the text begins with.
fn named<'t>(names: &[&str], short: bool, text: &'t str) -> Option<(u32, &'t str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let name = if short { &name[..3] } else { name };
        let start = text.get(..name.len())?;
        let rest = &text[name.len()..];
        start
            .eq_ignore_ascii_case(name)
            .then(|| Some((u32::try_from(index).ok()?, rest)))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-02 03:04:05.678
    const AT: i64 = 1_767_323_045_678_000;

    fn check(pattern: &str, text: &str) {
        let pattern = Pattern::new(pattern).expect("a pattern");
        assert_eq!(pattern.format(AT).as_deref(), Some(text));
        assert_eq!(pattern.parse(text), Some(AT), "{pattern:?}");
    }

    #[test]
    fn what_is_printed_is_read_back() {
        check("yyyy-MM-dd HH:mm:ss.SSS", "2026-01-02 03:04:05.678");
        check("yyyyMMddHHmmssSSS", "20260102030405678");
        check("d.M.yyyy h:m:s.SSSSSS a", "2.1.2026 3:4:5.678000 AM");
        check(
            "EEE, dd MMM yyyy HH:mm:ss.SSS Z",
            "Fri, 02 Jan 2026 03:04:05.678 +0000",
        );
        check("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-01-02T03:04:05.678Z");
    }

    #[test]
    fn offsets_move_the_instant() {
        let pattern = Pattern::new("yyyy-MM-dd HH:mmXXX").expect("a pattern");
        let utc = pattern.parse("2026-01-02 03:04Z").expect("a time");
        assert_eq!(pattern.parse("2026-01-02 05:04+02:00"), Some(utc));
    }

    #[test]
    fn what_does_not_fit_is_not_read() {
        let pattern = Pattern::new("yyyy-MM-dd").expect("a pattern");
        for text in [
            "2026-13-01",
            "2026-02-30",
            "26-01-02",
            "2026-01-02 ",
            "2026-1-02",
            "",
        ] {
            assert_eq!(pattern.parse(text), None, "{text}");
        }
        assert!(Pattern::new("yyyy-bb").is_err());
        assert!(Pattern::new("yyyy['T'").is_err());
    }
}
