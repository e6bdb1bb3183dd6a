//! From the start of a process to its first committed batch.

use std::time::{Duration, Instant};

use super::figure::{Figure, Target};
use super::lab::Lab;
use super::speed::fill;
use crate::Result;
use crate::process::Process;

const TOPIC: &str = "small";
const MESSAGES: u64 = 300;
const BOUND: Duration = Duration::from_secs(30);

/// The median of `count` starts, each on a new checkpoint.
pub(super) fn measure(lab: &Lab, count: u32) -> Result<Vec<Figure>> {
    lab.broker.topic(TOPIC, 3)?;
    fill(lab, TOPIC, MESSAGES)?;
    eprintln!("starting the job {count} times");
    // The first start of all finds the binary cold.
    once(lab, "start-cold")?;
    let mut each = Vec::new();
    for round in 0..count {
        each.push(once(lab, &format!("start-{round}"))?);
    }
    let name = "process start to first committed batch";
    Ok(vec![
        Figure::median("firstBatchMs", name, "ms", &each).target(Target::AtMost(400.0)),
    ])
}

/// Milliseconds.
fn once(lab: &Lab, name: &str) -> Result<f64> {
    let command = lab.job(name, TOPIC, "")?;
    let start = Instant::now();
    let mut process = Process::quiet(name, command, lab.dir())?;
    process.says("batch 0", BOUND, |line| {
        line.starts_with("baton: batch 0 at").then_some(())
    })?;
    let took = start.elapsed().as_secs_f64() * 1_000.0;
    process.terminate();
    match process.wait(BOUND)? {
        0 => Ok(took),
        code => Err(format!("{name} ended with exit code {code}")),
    }
}
