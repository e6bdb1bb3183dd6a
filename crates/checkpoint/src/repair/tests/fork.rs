//! Beginning another checkpoint.

use baton_core::{BatchId, Epoch, ErrorKind};
use std::fs;

use super::support::{Lab, contents, shape};
use crate::testing::{at, draft};
use crate::{Error, RepairError, State, fork, inspect, preview, verify};

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_starts_at_the_exact_position_under_an_id_of_its_own() {
    let lab = Lab::released(3).await;
    let (old, new) = (lab.location(), lab.place("deeper/new"));
    let before = contents(&lab.path());
    let seen = fork(&old, &new, &lab.deps)
        .await
        .expect("it can be")
        .expect("it is there");
    assert_eq!((seen.next.clone(), seen.pending.clone()), (at(None, 15), None));
    assert_eq!((seen.last_committed_batch, seen.owned), (Some(BatchId(2)), false));
    assert!(!new.path().exists(), "only looked at");

    let id = seen.perform(&lab.deps).await.expect("made");
    assert_ne!(id, seen.checkpoint_id);
    assert_eq!(contents(&lab.path()), before, "the old one is untouched");
    let found = preview(&new, &lab.deps).await.expect("readable").expect("there");
    assert_eq!((found.checkpoint, found.next), (id, Some(at(None, 15))));
    assert_eq!((found.shape, found.last_committed), (Some(shape()), None));
    let kinds: Vec<_> = lab
        .records(&new)
        .await
        .iter()
        .map(|record| (record["kind"].clone(), record["reason"].clone()))
        .collect();
    assert_eq!(
        kinds,
        [
            ("fence".into(), "fresh".into()),
            ("position".into(), "import".into()),
            ("release".into(), ().into())
        ]
        .map(|(kind, reason): (serde_json::Value, serde_json::Value)| (kind, reason))
    );
    let status = inspect(&new, &lab.deps).await.expect("a status");
    assert_eq!(
        (status.state, status.checkpoint),
        (State::Released, new.to_string())
    );
    let said = fs::read_to_string(new.path().join("owner.json")).expect("it left a word");
    assert!(!said.contains("baton-fork"), "{said}");
    let beside: Vec<_> = fs::read_dir(lab.root().join("deeper"))
        .expect("it is there")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(beside, ["new"], "nothing is left over");

    let mut lease = lab.own(&new).await;
    assert_eq!(lease.epoch(), Epoch(2));
    let first = lease
        .plan(draft(Some(&at(None, 15))))
        .await
        .expect("it is durable");
    assert_eq!(first.batch, BatchId(0));
    drop(lease);
    let found = verify(&new, &lab.deps).await.expect("readable").expect("there");
    assert!(found.whole, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_beside_an_owner_reads_its_running_batch_too() {
    let lab = Lab::new();
    let mut lease = lab.owner(2).await;
    lease
        .plan(draft(Some(&at(None, 10))))
        .await
        .expect("it is durable");
    let seen = fork(&lab.location(), &lab.place("new"), &lab.deps).await;
    let seen = seen.expect("it can be").expect("it is there");
    let overlap = seen.pending.clone().expect("a batch is running");
    assert_eq!(
        (overlap.batch_id, overlap.start, overlap.end),
        (BatchId(2), at(None, 10), at(None, 15))
    );
    assert!(seen.owned);
    assert_eq!(seen.next, at(None, 10));
    seen.perform(&lab.deps).await.expect("made");
    assert_eq!(lab.next(&lab.place("new")).await, Some(at(None, 10)));
    lease.confirm().expect("it is still the owner's");
    drop(lease);
    // The same when nobody owns it any more.
    let seen = fork(&lab.location(), &lab.place("newer"), &lab.deps).await;
    let seen = seen.expect("it can be").expect("it is there");
    assert_eq!((seen.owned, seen.next), (false, at(None, 10)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_taken_is_left_alone() {
    let lab = Lab::released(1).await;
    let taken = |found: Result<(), Error>| match found {
        Err(Error::Repair(RepairError::Taken { reason, .. })) => reason,
        other => panic!("{other:?}"),
    };
    let look = async |name: &str| fork(&lab.location(), &lab.place(name), &lab.deps).await;
    let full = lab.root().join("full");
    fs::create_dir(&full).expect("a directory");
    fs::write(full.join("notes"), b"mine").expect("a file");
    assert!(taken(look("full").await.map(drop)).contains("`notes`"));
    assert!(taken(look("checkpoint").await.map(drop)).contains("it holds"));
    assert!(taken(look("checkpoint/new").await.map(drop)).contains("inside"));
    let error = look("full/notes")
        .await
        .map(drop)
        .expect_err("a file is in the way");
    assert!(error.to_string().contains("a file is in the way"), "{error}");

    // An empty directory is as good as none; one that fills up meanwhile is not.
    fs::create_dir(lab.root().join("empty")).expect("a directory");
    let seen = look("empty").await.expect("it can be").expect("it is there");
    let late = look("late").await.expect("it can be").expect("it is there");
    seen.perform(&lab.deps).await.expect("made");
    fs::create_dir(lab.root().join("late")).expect("a directory");
    fs::write(lab.root().join("late/notes"), b"mine").expect("a file");
    assert!(taken(late.perform(&lab.deps).await.map(drop)).contains("it holds"));
    // A link is no directory that could be replaced; what was made for it is removed again.
    fs::create_dir(lab.root().join("linked")).expect("a directory");
    std::os::unix::fs::symlink(lab.root().join("linked"), lab.root().join("link")).expect("a link");
    let link = look("link").await.expect("it can be").expect("it is there");
    link.perform(&lab.deps).await.expect_err("a link is in the way");
    let names: Vec<String> = fs::read_dir(lab.root())
        .expect("it is there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!names.iter().any(|name| name.contains("fork")), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_nothing_yet_nothing_is_forked() {
    let lab = Lab::new();
    let found = fork(&lab.location(), &lab.place("new"), &lab.deps).await;
    assert!(found.expect("no error").is_none());
    lab.own(&lab.location()).await.release(None).await.expect("idle");
    let error = fork(&lab.location(), &lab.place("new"), &lab.deps)
        .await
        .expect_err("it has no position");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Failed, "E0155"));
}
