//! A job file as a tree whose every leaf knows where it was written.

use std::fmt;
use std::rc::Rc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::failure::{Failure, Result};

/// Where something was written: `job.toml:7:3`, or `--set sink.format=…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a file, at line and column, both from 1.
    File {
        file: Rc<str>,
        line: usize,
        column: usize,
    },
    /// On the command line.
    Set(Rc<str>),
    /// In a file as a whole.
    Whole(Rc<str>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Set(path) => write!(f, "--set {path}"),
            Self::Whole(file) => f.write_str(file),
        }
    }
}

/// A value, and where its key stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// What can stand in a job file.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    /// Integers and floats as they were written.
    Number(String),
    Bool(bool),
    Table(Vec<Node>),
    /// Arrays and dates, by name: nothing in a job file takes one.
    Other(&'static str),
}

impl Value {
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Number(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        }
    }
}

/// Reads TOML.
pub(crate) fn parse(file: &Rc<str>, text: &str) -> Result<Vec<Node>> {
    let lines = Lines {
        file: Rc::clone(file),
        text,
    };
    match DeTable::parse(text) {
        Ok(table) => Ok(lines.table(table.get_ref())),
        Err(error) => {
            let place = error
                .span()
                .map_or(Place::Whole(Rc::clone(file)), |span| lines.place(span.start));
            Err(Failure::invalid("E0502", format!("not TOML: {}", error.message())).at(&place))
        }
    }
}

struct Lines<'a> {
    file: Rc<str>,
    text: &'a str,
}

impl Lines<'_> {
    fn place(&self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place::File {
            file: Rc::clone(&self.file),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    fn table(&self, table: &DeTable<'_>) -> Vec<Node> {
        let mut nodes: Vec<(usize, Node)> = table
            .iter()
            .map(|(key, value)| {
                let start = key.span().start;
                let key = key.get_ref().to_string();
                (
                    start,
                    Node {
                        key,
                        place: self.place(start),
                        value: self.value(value),
                    },
                )
            })
            .collect();
        // In the order in which people wrote them, so that the first error is the first in the file.
        nodes.sort_by_key(|(start, _)| *start);
        nodes.into_iter().map(|(_, node)| node).collect()
    }

    fn value(&self, value: &Spanned<DeValue<'_>>) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Value::Number(number.as_str().to_owned()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or(Value::Other("a number out of range"), |n| {
                    Value::Number(n.to_string())
                }),
            DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
            DeValue::Boolean(is) => Value::Bool(*is),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(_) => Value::Other("an array"),
            DeValue::Table(table) => Value::Table(self.table(table)),
        }
    }
}

/// Applies `--set path.to.key=value`.
pub(crate) fn set(root: &mut Vec<Node>, assignment: &str) -> Result<()> {
    let refused = |why: &str| {
        let path = assignment.split_once('=').map_or(assignment, |(path, _)| path);
        Failure::invalid(
            "E0508",
            format!("--set {path}: {why}; write --set sink.format=noop"),
        )
    };
    let (path, value) = assignment
        .split_once('=')
        .ok_or_else(|| refused("there is no `=`"))?;
    let place = Place::Set(path.trim().into());
    let keys = keys(path).ok_or_else(|| refused("the path is not keys with dots between them"))?;
    let value = match DeValue::parse(value.trim()) {
        Ok(parsed) => Lines {
            file: "".into(),
            text: value,
        }
        .value(&parsed),
        Err(_) => Value::Text(value.to_owned()),
    };
    let (last, tables) = keys.split_last().ok_or_else(|| refused("the path is empty"))?;
    let mut at = root;
    for key in tables {
        let index = find(at, key).unwrap_or_else(|| {
            at.push(Node {
                key: key.clone(),
                place: place.clone(),
                value: Value::Table(Vec::new()),
            });
            at.len() - 1
        });
        at = match &mut at[index].value {
            Value::Table(nodes) => nodes,
            other => return Err(refused(&format!("`{key}` is {}, not a table", other.kind()))),
        };
    }
    match find(at, last) {
        Some(index) => {
            at[index].place = place;
            at[index].value = value;
        }
        None => at.push(Node {
            key: last.clone(),
            place,
            value,
        }),
    }
    Ok(())
}

/// Options are case-insensitive, and no table here has two keys that differ in case only.
fn find(nodes: &[Node], key: &str) -> Option<usize> {
    nodes.iter().position(|node| node.key.eq_ignore_ascii_case(key))
}

/// The keys of a path. Below `options` and `conf` the rest is one key, dots and all, quoted or not.
fn keys(path: &str) -> Option<Vec<String>> {
    let document = format!("{path} = 0");
    let parsed = DeTable::parse(&document).ok()?;
    let mut keys = Vec::new();
    let mut table = parsed.get_ref();
    loop {
        let (key, value) = table.iter().next()?;
        keys.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(deeper) => table = deeper,
            _ => break,
        }
    }
    let fixed = match keys.first().map(String::as_str) {
        Some("source") => 3,
        Some("sink") if keys.get(1).is_some_and(|key| key == "options") => 2,
        Some("conf") => 1,
        _ => keys.len(),
    };
    if keys.len() > fixed + 1 {
        let joined = keys.split_off(fixed).join(".");
        keys.push(joined);
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_columns_from_one() {
        let nodes = parse(&"j".into(), "name = 'é'\n  [sink]\nformat = 1").expect("valid");
        assert_eq!(nodes[0].place.to_string(), "j:1:1");
        assert_eq!(nodes[1].place.to_string(), "j:2:4");
    }

    #[test]
    fn set_paths_keep_the_dots_of_option_names() {
        let check =
            |path: &str, expected: &[&str]| assert_eq!(keys(path).expect("a path"), expected, "{path}");
        check("sink.format", &["sink", "format"]);
        check(
            "source.m.options.kafka.bootstrap.servers",
            &["source", "m", "options", "kafka.bootstrap.servers"],
        );
        check(
            "source.m.options.\"kafka.group.id\"",
            &["source", "m", "options", "kafka.group.id"],
        );
        check("conf.spark.sql.x", &["conf", "spark.sql.x"]);
        assert_eq!(keys("a b"), None);
    }

    #[test]
    fn set_replaces_and_adds_and_takes_bare_words_as_text() {
        let mut root = parse(&"j".into(), "[sink]\nformat = 'console'").expect("valid");
        set(&mut root, "sink.format=noop").expect("valid");
        set(&mut root, "sink.options.numRows=5").expect("valid");
        set(&mut root, "query.sql=SELECT 1 = 1").expect("valid");
        assert!(set(&mut root, "sink.format").is_err());
        assert!(set(&mut root, "sink.format.x=1").is_err());
        let shown = format!("{root:?}");
        assert!(
            shown.contains(r#"Text("noop")"#) && shown.contains(r#"Number("5")"#),
            "{shown}"
        );
        assert!(shown.contains(r#"Text("SELECT 1 = 1")"#), "{shown}");
    }
}
