use baton_core::{BatchId, ErrorKind, Rng};

use super::*;
use crate::testing::{block_on, context, ids, publish};

/// The writer of an owner of this epoch of the checkpoint that `seed` stands for.
fn owner(memory: &Memory, seed: u64, epoch: u64) -> Result<Box<dyn Sink>, Fault> {
    let mut sink = memory.sink(OptionMap::new())?;
    let rng = Rng::seeded(seed);
    block_on(async {
        let at = sink.open(&context(&rng)).await?;
        sink.fence(Epoch(epoch), &at).await
    })?;
    Ok(sink)
}

fn rows(memory: &Memory) -> usize {
    memory.rows().iter().map(RecordBatch::num_rows).sum()
}

#[test]
fn rows_are_there_after_commit_and_not_before() {
    let memory = memory();
    let mut sink = owner(&memory, 1, 1).expect("the first owner");
    block_on(async {
        sink.begin(BatchContext::new(BatchId(0), Epoch(1)))
            .await
            .expect("begun");
        sink.write(ids(3)).await.expect("taken");
        assert_eq!(rows(&memory), 0);
        sink.abort().await.expect("dropped");
    });
    assert_eq!(
        publish(&mut *sink, 0, 1, &[ids(1), ids(1)]).expect("kept").rows,
        2
    );
    assert_eq!(rows(&memory), 2);
}

#[test]
fn abort_and_a_new_begin_let_go_of_the_rows() {
    let mut sink = owner(&memory(), 1, 1).expect("the first owner");
    let dropped = ids(3);
    block_on(async {
        sink.write(dropped.clone()).await.expect("taken");
        sink.abort().await.expect("dropped");
        assert_eq!(Arc::strong_count(dropped.column(0)), 1);
        sink.write(dropped.clone()).await.expect("taken");
    });
    assert_eq!(publish(&mut *sink, 0, 1, &[ids(1)]).expect("kept").rows, 1);
}

#[test]
fn an_older_owner_is_refused_once_a_newer_one_has_fenced() {
    let memory = memory();
    let mut old = owner(&memory, 1, 1).expect("the first owner");
    publish(&mut *old, 0, 1, &[ids(1)]).expect("it owns");
    let mut new = owner(&memory, 1, 2).expect("a newer owner");
    let fault = publish(&mut *old, 1, 1, &[ids(10)]).expect_err("it owns no more");
    assert_eq!((fault.kind, fault.code), (ErrorKind::Fenced, "E0302"));
    assert_eq!(rows(&memory), 1);
    publish(&mut *new, 1, 2, &[ids(2)]).expect("it owns");
    assert_eq!(rows(&memory), 3);
    let late = owner(&memory, 1, 1)
        .err()
        .expect("an epoch that is over cannot fence");
    assert_eq!(late.kind, ErrorKind::Fenced);
}

#[test]
fn the_marker_is_the_last_commit() {
    let memory = memory();
    let mut sink = owner(&memory, 1, 1).expect("the first owner");
    let before = block_on(sink.last_committed()).expect("known");
    assert_eq!(
        before,
        Marker::Untracked,
        "an earlier program may have published, this one cannot know"
    );
    publish(&mut *sink, 4, 1, &[ids(1)]).expect("kept");
    let mut next = owner(&memory, 1, 2).expect("a newer owner");
    let marker = block_on(next.last_committed()).expect("known");
    assert!(
        matches!(
            marker,
            Marker::At {
                batch: BatchId(4),
                epoch: Epoch(1),
                ..
            }
        ),
        "{marker:?}"
    );
}

#[test]
fn each_checkpoint_has_rows_and_epochs_of_its_own() {
    let memory = memory();
    let mut one = owner(&memory, 1, 5).expect("the first owner");
    let mut other = owner(&memory, 2, 1).expect("the first owner of the other");
    publish(&mut *one, 0, 5, &[ids(1)]).expect("kept");
    publish(&mut *other, 0, 1, &[ids(2)]).expect("kept");
    assert_eq!(rows(&memory.clone()), 3);
}
