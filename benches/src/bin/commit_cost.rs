//! `commit-cost DIR COUNT` commits COUNT batches to a checkpoint under DIR, each followed by a plain append of as many
//! bytes and `fdatasync` in the same directory. Prints both medians, in microseconds, as one line of JSON.
#![expect(clippy::print_stdout, reason = "the result")]

use baton_benches::{Failure, pair};
use baton_testkit::realtime::now;
use serde_json::json;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [directory, count] = args.as_slice() else {
        return Err("usage: commit-cost DIR COUNT".into());
    };
    let count: usize = count.parse()?;
    let place = tempfile::tempdir_in(directory)?;
    let (mut commits, mut plain) = pair(place.path()).await?;
    let (mut commit_times, mut plain_times) = (Vec::new(), Vec::new());
    // In turns, so that whatever else the disk does meets both.
    for _ in 0..count {
        let start = now();
        commits.commit().await?;
        commit_times.push(start.elapsed());
        let start = now();
        plain.append()?;
        plain_times.push(start.elapsed());
    }
    println!(
        "{}",
        json!({
            "commit_us": median_us(commit_times)?,
            "fdatasync_us": median_us(plain_times)?,
            "bytes": plain.size(),
            "count": count,
        })
    );
    Ok(())
}

fn median_us(mut times: Vec<Duration>) -> Result<f64, Failure> {
    times.sort_unstable();
    let median = times.get(times.len() / 2).ok_or("COUNT must be 1 or above")?;
    Ok(median.as_nanos() as f64 / 1_000.0)
}
