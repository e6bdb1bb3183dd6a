//! What only a second look, or a check before writing, tells from damage.

use super::super::*;
use crate::Deps;
use crate::protocol::Record;
use baton_core::{OwnerId, Rng, TokioClock};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::*;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use uuid::Uuid;

fn deps() -> Deps {
    Deps {
        clock: Arc::new(TokioClock::start()),
        rng: Arc::new(Rng::seeded(1)),
    }
}
fn some_log(least: usize) -> Vec<Vec<Record>> {
    let mut runner = TestRunner::deterministic();
    loop {
        let all = crate::testing::slots(30)
            .new_tree(&mut runner)
            .expect("a value")
            .current();
        if all.len() >= least {
            return all;
        }
    }
}
fn place(store: Arc<dyn ObjectStore>) -> Place {
    Place::new(store, Path::from("c"), "mem://c")
}

#[tokio::test]
async fn a_snapshot_with_a_hole_is_not_written() {
    let all = some_log(6);
    let store = Arc::new(InMemory::new());
    let mut log = ObjectLog::new(place(store), deps(), slot::Budget::default());
    for s in &all {
        assert_eq!(log.append(s).await.expect("it is there"), Appended::Written);
    }
    let mut slots: Vec<log::Slot> = all.iter().map(|s| (s[0].seq, s.clone())).collect();
    slots.remove(2);
    let snap = Snapshot::of(0, &slots).expect("there are slots");
    let written = log.write_snapshot(&snap).await;
    assert!(written.is_err());
    assert!(log.load().await.is_ok());
}

/// Hides one object from the first LIST of the log: as when it runs beside two appends.
#[derive(Debug)]
struct Blink(InMemory, AtomicBool, &'static str);
impl std::fmt::Display for Blink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("blink")
    }
}
#[async_trait::async_trait]
impl ObjectStore for Blink {
    async fn put_opts(&self, l: &Path, p: PutPayload, o: PutOptions) -> Result<PutResult> {
        self.0.put_opts(l, p, o).await
    }
    async fn put_multipart_opts(&self, l: &Path, o: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(l, o).await
    }
    async fn get_opts(&self, l: &Path, o: GetOptions) -> Result<GetResult> {
        self.0.get_opts(l, o).await
    }
    fn delete_stream(&self, l: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(l)
    }
    fn list(&self, p: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let hide = p.is_some_and(|p| p.as_ref().ends_with("log")) && self.1.swap(false, Ordering::SeqCst);
        let what = self.2;
        self.0
            .list(p)
            .filter(move |m| {
                let keep = !(hide && m.as_ref().is_ok_and(|m| m.location.as_ref().ends_with(what)));
                async move { keep }
            })
            .boxed()
    }
    async fn list_with_delimiter(&self, p: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(p).await
    }
    async fn copy_opts(&self, f: &Path, t: &Path, o: CopyOptions) -> Result<()> {
        self.0.copy_opts(f, t, o).await
    }
}

#[tokio::test]
async fn a_list_that_runs_beside_two_appends_is_no_damage() {
    let all = some_log(6);
    let store = Arc::new(Blink(
        InMemory::new(),
        AtomicBool::new(false),
        "00000000000000000004",
    ));
    let mut log = ObjectLog::new(place(store.clone()), deps(), slot::Budget::default());
    for s in &all {
        assert_eq!(log.append(s).await.expect("it is there"), Appended::Written);
    }
    store.1.store(true, Ordering::SeqCst);
    let loaded = log.load().await;
    assert!(loaded.is_ok());
}

#[tokio::test]
async fn forgotten_letters_do_not_hide_a_new_one() {
    let mail = Mailbox::new(place(Arc::new(InMemory::new())), deps());
    for n in 0..mailbox::LETTERS as u128 {
        mail.post(OwnerId(Uuid::from_u128(n)), &Letter::new(0, n as u64))
            .await
            .expect("it is there");
    }
    let new = OwnerId(Uuid::from_u128(u128::MAX));
    mail.post(new, &Letter::new(0, 7_u64)).await.expect("it is there");
    for _ in 0..20 {
        if mail
            .letters::<u64>()
            .await
            .expect("it is there")
            .iter()
            .any(|(who, _)| *who == new)
        {
            return;
        }
    }
    panic!("the new letter was never seen");
}
