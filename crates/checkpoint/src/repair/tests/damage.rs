//! What `verify` finds, and that what it says to do about it works.

use baton_core::BatchId;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::slots::Slots;
use super::support::{Lab, contents, copy};
use crate::layout::{LOG, MARKER, META, META_LAST, OWNER, SLOTS};
use crate::store::Found;
use crate::testing::at;
use crate::{Error, RepairError, State, Verified, fork, preview, verify};

async fn verified(lab: &Lab) -> Verified {
    let before = contents(&lab.path());
    let found = verify(&lab.location(), &lab.deps)
        .await
        .expect("it can be looked at")
        .expect("it is there");
    assert_eq!(contents(&lab.path()), before, "nothing was changed");
    assert_eq!(found.whole, found.damage.is_empty());
    assert_eq!(
        found.whole,
        found.checks.iter().all(|check| check.ok),
        "{found:?}"
    );
    found
}

/// A copy of a checkpoint, damaged.
fn damaged(pristine: &Lab, damage: impl FnOnce(&Path)) -> Lab {
    let lab = Lab::new();
    copy(&pristine.path(), &lab.path());
    damage(&lab.path());
    lab
}

fn with_store(path: &Path, change: impl FnOnce(&rocksdb::DB, &rocksdb::ColumnFamily)) {
    let log = path.join(LOG);
    let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).expect("a store");
    let store = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, families).expect("nobody has it");
    let slots = store.cf_handle(SLOTS).expect("the slots");
    change(&store, slots);
}

fn delete(path: &Path, seqs: &[u64]) {
    with_store(path, |store, slots| {
        for seq in seqs {
            store
                .delete_cf(slots, seq.to_be_bytes())
                .expect("it can be deleted");
        }
    });
}

fn files(path: &Path, part: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(path.join(LOG)).expect("there is a log").flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            name.starts_with(part) || name.ends_with(part)
        })
        .filter(|path| fs::metadata(path).is_ok_and(|meta| meta.len() > 0))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_checkpoint_is_said_to_be_whole() {
    let lab = Lab::released(3).await;
    let found = verified(&lab).await;
    assert!(found.whole, "{found:?}");
    let names: Vec<&str> = found.checks.iter().map(|check| check.name).collect();
    assert_eq!(names, ["marker", "files", "records", "chain", "end"]);
    assert_eq!(
        (found.records, found.first_seq, found.last_seq),
        (9, Some(0), Some(8))
    );
    assert_eq!(
        (found.acknowledged_seq, found.state),
        (Some(8), Some(State::Released))
    );
    assert_eq!(
        (found.last_committed_batch, found.pending_batch),
        (Some(BatchId(2)), None)
    );
    let lab = Lab::interrupted(1).await;
    let found = verified(&lab).await;
    assert!(found.whole, "{found:?}");
    assert_eq!(
        (found.state, found.pending_batch),
        (Some(State::Interrupted), Some(BatchId(1)))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn it_holds_the_lock_only_while_it_reads_and_wants_no_owner() {
    let lab = Lab::released(1).await;
    verified(&lab).await;
    let lease = lab.owner(1).await;
    let refused = verify(&lab.location(), &lab.deps).await.expect_err("it is owned");
    assert!(
        matches!(
            &refused,
            Error::Repair(RepairError::Owned {
                command: "verify",
                ..
            })
        ),
        "{refused}"
    );
    drop(lease);
    verified(&lab).await;
    let nothing = verify(&lab.place("nothing"), &lab.deps).await.expect("no error");
    assert_eq!(nothing, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_missing_record_is_named_and_a_fork_goes_on_exactly() {
    let pristine = Lab::released(6).await;
    let lab = damaged(&pristine, |path| delete(path, &[0, 4, 5, 8]));
    let found = verified(&lab).await;
    let named: Vec<Option<u64>> = found.damage.iter().map(|damage| damage.seq).collect();
    assert_eq!(named, [Some(0), Some(4), Some(8)], "{:?}", found.damage);
    assert_eq!(found.damage[1].what, "it is missing, and so are the 1 behind it");
    for damage in &found.damage {
        assert_eq!(damage.code, "E0116");
        let command = format!("baton checkpoint fork {} NEW", lab.path().display());
        assert!(damage.repair.contains(&command), "{}", damage.repair);
    }
    // The only fence is gone, and with it what the job is.
    let error = fork(&lab.location(), &lab.place("new"), &lab.deps)
        .await
        .expect_err("no shape");
    assert_eq!(error.code(), "E0116");

    let lab = damaged(&pristine, |path| delete(path, &[5]));
    let seen = fork(&lab.location(), &lab.place("new"), &lab.deps).await;
    let seen = seen.expect("its end is whole").expect("it is there");
    assert!(
        seen.damage
            .as_ref()
            .is_some_and(|damage| damage.contains("record 5")),
        "{seen:?}"
    );
    seen.perform(&lab.deps).await.expect("made");
    let found = preview(&lab.place("new"), &lab.deps)
        .await
        .expect("whole")
        .expect("there");
    assert_eq!(found.next, Some(at(None, 30)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_says_something_else_is_named() {
    let pristine = Lab::released(3).await;
    let lab = damaged(&pristine, |path| {
        with_store(path, |store, slots| {
            let key = 3_u64.to_be_bytes();
            let mut slot = store.get_cf(slots, key).expect("readable").expect("there");
            slot[20] ^= 1;
            store.put_cf(slots, key, slot).expect("it can be written");
        });
    });
    let found = verified(&lab).await;
    assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
    assert_eq!(found.damage[0].seq, Some(3));
    assert!(found.damage[0].what.contains("checksum"), "{:?}", found.damage);

    // Two records that have changed places have the right checksum for the wrong number.
    let lab = damaged(&pristine, |path| {
        with_store(path, |store, slots| {
            let slot = store
                .get_cf(slots, 2_u64.to_be_bytes())
                .expect("readable")
                .expect("there");
            store
                .put_cf(slots, 4_u64.to_be_bytes(), slot)
                .expect("it can be written");
        });
    });
    assert_eq!(verified(&lab).await.damage[0].seq, Some(4));

    // One that was written by no owner breaks the chain: a commit before its plan.
    let lab = damaged(&pristine, |path| {
        with_store(path, |store, slots| {
            let records = |seq: u64| {
                let slot = store
                    .get_cf(slots, seq.to_be_bytes())
                    .expect("readable")
                    .expect("there");
                crate::codec::decode_slot(seq, &slot).expect("whole")
            };
            let slot = crate::codec::encode_slot(2, &records(3));
            store
                .put_cf(slots, 2_u64.to_be_bytes(), slot)
                .expect("it can be written");
        });
    });
    let found = verified(&lab).await;
    assert!(found.damage[0].what.contains("I4"), "{:?}", found.damage);
    assert_eq!(found.damage[0].seq, Some(2), "where it shows first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_end_offers_what_is_known_and_no_fork() {
    let pristine = Lab::released(3).await;
    let lab = damaged(&pristine, |path| delete(path, &[8]));
    let found = verified(&lab).await;
    assert_eq!(found.damage[0].seq, Some(8));
    let repair = &found.damage[0].repair;
    assert!(!repair.contains("checkpoint fork"), "{repair}");
    assert!(repair.contains(r#"startingOffsets='{"t":{"0":15}}'"#), "{repair}");
    let error = fork(&lab.location(), &lab.place("new"), &lab.deps)
        .await
        .expect_err("no end");
    assert_eq!(error.code(), "E0116");
    // Without the owner's last word, by what the log says before the damage.
    let lab = damaged(&pristine, |path| {
        delete(path, &[7, 8]);
        fs::remove_file(path.join(OWNER)).expect("it is there");
    });
    let repair = verified(&lab).await.damage[0].repair.clone();
    assert!(repair.contains(r#"startingOffsets='{"t":{"0":10}}'"#), "{repair}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_batch_says_where_it_starts_by_itself() {
    let pristine = Lab::interrupted(3).await;
    // All before the plan of batch 3, but the fence.
    let lab = damaged(&pristine, |path| delete(path, &[1, 2, 3, 4, 5, 6, 7]));
    let found = verified(&lab).await;
    assert_eq!(found.pending_batch, Some(BatchId(3)));
    assert!(
        found.damage[0].repair.contains("checkpoint fork"),
        "{:?}",
        found.damage
    );
    let seen = fork(&lab.location(), &lab.place("new"), &lab.deps).await;
    let seen = seen.expect("its end is whole").expect("it is there");
    assert_eq!(seen.next, at(None, 15));
}

#[tokio::test(flavor = "multi_thread")]
async fn retired_slots_are_no_holes() {
    let lab = Lab::new();
    for _ in 0..2 {
        lab.owner_that_keeps(2, 6)
            .await
            .release(None)
            .await
            .expect("idle");
    }
    let found = verified(&lab).await;
    assert!(found.whole && found.first_seq > Some(10), "{found:?}");
    assert_eq!(found.last_committed_batch, Some(BatchId(11)));
    let lab = damaged(&lab, |path| delete(path, &[0]));
    let found = verified(&lab).await;
    assert_eq!(found.damage[0].seq, Some(0), "fences are kept for ever");
    assert!(
        found.damage[0].repair.contains("checkpoint fork"),
        "its end is whole: {:?}",
        found.damage
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_fence_is_one_flaw_and_breaks_no_chain() {
    let lab = Lab::released(2).await;
    let fence = verified(&lab).await.last_seq.expect("it has records") + 1;
    lab.owner(2).await.release(None).await.expect("idle");
    let lab = damaged(&lab, |path| delete(path, &[fence]));
    let found = verified(&lab).await;
    let named: Vec<Option<u64>> = found.damage.iter().map(|damage| damage.seq).collect();
    assert_eq!(named, [Some(fence)], "{:?}", found.damage);
    let seen = fork(&lab.location(), &lab.place("new"), &lab.deps).await;
    assert_eq!(
        seen.expect("its end is whole").expect("it is there").next,
        at(None, 20)
    );
}

/// What stands before the damage is no position to go on from, however well it reads.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_names_no_position_is_not_forked() {
    let lab = Lab::released(3).await;
    drop(lab.owner(0).await);
    let fence_only = damaged(&lab, |path| delete(path, &[7, 8]));
    let error = fork(&fence_only.location(), &lab.place("new"), &lab.deps)
        .await
        .expect_err("no position");
    assert_eq!(error.code(), "E0116");
    assert!(
        !verified(&fence_only).await.damage[0]
            .repair
            .contains("checkpoint fork")
    );

    // Nor is a log that does not say where it ends.
    let endless = damaged(&lab, |path| {
        fs::remove_file(path.join(OWNER)).expect("it is there");
        let log = path.join(LOG);
        let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).expect("a store");
        let store =
            rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, families).expect("nobody has it");
        let meta = store.cf_handle(META).expect("what is known of the slots");
        store.delete_cf(meta, META_LAST).expect("it can be deleted");
    });
    let error = fork(&endless.location(), &lab.place("new"), &lab.deps)
        .await
        .expect_err("no end");
    assert_eq!(error.code(), "E0116");
    assert!(!verified(&endless).await.whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_that_is_also_old_is_not_forked() {
    let lab = Lab::released(3).await;
    let old = damaged(&lab, |_| {});
    lab.owner(2).await.release(None).await.expect("idle");
    fs::copy(lab.path().join(OWNER), old.path().join(OWNER)).expect("it can be copied");
    delete(&old.path(), &[3]);
    let found = verified(&old).await;
    let codes: Vec<&str> = found.damage.iter().map(|damage| damage.code).collect();
    assert_eq!(codes, ["E0116", "E0118"]);
    assert!(
        !found.damage[0].repair.contains("checkpoint fork"),
        "{:?}",
        found.damage
    );
    let error = fork(&old.location(), &lab.place("new"), &lab.deps)
        .await
        .expect_err("its end is lost");
    assert_eq!(error.code(), "E0116");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_end_was_cut_off_is_told_by_what_was_acknowledged() {
    let lab = Lab::released(3).await;
    let old = Lab::new();
    copy(&lab.path(), &old.path());
    lab.owner(2).await.release(None).await.expect("idle");
    // An old copy of the log was put back.
    fs::remove_dir_all(lab.path().join(LOG)).expect("it is there");
    copy(&old.path().join(LOG), &lab.path().join(LOG));
    let found = verified(&lab).await;
    assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
    assert_eq!((found.damage[0].code, found.damage[0].seq), ("E0118", Some(14)));
    let command = format!("rm {}", lab.path().join(OWNER).display());
    assert!(found.damage[0].repair.ends_with(&command), "{:?}", found.damage);
    fs::remove_file(lab.path().join(OWNER)).expect("it is there");
    assert!(verified(&lab).await.whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marker_is_written_anew_from_the_log() {
    let pristine = Lab::released(2).await;
    let other = Lab::released(1).await;
    let marker = fs::read(other.path().join(MARKER)).expect("it is there");
    for bytes in [Some(b"{".to_vec()), Some(Vec::new()), None, Some(marker)] {
        let lab = damaged(&pristine, |path| match &bytes {
            Some(bytes) => fs::write(path.join(MARKER), bytes).expect("it can be written"),
            None => fs::remove_file(path.join(MARKER)).expect("it is there"),
        });
        let found = verified(&lab).await;
        assert_eq!(
            (found.damage.len(), found.damage[0].code),
            (1, "E0119"),
            "{:?}",
            found.damage
        );
        let repair = &found.damage[0].repair;
        let (_, command) = repair.split_once("echo '").expect("a command");
        let (text, file) = command.split_once("' > ").expect("a file");
        fs::write(file, text).expect("it can be written");
        assert!(verified(&lab).await.whole, "{repair}");
        assert_eq!(lab.next(&lab.location()).await, Some(at(None, 10)));
    }
}

/// For each damage: `verify` finds some where a start would refuse, and none where a start would go on as if nothing
/// had happened.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_as_strict_as_a_start() {
    let fresh = Lab::new();
    drop(fresh.owner(6).await);
    // Opened again, the records of before stand in a sorted table and no longer in the write-ahead log.
    let flushed = Lab::new();
    drop(flushed.owner(6).await);
    drop(flushed.owner(0).await);
    assert!(
        !files(&flushed.path(), ".sst").is_empty(),
        "there is a sorted table"
    );
    let (mut refused, mut looked) = (0, 0);
    for (pristine, part) in [
        (&fresh, ".log"),
        (&flushed, ".sst"),
        (&fresh, "MANIFEST"),
        (&fresh, "CURRENT"),
        (&flushed, ".log"),
    ] {
        for file in files(&pristine.path(), part) {
            let bytes = fs::read(&file).expect("it is there");
            let name = file.file_name().expect("a name").to_owned();
            let step = (bytes.len() / 8).max(1);
            let flips = (0..bytes.len()).step_by(step).map(|at| {
                let mut flipped = bytes.clone();
                flipped[at] ^= 0x40;
                (format!("byte {at} flipped"), Some(flipped))
            });
            let cuts = (0..bytes.len())
                .step_by(step)
                .map(|at| (format!("cut at {at}"), Some(bytes[..at].to_vec())));
            for (what, new) in flips.chain(cuts).chain([("removed".to_owned(), None)]) {
                let what = format!("{}: {what}", name.display());
                let lab = damaged(pristine, |path| {
                    let file = path.join(LOG).join(&name);
                    match &new {
                        Some(bytes) => fs::write(file, bytes).expect("it can be written"),
                        None => fs::remove_file(file).expect("it is there"),
                    }
                });
                let found = verified(&lab).await;
                looked += 1;
                let start = lab.try_own().await;
                assert_eq!(
                    found.whole,
                    start.is_ok(),
                    "{what}: {:?}, {start:?}",
                    found.damage
                );
                refused += u32::from(!found.whole);
                for damage in &found.damage {
                    assert!(
                        damage.seq.is_some() || damage.file.is_some(),
                        "{what}: {damage:?}"
                    );
                }
            }
        }
    }
    assert!(refused > 40, "{refused} of {looked}");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        keys in proptest::collection::vec(prop_oneof![
            (0..6_u64).prop_map(|seq| seq.to_be_bytes().to_vec()),
            any::<u64>().prop_map(|seq| seq.to_be_bytes().to_vec()),
            Just(u64::MAX.to_be_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..10),
        ], 0..6),
        value in proptest::collection::vec(any::<u8>(), 0..30),
        floor in proptest::option::of(prop_oneof![0..6_u64, Just(u64::MAX)]),
        last in proptest::option::of(prop_oneof![0..6_u64, Just(u64::MAX)]),
        records in crate::testing::records(1..4),
    ) {
        let id = baton_core::CheckpointId(uuid::Uuid::nil());
        let mut slots: Vec<(Vec<u8>, Vec<u8>)> = keys
            .into_iter()
            .enumerate()
            .map(|(index, key)| {
                let seq = key.as_slice().try_into().map(u64::from_be_bytes).unwrap_or_default();
                let slot = crate::codec::encode_slot(seq, &records);
                (key, if index == 1 { value.clone() } else { slot })
            })
            .collect();
        slots.sort();
        slots.dedup_by(|a, b| a.0 == b.0);
        let found = Found {
            slots,
            checkpoint: Some(id.0.as_bytes().to_vec()),
            floor: floor.map(|seq| seq.to_be_bytes().to_vec()),
            last: last.map(|seq| seq.to_be_bytes().to_vec()),
        };
        let slots = Slots::of(&found);
        drop((slots.chain(), slots.end(), slots.before_the_first_flaw(), slots.shape()));
        let start = crate::store::verify(Path::new("/c"), id, found, None);
        if start.is_ok() {
            prop_assert!(slots.flaws.is_empty() && slots.chain().is_ok());
        }
    }
}
