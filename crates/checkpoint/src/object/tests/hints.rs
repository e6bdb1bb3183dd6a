use baton_core::{OwnerId, Timestamp};
use std::time::Duration;
use uuid::Uuid;

use super::support::*;
use crate::OwnerInfo;
use crate::object::mailbox::{LETTERS, LONGEST_LETTER};
use crate::object::observer::{Look, Observer, Seen, Span, Verdict};
use crate::object::{Letter, Mailbox, Place, Register, Renewal};

fn at(seconds: u64) -> Span {
    Span {
        asked: Duration::from_secs(seconds),
        answered: Duration::from_millis(seconds * 1000 + 100),
    }
}

fn owner(of: u128) -> OwnerId {
    OwnerId(Uuid::from_u128(of))
}

/// Looks once a second at an owner that does `seen(second, look)`, and says in which second it is taken for dead.
fn expires(lease: u64, drift: u32, last: u64, seen: impl Fn(u64, Look) -> Option<Seen>) -> Option<u64> {
    let mut observer = Observer::new(Duration::from_secs(lease), drift, 5);
    (0..last).find(|second| match seen(*second, observer.look()) {
        Some(seen) => observer.saw(seen, at(*second)) == Verdict::Expired,
        None => {
            observer.missed();
            observer.verdict() == Verdict::Expired
        }
    })
}

const fn dead(_: u64, look: Look) -> Option<Seen> {
    Some(match look {
        Look::Register => Seen::Register(None),
        Look::Slot(_) => Seen::Free(true),
    })
}

#[test]
fn a_silent_owner_expires_after_the_lease_and_the_drift_and_not_before() {
    // The slot is first seen free in second 1 (answered at 1.1 s); in second 11 only 9.9 s of silence are sure, in second 13 enough.
    assert_eq!(expires(10, 0, 100, dead), Some(13));
    assert_eq!(expires(10, 500, 100, dead), Some(17));
}

#[test]
fn a_counter_that_moves_keeps_an_owner() {
    let renews = |second, look| match look {
        Look::Register => Some(Seen::Register(Some((owner(1), second / 3, 5)))),
        Look::Slot(_) => Some(Seen::Free(true)),
    };
    assert_eq!(expires(10, 0, 200, renews), None);
    // Two owners of one counter are two.
    let another = |second: u64, look| match look {
        Look::Register => Some(Seen::Register(Some((owner((second / 9).into()), 1, 5)))),
        Look::Slot(_) => Some(Seen::Free(true)),
    };
    assert_eq!(expires(10, 0, 200, another), None);
}

#[test]
fn a_log_that_moves_keeps_an_owner_whose_register_does_not() {
    let appends = |second, look| match look {
        Look::Register => Some(Seen::Register(Some((owner(1), 1, 5)))),
        Look::Slot(free) => Some(Seen::Free(free > 5 + second / 8)),
    };
    assert_eq!(expires(10, 0, 200, appends), None);
}

#[test]
fn a_store_that_does_not_answer_makes_nobody_dead() {
    assert_eq!(
        expires(10, 0, 200, |second, look| dead(second, look)
            .filter(|_| second < 5)),
        None
    );
}

#[test]
fn an_idle_standby_asks_once_a_look() {
    run(async {
        let store = quiet();
        let (log, register) = (log(&store), Register::new(place(&store), deps(1)));
        let mut observer = Observer::new(Duration::from_secs(10), 100, 0);
        let mut last = observer.verdict();
        for second in 0..30 {
            let seen = match observer.look() {
                Look::Register => Seen::Register(
                    register
                        .look()
                        .await
                        .expect("it answers")
                        .map(|of| (of.owner.id, of.counter, of.free)),
                ),
                Look::Slot(seq) => Seen::Free(log.is_free(seq).await.expect("it answers")),
            };
            last = observer.saw(seen, at(second));
        }
        assert_eq!(store.requests(), [0, 30, 0, 0], "one GET a look");
        assert!(Observer::PACE >= Duration::from_secs(1));
        assert_eq!(last, Verdict::Expired);
    });
}

fn info(of: u128) -> OwnerInfo {
    OwnerInfo {
        id: owner(of),
        host: "h".into(),
        pid: 1,
        version: "v1".into(),
        epoch: None,
        since: Timestamp(0),
    }
}

#[test]
fn a_renewal_is_one_put_and_one_list_and_a_hand_over_a_few_small_objects() {
    run(async {
        let store = quiet();
        let (register, mail) = (
            Register::new(place(&store), deps(1)),
            Mailbox::new(place(&store), deps(1)),
        );
        let renewal = Renewal {
            owner: info(1),
            counter: 7,
            free: 3,
            lease_ms: 10_000,
            at: Timestamp(0),
            status: serde_json::Value::Null,
        };
        register.renew(&renewal).await.expect("it answers");
        assert_eq!(mail.letters::<String>().await.expect("it answers"), []);
        assert_eq!(store.requests(), [1, 0, 1, 0]);
        assert_eq!(register.look().await.expect("it answers"), Some(renewal));

        let ask = Letter::new(1, "may I?".to_owned());
        mail.post(owner(2), &ask).await.expect("it answers");
        let answer = Letter::new(1, "after batch 4".to_owned());
        mail.answer(owner(2), &answer).await.expect("it answers");
        store.requests();
        assert_eq!(mail.letters().await.expect("it answers"), [(owner(2), ask)]);
        assert_eq!(store.requests(), [0, 1, 1, 0]);
        assert_eq!(
            mail.read_answer(owner(2)).await.expect("it answers"),
            Some(answer)
        );
        mail.clear(owner(2)).await.expect("it answers");
        assert_eq!(mail.letters::<String>().await.expect("it answers"), []);
        assert_eq!(
            mail.read_answer::<String>(owner(2)).await.expect("it answers"),
            None
        );
    });
}

#[test]
fn many_and_long_letters_do_not_hold_up_an_owner() {
    run(async {
        let store = quiet();
        let mail = Mailbox::new(place(&store), deps(1));
        for candidate in 0..40 {
            mail.post(owner(candidate), &Letter::new(1, 1))
                .await
                .expect("short");
        }
        store.requests();
        assert_eq!(mail.letters::<u8>().await.expect("it answers").len(), LETTERS);
        assert_eq!(store.requests(), [0, LETTERS, 1, 0]);
        let long = Letter::new(1, "x".repeat(LONGEST_LETTER));
        assert!(mail.post(owner(1), &long).await.is_err());
        let newer = br#"{"format":2,"number":1,"message":"x"}"#;
        assert_eq!(Letter::<String>::decode(newer), None);
    });
}

fn open(text: &str, variables: &[(&str, &str)]) -> crate::Result<Place> {
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Place::open(text, variables)
}

#[test]
fn places_are_opened_without_telling_their_secrets() {
    let secret = [
        ("AWS_ACCESS_KEY_ID", "AKIAPUBLIC"),
        ("AWS_SECRET_ACCESS_KEY", "hush-hush"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_REGION", "eu-west-1"),
    ];
    let place = open("s3://bucket/jobs/one/", &secret).expect("complete");
    assert_eq!(place.prefix.as_ref(), "jobs/one");
    assert_eq!(place.to_string(), "s3://bucket/jobs/one");
    let all = format!("{place:?} {:?}", log(&quiet()));
    assert!(!all.contains("hush") && !all.contains("AKIA"), "{all}");
    open("gs://bucket/p", &[]).expect("credentials are looked for later");
    for text in [
        "s3://key:hush-hush@bucket/p",
        "s3://bucket/p?sig=hush-hush",
        "key:hush-hush@bucket",
        "s3://bucket",
        "s3:///p",
        "ftp://h/p",
    ] {
        let error = open(text, &secret).expect_err(text);
        assert_eq!(error.code(), "E0107");
        assert!(!format!("{error} {error:?}").contains("hush"), "{error}");
    }
    let wrong = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "a"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "not base64: hush-hush"),
    ];
    if let Err(error) = open("az://container/p", &wrong) {
        assert!(!format!("{error} {error:?}").contains("hush"), "{error}");
    }
}

#[test]
fn the_bucket_stands_in_path_or_host_as_the_environment_says() {
    let debug = |style: &str| {
        let place = open(
            "s3://bucket/p",
            &[
                ("AWS_ENDPOINT_URL", "http://store:9000"),
                ("AWS_S3_FORCE_PATH_STYLE", style),
                ("AWS_ACCESS_KEY_ID", "a"),
                ("AWS_SECRET_ACCESS_KEY", "b"),
            ],
        );
        format!("{:?}", place.expect("complete").store)
    };
    assert!(
        debug("true").contains("http://store:9000/bucket"),
        "{}",
        debug("true")
    );
    assert!(
        debug("false").contains("http://bucket.store:9000"),
        "{}",
        debug("false")
    );
}
