//! Where every source of a query goes on.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

use crate::{PartitionOffsets, Result, SourceName};

/// Where every source of a query goes on: `{"messages":{"test1":{"0":425}}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(pub BTreeMap<SourceName, PartitionOffsets>);

impl Position {
    /// The offsets of one source.
    #[must_use]
    pub fn source(&self, name: &SourceName) -> Option<&PartitionOffsets> {
        self.0.get(name)
    }

    /// How many offsets lie between this position and `until`.
    ///
    /// # Errors
    /// As [`PartitionOffsets::ranges_until`].
    pub fn offsets_until(&self, until: &Self) -> Result<u64> {
        let mut total = 0;
        for (name, from) in &self.0 {
            let none = PartitionOffsets::new();
            let end = until.source(name).unwrap_or(&none);
            total += from
                .ranges_until(end)?
                .iter()
                .map(|range| range.range.len())
                .sum::<u64>();
        }
        Ok(total)
    }
}

impl FromIterator<(SourceName, PartitionOffsets)> for Position {
    fn from_iter<I: IntoIterator<Item = (SourceName, PartitionOffsets)>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).expect("a map with string keys always serialises"))
    }
}
