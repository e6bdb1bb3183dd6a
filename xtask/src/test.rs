//! Everything that has to be true of this workspace.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::kafka::Broker;
use crate::s3::Store;
use crate::{Result, cargo, model, setup, tidy};

/// How many passed and failed so far.
#[derive(Debug, Default)]
struct Totals {
    passed: u64,
    failed: u64,
    /// What failed, for the end.
    names: Vec<String>,
}

/// `cargo xtask test`. Ends with one line of totals; a part that could not run counts as failed.
pub(crate) fn run(kafka: bool) -> Result<ExitCode> {
    let mut totals = Totals::default();
    totals.part("system packages", || setup::ensure(kafka));
    totals.part("format", || quiet(cargo::command(&["fmt", "--all", "--check"])));
    totals.part("tidy", || {
        tidy::run().and_then(|code| {
            if code == ExitCode::SUCCESS {
                Ok(())
            } else {
                Err("see above".into())
            }
        })
    });
    totals.part("clippy", || {
        quiet(cargo::command(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "--deny",
            "warnings",
        ]))
    });
    totals.part("rustdoc", || {
        let mut doc = cargo::command(&["doc", "--workspace", "--no-deps", "--quiet"]);
        doc.env("RUSTDOCFLAGS", "--deny warnings");
        quiet(doc)
    });
    totals.tests(
        "protocol alone",
        cargo::command(&["test", "-p", "baton-core", "--no-fail-fast"]),
    );
    let alone = [
        "test",
        "-p",
        "baton-checkpoint",
        "--no-default-features",
        "--lib",
        "--no-fail-fast",
    ];
    totals.tests("checkpoint without RocksDB", cargo::command(&alone));
    // Its tests run with all the others, in the binary's features.
    totals.part("clippy of shared storage alone", || {
        quiet(cargo::command(&[
            "clippy",
            "-p",
            "baton-checkpoint",
            "--no-default-features",
            "--features",
            "object-store",
            "--quiet",
            "--tests",
            "--",
            "--deny",
            "warnings",
        ]))
    });
    totals.part("clippy of the model", || quiet(model::clippy()));
    totals.tests("model", model::command());
    let mut all = cargo::command(&["test", "--workspace", "--no-fail-fast"]);
    // They run as long as these live.
    let (broker, store) = if kafka {
        (
            totals.server("Kafka", Broker::start),
            totals.server("S3", Store::start),
        )
    } else {
        (None, None)
    };
    for variable in [
        "BATON_TEST_KAFKA",
        "BATON_REQUIRE_KAFKA",
        "BATON_TEST_S3",
        "BATON_REQUIRE_S3",
    ] {
        all.env_remove(variable);
    }
    if let Some(broker) = &broker {
        all.env("BATON_TEST_KAFKA", broker.address())
            .env("BATON_REQUIRE_KAFKA", "1");
    }
    if let Some(store) = &store {
        store.told_to(&mut all);
    }
    totals.tests("tests", all);
    if !kafka {
        println!(
            "left out by --no-kafka: process-level tests and all others that need a real broker or a real S3 server"
        );
    }
    for name in &totals.names {
        println!("failed: {name}");
    }
    println!("{} passed, {} failed", totals.passed, totals.failed);
    Ok(if totals.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Totals {
    fn part(&mut self, name: &str, run: impl FnOnce() -> Result<()>) {
        println!("== {name}");
        let start = Instant::now();
        match run() {
            Ok(()) => {
                self.passed += 1;
                println!("== {name}: ok in {} s", start.elapsed().as_secs());
            }
            Err(failure) => self.fail(name, &failure),
        }
    }

    /// A server that tests need; a failure when it does not start.
    fn server<S>(&mut self, name: &str, start: impl FnOnce() -> Result<S>) -> Option<S> {
        start().map_err(|failure| self.fail(name, &failure)).ok()
    }

    fn fail(&mut self, name: &str, failure: &str) {
        self.failed += 1;
        self.names.push(name.to_owned());
        println!("== {name}: FAILED: {failure}");
    }

    /// Runs `cargo test`, passing its output on and counting what it tells.
    fn tests(&mut self, name: &str, mut command: Command) {
        println!("== {name}");
        let start = Instant::now();
        // Process-level tests start several processes each; more at once than cores only makes them wait.
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => return self.fail(name, &error.to_string()),
        };
        let (passed, failed) = (self.passed, self.failed);
        for line in BufReader::new(child.stdout.take().expect("it is piped"))
            .lines()
            .map_while(Result::ok)
        {
            println!("{line}");
            if let Some(result) = line.strip_prefix("test result: ") {
                self.passed += count(result, " passed");
                self.failed += count(result, " failed");
            } else if let Some(test) = line
                .strip_prefix("test ")
                .and_then(|rest| rest.strip_suffix(" ... FAILED"))
            {
                self.names.push(test.to_owned());
            }
        }
        let ended = child.wait();
        let took = start.elapsed().as_secs();
        let (ran, lost) = (self.passed - passed, self.failed - failed);
        if ended.is_ok_and(|status| status.success()) && ran > 0 {
            println!("== {name}: {ran} ok in {took} s");
        } else if lost == 0 {
            self.fail(name, "it did not build, or ended before its tests did");
        } else {
            println!("== {name}: {lost} of {} FAILED in {took} s", ran + lost);
        }
    }
}

/// The number before `word` in `ok. 12 passed; 0 failed; …`.
fn count(result: &str, word: &str) -> u64 {
    let number = result
        .split(word)
        .next()
        .and_then(|before| before.rsplit([' ', ';']).next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn quiet(mut command: Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| error.to_string())?;
    if status.success() {
        Ok(())
    } else {
        Err(status.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn counts_are_read_from_the_result_line() {
        let line = "ok. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.03s";
        assert_eq!((count(line, " passed"), count(line, " failed")), (12, 3));
    }
}
