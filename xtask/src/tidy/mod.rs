//! The rules of this house that no other tool checks.

mod errors;
mod files;
mod invariants;
mod layers;
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{Result, target};

/// What breaks a rule: where, and what.
#[derive(Debug, Default)]
struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, place: impl std::fmt::Display, what: impl std::fmt::Display) {
        self.0.push(format!("{place}: {what}"));
    }
}

/// `cargo xtask tidy`.
pub(crate) fn run() -> Result<ExitCode> {
    let root = target::root();
    let mut found = Findings::default();
    layers::check(root, &mut found);
    files::check(root, &mut found);
    errors::check(root, &mut found);
    invariants::check(root, &mut found);
    words::check(root, &mut found);
    for finding in &found.0 {
        eprintln!("tidy: {finding}");
    }
    match found.0.len() {
        0 => Ok(ExitCode::SUCCESS),
        count => Err(format!("tidy: {count} to mend")),
    }
}

/// All files below `dir` whose name ends so, in order.
fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    open.push(path);
                }
            } else if name.ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read(path).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

/// A path as people write it.
fn short(path: &Path) -> String {
    path.strip_prefix(target::root())
        .unwrap_or(path)
        .display()
        .to_string()
}
