//! A log that is not what was written: it is recovered whole or refused by name, and never begun anew.

use baton_core::ErrorKind;
use std::fs;
use std::path::{Path, PathBuf};

use super::support::{Lab, next};
use crate::layout::{LOG, OWNER, SLOTS};
use crate::{Error, show};

/// A checkpoint whose owner has ended after some batches without releasing.
async fn left_behind(batches: u64) -> Lab {
    let lab = Lab::new();
    drop(lab.owner("v1", batches).await);
    lab
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("it is there").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}

/// The log's files whose name starts or ends so.
fn files(lab: &Lab, part: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(lab.path().join(LOG))
        .expect("there is a log")
        .flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(part) || name.ends_with(part)
    });
    paths
        .filter(|path| fs::metadata(path).is_ok_and(|meta| meta.len() > 0))
        .collect()
}

/// Starts on a damaged copy of `pristine`. Right is the same position as without the damage, or an error that says where
/// the damage is; anything else is a lost or repeated batch.
async fn start_on(pristine: &Lab, what: &str, damage: impl FnOnce(&Lab)) -> Option<Error> {
    let lab = Lab::new();
    copy(&pristine.path(), &lab.path());
    damage(&lab);
    match lab.acquire("v2").await {
        Ok(lease) => {
            let at = next(&lease).map(|position| position.to_string());
            assert_eq!(at.as_deref(), Some(r#"{"s":{"t":{"0":30}}}"#), "{what}");
            None
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            let place = lab.path().display().to_string();
            assert!(error.to_string().contains(&place), "{what}: {error}");
            Some(error)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_write_ahead_log_loses_no_acknowledged_batch() {
    let pristine = left_behind(6).await;
    let wal = files(&pristine, ".log")
        .pop()
        .expect("there is a write-ahead log");
    let name = wal.file_name().expect("a name").to_owned();
    let length = fs::metadata(&wal).expect("it is there").len();
    for cut in (0..length).step_by(97) {
        let what = format!("cut at {cut}");
        let refused = start_on(&pristine, &what, |lab| {
            let file = fs::OpenOptions::new()
                .write(true)
                .open(lab.path().join(LOG).join(&name));
            file.and_then(|file| file.set_len(cut)).expect("it can be cut");
        });
        assert!(
            refused.await.is_some(),
            "a log that was cut at {cut} of {length} is not whole"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_any_position_is_not_offered_as_a_way_to_go_on() {
    let pristine = left_behind(6).await;
    let refused = start_on(&pristine, "emptied", |lab| {
        for wal in files(lab, ".log") {
            fs::write(wal, b"").expect("it can be emptied");
        }
    });
    let error = refused.await.expect("it is refused").to_string();
    assert!(!error.contains(OWNER), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_bytes_are_found_wherever_they_are() {
    let fresh = left_behind(6).await;
    // Opened again, the records of before stand in a sorted table and no longer in the write-ahead log.
    let flushed = left_behind(6).await;
    drop(flushed.acquire("v1").await.expect("it is free"));
    assert!(!files(&flushed, ".sst").is_empty(), "there is a sorted table");
    let mut found = 0;
    for (pristine, part) in [
        (&fresh, ".log"),
        (&flushed, ".sst"),
        (&fresh, "MANIFEST"),
        (&fresh, "CURRENT"),
    ] {
        for file in files(pristine, part) {
            let bytes = fs::read(&file).expect("it is there");
            let name = file.file_name().expect("a name").to_owned();
            for at in (0..bytes.len()).step_by((bytes.len() / 12).max(1)) {
                let mut flipped = bytes.clone();
                flipped[at] ^= 0x40;
                let what = format!("{} with byte {at} flipped", name.display());
                let refused = start_on(pristine, &what, |lab| {
                    fs::write(lab.path().join(LOG).join(&name), flipped).expect("it can be written");
                });
                found += u32::from(refused.await.is_some());
            }
        }
    }
    assert!(found > 20, "only {found} were found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_deleted_is_named() {
    let lab = left_behind(6).await;
    let log = lab.path().join(LOG);
    {
        let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).expect("a store");
        let store =
            rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, families).expect("nobody has it");
        let slots = store.cf_handle(SLOTS).expect("the slots");
        store
            .delete_cf(&slots, 5_u64.to_be_bytes())
            .expect("it can be deleted");
    }
    let error = lab.acquire("v2").await.expect_err("a record is missing");
    assert!(matches!(error, Error::DamagedRecord { seq: 5, .. }), "{error}");
    let shown = show(&lab.location(), &lab.deps)
        .await
        .expect("what is readable can be seen");
    assert!(shown.damage.is_some() && shown.records.len() > 3, "{shown:?}");
}
