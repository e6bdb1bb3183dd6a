//! Files: each says what it is, and none grows without end.

use std::path::Path;

use super::{Findings, files, read, short};

/// Production lines of one file; tests in it do not count.
const LONGEST: usize = 600;

pub(super) fn check(root: &Path, found: &mut Findings) {
    let rust = files(&root.join("crates"), ".rs")
        .into_iter()
        .chain(files(&root.join("benches"), ".rs"));
    for path in rust.chain(files(&root.join("xtask"), ".rs")) {
        let (text, place) = (read(&path), short(&path));
        let is_test = place.contains("/tests/") || place.ends_with("tests.rs");
        if !is_test && !text.starts_with("//!") {
            found.add(&place, "does not start with a `//!` line that says what it is");
        }
        let lines = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default()
            .lines()
            .count();
        if !is_test && lines > LONGEST {
            found.add(
                &place,
                format!("has {lines} lines; above {LONGEST} it holds more than one noun"),
            );
        }
    }
}
