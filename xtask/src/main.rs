//! The project's own commands. The standard library only, so that this builds in a second.

#![expect(
    clippy::disallowed_methods,
    reason = "these commands watch real processes in real time"
)]

mod bench;
mod cargo;
mod demo;
mod guard;
mod kafka;
mod model;
mod process;
mod s3;
mod scratch;
mod sender;
mod server;
mod setup;
mod soak;
mod target;
mod test;
mod tidy;
mod verdict;

use std::process::ExitCode;

/// What went wrong, in one line for people.
type Failure = String;
type Result<T, E = Failure> = std::result::Result<T, E>;

const HELP: &str = "\
cargo xtask COMMAND

  demo [--kafka]      one owner, the next takes over, nothing lost or shown twice: shown and counted in half a minute
  test [--no-kafka]   format, tidy, clippy, all tests (on a real Kafka too), rustdoc; ends with a line of totals
  model               the larger search for a history of owners, crashes and lost answers that breaks a rule
  soak [TEST…]        the process-level tests (all, or those named) with their long counts, on a real Kafka
  bench [--quick] [--out FILE]
                      a release build on a real Kafka: speed, memory, start, commits, hand-overs beside their targets
  tidy                the rules of this house that no other tool checks
  kafka ARGS…         a real Kafka on loopback: start, stop, topics, … (see `cargo xtask kafka help`)
  setup [--no-kafka]  install what builds and tests need from the system, or say what to type

What is missing on a Debian-like system is installed when that is allowed. Builds go to
${XDG_CACHE_HOME:-~/.cache}/baton/target-<key>, one for each toolchain and Cargo.lock, unless CARGO_TARGET_DIR is set;
they may be deleted at any time.
";

const COMMANDS: [&str; 8] = ["demo", "test", "model", "soak", "bench", "tidy", "kafka", "setup"];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &args[..]),
    };
    if matches!(command, "help" | "--help" | "-h")
        || (command != "kafka" && rest.iter().any(|a| a == "--help"))
    {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let done = match command {
        "demo" => flags(rest, &["--kafka"]).and_then(|flags| demo::run(flags[0])),
        "test" => flags(rest, &["--no-kafka"]).and_then(|flags| test::run(!flags[0])),
        "bench" => bench::run(rest),
        "model" => flags(rest, &[]).and_then(|_| model::run()),
        "soak" => soak::run(rest),
        "tidy" => flags(rest, &[]).and_then(|_| tidy::run()),
        "kafka" => kafka::run(rest),
        "setup" => flags(rest, &["--no-kafka"]).and_then(|flags| setup::run(!flags[0])),
        other => {
            eprintln!("xtask: unknown command `{other}`; known: {}", COMMANDS.join(", "));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Which of the known flags were given; anything else is refused.
fn flags(args: &[String], known: &[&str]) -> Result<Vec<bool>> {
    if let Some(unknown) = args.iter().find(|arg| !known.contains(&arg.as_str())) {
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        refuse(&format!("unknown argument `{unknown}`; known here: {known}"));
    }
    Ok(known
        .iter()
        .map(|flag| args.iter().any(|arg| arg == flag))
        .collect())
}

/// Ends with the exit code for what cannot be asked like that.
fn refuse(why: &str) -> ! {
    eprintln!("xtask: {why}");
    std::process::exit(2)
}
