use super::*;
use crate::testing::{block_on, ids, publish};

#[test]
fn rows_are_counted_and_dropped() {
    let mut sink = noop().sink(OptionMap::new()).expect("no options");
    assert_eq!(
        publish(&mut *sink, 0, 1, &[ids(2), ids(3)])
            .expect("dropped")
            .rows,
        5
    );
    assert_eq!(publish(&mut *sink, 1, 1, &[]).expect("dropped").rows, 0);
}

#[test]
fn an_aborted_batch_is_not_counted() {
    let mut sink = noop().sink(OptionMap::new()).expect("no options");
    block_on(async {
        sink.write(ids(2)).await.expect("counted");
        sink.abort().await.expect("forgotten");
    });
    assert_eq!(publish(&mut *sink, 0, 1, &[ids(1)]).expect("dropped").rows, 1);
}

#[test]
fn options_are_refused() {
    let refused = noop()
        .sink([("numRows", "1")].into_iter().collect())
        .err()
        .expect("noop has no options");
    assert_eq!(refused.to_string(), "unknown option `numRows`");
}
