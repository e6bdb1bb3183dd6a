//! A guarantee is what a test kills: every invariant's id is named by one.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Findings, files, read, short};

pub(super) fn check(root: &Path, found: &mut Findings) {
    let home = root.join("crates/checkpoint/src/protocol/invariants.rs");
    let defined = ids(&read(&home));
    if defined.is_empty() {
        found.add(short(&home), "defines no invariant");
    }
    let mut tested = BTreeSet::new();
    for path in files(&root.join("crates"), ".rs") {
        let place = short(&path);
        let text = read(&path);
        if place.contains("tests") {
            tested.extend(ids(&text));
        } else if let Some((_, tests)) = text.split_once("#[cfg(test)]") {
            tested.extend(ids(tests));
        }
    }
    for id in defined.difference(&tested) {
        found.add(short(&home), format!("{id} is named by no test"));
    }
}

/// `"I3"` and its like.
fn ids(text: &str) -> BTreeSet<String> {
    let is_id = |part: &&str| {
        part.strip_prefix('I')
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    text.split('"').filter(is_id).map(str::to_owned).collect()
}
