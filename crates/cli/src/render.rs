//! Results as text: what a person reads at three in the morning.
//!
//! The status is rendered from its JSON, the form that is promised to scripts: text can show nothing that JSON lacks.

pub(crate) mod repair;

use baton_core::Timestamp;
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;

use crate::report::age as age_of;

/// More partitions than this are summed up in text.
const MAX_PARTITIONS: usize = 16;

/// A checkpoint's status.
pub(crate) fn status(status: &Value, now: Timestamp) -> String {
    let mut out = String::new();
    let place = text(status, "checkpoint").unwrap_or("?");
    let state = text(status, "state").unwrap_or("unknown");
    let answers = status["responding"] != Value::Bool(false);
    let mut line = |label: &str, value: &str| {
        // Writing to a string cannot fail.
        let _infallible = writeln!(out, "{label:<11}{value}");
    };
    line("checkpoint", place);
    if let Some(job) = text(status, "job") {
        line("job", job);
    }
    line(
        "state",
        &if answers {
            state.to_owned()
        } else {
            format!("{state}, but it does not answer")
        },
    );
    let owner = &status["owner"];
    if owner.is_object() {
        let epoch = owner["epoch"]
            .as_u64()
            .map_or_else(String::new, |epoch| format!(", epoch {epoch}"));
        let since = stamp(owner, "since", now).map_or_else(String::new, |since| format!(", since {since}"));
        line("owner", &format!("{}{epoch}{since}", process(owner)));
    }
    let standby = &status["standby"];
    if standby.is_object() {
        let since = stamp(standby, "waitingSince", now)
            .map_or_else(String::new, |at| format!(", waiting since {at}"));
        line("standby", &format!("{}{since}", process(standby)));
    }
    let guards = status["guard"] == Value::Bool(true);
    if !guards {
        line("batch", &batch(status, now));
    }
    for (label, key) in [("offsets", "offsets"), ("lag", "lag")] {
        let mut label = label;
        for source in offsets(&status[key]) {
            line(label, &source);
            label = "";
        }
    }
    if let Some(seen) = stamp(status, "lagAt", now).filter(|_| status["lag"].is_object()) {
        line(
            "",
            &format!("{} behind, seen at {seen}", count(total(&status["lag"]))),
        );
    }
    if let Some(error) = text(status, "lastError") {
        line(
            "last error",
            &error.split_whitespace().collect::<Vec<_>>().join(" "),
        );
    }
    let advice = advice(status, state, answers, place);
    let command = format!("baton exec --checkpoint {place}");
    line(
        "next",
        &if guards {
            advice.replace("baton run JOB", &command)
        } else {
            advice
        },
    );
    out
}

fn process(owner: &Value) -> String {
    let pid = owner["pid"]
        .as_u64()
        .map_or_else(|| "?".to_owned(), |pid| pid.to_string());
    format!(
        "{}, pid {pid} on {}",
        text(owner, "version").unwrap_or("?"),
        text(owner, "host").unwrap_or("?")
    )
}

fn batch(status: &Value, now: Timestamp) -> String {
    let committed = status["lastCommittedBatch"].as_u64();
    let planned = status["lastPlannedBatch"]
        .as_u64()
        .filter(|planned| Some(*planned) != committed);
    let mut out = match committed {
        None => "none committed yet".to_owned(),
        Some(batch) => {
            let at = stamp(status, "lastCommitAt", now).map_or_else(String::new, |at| format!(" at {at}"));
            format!("{batch} committed{at}")
        }
    };
    if let Some(planned) = planned {
        let _infallible = write!(out, "; {planned} planned");
    }
    out
}

fn advice(status: &Value, state: &str, answers: bool, place: &str) -> String {
    match state {
        "empty" => "baton run JOB starts it".to_owned(),
        "running" if answers => {
            format!("baton stop {place} stops it; baton run JOB --if-owned takeover replaces it")
        }
        "running" => {
            let pid = status["owner"]["pid"]
                .as_u64()
                .map_or_else(String::new, |pid| format!(" pid {pid}"));
            format!("see why{pid} is stopped or stuck; baton run JOB --if-owned force replaces it")
        }
        "released" => "baton run JOB goes on from here".to_owned(),
        "interrupted" => "baton run JOB resumes by itself; nothing to repair".to_owned(),
        _ => "the owner is on another machine and silent; look there, or baton run JOB --if-owned force"
            .to_owned(),
    }
}

/// One line for each topic: `messages/test1  0:425 1:393`.
pub(crate) fn offsets(sources: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (source, topics) in sources.as_object().into_iter().flatten() {
        for (topic, partitions) in topics.as_object().into_iter().flatten() {
            let Some(partitions) = partitions.as_object() else {
                continue;
            };
            let shown: Vec<String> = partitions
                .iter()
                .take(MAX_PARTITIONS)
                .map(|(partition, offset)| format!("{partition}:{offset}"))
                .collect();
            let more = partitions.len().saturating_sub(MAX_PARTITIONS);
            let more = if more > 0 {
                format!(" and {more} more partitions")
            } else {
                String::new()
            };
            lines.push(format!("{source}/{topic}  {}{more}", shown.join(" ")));
        }
    }
    lines
}

fn total(value: &Value) -> u64 {
    match value {
        Value::Object(map) => map.values().map(total).sum(),
        other => other.as_u64().unwrap_or(0),
    }
}

/// The records of a log, one a line.
pub(crate) fn records(show: &Value) -> String {
    let mut out = String::new();
    let id = text(show, "checkpointId").unwrap_or("?");
    let _infallible = writeln!(out, "checkpoint {id}, format version {}", show["formatVersion"]);
    for record in show["records"].as_array().into_iter().flatten() {
        let word = |key: &str| match &record[key] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let batch = record["batchId"]
            .as_u64()
            .map_or_else(String::new, |batch| format!("batch {batch}"));
        let _infallible = write!(
            out,
            "{:>6}  {}  epoch {:<4} {:<9}{batch:<12}",
            word("seq"),
            word("at"),
            word("epoch"),
            word("kind")
        );
        let known = ["seq", "at", "epoch", "kind", "batchId"];
        for (key, value) in record.as_object().into_iter().flatten() {
            if !known.contains(&key.as_str()) && !value.is_null() {
                let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let _infallible = write!(out, " {key}={shown}");
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value[key].as_str()
}

fn stamp(value: &Value, key: &str, now: Timestamp) -> Option<String> {
    let shown = text(value, key)?;
    let at = chrono::DateTime::parse_from_rfc3339(shown).ok()?;
    Some(format!(
        "{shown} ({} ago)",
        age(age_of(now, Timestamp(at.timestamp_millis())))
    ))
}

/// `3s`, `2m 5s`, `4h 12m`, `9d 3h`.
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// `250 ms`, `3.4 s`.
pub(crate) fn millis(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

/// `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 row`, `2 rows`.
pub(crate) fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp(1_767_225_600_000 + 7_500_000);

    #[test]
    fn a_running_job_is_told_in_ten_lines() {
        let running = json!({
            "checkpoint": "/tmp/c", "checkpointId": "u", "job": "char-count", "state": "running",
            "owner": {"id": "o", "host": "h", "pid": 4711, "version": "v1", "epoch": 3, "since": "2026-01-01T00:00:00.000Z"},
            "standby": {"host": "h", "pid": 4712, "version": "v2", "waitingSince": "2026-01-01T02:04:00.000Z"},
            "lastPlannedBatch": 17, "lastCommittedBatch": 16, "lastCommitAt": "2026-01-01T02:04:57.000Z",
            "offsets": {"messages": {"test1": {"0": 425, "1": 393, "2": 410}}},
            "lag": {"messages": {"test1": {"0": 0, "1": 3000, "2": 0}}}, "lagAt": "2026-01-01T02:04:59.000Z",
            "responding": true, "lastError": null
        });
        assert_eq!(
            status(&running, NOW),
            "checkpoint /tmp/c\n\
             job        char-count\n\
             state      running\n\
             owner      v1, pid 4711 on h, epoch 3, since 2026-01-01T00:00:00.000Z (2h 5m ago)\n\
             standby    v2, pid 4712 on h, waiting since 2026-01-01T02:04:00.000Z (1m 0s ago)\n\
             batch      16 committed at 2026-01-01T02:04:57.000Z (3s ago); 17 planned\n\
             offsets    messages/test1  0:425 1:393 2:410\n\
             lag        messages/test1  0:0 1:3000 2:0\n           \
             3,000 behind, seen at 2026-01-01T02:04:59.000Z (1s ago)\n\
             next       baton stop /tmp/c stops it; baton run JOB --if-owned takeover replaces it\n"
        );
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let empty =
            json!({"checkpoint": "/tmp/c", "state": "empty", "owner": null, "lag": null, "offsets": null});
        assert_eq!(
            status(&empty, NOW),
            "checkpoint /tmp/c\nstate      empty\nbatch      none committed yet\nnext       baton run JOB starts it\n"
        );
    }

    #[test]
    fn an_owner_that_does_not_answer_is_said_to() {
        let stuck = json!({"checkpoint": "/c", "state": "running", "responding": false, "owner": {"pid": 7}});
        let text = status(&stuck, NOW);
        assert!(text.contains("running, but it does not answer"), "{text}");
        assert!(text.contains("see why pid 7 is stopped or stuck"), "{text}");
    }

    #[test]
    fn records_stand_one_on_a_line() {
        let show = json!({"checkpointId": "u", "formatVersion": 1, "records": [
            {"seq": 7, "kind": "plan", "epoch": 3, "batchId": 17, "at": "T", "version": "v1", "start": {"m": 1}},
            {"seq": 8, "kind": "release", "epoch": 3, "at": "T", "successor": null}]});
        assert_eq!(
            records(&show),
            "checkpoint u, format version 1\n     \
             7  T  epoch 3    plan     batch 17     version=v1 start={\"m\":1}\n     \
             8  T  epoch 3    release\n"
        );
    }

    #[test]
    fn numbers_and_ages_are_short() {
        let ages = [3, 125, 15_120, 788_400].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(ages, ["3s", "2m 5s", "4h 12m", "9d 3h"]);
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            (plural(1, "row"), plural(2, "row")),
            ("1 row".to_owned(), "2 rows".to_owned())
        );
    }

    #[test]
    fn many_partitions_are_cut_short() {
        let partitions: serde_json::Map<_, _> = (0..40).map(|p| (p.to_string(), json!(1))).collect();
        let lines = offsets(&json!({"m": {"t": partitions}}));
        assert!(lines[0].ends_with("15:1 and 24 more partitions"), "{lines:?}");
    }
}
