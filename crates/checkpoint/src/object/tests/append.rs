use futures::future::join_all;
use proptest::prelude::*;
use std::time::Duration;

use super::faulty::{Faults, FaultyStore};
use super::support::*;
use crate::Error;
use crate::codec::decode_slot;
use crate::object::slot::{Action, Attempt, Budget, Event, PutReply, ReadBack};
use crate::object::{Appended, ObjectLog, names, probe};

fn check(events: &[Event], expected: Action) {
    let (mut attempt, mut action) = Attempt::begin(id(1), Budget::default());
    for event in events {
        action = attempt.step(*event, Duration::ZERO);
    }
    assert_eq!(action, expected, "{events:?}");
}

#[test]
fn only_what_stands_in_the_slot_decides() {
    use Event::{Put, Read};
    let pause = Action::Pause(Duration::from_millis(20));
    check(&[], Action::Put);
    check(&[Put(PutReply::Created)], Action::Done);
    for unclear in [PutReply::Exists, PutReply::Unknown] {
        let unclear = Put(unclear);
        check(&[unclear], Action::ReadBack);
        check(&[unclear, Read(ReadBack::Found(id(1)))], Action::Done);
        check(
            &[unclear, Read(ReadBack::Found(id(2)))],
            Action::Lost { by: id(2) },
        );
        check(&[unclear, Read(ReadBack::Absent)], pause);
        check(&[unclear, Read(ReadBack::Absent), Event::Waited], Action::Put);
        check(&[unclear, Read(ReadBack::Unknown)], pause);
        check(
            &[unclear, Read(ReadBack::Unknown), Event::Waited],
            Action::ReadBack,
        );
    }
    check(&[Put(PutReply::Throttled)], pause);
    check(&[Put(PutReply::Throttled), Event::Waited], Action::Put);
    // What cannot happen says nothing about the slot.
    check(&[Read(ReadBack::Found(id(1)))], Action::GiveUp);
    check(&[Put(PutReply::Created), Put(PutReply::Created)], Action::GiveUp);
}

#[test]
fn an_append_ends_within_its_budget() {
    let budget = Budget {
        requests: 5,
        time: Duration::from_secs(9),
    };
    let endless = |elapsed: Duration| {
        let (mut attempt, mut action) = Attempt::begin(id(1), budget);
        while action != Action::GiveUp {
            let event = match action {
                Action::Put => Event::Put(PutReply::Unknown),
                Action::ReadBack => Event::Read(ReadBack::Absent),
                _ => Event::Waited,
            };
            action = attempt.step(event, elapsed);
        }
        attempt.requests()
    };
    assert_eq!(endless(Duration::ZERO), 5);
    assert_eq!(
        endless(Duration::from_secs(9)),
        1,
        "no request starts beyond the time"
    );
}

#[test]
fn an_append_without_trouble_is_one_put() {
    run(async {
        let store = quiet();
        let mut log = log(&store);
        assert_eq!(log.append(&[fence(0, 1)]).await.expect("free"), Appended::Written);
        assert_eq!(store.requests(), [1, 0, 1, 0], "a claim: one PUT, one LIST");
        for seq in 1..=20 {
            let written = log.append(&[plain(seq, seq.into())]).await;
            assert_eq!(written.expect("free"), Appended::Written);
        }
        assert_eq!(store.requests(), [20, 0, 0, 0], "one PUT a slot");
        assert_eq!(log.tail().await.expect("it answers"), Some(20));
        let slots = log.read_from(18).await.expect("no hole");
        assert_eq!(
            slots.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(),
            [18, 19, 20]
        );
        let late = log.append(&[plain(20, 99)]).await.expect("a clear answer");
        assert_eq!(late, Appended::Lost { by: id(20) });
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    /// Writers race for one slot on a store that loses, delays, invents and repeats.
    #[test]
    fn never_two_winners(seed in any::<u64>(), writers in 2..6_u64, rate in 0..90_u64) {
        run(async move {
            let store = FaultyStore::new(Faults { rate, ..Faults::default() }, seed);
            let racing = (1..=writers).map(|writer| {
                let mut log = ObjectLog::new(place(&store), deps(seed ^ writer), Budget::default());
                async move {
                    let ended = log.append(&[plain(0, writer.into())]).await;
                    if ended.is_err() {
                        assert!(log.append(&[plain(1, 77)]).await.is_err(), "in doubt, nothing more is written");
                    }
                    (writer, ended)
                }
            });
            let ended = join_all(racing).await;
            // Late PUTs are applied by now, or never.
            for _ in 0..10_000 {
                tokio::task::yield_now().await;
            }
            let path = names::slot(&place(&store).prefix, 0);
            let found = match object_store::ObjectStoreExt::get(&*store.inner, &path).await {
                Ok(found) => Some(decode_slot(0, &found.bytes().await.expect("memory")).expect("own bytes")[0].write_id),
                Err(_) => None,
            };
            let winners = ended.iter().filter(|(_, ended)| matches!(ended, Ok(Appended::Written))).count();
            assert!(winners <= 1);
            for (writer, ended) in ended {
                match ended {
                    Ok(Appended::Written) => assert_eq!(found, Some(id(writer.into()))),
                    Ok(Appended::Lost { by }) => {
                        assert_eq!(found, Some(by));
                        assert_ne!(by, id(writer.into()));
                    }
                    Ok(Appended::Stale) => panic!("nothing is collected here"),
                    Err(error) => assert!(matches!(error, Error::Store { .. }), "{error}"),
                }
            }
        });
    }
}

#[test]
fn ones_own_write_whose_reply_was_lost_is_a_success() {
    run(async {
        let store = quiet();
        let mut first = log(&store);
        assert_eq!(
            first.append(&[plain(0, 1)]).await.expect("free"),
            Appended::Written
        );
        // The same attempt, from a process that never heard of its success.
        let again = log(&store).append(&[plain(0, 1)]).await.expect("a clear answer");
        assert_eq!(again, Appended::Written);
    });
}

#[test]
fn a_store_that_ignores_conditions_is_refused_in_words() {
    let refused = |faults: Faults| {
        run(async {
            let store = FaultyStore::new(faults, 1);
            let refused = probe(&place(&store), &deps(1)).await;
            let left = log(&store).requests.list(&place(&store).prefix, None).await;
            assert_eq!(left.expect("it answers"), [], "the probe is removed");
            refused.expect_err("two owners could write")
        })
    };
    let ignores = refused(Faults {
        ignores_conditions: true,
        ..Faults::default()
    });
    assert_eq!(ignores.code(), "E0126");
    assert!(ignores.to_string().contains("created again"), "{ignores}");
    let knows_none = refused(Faults {
        knows_no_conditions: true,
        ..Faults::default()
    });
    assert_eq!(knows_none.code(), "E0126");
}

#[test]
fn a_store_that_keeps_its_word_is_taken_for_three_requests() {
    run(async {
        let store = quiet();
        probe(&place(&store), &deps(1)).await.expect("it keeps its word");
        assert_eq!(store.requests(), [2, 0, 0, 1]);
    });
}
