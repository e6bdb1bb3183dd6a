use object_store::ObjectStoreExt;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::support::*;
use crate::object::log::Slot;
use crate::object::{Appended, Collected, Snapshot, names};
use crate::protocol::{Log, Record};
use crate::testing::slots;

async fn filled(store: &super::faulty::FaultyStore, slots: &[Slot]) {
    for (seq, records) in slots {
        let path = names::slot(&place(store).prefix, *seq);
        let bytes = crate::codec::encode_slot(*seq, records);
        store.inner.put(&path, bytes.into()).await.expect("memory");
    }
}

fn some(count: u64) -> Vec<Slot> {
    let record = |seq: u64| match seq {
        0 | 4 => fence(seq, seq.into()),
        _ => plain(seq, seq.into()),
    };
    (0..count).map(|seq| (seq, vec![record(seq)])).collect()
}

async fn present(store: &super::faulty::FaultyStore) -> Vec<u64> {
    log(store).numbers_from(0).await.expect("it answers")
}

#[test]
fn collection_keeps_fences_and_all_from_the_floor_and_may_be_interrupted_anywhere() {
    run(async {
        for removals in 0..12 {
            let mut store = quiet();
            let all = some(10);
            filled(&store, &all).await;
            let collector = log(&store);
            for end in [3, 9] {
                let snapshot = Snapshot::of(7, &all[..=end]).expect("not empty");
                collector.write_snapshot(&snapshot).await.expect("free");
            }
            let before = collector.load().await.expect("whole");
            store.removals_left = Some(Arc::new(AtomicUsize::new(removals)));
            let collected = log(&store).collect().await;
            // 1, 2, 3, 5, 6 and the snapshot 3.
            assert_eq!(collected.is_ok(), removals >= 6, "{removals}");
            let left = present(&store).await;
            assert!([0, 4, 7, 8, 9].iter().all(|seq| left.contains(seq)), "{left:?}");
            assert_eq!(
                log(&store).load().await.expect("still whole"),
                before,
                "{removals}"
            );
            assert_eq!(log(&store).tail().await.expect("it answers"), Some(9));
            store.removals_left = None;
            log(&store).collect().await.expect("the second time");
            assert_eq!(present(&store).await, [0, 4, 7, 8, 9]);
        }
    });
}

#[test]
fn nothing_is_removed_that_no_readable_snapshot_covers() {
    run(async {
        let store = quiet();
        filled(&store, &some(10)).await;
        assert_eq!(
            log(&store).collect().await.expect("nothing to do"),
            Collected::default()
        );
        let path = names::snapshot(&place(&store).prefix, 9);
        let mut bytes = Snapshot::of(7, &some(10)).expect("not empty").encode();
        bytes[20] ^= 1;
        store.inner.put(&path, bytes.into()).await.expect("memory");
        let error = log(&store).collect().await.expect_err("damaged");
        assert!(
            error.to_string().contains("snapshot/00000000000000000009"),
            "{error}"
        );
        assert_eq!(present(&store).await.len(), 10);
    });
}

#[test]
fn a_claim_for_a_slot_that_was_collected_is_none() {
    run(async {
        let store = quiet();
        let all = some(10);
        filled(&store, &all).await;
        let mut late = log(&store);
        let owner = log(&store);
        owner
            .write_snapshot(&Snapshot::of(7, &all).expect("not empty"))
            .await
            .expect("free");
        owner.collect().await.expect("it answers");
        let before = owner.load().await.expect("whole");
        // It had read up to slot 4, long ago; slot 5 is free again.
        assert_eq!(
            late.append(&[fence(5, 500)]).await.expect("a clear answer"),
            Appended::Stale
        );
        assert_eq!(
            owner.load().await.expect("whole"),
            before,
            "and it is not seen by anybody"
        );
        owner.collect().await.expect("it answers");
        assert_eq!(present(&store).await, [0, 4, 7, 8, 9], "nor is it kept");
    });
}

#[test]
fn a_hole_and_damage_are_named() {
    run(async {
        let store = quiet();
        filled(&store, &some(6)).await;
        let path = names::slot(&place(&store).prefix, 3);
        store.inner.delete(&path).await.expect("memory");
        let hole = log(&store).load().await.expect_err("a hole").to_string();
        assert!(
            hole.contains("record 3 ") && hole.contains("record 4 is there"),
            "{hole}"
        );
        store
            .inner
            .put(&path, "\u{1}nonsense".into())
            .await
            .expect("memory");
        let damaged = log(&store).load().await.expect_err("damage");
        assert_eq!(damaged.code(), "E0116");
        assert!(damaged.to_string().contains("record 3 "), "{damaged}");
    });
}

#[test]
fn loading_costs_two_lists_and_one_get_for_each_object() {
    run(async {
        let store = quiet();
        let all = some(10);
        filled(&store, &all).await;
        log(&store)
            .write_snapshot(&Snapshot::of(5, &all[..=7]).expect("not empty"))
            .await
            .expect("free");
        assert_eq!(store.requests(), [1, 0, 0, 0]);
        let loaded = log(&store).load().await.expect("whole");
        assert_eq!(store.requests(), [0, 3, 2, 0]);
        let seqs: Vec<u64> = loaded.slots.iter().map(|(seq, _)| *seq).collect();
        assert_eq!((seqs, loaded.floor), (vec![0, 4, 5, 6, 7, 8, 9], 5));
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What `Log::retire` keeps is what a snapshot keeps: an owner that starts from it knows the same.
    #[test]
    fn an_owner_starts_from_snapshot_and_log_as_from_all(all in slots(30), cut in any::<prop::sample::Index>(), keep in 1..4_u64) {
        prop_assume!(!all.is_empty());
        run(async move {
            let all: Vec<Slot> = all.into_iter().map(|records| (records[0].seq, records)).collect();
            let cut = cut.index(all.len());
            let flat = |slots: &[Slot]| slots.iter().flat_map(|(_, of)| of.clone()).collect::<Vec<Record>>();
            let mut log = Log::replay(&flat(&all[..=cut]));
            let (_, floor) = log.retire(0, keep);
            let store = quiet();
            filled(&store, &all).await;
            let object = super::support::log(&store);
            let snapshot = Snapshot::of(floor, &all[..=cut]).expect("not empty");
            object.write_snapshot(&snapshot).await.expect("free");
            object.collect().await.expect("it answers");
            let loaded = object.load().await.expect("whole");
            let (found, whole) = (Log::replay(loaded.records()), Log::replay(&flat(&all)));
            assert_eq!(found.tail(), whole.tail());
            assert_eq!(found.epoch(), whole.epoch());
            assert_eq!(found.owner(), whole.owner());
            assert_eq!(found.next(), whole.next());
            assert_eq!(found.pending(), whole.pending());
            assert_eq!(found.released(), whole.released());
            assert_eq!(found.replaced(), whole.replaced());
            assert_eq!(found.next_batch(), whole.next_batch());
        });
    }
}

#[test]
fn a_flipped_or_cut_snapshot_is_found() {
    // With the floor just above a fence: a floor of one less would fit too.
    let written = Snapshot::of(5, &some(7)).expect("not empty");
    let bytes = written.encode();
    assert_eq!(Snapshot::decode(written.seq, &bytes), Ok(written.clone()));
    assert!(Snapshot::decode(written.seq + 1, &bytes).is_err());
    for at in 0..bytes.len() {
        assert!(
            Snapshot::decode(written.seq, &bytes[..at]).is_err(),
            "cut at {at}"
        );
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(
                Snapshot::decode(written.seq, &flipped).is_err(),
                "bit {bit} of {at}"
            );
        }
    }
}
