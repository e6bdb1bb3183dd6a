//! Hand-over requests where no owner can be called: small objects that it looks at with each renewal. All of it is hints.
//!
//! A candidate owns `mail/<its id>` and writes its newest letter there; the owner answers in `mail/<its id>.answer`. Each
//! letter has a number, so that one that was seen is known again. What the letters say is the caller's.
//!
//! | who | when | requests |
//! |---|---|---|
//! | owner | each renewal | one PUT (`owner`), one LIST (`mail/`) |
//! | owner | a letter is there | one GET each, at most [`LETTERS`]; one PUT for an answer |
//! | candidate | asks, cancels | one PUT |
//! | candidate | waits for an answer | one GET a look |

use baton_core::OwnerId;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::location::Place;
use super::names::{self, ANSWER};
use super::requests::Requests;
use crate::{Deps, Error, Result};

/// The version of the envelope.
const FORMAT: u32 = 1;

/// Longer letters are nobody's.
pub const LONGEST_LETTER: usize = 256 << 10;

/// How many letters are opened at one look; the others wait for the next.
pub const LETTERS: usize = 16;

/// A numbered message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Letter<T> {
    format: u32,
    /// One more with each letter of the same writer to the same reader.
    pub number: u64,
    /// What it says.
    pub message: T,
}

impl<T: Serialize + DeserializeOwned> Letter<T> {
    /// A letter of this number.
    pub const fn new(number: u64, message: T) -> Self {
        Self {
            format: FORMAT,
            number,
            message,
        }
    }

    /// As bytes; `None` when it is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let bytes = serde_json::to_vec(self).ok()?;
        (bytes.len() <= LONGEST_LETTER).then_some(bytes)
    }

    /// Reads it; `None` for what is none, is too long, or comes from a newer version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let short = Some(bytes).filter(|bytes| bytes.len() <= LONGEST_LETTER)?;
        let letter: Self = serde_json::from_slice(short).ok()?;
        (letter.format <= FORMAT).then_some(letter)
    }
}

/// The mailbox of one checkpoint.
#[derive(Clone, Debug)]
pub struct Mailbox(Requests);

impl Mailbox {
    /// The mailbox of the checkpoint at `place`.
    #[must_use]
    pub const fn new(place: Place, deps: Deps) -> Self {
        Self(Requests::new(place, deps))
    }

    /// A candidate asks: one PUT, which replaces its letter before.
    ///
    /// # Errors
    /// [`Error::Store`] when it may not have arrived; [`Error::Misuse`] for a letter that is too long.
    pub async fn post<T: Serialize + DeserializeOwned>(
        &self,
        candidate: OwnerId,
        letter: &Letter<T>,
    ) -> Result<()> {
        self.put(names::letter(&self.0.place.prefix, candidate), letter)
            .await
    }

    /// The owner answers: one PUT.
    ///
    /// # Errors
    /// As [`Mailbox::post`].
    pub async fn answer<T: Serialize + DeserializeOwned>(
        &self,
        candidate: OwnerId,
        letter: &Letter<T>,
    ) -> Result<()> {
        self.put(names::answer(&self.0.place.prefix, candidate), letter)
            .await
    }

    async fn put<T: Serialize + DeserializeOwned>(
        &self,
        path: object_store::path::Path,
        letter: &Letter<T>,
    ) -> Result<()> {
        let bytes = letter.encode().ok_or_else(|| Error::Misuse {
            what: format!("a letter is longer than {LONGEST_LETTER} bytes"),
        })?;
        let sent = self.0.overwrite(&path, Bytes::from(bytes)).await;
        sent.map_err(|failure| self.0.failed(&path, &failure))
    }

    /// The owner looks: one LIST, and one GET for each of the first [`LETTERS`] letters.
    ///
    /// # Errors
    /// [`Error::Store`] when the store does not answer.
    pub async fn letters<T: Serialize + DeserializeOwned>(&self) -> Result<Vec<(OwnerId, Letter<T>)>> {
        let listed = self.0.list(&names::mail(&self.0.place.prefix), None).await?;
        let candidates = listed.iter().filter_map(|path| {
            let name = path.filename().filter(|name| !name.ends_with(ANSWER))?;
            Uuid::parse_str(name).ok().map(OwnerId)
        });
        let mut candidates: Vec<OwnerId> = candidates.collect();
        // From a new place each time: forgotten letters must not stand before a new one for ever.
        let count = u64::try_from(candidates.len()).unwrap_or(u64::MAX).max(1);
        candidates.rotate_left(usize::try_from(self.0.deps.rng.next_u64() % count).unwrap_or(0));
        let mut letters = Vec::new();
        for candidate in candidates.into_iter().take(LETTERS) {
            let path = names::letter(&self.0.place.prefix, candidate);
            // One that cannot be had now is there at the next look.
            if let Ok(Some(bytes)) = self.0.read_once(&path).await
                && let Some(letter) = Letter::decode(&bytes)
            {
                letters.push((candidate, letter));
            }
        }
        Ok(letters)
    }

    /// A candidate looks for the answer: one GET.
    ///
    /// # Errors
    /// [`Error::Store`] when there is no answer from the store; it is not asked again.
    pub async fn read_answer<T: Serialize + DeserializeOwned>(
        &self,
        candidate: OwnerId,
    ) -> Result<Option<Letter<T>>> {
        let path = names::answer(&self.0.place.prefix, candidate);
        match self.0.read_once(&path).await {
            Ok(found) => Ok(found.and_then(|bytes| Letter::decode(&bytes))),
            Err(failure) => Err(self.0.failed(&path, &failure)),
        }
    }

    /// Removes a candidate's letter and its answer: by the candidate when it is done, or by an owner that finds that it is
    /// gone.
    ///
    /// # Errors
    /// [`Error::Store`]; what is left is harmless.
    pub async fn clear(&self, candidate: OwnerId) -> Result<()> {
        let letter = names::letter(&self.0.place.prefix, candidate);
        let paths = vec![letter.clone(), names::answer(&self.0.place.prefix, candidate)];
        let removed = self.0.remove(paths).await;
        removed.map_err(|failure| self.0.failed(&letter, &failure))
    }
}
