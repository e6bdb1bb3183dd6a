//! How fast the job reads a topic, beside a consumer that does nothing but count.

use std::io::{BufWriter, Write};
use std::process::{Command, Stdio};

use super::figure::{Figure, Target};
use super::lab::{BOUND, Lab, Used, number};
use crate::Result;
use crate::process::Process;

const TOPIC: &str = "bulk";

/// One run of the job.
struct Job {
    used: Used,
    /// Milliseconds of its batches, and of what they did outside reading, computing and writing.
    batches_ms: f64,
    bookkeeping_ms: f64,
}

/// `rounds` times job, bare, bare, job, over `messages` messages.
pub(super) fn measure(lab: &Lab, messages: u64, rounds: u32) -> Result<Vec<Figure>> {
    lab.broker.topic(TOPIC, 3)?;
    fill(lab, TOPIC, messages)?;
    eprintln!("reading them, job and bare consumer in turns");
    // What comes first finds the broker cold.
    bare(lab, messages)?;
    let (mut jobs, mut bares) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        jobs.push(job(lab, messages, &format!("job-{round}-a"))?);
        bares.push(bare(lab, messages)?);
        bares.push(bare(lab, messages)?);
        jobs.push(job(lab, messages, &format!("job-{round}-b"))?);
    }
    let of_jobs = |value: fn(&Job) -> f64| jobs.iter().map(value).collect::<Vec<f64>>();
    let of_bares = |value: fn(&Used) -> f64| bares.iter().map(value).collect::<Vec<f64>>();
    let rows = messages as f64;
    let speed = |seconds: Vec<f64>| seconds.iter().map(|seconds| rows / seconds).collect::<Vec<f64>>();
    let job_speed = speed(of_jobs(|job| job.batches_ms / 1_000.0));
    let wall_speed = speed(of_jobs(|job| job.used.seconds));
    let bare_speed = speed(of_bares(|used| used.seconds));
    let ratios: Vec<f64> = job_speed
        .iter()
        .zip(&bare_speed)
        .map(|(job, bare)| job / bare)
        .collect();
    let per_million = |cpu: Vec<f64>| cpu.iter().map(|cpu| cpu / rows * 1e6).collect::<Vec<f64>>();
    let job_cpu = per_million(of_jobs(|job| job.used.cpu_seconds));
    let bare_cpu = per_million(of_bares(|used| used.cpu_seconds));
    Ok(vec![
        Figure::median(
            "jobRowsPerSecond",
            "the job's rows/s in its batches",
            "",
            &job_speed,
        ),
        Figure::median("bareRowsPerSecond", "the bare consumer's rows/s", "", &bare_speed),
        Figure::median("jobToBare", "job to bare consumer, median of pairs", "×", &ratios)
            .target(Target::AtLeast(0.8)),
        Figure::median(
            "jobWallRowsPerSecond",
            "the job's rows/s, process start and end included",
            "",
            &wall_speed,
        ),
        Figure::median(
            "jobOutsideMs",
            "where the rest goes: start and end of the process",
            "ms",
            &of_jobs(|job| job.used.seconds * 1_000.0 - job.batches_ms),
        ),
        Figure::median(
            "jobBookkeepingMs",
            "where the rest goes: planning and logging of its batches",
            "ms",
            &of_jobs(|job| job.bookkeeping_ms),
        ),
        Figure::median(
            "jobCpuPerMillion",
            "the job's CPU seconds per million rows",
            "s",
            &job_cpu,
        ),
        Figure::median(
            "bareCpuPerMillion",
            "the bare consumer's CPU seconds per million rows",
            "s",
            &bare_cpu,
        ),
        Figure::quantile(
            "peakMb",
            "the job's peak RSS",
            "MB",
            &of_jobs(|job| job.used.peak_mb),
            1.0,
        )
        .target(Target::AtMost(120.0)),
        Figure::quantile(
            "barePeakMb",
            "the bare consumer's peak RSS",
            "MB",
            &of_bares(|used| used.peak_mb),
            1.0,
        ),
    ])
}

/// Messages of about 100 bytes, without keys.
pub(super) fn fill(lab: &Lab, topic: &str, messages: u64) -> Result<()> {
    eprintln!("filling topic {topic} with {messages} messages");
    let mut command = Command::new(lab.bin("baton"));
    command
        .args([
            "produce",
            "--bootstrap-server",
            lab.broker.address(),
            "--topic",
            topic,
        ])
        .stdin(Stdio::piped());
    let mut producer = Process::quiet(&format!("fill-{topic}"), command, lab.dir())?;
    let mut pipe = BufWriter::new(producer.stdin().expect("it is piped"));
    for number in 1..=messages {
        let user = number % 9_973;
        let written = writeln!(
            pipe,
            r#"{{"id":"{number:010}","user":"user-{user:05}","text":"so much happens while a stream flows by","ok":true}}"#
        );
        if written.is_err() {
            break;
        }
    }
    drop(pipe);
    match producer.wait(BOUND)? {
        0 => Ok(()),
        code => Err(format!(
            "baton produce ended with exit code {code}: {}",
            producer.err.last().unwrap_or_default()
        )),
    }
}

fn job(lab: &Lab, messages: u64, name: &str) -> Result<Job> {
    let progress = lab.dir().join(format!("{name}.progress"));
    let mut command = lab.job(name, TOPIC, "availableNow = true")?;
    command.arg("--progress").arg(&progress);
    let (used, _) = lab.run(name, command)?;
    let lines = std::fs::read_to_string(&progress)
        .map_err(|error| format!("cannot read {}: {error}", progress.display()))?;
    let sum = |key: &str| lines.lines().filter_map(|line| number(line, key)).sum::<f64>();
    let (rows, batches_ms) = (sum("numInputRows"), sum("batchDuration"));
    if rows != messages as f64 {
        return Err(format!("{name} read {rows} rows of {messages}"));
    }
    Ok(Job {
        used,
        batches_ms,
        bookkeeping_ms: batches_ms - sum("addBatch"),
    })
}

/// One run of the bare consumer; its seconds are those it measures itself.
fn bare(lab: &Lab, messages: u64) -> Result<Used> {
    let mut command = Command::new(lab.bin("examples/bare_consumer"));
    command.args([lab.broker.address(), TOPIC, &messages.to_string()]);
    let (used, out) = lab.run("bare", command)?;
    let last = out.last().map_or("", String::as_str);
    match (number(last, "rows"), number(last, "seconds")) {
        (Some(rows), Some(seconds)) if rows == messages as f64 => Ok(Used { seconds, ..used }),
        _ => Err(format!("the bare consumer said: {last}")),
    }
}
