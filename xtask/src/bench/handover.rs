//! How long commits pause when a version takes over from the one before.

use std::time::Duration;

use super::figure::{Figure, Target};
use super::lab::Lab;
use crate::Result;
use crate::process::{Process, after};
use crate::sender::Sender;

const TOPIC: &str = "flow";
/// Between two messages: a thousand a second.
const PACE: Duration = Duration::from_millis(1);
const BOUND: Duration = Duration::from_secs(30);
/// Batches that a new version commits before the next one comes.
const SETTLE: u64 = 5;

/// `count` hand-overs between ever new versions while messages flow.
pub(super) fn measure(lab: &Lab, count: u32) -> Result<Vec<Figure>> {
    lab.broker.topic(TOPIC, 3)?;
    eprintln!("handing over {count} times under 1000 messages a second");
    let sender = Sender::start(&lab.bin("baton"), lab.dir(), lab.broker.address(), TOPIC, PACE)?;
    let mut owner = version(lab, 0, &[])?;
    settle(&owner, 0)?;
    let (mut gaps, mut excesses, mut delays) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=count {
        let next = version(lab, number, &["--if-owned", "takeover"])?;
        let line = next.says("hand-over", BOUND, |line| {
            line.starts_with("baton: handed over from")
                .then(|| line.to_owned())
        })?;
        match owner.wait(BOUND)? {
            0 => owner = next,
            code => return Err(format!("{} ended with exit code {code}", owner.name)),
        }
        let field = |word: &str| {
            let unknown = || format!("no `{word}` in: {line}");
            after(&line, word).ok_or_else(unknown)
        };
        gaps.push(field("commit_gap ")? as f64);
        excesses.push(field("excess_gap ")? as f64);
        // Not known when the source's rows carry no time.
        delays.extend(after(&line, "max_delay ").map(|ms| ms as f64));
        settle(&owner, field("first batch ")?)?;
    }
    owner.terminate();
    let code = owner.wait(BOUND)?;
    if code != 0 {
        return Err(format!("{} ended with exit code {code}", owner.name));
    }
    sender.finish()?;
    let gap = |key, name, part| Figure::quantile(key, name, "ms", &gaps, part);
    Ok(vec![
        gap("commitGapP50Ms", "hand-over, commit gap, p50", 0.5),
        gap("commitGapP95Ms", "hand-over, commit gap, p95", 0.95).target(Target::AtMost(150.0)),
        gap("commitGapMaxMs", "hand-over, commit gap, max", 1.0),
        Figure::quantile(
            "excessGapP95Ms",
            "hand-over, excess gap, p95",
            "ms",
            &excesses,
            0.95,
        ),
        Figure::quantile(
            "maxDelayP95Ms",
            "hand-over, a message's delay, p95",
            "ms",
            &delays,
            0.95,
        ),
    ])
}

fn version(lab: &Lab, number: u32, args: &[&str]) -> Result<Process> {
    let mut command = lab.job("flow", TOPIC, "")?;
    command.args(args).env("VERSION", format!("v{number}"));
    Process::quiet(&format!("flow-v{number}"), command, lab.dir())
}

/// Waits until a version that began with the batch `first` is at work.
fn settle(version: &Process, first: u64) -> Result<()> {
    let later = format!("baton: batch {} at", first + SETTLE);
    version.says(&later, BOUND, |line| line.starts_with(&later).then_some(()))
}
