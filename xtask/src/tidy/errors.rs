//! Errors: every code has its page, every page its code, and messages have one form.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Findings, files, read, short};

pub(super) fn check(root: &Path, found: &mut Findings) {
    let mut codes = BTreeSet::new();
    for path in files(&root.join("crates"), ".rs") {
        let place = short(&path);
        if !place.contains("/src/") || place.starts_with("crates/testkit/") {
            continue;
        }
        let text = read(&path);
        codes.extend(text.split('"').filter(|part| is_code(part)).map(str::to_owned));
        for (number, line) in text.lines().enumerate() {
            if let Some(message) = message(line) {
                let place = format!("{place}:{}", number + 1);
                if message.starts_with(|c: char| c.is_ascii_uppercase()) && !starts_with_name(message) {
                    found.add(&place, "an error's text starts in lower case");
                }
                if message.ends_with('.') && !message.ends_with("…") {
                    found.add(&place, "an error's text ends without a full stop");
                }
            }
        }
    }
    let pages: BTreeSet<String> = files(&root.join("docs/errors"), ".md")
        .iter()
        .filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    for code in codes.difference(&pages) {
        found.add(format!("docs/errors/{code}.md"), "is missing: the code is in use");
    }
    for page in pages.difference(&codes) {
        found.add(
            format!("docs/errors/{page}.md"),
            "explains a code that nobody uses",
        );
    }
    for page in &pages {
        let text = read(&root.join(format!("docs/errors/{page}.md")));
        if !text.starts_with(&format!("# {page}: ")) {
            found.add(
                format!("docs/errors/{page}.md"),
                format!("must start with `# {page}: `"),
            );
        }
    }
}

fn is_code(text: &str) -> bool {
    text.len() == 5 && text.starts_with('E') && text[1..].bytes().all(|byte| byte.is_ascii_digit())
}

/// The text of `#[error("…")]` on one line.
fn message(line: &str) -> Option<&str> {
    line.trim()
        .strip_prefix("#[error(\"")?
        .rsplit_once("\")]")
        .map(|(text, _)| text)
}

/// Names keep their capitals: SQL, Kafka.
fn starts_with_name(message: &str) -> bool {
    ["SQL", "Kafka", "Spark", "JSON", "TOML", "UTF-8", "RocksDB"]
        .iter()
        .any(|name| message.starts_with(name))
}
