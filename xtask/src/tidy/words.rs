//! What must stand in no file: where packages come from here, and where this clone lies.

use std::path::Path;

use super::{Findings, files, read, short};

pub(super) fn check(root: &Path, found: &mut Findings) {
    let home = std::env::var("HOME").unwrap_or_default();
    let clone = root.display().to_string();
    let mut banned = vec![(clone.as_str(), "this clone's path")];
    if home.len() > 1 {
        banned.push((home.as_str(), "this user's directory"));
    }
    let kinds = [
        ".rs", ".toml", ".md", ".lock", ".xml", ".jsonl", ".yml", "kafka", "run",
    ];
    for kind in kinds {
        for path in files(root, kind) {
            let text = read(&path);
            for (word, what) in &banned {
                if text.contains(&format!("{word}/")) {
                    found.add(short(&path), format!("holds {what}"));
                }
            }
        }
    }
}
