//! The oracle on recorded text.

use super::*;

const RULE: &str = "-------------------------------------------";

fn table(batch: u64, rows: &[(i32, i64)]) -> String {
    let mut text = format!("{RULE}\nBatch: {batch}\n{RULE}\n+---------+------+-----+\n");
    text += "|partition|offset|value|\n+---------+------+-----+\n";
    for (partition, offset) in rows {
        text += &format!(
            "|{partition:<9}|{offset:<6}|{:<5}|\n",
            format!("{partition}-{offset}")
        );
    }
    text + "+---------+------+-----+\n\n"
}

fn record(kind: &str, seq: u64, epoch: u64, rest: &str) -> String {
    format!(
        r#"{{"seq":{seq},"kind":"{kind}","epoch":{epoch},"at":"2026-01-01T00:00:00.000Z","version":"v1"{rest}}}"#
    )
}

fn at(field: &str, zero: i64) -> String {
    format!(r#","{field}":{{"messages":{{"t":{{"0":{zero}}}}}}}"#)
}

fn plan(seq: u64, epoch: u64, batch: u64, from: i64, until: i64) -> String {
    let rest = format!(r#","batchId":{batch}{}{}"#, at("start", from), at("end", until));
    record("plan", seq, epoch, &rest)
}

fn commit(seq: u64, epoch: u64, batch: u64) -> String {
    record("commit", seq, epoch, &format!(r#","batchId":{batch}"#))
}

fn log(records: &[String]) -> Log {
    let json = format!(
        r#"{{"checkpointId":"c","formatVersion":1,"records":[{}]}}"#,
        records.join(",")
    );
    Log::parse(&json).expect("the recorded log parses")
}

fn complaint(log: &Log, printed: &str) -> String {
    judge(log, &[Printed::parse(printed)])
        .expect_err("something is wrong")
        .join("; ")
}

fn start() -> Vec<String> {
    vec![
        record("fence", 0, 1, ""),
        record("position", 1, 1, &at("next", 0)),
    ]
}

fn two_batches() -> Log {
    let rest = [
        plan(2, 1, 0, 0, 2),
        commit(3, 1, 0),
        plan(3, 1, 1, 2, 3),
        commit(4, 1, 1),
    ];
    log(&[start(), rest.to_vec()].concat())
}

#[test]
fn a_run_in_order_is_counted() {
    let printed = table(0, &[(0, 0), (0, 1)]) + &table(1, &[(0, 2)]);
    let verdict = judge(&two_batches(), &[Printed::parse(&printed)]).expect("all is in order");
    assert_eq!((verdict.batches, verdict.committed, verdict.repeated), (2, 3, 0));
    assert_eq!(verdict.ends, BTreeMap::from([(0, 3)]));
}

#[test]
fn a_row_that_was_never_shown_is_found() {
    let said = complaint(&two_batches(), &table(0, &[(0, 0), (0, 1)]));
    assert_eq!(said, "0@2 of batch 1 was never shown");
}

#[test]
fn a_row_shown_twice_is_found_when_nobody_was_interrupted() {
    let printed = table(0, &[(0, 0), (0, 1)]) + &table(1, &[(0, 2), (0, 1)]);
    assert_eq!(
        complaint(&two_batches(), &printed),
        "0@1 of batch 0 was shown 2 times"
    );
}

#[test]
fn the_batch_that_was_interrupted_may_repeat_and_no_other() {
    let rest = [
        plan(2, 1, 0, 0, 1),
        commit(3, 1, 0),
        plan(3, 1, 1, 1, 2),
        record("fence", 4, 2, ""),
    ];
    let records = [start(), rest.to_vec(), vec![commit(5, 2, 1)]].concat();
    let first = Printed::parse(&(table(0, &[(0, 0)]) + &table(1, &[(0, 1)])));
    let second = Printed::parse(&table(1, &[(0, 1)]));
    let verdict = judge(&log(&records), &[first.clone(), second]).expect("the repeat is allowed");
    assert_eq!((verdict.repeated, verdict.reran), (1, vec![1]));
    let other = Printed::parse(&table(0, &[(0, 0)]));
    judge(&log(&records), &[first, other]).expect_err("batch 0 was not interrupted");
}

#[test]
fn a_line_cut_by_a_kill_was_not_shown() {
    let text = table(0, &[(0, 0), (0, 1)]);
    let cut = text.find("|0        |1").expect("the second row is there") + 20;
    assert_eq!(Printed::parse(&text[..cut]).rows().count(), 1);
}

#[test]
fn a_row_outside_the_log_is_found() {
    let printed = table(0, &[(0, 0), (0, 1)]) + &table(1, &[(0, 2), (0, 3)]);
    assert_eq!(
        complaint(&two_batches(), &printed),
        "0@3 was shown but is in no batch of the log"
    );
}

#[test]
fn gaps_and_second_plans_in_the_log_are_found() {
    let gap = [
        start(),
        vec![plan(2, 1, 0, 0, 2), commit(3, 1, 0), plan(4, 1, 1, 3, 4)],
    ]
    .concat();
    assert_eq!(
        log(&gap).complaints(),
        ["batch 1 starts partition 0 at 3, not at 2"]
    );
    let twice = [start(), vec![plan(2, 1, 0, 0, 2), plan(3, 2, 0, 0, 2)]].concat();
    let said = log(&twice).complaints().join("; ");
    assert!(said.contains("batch 0 was planned twice"), "{said}");
    let late = [start(), vec![plan(2, 2, 0, 0, 2), commit(3, 1, 0)]].concat();
    assert_eq!(
        log(&late).complaints(),
        ["record 3 of epoch 1 comes after Some(2) of 2"]
    );
}

#[test]
fn the_first_batch_starts_where_the_position_says() {
    let off = [start(), vec![plan(2, 1, 0, 5, 6)]].concat();
    assert_eq!(
        log(&off).complaints(),
        ["batch 0 starts partition 0 at 5, not at 0"]
    );
}

#[test]
fn a_row_with_another_partitions_message_is_found() {
    let printed = table(0, &[(0, 0), (0, 1)]) + &table(1, &[(0, 2)]).replace("0-2", "1-2");
    assert_eq!(
        complaint(&two_batches(), &printed),
        "row 0@2 shows message \"1-2\""
    );
}
