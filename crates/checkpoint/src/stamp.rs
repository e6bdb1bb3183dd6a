//! Timestamps in JSON: `2026-01-01T00:00:00.000Z`.

use baton_core::Timestamp;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serializer};

/// RFC 3339 in UTC with milliseconds.
pub(crate) fn format(at: Timestamp) -> String {
    let time: DateTime<Utc> = DateTime::from_timestamp_millis(at.0).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(crate) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*at))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time = DateTime::parse_from_rfc3339(&text).map_err(serde::de::Error::custom)?;
    Ok(Timestamp(time.timestamp_millis()))
}

/// The same for a time that may not be known.
#[cfg(feature = "rocksdb")]
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Serializer, Timestamp};

    pub(crate) fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => super::serialize(at, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Known(#[serde(with = "super")] Timestamp);
        Ok(Option::<Known>::deserialize(deserializer)?.map(|known| known.0))
    }
}
