//! `[conf]`: Spark confs under their names.

use std::time::Duration;

/// What the confs come to.
#[derive(Debug, Default)]
pub(crate) struct Conf {
    /// `spark.sql.streaming.minBatchesToRetain`.
    pub(crate) min_batches_to_retain: Option<u64>,
    /// `spark.sql.streaming.stopTimeout`.
    pub(crate) stop_timeout: Option<Duration>,
}

const PREFIX: &str = "spark.sql.streaming.";

/// Every conf that means something here.
pub(crate) const KNOWN: [&str; 8] = [
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.streaming.checkpointLocation",
    "spark.sql.streaming.minBatchesToRetain",
    "spark.sql.streaming.noDataMicroBatches.enabled",
    "spark.sql.streaming.numRecentProgressUpdates",
    "spark.sql.streaming.stopActiveRunOnRestart",
    "spark.sql.streaming.stopTimeout",
];

impl Conf {
    /// Takes one conf.
    ///
    /// # Errors
    /// Why its value contradicts what this program does or the rest of the job file.
    pub(crate) fn take(&mut self, key: &str, value: &str) -> Result<Option<String>, String> {
        let value = value.trim();
        match key.strip_prefix(PREFIX) {
            Some("minBatchesToRetain") => {
                let batches = value.parse().ok().filter(|batches| *batches > 0);
                self.min_batches_to_retain =
                    Some(batches.ok_or_else(|| format!("must be a whole number above 0, not `{value}`"))?);
                Ok(None)
            }
            Some("stopTimeout") => {
                let timeout = match value.parse::<u64>() {
                    Ok(millis) => Duration::from_millis(millis),
                    Err(_) => baton_core::parse_duration(value).map_err(|error| error.to_string())?,
                };
                // Spark's 0 waits for ever, ours would not wait at all.
                if timeout.is_zero() {
                    return Err("is 0, which in Spark waits for ever; say how long in ownership.stopTimeout".to_owned());
                }
                self.stop_timeout = Some(timeout);
                Ok(None)
            }
            Some("stopActiveRunOnRestart") => Err(
                "is not how a running job is replaced here; use ownership.ifOwned = \"takeover\", or --if-owned"
                    .to_owned(),
            ),
            Some("checkpointLocation") => {
                Err("is a default for many queries; give this one its checkpointLocation in [sink.options]".to_owned())
            }
            Some("noDataMicroBatches.enabled" | "numRecentProgressUpdates") => {
                Ok(Some("has no effect in this version".to_owned()))
            }
            _ if key == "spark.sql.session.timeZone" => match value {
                "UTC" | "Etc/UTC" | "Z" | "GMT" => Ok(None),
                _ => Err(format!("is `{value}`, but only UTC is supported in this version")),
            },
            _ if key == "spark.sql.ansi.enabled" => Ok(Some("has no effect in this version".to_owned())),
            _ => {
                let near = baton_core::nearest(key, KNOWN);
                let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                Ok(Some(format!("is not known and has no effect{hint}")))
            }
        }
    }
}
