use baton_core::{Rng, TokioClock};
use futures::future::join_all;
use object_store::ObjectStoreExt;
use std::sync::Arc;

use super::support::{fence, id, plain};
use crate::Deps;
use crate::object::slot::Budget;
use crate::object::{Appended, ObjectLog, Place, Snapshot, names, probe};

/// A new prefix on the S3 server that `BATON_TEST_S3=host:port` names; none, said aloud, when there is none and none is
/// required. The server has a bucket `baton` (`tools/s3/s3 start`).
fn lab(test: &str) -> Option<(Place, Deps)> {
    let Ok(address) = std::env::var("BATON_TEST_S3") else {
        let required = std::env::var("BATON_REQUIRE_S3").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "BATON_TEST_S3 is not set and BATON_REQUIRE_S3=1 asks for a server"
        );
        eprintln!("left out: {test} (BATON_TEST_S3 names no S3 server)");
        return None;
    };
    let deps = Deps {
        clock: Arc::new(TokioClock::start()),
        rng: Arc::new(Rng::from_os()),
    };
    let variables = [
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
    ];
    let text = format!("s3://baton/{test}/{}", deps.rng.uuid());
    let place = Place::open(&text, variables.map(|(name, value)| (name.to_owned(), value)));
    Some((place.expect("complete"), deps))
}

fn run(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime of one thread").block_on(future);
}

#[test]
fn six_writers_race_on_a_real_server_and_one_wins_each_round() {
    let Some((place, deps)) = lab("race") else { return };
    run(async {
        probe(&place, &deps).await.expect("it keeps its word");
        for round in 0..60_u64 {
            let racing = (1..=6_u64).map(|writer| {
                let mut log = ObjectLog::new(place.clone(), deps.clone(), Budget::default());
                async move { log.append(&[plain(round, u128::from(round * 10 + writer))]).await }
            });
            let ended = join_all(racing).await;
            let reader = ObjectLog::new(place.clone(), deps.clone(), Budget::default());
            let slots = reader.read_from(round).await.expect("no hole");
            let winner = slots[0].1[0].write_id;
            let mut won = 0;
            for (writer, ended) in (1..=6_u64).zip(ended) {
                match ended.expect("a clear answer") {
                    Appended::Written => {
                        won += 1;
                        assert_eq!(winner, id(u128::from(round * 10 + writer)));
                    }
                    Appended::Lost { by } => assert_eq!(by, winner),
                    Appended::Stale => panic!("nothing is collected here"),
                }
            }
            assert_eq!(won, 1, "round {round}");
        }
    });
}

#[test]
fn a_real_server_keeps_snapshot_and_fences_and_is_rid_of_the_rest() {
    let Some((place, deps)) = lab("keep") else { return };
    run(async {
        let mut log = ObjectLog::new(place.clone(), deps.clone(), Budget::default());
        for seq in 0..8_u64 {
            let record = if seq == 0 {
                fence(0, 1)
            } else {
                plain(seq, u128::from(seq))
            };
            assert_eq!(
                log.append(&[record]).await.expect("a clear answer"),
                Appended::Written
            );
        }
        let before = log.load().await.expect("whole");
        let snapshot = Snapshot::of(5, &before.slots[..=6]).expect("not empty");
        log.write_snapshot(&snapshot).await.expect("free");
        log.write_snapshot(&snapshot).await.expect("a second time");
        assert_eq!(log.collect().await.expect("it answers").slots, 4);
        let after = log.load().await.expect("whole");
        let seqs: Vec<u64> = after.slots.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, [0, 5, 6, 7]);
        assert_eq!(log.tail().await.expect("it answers"), Some(7));
        let gone = place.store.head(&names::slot(&place.prefix, 3)).await;
        assert!(matches!(gone, Err(object_store::Error::NotFound { .. })));
        let mut late = ObjectLog::new(place.clone(), deps.clone(), Budget::default());
        assert_eq!(
            late.append(&[fence(3, 33)]).await.expect("a clear answer"),
            Appended::Stale
        );
    });
}
