//! The `owner` object: who owns the checkpoint, and a counter that shows that it lives. A hint: overwritten without
//! condition, last writer wins, nothing depends on it but how long a candidate waits.

use baton_core::Timestamp;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::location::Place;
use super::names;
use super::requests::Requests;
use crate::{Deps, Error, OwnerInfo, Result};

/// What an owner says of itself at each renewal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Renewal {
    /// Who.
    pub owner: OwnerInfo,
    /// One more each time.
    pub counter: u64,
    /// The first free slot, as the owner knows it.
    pub free: u64,
    /// How long the owner may be silent, in ms: observers wait for the longer of this and their own.
    pub lease_ms: u64,
    /// When, by its wall clock. For people: nobody decides by it who owns what.
    #[serde(with = "crate::stamp")]
    pub at: Timestamp,
    /// Whatever else is to be seen of it.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub status: serde_json::Value,
}

/// The way to it.
#[derive(Clone, Debug)]
pub struct Register(Requests);

impl Register {
    /// The register of the checkpoint at `place`.
    #[must_use]
    pub const fn new(place: Place, deps: Deps) -> Self {
        Self(Requests::new(place, deps))
    }

    /// Says it: one PUT. A failure does no harm but that candidates may think the owner dead.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn renew(&self, renewal: &Renewal) -> Result<()> {
        let path = names::owner(&self.0.place.prefix);
        let bytes = serde_json::to_vec(renewal).map_err(|error| Error::Misuse {
            what: format!("a renewal cannot be written: {error}"),
        })?;
        let said = self.0.overwrite(&path, Bytes::from(bytes)).await;
        said.map_err(|failure| self.0.failed(&path, &failure))
    }

    /// What was said last: one GET. What cannot be read is nothing.
    ///
    /// # Errors
    /// [`Error::Store`] when there is no answer; it is not asked again.
    pub async fn look(&self) -> Result<Option<Renewal>> {
        let path = names::owner(&self.0.place.prefix);
        match self.0.read_once(&path).await {
            Ok(found) => Ok(found.and_then(|bytes| serde_json::from_slice(&bytes).ok())),
            Err(failure) => Err(self.0.failed(&path, &failure)),
        }
    }
}
