use baton_core::{BatchId, ErrorKind};
use std::sync::{Arc, Mutex};

use super::*;
use crate::testing::{block_on, ids, publish};

type Calls = Arc<Mutex<Vec<(u64, u64, usize)>>>;

/// A sink that notes batch, epoch and number of rows of each call.
fn noting() -> (Calls, impl Sink) {
    let calls = Calls::default();
    let noted = Arc::clone(&calls);
    let sink = foreach_batch(move |rows: Vec<RecordBatch>, batch: BatchContext| {
        let noted = Arc::clone(&noted);
        async move {
            let count = rows.iter().map(RecordBatch::num_rows).sum();
            noted
                .lock()
                .expect("no call panics")
                .push((batch.batch.0, batch.epoch.0, count));
            Ok::<_, std::io::Error>(())
        }
    });
    (calls, sink)
}

#[test]
fn the_function_gets_all_rows_with_batch_and_epoch() {
    let (calls, mut sink) = noting();
    assert_eq!(
        publish(&mut sink, 4, 2, &[ids(1), ids(2)]).expect("called").rows,
        3
    );
    publish(&mut sink, 5, 2, &[]).expect("called for an empty batch too");
    assert_eq!(*calls.lock().expect("no call panics"), [(4, 2, 3), (5, 2, 0)]);
}

#[test]
fn the_function_is_not_called_before_commit_nor_for_an_aborted_batch() {
    let (calls, mut sink) = noting();
    block_on(async {
        sink.begin(BatchContext::new(BatchId(0), Epoch(1)))
            .await
            .expect("begun");
        sink.write(ids(9)).await.expect("taken");
        sink.abort().await.expect("dropped");
    });
    assert!(calls.lock().expect("no call panics").is_empty());
    publish(&mut sink, 0, 1, &[ids(1)]).expect("called");
    assert_eq!(*calls.lock().expect("no call panics"), [(0, 1, 1)]);
}

#[test]
fn abort_and_a_new_begin_let_go_of_the_rows() {
    let (calls, mut sink) = noting();
    let dropped = ids(3);
    block_on(async {
        sink.write(dropped.clone()).await.expect("taken");
        sink.abort().await.expect("dropped");
        assert_eq!(Arc::strong_count(dropped.column(0)), 1);
        sink.write(dropped.clone()).await.expect("taken");
    });
    publish(&mut sink, 0, 1, &[ids(1)]).expect("called");
    assert_eq!(*calls.lock().expect("no call panics"), [(0, 1, 1)]);
}

#[test]
fn an_error_of_the_function_fails_the_batch_with_its_cause() {
    let mut sink = foreach_batch(|_rows, _batch| std::future::ready(Err::<(), _>("no room")));
    let fault = publish(&mut sink, 0, 1, &[ids(1)]).expect_err("the function fails");
    assert_eq!((fault.kind, fault.code), (ErrorKind::Failed, "E0303"));
    assert_eq!(
        std::error::Error::source(&fault)
            .expect("its own error")
            .to_string(),
        "no room"
    );
}

#[test]
fn the_user_is_told_that_a_batch_may_come_again() {
    let (_calls, sink) = noting();
    assert!(matches!(sink.guarantee(), Guarantee::MayRepeat(text) if text.contains("same batch id")));
}
