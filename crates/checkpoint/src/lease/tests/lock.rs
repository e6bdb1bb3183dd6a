//! Never two owners, whatever happens to files.

use std::fs;
use std::process::{Command, Stdio};

use super::support::{Lab, batch, ready};
use crate::testing::draft;
use crate::{Error, PositionReason, inspect};

#[tokio::test]
async fn a_second_start_is_refused_and_told_by_whom() {
    let lab = Lab::new();
    let owner = lab.owner("v1", 3).await;
    let error = lab.acquire("v2").await.expect_err("it is owned");
    let text = error.to_string();
    assert!(matches!(error, Error::Held { .. }), "{text}");
    let pid = format!("pid {}", std::process::id());
    for part in [
        "v1",
        pid.as_str(),
        "epoch 1",
        "since 20",
        "last batch 2",
        "--if-owned wait",
        "takeover",
    ] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
    drop(owner);
    lab.acquire("v2").await.expect("a dropped lease is free at once");
}

#[tokio::test]
async fn owners_follow_each_other_with_ever_higher_epochs_and_one_id() {
    let lab = Lab::new();
    let first = lab.owner("v1", 1).await;
    let id = first.checkpoint();
    first.release(None).await.expect("it is idle");
    for epoch in 2..6 {
        let mut lease = lab.acquire("v1").await.expect("it is free");
        assert_eq!((lease.epoch().0, lease.checkpoint()), (epoch, id));
        ready(&mut lease).await;
        batch(&mut lease).await;
        if epoch % 2 == 0 {
            lease.release(None).await.expect("it is idle");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_first_starts_at_once_one_wins() {
    for _ in 0..10 {
        let lab = Lab::new();
        let all: Vec<_> = (0..6)
            .map(|n| lab.seek(&format!("v{n}"), Default::default()))
            .collect();
        let mut won = Vec::new();
        for seeking in all {
            match seeking.done().await {
                Ok(lease) => won.push(lease),
                Err(error) => assert!(matches!(error, Error::Held { .. }), "{error}"),
            }
        }
        assert_eq!(won.len(), 1);
        assert_eq!(won[0].epoch().0, 1);
    }
}

#[tokio::test]
async fn deleted_and_copied_files_open_no_lock() {
    let lab = Lab::new();
    let mut owner = lab.owner("v1", 1).await;
    let copy = lab.dir.path().join("copy");
    fs::create_dir(&copy).expect("a directory");
    for file in ["owner.json", "owner.sock", "log/LOCK"] {
        let path = lab.path().join(file);
        if path.is_file() {
            fs::copy(&path, copy.join("file")).expect("it can be copied");
        }
        fs::remove_file(&path).expect("it is there");
        if copy.join("file").exists() {
            fs::rename(copy.join("file"), &path).expect("it can be put back");
        }
    }
    let error = lab.acquire("v2").await.expect_err("it is owned").to_string();
    assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
    batch(&mut owner).await;
    fs::remove_file(lab.path().join("log/LOCK")).expect("it was put back");
    lab.acquire("v2").await.expect_err("it is still owned");
    owner.release(None).await.expect("it goes on");
    lab.acquire("v2").await.expect("it is free");
}

#[tokio::test]
async fn an_owner_whose_directory_was_replaced_is_fenced() {
    for with_checkpoint in [false, true] {
        let lab = Lab::new();
        let mut owner = lab.owner("v1", 1).await;
        let planned = owner
            .plan(draft(super::support::next(&owner).as_ref()))
            .await
            .expect("it is durable");
        fs::rename(lab.path(), lab.dir.path().join("aside")).expect("it can be moved");
        if with_checkpoint {
            let other = Lab::new();
            other
                .owner("v2", 1)
                .await
                .release(None)
                .await
                .expect("it is idle");
            fs::rename(other.path(), lab.path()).expect("another checkpoint in its place");
        } else {
            fs::create_dir(lab.path()).expect("an empty one in its place");
        }
        let error = owner
            .permit(&planned)
            .await
            .expect_err("it is not the same directory");
        assert!(matches!(error, Error::Fenced { .. }), "{error}");
        let error = owner.permit(&planned).await.expect_err("and stays lost");
        assert!(matches!(error, Error::Fenced { .. }), "{error}");
        drop(owner);
    }
    let lab = Lab::new();
    let mut owner = lab.owner("v1", 0).await;
    fs::rename(lab.path(), lab.dir.path().join("aside")).expect("it can be moved");
    let error = owner
        .record_position(draft(None).from, PositionReason::Rewind)
        .await
        .expect_err("it is gone");
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
}

#[tokio::test]
async fn a_child_does_not_inherit_the_lock() {
    let lab = Lab::new();
    let owner = lab.owner("v1", 1).await;
    let mut child = Command::new("sleep")
        .arg("60")
        .stdout(Stdio::null())
        .spawn()
        .expect("a child");
    drop(owner);
    let again = lab.acquire("v1").await;
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    again.expect("the child has nothing");
}

#[tokio::test]
async fn a_dropped_start_leaves_nothing_locked() {
    let lab = Lab::new();
    for cut in 0..30_u64 {
        let seeking = lab.seek("v1", Default::default());
        lab.deps
            .clock
            .sleep(std::time::Duration::from_micros(cut * 700))
            .await;
        seeking.task.abort();
        drop(seeking.task.await);
    }
    let mut tries = 0;
    let lease = loop {
        match lab.acquire("v1").await {
            Ok(lease) => break lease,
            // The store's thread of the last one is still closing it.
            Err(Error::Held { .. }) if tries < 3 => tries += 1,
            Err(error) => panic!("{error}"),
        }
    };
    let status = inspect(&lab.location(), &lab.deps).await.expect("a status");
    assert_eq!(status.owner.expect("an owner").epoch, Some(lease.epoch()));
}
