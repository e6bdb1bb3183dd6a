//! The promise, shown: one owner at a time, the next one takes over, nothing is lost and nothing shown twice.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::kafka::Broker;
use crate::process::{Each, Process, after};
use crate::scratch::Scratch;
use crate::sender::Sender;
use crate::verdict::{Verdict, number};
use crate::{Result, cargo, setup, target};

/// How long any single step may take before it counts as failed.
const BOUND: Duration = Duration::from_secs(20);
/// Between two messages.
const PACE: Duration = Duration::from_millis(20);
/// Rows shown here of each batch; the files hold all.
const ROWS_SHOWN: u32 = 2;
const TRIGGER_MS: u64 = 500;

/// `cargo xtask demo`. The exit code follows the verdict.
pub(crate) fn run(kafka: bool) -> Result<ExitCode> {
    setup::ensure(kafka)?;
    let baton = build()?;
    let scratch = Scratch::new(&std::env::temp_dir(), "demo")?;
    let good = play(&baton, &scratch, kafka);
    match good {
        Ok(true) => {
            scratch.remove();
            return Ok(ExitCode::SUCCESS);
        }
        Ok(false) => {}
        Err(failure) => eprintln!("xtask: {failure}"),
    }
    eprintln!("xtask: all that was said is in {}", scratch.path().display());
    Ok(ExitCode::FAILURE)
}

fn build() -> Result<PathBuf> {
    eprintln!("building baton; the first time that takes about ten minutes on two cores");
    let built = cargo::command(&["build", "--workspace", "--bin", "baton"]).status();
    match built {
        Ok(status) if status.success() => Ok(target::dir().join("debug/baton")),
        Ok(_) => Err("baton does not build; what cargo says is above".to_owned()),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
}

/// A stage: the binary, the place for files, who reads the messages' topic.
struct Stage<'a> {
    baton: &'a Path,
    scratch: &'a Scratch,
    job: PathBuf,
}

fn play(baton: &Path, scratch: &Scratch, kafka: bool) -> Result<bool> {
    let start = Instant::now();
    let mut real = None;
    let mut embedded = None;
    let address = if kafka {
        tell("A real Kafka is started, with a topic of three partitions.");
        let broker = real.insert(Broker::start()?);
        broker.topic("messages", 3)?;
        broker.address().to_owned()
    } else {
        tell("The embedded broker is started, with a topic of three partitions (--kafka takes a real one).");
        let mut command = Command::new(baton);
        command
            .args(["broker", "--topic", "messages:3"])
            .stdin(Stdio::null());
        let broker = embedded.insert(Process::quiet("broker", command, scratch.path())?);
        broker.prints("`ready`", BOUND, |line| (line == "ready").then_some(()))?;
        broker.out.all().swap_remove(0)
    };
    let stage = Stage {
        baton,
        scratch,
        job: scratch.write("job.toml", &job(&address, &scratch.path().join("checkpoint")))?,
    };

    tell("Somebody sends 50 numbered messages a second and does not care who reads them.");
    let sender = Sender::start(baton, scratch.path(), &address, "messages", PACE)?;
    tell("v1 starts. Its checkpoint is free, so it is the owner, and messages flow to its console.");
    let mut v1 = stage.run("v1", "v1", &[])?;
    v1.says("batch 4", BOUND, |line| line.contains("batch 4 at").then_some(()))?;

    tell(
        "v2 starts without a word about ownership. Two owners would show everything twice, so it is refused at once.",
    );
    let mut plain = stage.run("v2", "v2-refused", &[])?;
    let refused = plain.wait(BOUND)?;
    tell(&format!(
        "It ended with exit code {refused}; the line above says who the owner is and what to do."
    ));

    tell(
        "Now v2 is to take over, while messages keep coming. It prepares first; v1 finishes its batch and leaves.",
    );
    let mut v2 = stage.run("v2", "v2", &["--if-owned", "takeover"])?;
    let line = v2.says("hand-over", BOUND, |line| {
        line.contains("handed over from v1 to v2")
            .then(|| line.to_owned())
    })?;
    let left = v1.wait(BOUND)?;
    tell(&format!(
        "v1 ended with exit code {left}. v2 goes on at the exact next message."
    ));
    let later = format!("batch {} at", after(&line, "first batch ").unwrap_or(0) + 6);
    v2.says(&later, BOUND, |line| line.contains(&later).then_some(()))?;

    tell("The sender has sent enough; v2 shows the last of it and is asked to stop.");
    let sent = sender.finish()?;
    v2.prints("last message", BOUND, |line| {
        number(line).filter(|number| *number == sent)
    })?;
    v2.terminate();
    let stopped = v2.wait(BOUND)?;

    let mut verdict = Verdict::of(sent);
    verdict.count("v1", &v1.out.all());
    verdict.count("v2", &v2.out.all());
    let good = verdict.is_good() && (refused, left, stopped) == (3, 0, 0);
    tell("The verdict, counted from outside: the numbers sent against the numbers on both consoles.");
    for (name, count) in verdict.lines() {
        println!("  {name:<28}{count:>7}");
    }
    let gap = after(&line, "commit_gap ").map_or_else(|| "unknown".to_owned(), |ms| format!("{ms} ms"));
    println!(
        "  {:<28}{gap:>7}  (a trigger of {TRIGGER_MS} ms alone makes up to that)",
        "commit gap"
    );
    println!(
        "  {:<28}{refused:>7}  (3: owned by another)",
        "exit code of the refused"
    );
    println!(
        "  {:<28}{:>7}",
        "exit codes of v1 and v2",
        format!("{left}, {stopped}")
    );
    let (word, colour) = if good {
        ("as promised", "32")
    } else {
        ("NOT as promised", "31")
    };
    println!("{}, after {} s", paint(word, colour), start.elapsed().as_secs());
    Ok(good)
}

impl Stage<'_> {
    /// `baton run` of the job as `version`, its output shown in part.
    fn run(&self, version: &str, name: &str, args: &[&str]) -> Result<Process> {
        let mut command = Command::new(self.baton);
        command
            .arg("run")
            .arg(&self.job)
            .args(args)
            .env("VERSION", version)
            .stdin(Stdio::null());
        let err = paint(&format!("{version}:"), "2");
        let err: Each = Box::new(move |line| {
            if is_news(line) {
                println!("{err} {}", line.trim_start_matches("baton: "));
            }
        });
        Process::spawn(name, command, self.scratch.path(), excerpt(version), err)
    }
}

/// Lines of stderr that matter here: not every batch, and not the notes on options that every start makes.
fn is_news(line: &str) -> bool {
    let is_batch = line.starts_with("baton: batch ");
    let is_note = ["baton: messages: ", "baton: sink console: "]
        .iter()
        .any(|note| line.starts_with(note));
    !is_batch && !is_note
}

/// Shows the first rows of each batch.
fn excerpt(version: &str) -> Each {
    let prefix = paint(&format!("{version}|"), if version == "v1" { "34" } else { "35" });
    let (mut batch, mut rows) = (String::new(), 0);
    Box::new(move |line| {
        if line.starts_with("Batch: ") {
            (batch, rows) = (line.to_owned(), 0);
        } else if number(line).is_some() {
            rows += 1;
            if rows <= ROWS_SHOWN {
                println!("{prefix} {batch}  {line}");
            }
        } else if line.is_empty() && rows > ROWS_SHOWN {
            println!("{prefix} {batch}  … and {} more", rows - ROWS_SHOWN);
        }
    })
}

fn job(address: &str, checkpoint: &Path) -> String {
    format!(
        r#"name = "demo"
version = "${{VERSION}}"
[source.messages]
format = "kafka"
[source.messages.options]
"kafka.bootstrap.servers" = "{address}"
subscribe = "messages"
startingOffsets = "earliest"
[query]
sql = "SELECT partition, offset, CAST(value AS STRING) AS message FROM messages"
[sink]
format = "console"
[sink.options]
checkpointLocation = '{}'
numRows = 1000000
truncate = false
[trigger]
processingTime = "{TRIGGER_MS} milliseconds"
"#,
        checkpoint.display()
    )
}

fn tell(text: &str) {
    println!("{}", paint(&format!("* {text}"), "1"));
}

/// Colour only on a terminal, and not against anybody's wish.
fn paint(text: &str, colour: &str) -> String {
    let wished = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wished && std::io::stdout().is_terminal() {
        format!("\x1b[{colour}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
