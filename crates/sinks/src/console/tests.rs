use baton_core::{ErrorKind, Rng};
use std::io;

use super::*;
use crate::testing::{block_on, context, ids, publish};

/// Remembers each write by itself.
#[derive(Clone, Default)]
struct Writes(Arc<Mutex<Vec<String>>>);

impl Write for Writes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .expect("no test panics in a write")
            .push(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Writes {
    fn seen(&self) -> Vec<String> {
        self.0.lock().expect("no test panics in a write").clone()
    }
}

/// A pipe whose reader is gone, a file on a full disk.
struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn open(console: &Console, options: &[(&str, &str)]) -> Box<dyn Sink> {
    let mut sink = console
        .sink(options.iter().copied().collect())
        .expect("valid options");
    sink.check(&ids(0).schema(), OutputMode::Append)
        .expect("the console prints anything");
    let rng = Rng::seeded(1);
    block_on(sink.open(&context(&rng))).expect("nothing to open");
    sink
}

#[test]
fn a_batch_is_printed_in_one_write_under_its_number() {
    let writes = Writes::default();
    let mut sink = open(&Console::to(writes.clone()), &[]);
    let receipt = publish(&mut *sink, 7, 1, &[ids(1), ids(1)]).expect("printed");
    assert_eq!(receipt.rows, 2);
    let rule = "-".repeat(43);
    let text = format!("{rule}\nBatch: 7\n{rule}\n+---+\n| id|\n+---+\n|  0|\n|  0|\n+---+\n\n");
    assert_eq!(writes.seen(), [text]);
}

#[test]
fn an_empty_batch_prints_its_columns() {
    let writes = Writes::default();
    let mut sink = open(&Console::to(writes.clone()), &[]);
    publish(&mut *sink, 0, 1, &[]).expect("printed");
    assert!(
        writes.seen()[0].ends_with("\n+---+\n| id|\n+---+\n+---+\n\n"),
        "{:?}",
        writes.seen()
    );
}

#[test]
fn more_rows_than_are_shown_are_said_and_counted() {
    let writes = Writes::default();
    let mut sink = open(&Console::to(writes.clone()), &[("numRows", "2")]);
    let receipt = publish(&mut *sink, 0, 1, &[ids(1), ids(30)]).expect("printed");
    assert_eq!(receipt.rows, 31);
    assert!(
        writes.seen()[0].ends_with("|  0|\n|  0|\n+---+\nonly showing top 2 rows\n"),
        "{:?}",
        writes.seen()
    );
}

#[test]
fn truncate_false_aligns_to_the_left() {
    let writes = Writes::default();
    let mut sink = open(&Console::to(writes.clone()), &[("TRUNCATE", "False")]);
    publish(&mut *sink, 0, 1, &[ids(1)]).expect("printed");
    assert!(writes.seen()[0].contains("|0  |"), "{:?}", writes.seen());
    assert_eq!(sink.description(), "ConsoleTable[numRows=20, truncate=false]");
}

#[test]
fn nothing_is_seen_before_commit_nor_after_abort() {
    let writes = Writes::default();
    let mut sink = open(&Console::to(writes.clone()), &[]);
    block_on(async {
        sink.begin(BatchContext::new(BatchId(0), Epoch(1)))
            .await
            .expect("begun");
        sink.write(ids(3)).await.expect("taken");
        sink.abort().await.expect("dropped");
    });
    assert_eq!(writes.seen(), Vec::<String>::new());
    assert_eq!(
        publish(&mut *sink, 0, 1, &[ids(1)]).expect("printed").rows,
        1,
        "the rows that were dropped are not counted"
    );
    assert!(!writes.seen()[0].contains("|  1|"), "{:?}", writes.seen());
}

#[test]
fn an_output_that_cannot_be_written_fails_the_batch_with_its_cause() {
    for (kind, expected) in [
        (io::ErrorKind::BrokenPipe, "broken pipe"),
        (io::ErrorKind::StorageFull, "no storage space"),
    ] {
        let mut sink = open(&Console::to(Broken(kind)), &[]);
        let fault = publish(&mut *sink, 0, 1, &[ids(1)]).expect_err("nothing can be written");
        assert_eq!((fault.kind, fault.code), (ErrorKind::Failed, "E0301"));
        let cause = std::error::Error::source(&fault).expect("the system says why");
        assert_eq!(cause.to_string(), expected);
        let again = publish(&mut *sink, 0, 1, &[ids(1)]).expect_err("nor can it now");
        assert_eq!(again.code, "E0301", "the sink can be tried again");
    }
}

#[test]
fn options_are_refused_by_name() {
    #[track_caller]
    fn refused(key: &str, value: &str, expected: &str) {
        let fault = console()
            .sink([(key, value)].into_iter().collect())
            .err()
            .expect("refused");
        assert_eq!(
            (fault.kind, fault.to_string().as_str()),
            (ErrorKind::Invalid, expected)
        );
    }
    refused("numRow", "5", "unknown option `numRow`; did you mean `numRows`?");
    refused(
        "numRows",
        "-1",
        "option `numRows` must be a whole number, 0 or above, not `-1`",
    );
    refused(
        "truncate",
        "5",
        "option `truncate` must be true or false, not `5`",
    );
}
