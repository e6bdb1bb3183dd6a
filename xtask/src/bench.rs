//! What a release build does on a real broker, beside what it should.

mod figure;
mod handover;
mod lab;
mod speed;
mod start;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use self::figure::{Figure, Target, json, table, text};
use self::lab::{Lab, number};
use crate::{Result, refuse, setup, target};

/// How much is measured.
struct Amount {
    messages: u64,
    /// Of job, bare, bare, job.
    rounds: u32,
    starts: u32,
    commits: u32,
    handovers: u32,
}

const FULL: Amount = Amount {
    messages: 5_000_000,
    rounds: 3,
    starts: 10,
    commits: 2_000,
    handovers: 100,
};
const QUICK: Amount = Amount {
    messages: 1_000_000,
    rounds: 1,
    starts: 3,
    commits: 300,
    handovers: 10,
};

/// `cargo xtask bench [--quick] [--out FILE]`. A missed target is told, and is no failure of this command.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let (is_quick, out) = arguments(args).unwrap_or_else(|why| refuse(&why));
    let amount = if is_quick { &QUICK } else { &FULL };
    let out = out.unwrap_or_else(|| target::dir().join("bench.json"));
    setup::ensure(true)?;
    let lab = Lab::open()?;
    let figures = measure(&lab, amount).inspect_err(|_| {
        eprintln!("xtask: all that was said is in {}", lab.dir().display());
    })?;
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let machine = machine();
    println!(
        "{cores} cores of {machine}, {} messages, broker on the same machine\n",
        amount.messages
    );
    print!("{}", table(&figures));
    let about = [
        ("cpu", text(&machine)),
        ("cores", cores.to_string()),
        ("messages", amount.messages.to_string()),
        ("quick", is_quick.to_string()),
    ];
    std::fs::write(&out, json(&about, &figures))
        .map_err(|error| format!("cannot write {}: {error}", out.display()))?;
    println!("\nas JSON: {}", out.display());
    lab.scratch.remove();
    Ok(ExitCode::SUCCESS)
}

fn arguments(args: &[String]) -> Result<(bool, Option<PathBuf>)> {
    let (mut is_quick, mut out, mut args) = (false, None, args.iter());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => is_quick = true,
            "--out" => out = Some(args.next().ok_or("--out takes the name of a file")?.into()),
            other => {
                return Err(format!(
                    "unknown argument `{other}`; known here: --quick, --out FILE"
                ));
            }
        }
    }
    Ok((is_quick, out))
}

fn measure(lab: &Lab, amount: &Amount) -> Result<Vec<Figure>> {
    let mut figures = speed::measure(lab, amount.messages, amount.rounds)?;
    figures.extend(start::measure(lab, amount.starts)?);
    figures.extend(commits(lab, amount.commits)?);
    figures.extend(handover::measure(lab, amount.handovers)?);
    Ok(figures)
}

/// A batch's commit beside an append of as many bytes and fdatasync, in one directory.
fn commits(lab: &Lab, count: u32) -> Result<Vec<Figure>> {
    eprintln!("committing {count} batches, each beside a plain append");
    let mut command = Command::new(lab.bin("commit-cost"));
    command.arg(lab.dir()).arg(count.to_string());
    let (_, out) = lab.run("commit-cost", command)?;
    let said = out.last().map_or("", String::as_str);
    let field = |key: &str| number(said, key).ok_or_else(|| format!("commit-cost said no {key}: {said}"));
    let (commit, plain) = (field("commit_us")?, field("fdatasync_us")?);
    Ok(vec![
        Figure::new("commitUs", "one batch commit", "µs", commit),
        Figure::new(
            "fdatasyncUs",
            "an append of the same size and fdatasync",
            "µs",
            plain,
        ),
        Figure::new("commitToFdatasync", "commit to fdatasync", "×", commit / plain)
            .target(Target::AtMost(2.0)),
    ])
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    model
        .and_then(|line| line.split_once(": "))
        .map_or_else(|| "an unknown processor".to_owned(), |(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_in_any_order_and_unknown_ones_are_refused() {
        let read = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            arguments(&args)
        };
        assert_eq!(read(&["--out", "a", "--quick"]), Ok((true, Some("a".into()))));
        assert_eq!(read(&[]), Ok((false, None)));
        assert!(read(&["--out"]).is_err() && read(&["--slow"]).is_err());
    }
}
