//! What the repair commands found, and what they are about to do.

use serde_json::Value;
use std::fmt::Write as _;

use super::{count, offsets, plural, text};

/// What `verify` found: one line for each thing that was looked at, then each damage with what repairs it.
pub(crate) fn verified(found: &Value) -> String {
    let mut out = String::new();
    let mut line = |label: &str, value: &str| {
        // Writing to a string cannot fail.
        let _infallible = writeln!(out, "{label:<11}{value}");
    };
    line("checkpoint", text(found, "checkpoint").unwrap_or("?"));
    for check in found["checks"].as_array().into_iter().flatten() {
        let state = if check["ok"] == true { "ok" } else { "DAMAGED" };
        let what = text(check, "found").unwrap_or("?");
        line(text(check, "name").unwrap_or("?"), &format!("{state:<9}{what}"));
    }
    for damage in found["damage"].as_array().into_iter().flatten() {
        let place = match (damage["seq"].as_u64(), text(damage, "file")) {
            (Some(seq), _) => format!("record {seq}"),
            (None, Some(file)) => format!("`{file}`"),
            (None, None) => "the checkpoint".to_owned(),
        };
        let code = text(damage, "code").unwrap_or("?");
        line(
            "damage",
            &format!("{place} [{code}]: {}", text(damage, "what").unwrap_or("?")),
        );
        line("  repair", text(damage, "repair").unwrap_or("?"));
    }
    if let Some(state) = text(found, "state") {
        let last = found["lastCommittedBatch"].as_u64().map_or_else(
            || "no batch committed yet".to_owned(),
            |batch| format!("batch {batch} is the last committed"),
        );
        let pending = found["pendingBatch"].as_u64().map_or_else(String::new, |batch| {
            format!("; batch {batch} was interrupted, the next start finishes it")
        });
        line("state", &format!("{state}, {last}{pending}"));
    }
    line(
        "verdict",
        if found["whole"] == true {
            "whole"
        } else {
            "DAMAGED; nothing was changed"
        },
    );
    out
}

/// What a rewind means for each partition that moves.
pub(crate) fn moves(rewind: &Value) -> String {
    let mut out = String::new();
    let last = rewind["lastCommittedBatch"].as_u64().map_or_else(
        || "no batch committed yet".to_owned(),
        |batch| format!("last batch {batch}"),
    );
    let place = text(rewind, "checkpoint").unwrap_or("?");
    let _infallible = writeln!(out, "checkpoint {place}, {last}");
    let sources = rewind["from"].as_object().map_or(0, serde_json::Map::len);
    let moved = rewind["partitions"].as_array().map_or(&[][..], Vec::as_slice);
    for one in moved {
        let name = partition(one, sources > 1);
        let (again, skipped) = (
            one["again"].as_u64().unwrap_or(0),
            one["skipped"].as_u64().unwrap_or(0),
        );
        let what = if skipped > 0 {
            format!("{} SKIPPED", records(skipped))
        } else {
            format!("{} again", records(again))
        };
        let _infallible = writeln!(out, "{name}: {} → {}, {what}", one["from"], one["to"]);
    }
    let stay = partitions(&rewind["from"]).saturating_sub(moved.len());
    if stay > 0 {
        let _infallible = writeln!(
            out,
            "{} where {}",
            plural_of(stay, "partition stays", "partitions stay"),
            if stay == 1 { "it is" } else { "they are" }
        );
    }
    let total = |key: &str| rewind[key].as_u64().unwrap_or(0);
    let _infallible = writeln!(
        out,
        "together {} again, {} skipped; batch {} starts there",
        records(total("again")),
        count(total("skipped")),
        rewind["nextBatch"]
    );
    out
}

/// Where a fork starts, and what both checkpoints read.
pub(crate) fn fork(fork: &Value) -> String {
    let mut out = String::new();
    let (old, new) = (
        text(fork, "checkpoint").unwrap_or("?"),
        text(fork, "fork").unwrap_or("?"),
    );
    let last = fork["lastCommittedBatch"].as_u64().map_or_else(
        || "no batch committed yet".to_owned(),
        |batch| format!("last batch {batch}"),
    );
    let _infallible = writeln!(
        out,
        "checkpoint {old}, {last}\nfork       {new}, starts with batch 0 at"
    );
    for source in offsets(&fork["next"]) {
        let _infallible = writeln!(out, "           {source}");
    }
    let is_owned = fork["owned"] == true;
    let pending = &fork["pending"];
    if pending.is_object() {
        let state = if is_owned { "is running" } else { "was interrupted" };
        let _infallible = writeln!(
            out,
            "batch {} of the old one {state}: {} that it takes are published by both",
            pending["batchId"],
            records(between(&pending["start"], &pending["end"]))
        );
    }
    let both = if is_owned {
        "the old one is owned: from here on both read the same records, as long as both run"
    } else {
        "whatever the old one reads from here on, this one reads too"
    };
    let _infallible = writeln!(out, "{both}");
    out
}

fn partition(moved: &Value, with_source: bool) -> String {
    let (topic, number) = (text(moved, "topic").unwrap_or("?"), &moved["partition"]);
    match text(moved, "source").filter(|_| with_source) {
        Some(source) => format!("{source}/{topic}-{number}"),
        None => format!("{topic}-{number}"),
    }
}

fn records(count: u64) -> String {
    plural(count, "record")
}

fn plural_of(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// How many partitions a position has.
fn partitions(position: &Value) -> usize {
    let topics = position.as_object().into_iter().flatten();
    let partitions = topics.flat_map(|(_, topics)| topics.as_object().into_iter().flatten());
    partitions
        .map(|(_, partitions)| partitions.as_object().map_or(0, serde_json::Map::len))
        .sum()
}

/// How many offsets lie between two positions.
fn between(start: &Value, end: &Value) -> u64 {
    match (start, end) {
        (Value::Object(start), Value::Object(end)) => {
            let each = start
                .iter()
                .map(|(key, start)| end.get(key).map_or(0, |end| between(start, end)));
            each.fold(0, u64::saturating_add)
        }
        (start, end) => match (start.as_i64(), end.as_i64()) {
            (Some(start), Some(end)) if start < end => start.abs_diff(end),
            _ => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_partition_that_moves_has_a_line() {
        let rewind = json!({"checkpoint": "/c", "lastCommittedBatch": 41, "nextBatch": 42,
            "from": {"m": {"t": {"0": 4100, "1": 3900, "2": 7}}},
            "partitions": [
                {"source": "m", "topic": "t", "partition": 0, "from": 4100, "to": 4000, "again": 100, "skipped": 0},
                {"source": "m", "topic": "t", "partition": 1, "from": 3900, "to": 5401, "again": 0, "skipped": 1501}],
            "again": 100, "skipped": 1501});
        assert_eq!(
            moves(&rewind),
            "checkpoint /c, last batch 41\n\
             t-0: 4100 → 4000, 100 records again\n\
             t-1: 3900 → 5401, 1,501 records SKIPPED\n\
             1 partition stays where it is\n\
             together 100 records again, 1,501 skipped; batch 42 starts there\n"
        );
        let mut two = rewind;
        two["from"]["n"] = json!({"t": {"0": 1}});
        let text = moves(&two);
        assert!(
            text.contains("m/t-0: 4100 → 4000") && text.contains("2 partitions stay where they are"),
            "{text}"
        );
    }

    #[test]
    fn a_verdict_names_each_damage_with_its_repair() {
        let found = json!({"checkpoint": "/c", "whole": false, "state": "released", "lastCommittedBatch": 3,
            "pendingBatch": null,
            "checks": [{"name": "marker", "ok": true, "found": "fine"}, {"name": "records", "ok": false, "found": "1 flaw"}],
            "damage": [{"code": "E0116", "seq": 5, "file": null, "what": "it is missing", "repair": "do this"}]});
        assert_eq!(
            verified(&found),
            "checkpoint /c\nmarker     ok       fine\nrecords    DAMAGED  1 flaw\n\
             damage     record 5 [E0116]: it is missing\n  repair   do this\n\
             state      released, batch 3 is the last committed\nverdict    DAMAGED; nothing was changed\n"
        );
    }

    #[test]
    fn a_fork_says_what_both_read() {
        let mut seen = json!({"checkpoint": "/c", "fork": "/n", "lastCommittedBatch": 3, "owned": true,
            "next": {"m": {"t": {"0": 10}}},
            "pending": {"batchId": 4, "start": {"m": {"t": {"0": 10}}}, "end": {"m": {"t": {"0": 15}}}}});
        let text = fork(&seen);
        assert!(
            text.contains("fork       /n, starts with batch 0 at\n           m/t  0:10\n"),
            "{text}"
        );
        assert!(
            text.contains("batch 4 of the old one is running: 5 records"),
            "{text}"
        );
        assert!(text.contains("both read the same records"), "{text}");
        seen["owned"] = false.into();
        assert!(fork(&seen).contains("batch 4 of the old one was interrupted"));
    }
}
