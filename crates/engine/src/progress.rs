//! What a query tells of each batch: Spark's `StreamingQueryProgress` by name, plus epoch and version.

use baton_core::{PartitionOffsets, Timestamp};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// How many progresses a query keeps, as `spark.sql.streaming.numRecentProgressUpdates`.
pub(crate) const RECENT: usize = 100;

/// What one batch did. Its JSON has Spark's names in Spark's order, plus `epoch` and `version`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StreamingQueryProgress {
    /// The checkpoint's id, the same over restarts and hand-overs.
    pub id: String,
    /// This start's id.
    pub run_id: String,
    /// The query's name.
    pub name: String,
    /// When the trigger fired, UTC.
    pub timestamp: String,
    /// The batch.
    pub batch_id: u64,
    /// What the trigger took, in ms.
    pub batch_duration: u64,
    /// Rows read, over all sources.
    pub num_input_rows: u64,
    /// Rows read per second since the previous trigger; 0 for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_rows_per_second: Option<f64>,
    /// Rows read per second of the batch's duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processed_rows_per_second: Option<f64>,
    /// Where the time went: `latestOffset`, `walCommit`, `queryPlanning`, `addBatch`, `commitOffsets`,
    /// `triggerExecution`.
    pub duration_ms: BTreeMap<&'static str, u64>,
    /// Empty until there are stateful queries.
    pub state_operators: Vec<serde_json::Value>,
    /// Each source's part.
    pub sources: Vec<SourceProgress>,
    /// The sink's part.
    pub sink: SinkProgress,
    /// The owner's epoch.
    pub epoch: u64,
    /// The job's version.
    pub version: String,
}

impl StreamingQueryProgress {
    /// One line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and offset maps always serialise")
    }
}

/// One source's part of a batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SourceProgress {
    /// As the source describes itself.
    pub description: String,
    /// Where the batch started.
    pub start_offset: Option<PartitionOffsets>,
    /// Where it ended.
    pub end_offset: Option<PartitionOffsets>,
    /// Where the source ended when the batch was planned; null for a batch that is run again.
    pub latest_offset: Option<PartitionOffsets>,
    /// Rows read.
    pub num_input_rows: u64,
    /// Rows read per second since the previous trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_rows_per_second: Option<f64>,
    /// Rows read per second of the batch's duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processed_rows_per_second: Option<f64>,
    /// `minOffsetsBehindLatest`, `maxOffsetsBehindLatest`, `avgOffsetsBehindLatest`, as strings.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<&'static str, String>,
}

/// The sink's part of a batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SinkProgress {
    /// As the sink describes itself.
    pub description: String,
    /// Rows published.
    pub num_output_rows: u64,
}

/// What a query is doing, in Spark's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StreamingQueryStatus {
    /// `Waiting for data to arrive`, `Processing new data`, …
    pub message: String,
    /// Whether the last look found new data.
    pub is_data_available: bool,
    /// Whether a trigger is at work.
    pub is_trigger_active: bool,
}

/// One source's numbers of a batch, before they are made into Spark's.
#[derive(Clone, Debug)]
pub(crate) struct SourceFacts {
    pub(crate) description: String,
    pub(crate) start: Option<PartitionOffsets>,
    pub(crate) end: Option<PartitionOffsets>,
    pub(crate) latest: Option<PartitionOffsets>,
    pub(crate) rows: u64,
}

/// Turns facts into rates; remembers when the previous trigger fired.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    previous: Option<Timestamp>,
}

/// The two rates of one trigger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    since_previous_ms: Option<u64>,
    took_ms: u64,
}

impl Rates {
    /// Notes a trigger that fired at `fired` and took `took_ms`.
    pub(crate) fn trigger(&mut self, fired: Timestamp, took_ms: u64) -> Rate {
        let since_previous_ms = self
            .previous
            .map(|previous| (fired.0 - previous.0).max(0).unsigned_abs());
        self.previous = Some(fired);
        Rate {
            since_previous_ms,
            took_ms,
        }
    }
}

impl Rate {
    /// Rows per second between the triggers: 0 at the first, absent when both fired in one millisecond.
    pub(crate) fn input(self, rows: u64) -> Option<f64> {
        self.since_previous_ms
            .map_or(Some(0.0), |ms| per_second(rows, ms))
    }

    /// Rows per second of the trigger's own time.
    pub(crate) fn processed(self, rows: u64) -> Option<f64> {
        per_second(rows, self.took_ms)
    }

    /// A source's part with these rates.
    pub(crate) fn source(self, facts: SourceFacts) -> SourceProgress {
        let metrics = match (&facts.end, &facts.latest) {
            (Some(end), Some(latest)) => behind_latest(end, latest),
            _ => BTreeMap::new(),
        };
        SourceProgress {
            description: facts.description,
            start_offset: facts.start,
            end_offset: facts.end,
            latest_offset: facts.latest,
            num_input_rows: facts.rows,
            input_rows_per_second: self.input(facts.rows),
            processed_rows_per_second: self.processed(facts.rows),
            metrics,
        }
    }
}

/// One decimal, half up, as Spark prints it.
fn per_second(rows: u64, ms: u64) -> Option<f64> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a rate with one decimal needs no more than 53 bits"
    )]
    (ms > 0).then(|| (rows as f64 * 10_000.0 / ms as f64).round() / 10.0)
}

fn behind_latest(end: &PartitionOffsets, latest: &PartitionOffsets) -> BTreeMap<&'static str, String> {
    // As in Spark, a partition that the batch does not know counts from 0.
    let behind: Vec<i64> = latest
        .iter()
        .map(|(partition, last)| (last.0 - end.of(&partition).map_or(0, |offset| offset.0)).max(0))
        .collect();
    let (Some(min), Some(max)) = (behind.iter().min(), behind.iter().max()) else {
        return BTreeMap::new();
    };
    #[expect(clippy::cast_precision_loss, reason = "Spark's average is a double as well")]
    let average = behind.iter().sum::<i64>() as f64 / behind.len() as f64;
    BTreeMap::from([
        ("minOffsetsBehindLatest", min.to_string()),
        ("maxOffsetsBehindLatest", max.to_string()),
        // Debug prints a whole number as `3.0`, as the JVM does.
        ("avgOffsetsBehindLatest", format!("{average:?}")),
    ])
}

/// `2026-12-01T02:41:31.123Z`.
pub(crate) fn iso(at: Timestamp) -> String {
    chrono::DateTime::from_timestamp_millis(at.0).map_or_else(
        || at.0.to_string(),
        |time| time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
    )
}

/// The newest progresses, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<std::sync::Arc<StreamingQueryProgress>>);

impl Recent {
    pub(crate) fn push(&mut self, progress: std::sync::Arc<StreamingQueryProgress>) {
        if self.0.len() == RECENT {
            self.0.pop_front();
        }
        self.0.push_back(progress);
    }

    pub(crate) fn last(&self) -> Option<std::sync::Arc<StreamingQueryProgress>> {
        self.0.back().cloned()
    }

    pub(crate) fn all(&self) -> Vec<std::sync::Arc<StreamingQueryProgress>> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(json: &str) -> PartitionOffsets {
        PartitionOffsets::from_json(json).expect("valid offsets")
    }

    fn progress() -> StreamingQueryProgress {
        let mut rates = Rates::default();
        rates.trigger(Timestamp(0), 5);
        let rate = rates.trigger(Timestamp(1_000), 40);
        let facts = SourceFacts {
            description: "KafkaV2[Subscribe[t]]".to_owned(),
            start: Some(offsets(r#"{"t":{"0":0,"1":0}}"#)),
            end: Some(offsets(r#"{"t":{"0":2,"1":1}}"#)),
            latest: Some(offsets(r#"{"t":{"0":5,"1":1}}"#)),
            rows: 3,
        };
        StreamingQueryProgress {
            id: "i".to_owned(),
            run_id: "r".to_owned(),
            name: "n".to_owned(),
            timestamp: iso(Timestamp(1_796_092_891_123)),
            batch_id: 7,
            batch_duration: 40,
            num_input_rows: 3,
            input_rows_per_second: rate.input(3),
            processed_rows_per_second: rate.processed(3),
            duration_ms: BTreeMap::from([("walCommit", 2), ("addBatch", 30)]),
            state_operators: Vec::new(),
            sources: vec![rate.source(facts)],
            sink: SinkProgress {
                description: "Noop".to_owned(),
                num_output_rows: 3,
            },
            epoch: 2,
            version: "v1".to_owned(),
        }
    }

    #[test]
    fn the_json_has_sparks_names_in_sparks_order_plus_epoch_and_version() {
        assert_eq!(
            progress().to_json(),
            r#"{"id":"i","runId":"r","name":"n","timestamp":"2026-12-01T02:41:31.123Z","batchId":7,"batchDuration":40,"#
                .to_owned()
                + r#""numInputRows":3,"inputRowsPerSecond":3.0,"processedRowsPerSecond":75.0,"#
                + r#""durationMs":{"addBatch":30,"walCommit":2},"stateOperators":[],"sources":["#
                + r#"{"description":"KafkaV2[Subscribe[t]]","startOffset":{"t":{"0":0,"1":0}},"#
                + r#""endOffset":{"t":{"0":2,"1":1}},"latestOffset":{"t":{"0":5,"1":1}},"numInputRows":3,"#
                + r#""inputRowsPerSecond":3.0,"processedRowsPerSecond":75.0,"#
                + r#""metrics":{"avgOffsetsBehindLatest":"1.5","maxOffsetsBehindLatest":"3","#
                + r#""minOffsetsBehindLatest":"0"}}],"sink":{"description":"Noop","numOutputRows":3},"#
                + r#""epoch":2,"version":"v1"}"#
        );
    }

    #[test]
    fn the_first_trigger_has_an_input_rate_of_zero_and_two_in_one_millisecond_have_none() {
        let mut rates = Rates::default();
        assert_eq!(rates.trigger(Timestamp(5), 1).input(3), Some(0.0));
        let again = rates.trigger(Timestamp(5), 0);
        assert_eq!((again.input(3), again.processed(3)), (None, None));
    }

    #[test]
    fn rates_are_rounded_half_up_to_one_decimal() {
        assert_eq!(per_second(1, 80), Some(12.5));
        assert_eq!(per_second(1, 3_000), Some(0.3));
        assert_eq!(per_second(7, 20_000), Some(0.4), "0.35 rounds up");
    }

    #[test]
    fn a_hundred_progresses_are_kept() {
        let mut recent = Recent::default();
        for batch in 0..150 {
            let mut one = progress();
            one.batch_id = batch;
            recent.push(std::sync::Arc::new(one));
        }
        assert_eq!(recent.all().len(), RECENT);
        assert_eq!(recent.all()[0].batch_id, 50);
        assert_eq!(recent.last().map(|last| last.batch_id), Some(149));
    }
}
