//! Which crate may know which.

use std::path::Path;

use super::{Findings, read};

/// A crate, what it may depend on, and what its tests may use beside that.
struct Layer {
    name: &'static str,
    may_use: &'static [&'static str],
    tests_may_use: &'static [&'static str],
}

const LAYERS: [Layer; 8] = [
    Layer {
        name: "crates/core",
        may_use: &[],
        tests_may_use: &[],
    },
    Layer {
        name: "crates/checkpoint",
        may_use: &["core"],
        tests_may_use: &[],
    },
    Layer {
        name: "crates/source-kafka",
        may_use: &["core"],
        tests_may_use: &["testkit"],
    },
    Layer {
        name: "crates/sinks",
        may_use: &["core"],
        tests_may_use: &[],
    },
    Layer {
        name: "crates/engine",
        may_use: &["core", "checkpoint"],
        tests_may_use: &["sinks", "testkit"],
    },
    Layer {
        name: "crates/cli",
        may_use: &["core", "checkpoint", "engine", "sinks", "source-kafka"],
        tests_may_use: &["testkit"],
    },
    Layer {
        name: "crates/testkit",
        may_use: &["core", "checkpoint"],
        tests_may_use: &[],
    },
    Layer {
        name: "benches",
        may_use: &["core", "checkpoint", "engine", "sinks", "source-kafka", "testkit"],
        tests_may_use: &[],
    },
];

/// Dependencies that a lower layer must not have: they cost minutes or bring I/O.
const HEAVY: [(&str, &[&str]); 4] = [
    ("crates/core", &["datafusion", "rocksdb", "rdkafka", "prost"]),
    ("crates/checkpoint", &["datafusion", "rdkafka", "arrow"]),
    ("crates/sinks", &["datafusion", "rocksdb", "tokio"]),
    ("crates/source-kafka", &["datafusion", "rocksdb"]),
];

pub(super) fn check(root: &Path, found: &mut Findings) {
    for entry in std::fs::read_dir(root.join("crates"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = format!("crates/{}", entry.file_name().to_string_lossy());
        if !LAYERS.iter().any(|layer| layer.name == name) {
            found.add(&name, "is not in the table of layers, xtask/src/tidy/layers.rs");
        }
    }
    for layer in &LAYERS {
        let manifest = read(&root.join(layer.name).join("Cargo.toml"));
        let place = format!("{}/Cargo.toml", layer.name);
        for (table, name) in dependencies(&manifest) {
            if let Some(short) = name.strip_prefix("baton-") {
                let in_tests = table == "dev-dependencies" && layer.tests_may_use.contains(&short);
                if !layer.may_use.contains(&short) && !in_tests {
                    found.add(
                        &place,
                        format!("[{table}] must not have {name}: the layer below knows nothing above"),
                    );
                }
            }
            for (heavy, banned) in HEAVY {
                if heavy == layer.name && table == "dependencies" && banned.contains(&name.as_str()) {
                    found.add(&place, format!("must build without {name}"));
                }
            }
        }
        if !manifest.contains("[lints]\nworkspace = true") {
            found.add(&place, "does not inherit the workspace's lints");
        }
    }
}

/// Table and name of each dependency.
fn dependencies(manifest: &str) -> Vec<(String, String)> {
    let mut table = String::new();
    let mut all = Vec::new();
    for line in manifest.lines() {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']').to_owned();
        } else if table.ends_with("dependencies")
            && let Some((name, _)) = line.split_once('=')
        {
            all.push((table.clone(), name.trim().to_owned()));
        }
    }
    all
}
