//! Whether a store keeps its word: an object that exists is not created again. Without it there is no ownership.

use bytes::Bytes;

use super::location::Place;
use super::names;
use super::requests::{Failure, Requests};
use crate::{Deps, Error, Result};

/// How often a probe without an answer is begun anew.
const TRIES: u32 = 4;

/// Creates an object of its own twice; the second time must fail. Two PUTs and one DELETE.
///
/// # Errors
/// [`Error::NoConditionalPut`] for a store that takes the second one, or knows no condition; [`Error::Store`] when there
/// was no clear answer.
pub async fn probe(place: &Place, deps: &Deps) -> Result<()> {
    let requests = Requests::new(place.clone(), deps.clone());
    let refuse = |reason: &str| Error::NoConditionalPut {
        path: place.path().to_owned(),
        reason: reason.to_owned(),
    };
    let mut tries = 0;
    loop {
        // A new name each time: what an unanswered PUT does later is nobody's concern.
        let path = names::probe(&place.prefix, deps.rng.uuid());
        let twice = async {
            requests.create(&path, Bytes::from_static(b"one")).await?;
            Ok(requests.create(&path, Bytes::from_static(b"two")).await)
        };
        let outcome: Result<_, Failure> = twice.await;
        if let Err(failure) = requests.remove(vec![path.clone()]).await {
            tracing::debug!(%path, %failure, "a probe was left behind");
        }
        let failure = match outcome {
            Ok(Err(Failure::Exists)) => return Ok(()),
            Ok(Ok(())) => return Err(refuse("it let an existing object be created again")),
            // A PUT is not found when its bucket is not: no patience brings it.
            Ok(Err(Failure::Absent)) | Err(Failure::Absent) => {
                return Err(Error::Location {
                    text: place.to_string(),
                    reason: "is in a bucket that does not exist; create the bucket, or name another"
                        .to_owned(),
                });
            }
            Ok(Err(Failure::Unsupported)) | Err(Failure::Unsupported) => {
                return Err(refuse("it knows no create-if-absent, or it is switched off"));
            }
            Ok(Err(failure)) | Err(failure) => failure,
        };
        tries += 1;
        if tries == TRIES {
            return Err(requests.failed(&path, &failure));
        }
        requests.pause(std::time::Duration::from_millis(100)).await;
    }
}
