//! What a hand-over cost.

use serde::{Deserialize, Serialize};

/// What a hand-over cost, as the new owner sees it; it stands in the log beside the new owner's first commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandOver {
    /// The old owner's version.
    pub from: String,
    /// The new owner's version.
    pub to: String,
    /// The old owner's last batch.
    pub last_batch: Option<u64>,
    /// The new owner's first batch.
    pub first_batch: u64,
    /// Between the two commits, in ms.
    pub commit_gap: u64,
    /// The same minus the median interval between batches, in ms.
    pub excess_gap: u64,
    /// The largest delay of a record of the first batch, from its own timestamp to the commit, in ms; absent when the
    /// source's rows have no `timestamp`.
    pub max_delay: Option<u64>,
}
