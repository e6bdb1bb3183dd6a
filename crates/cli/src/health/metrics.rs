//! Every metric: its name, its unit, and one sentence.
//!
//! Names are `baton_<crate>_<noun>_<unit>`, totals end in `_total`, units are base units. Labels are the job's own
//! names – sources, topics, partitions, the sink – and words that stand here; nothing that grows with the data. None is
//! called `job` or `instance`: these are Prometheus' own.

/// What Prometheus may do with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only rises, from 0 at the start of the process.
    Counter,
    /// Rises and falls.
    Gauge,
    /// How often a value was how large.
    Histogram,
}

impl Kind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// What is counted or measured; also the last word of the name, before `_total`.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the name says it too; a test compares")
    )]
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
}

const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Metric {
    let kind = Kind::Counter;
    Metric {
        name,
        kind,
        unit,
        help,
    }
}

const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Metric {
    let kind = Kind::Gauge;
    Metric {
        name,
        kind,
        unit,
        help,
    }
}

pub(super) const INFO: Metric = gauge(
    "baton_job_info",
    "info",
    "1, with the job's name and version and baton's own version as labels; joins them to the others.",
);
pub(super) const ROLE: Metric = gauge(
    "baton_checkpoint_role",
    "role",
    "1 for what this process is to its checkpoint: preparing, standby or owner; 0 for the others.",
);
pub(super) const EPOCH: Metric = gauge(
    "baton_checkpoint_epoch",
    "epoch",
    "Epoch since which this process owns the checkpoint; it rises with every change of the owner. Absent before.",
);
pub(super) const LAST_BATCH: Metric = gauge(
    "baton_checkpoint_last_committed_batch",
    "batch",
    "Number of the last committed batch, as this owner knows it. Absent before the first.",
);
pub(super) const LAST_COMMIT: Metric = gauge(
    "baton_checkpoint_last_commit_timestamp_seconds",
    "seconds",
    "When the last batch was committed, by this owner or the one before; time() minus it is the age. Without data it ages.",
);
pub(super) const FENCED: Metric = counter(
    "baton_checkpoint_fenced_total",
    "fenced",
    "Times this process was refused as an older owner: by its sink, which may pass, or by the log, which ends it.",
);
pub(super) const ADOPTED: Metric = counter(
    "baton_checkpoint_adopted_total",
    "adopted",
    "Batches that were published but not committed, and counted as done without repeating their output.",
);
pub(super) const REPLAYED: Metric = counter(
    "baton_checkpoint_replayed_total",
    "replayed",
    "Batches that an earlier owner planned and did not commit, run again with the same range.",
);
pub(super) const HAND_OVER: Metric = gauge(
    "baton_checkpoint_hand_over_seconds",
    "seconds",
    "What the hand-over to this owner cost: commit_gap between the commits, excess_gap beyond the usual, max_delay of a record.",
);
pub(super) const DURATION: Metric = Metric {
    name: "baton_engine_batch_duration_seconds",
    kind: Kind::Histogram,
    unit: "seconds",
    help: "What a batch took, by Spark's phases, in whole milliseconds; triggerExecution is the whole of it.",
};
pub(super) const STILL: Metric = gauge(
    "baton_engine_still_seconds",
    "seconds",
    "How long nothing has moved in an owner that is not resting; /healthz calls it stuck from 300 on.",
);
pub(super) const OVERRUNS: Metric = counter(
    "baton_engine_overruns_total",
    "overruns",
    "Batches that took longer than the trigger's interval.",
);
pub(super) const MISSED: Metric = counter(
    "baton_engine_missed_ticks_total",
    "ticks",
    "Ticks of the trigger that passed during such batches and were not made up for.",
);
pub(super) const REPLACED: Metric = counter(
    "baton_engine_replaced_characters_total",
    "characters",
    "Bytes or sequences that were no UTF-8 and became replacement characters.",
);
pub(super) const SOURCE_UP: Metric = gauge(
    "baton_source_up",
    "up",
    "0 while the owner waits for a source that does not answer, else 1. Absent where this process does not own the checkpoint.",
);
pub(super) const ROWS_IN: Metric = counter(
    "baton_source_rows_total",
    "rows",
    "Rows read in committed batches.",
);
pub(super) const LAG: Metric = gauge(
    "baton_source_lag_records",
    "records",
    "Offsets between the committed position and the end of a partition, when the owner last looked.",
);
pub(super) const GAPS: Metric = counter(
    "baton_source_gaps_total",
    "gaps",
    "Runs of offsets that were lost before they could be read, with failOnDataLoss = false.",
);
pub(super) const LOST: Metric = counter(
    "baton_source_lost_records_total",
    "records",
    "Offsets in such gaps.",
);
pub(super) const PUBLISH_FAILURES: Metric = counter(
    "baton_source_publish_failures_total",
    "failures",
    "Times the position began to fail to reach the outside (the consumer group); the checkpoint has it.",
);
pub(super) const ROWS_OUT: Metric = counter(
    "baton_sink_rows_total",
    "rows",
    "Rows published in committed batches.",
);
pub(super) const RETRIES: Metric = counter(
    "baton_sink_retries_total",
    "retries",
    "Attempts at a batch that the sink did not take and that were followed by another.",
);

/// The bounds of the buckets of durations, in ms and as they are written in seconds: from a fast local commit to what
/// `/healthz` calls stuck.
pub(super) const BUCKETS: [(u64, &str); 15] = [
    (1, "0.001"),
    (5, "0.005"),
    (10, "0.01"),
    (25, "0.025"),
    (50, "0.05"),
    (100, "0.1"),
    (250, "0.25"),
    (500, "0.5"),
    (1_000, "1"),
    (2_500, "2.5"),
    (5_000, "5"),
    (10_000, "10"),
    (30_000, "30"),
    (60_000, "60"),
    (300_000, "300"),
];

/// Every metric, in the order in which they are written.
#[cfg(test)]
pub(super) const ALL: [Metric; 22] = [
    INFO,
    ROLE,
    EPOCH,
    LAST_BATCH,
    LAST_COMMIT,
    FENCED,
    ADOPTED,
    REPLAYED,
    HAND_OVER,
    DURATION,
    STILL,
    OVERRUNS,
    MISSED,
    REPLACED,
    SOURCE_UP,
    ROWS_IN,
    LAG,
    GAPS,
    LOST,
    PUBLISH_FAILURES,
    ROWS_OUT,
    RETRIES,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_say_crate_and_unit() {
        let mut seen = BTreeSet::new();
        for Metric { name, kind, unit, .. } in ALL {
            assert!(seen.insert(name), "{name} twice");
            assert!(
                ["job", "checkpoint", "engine", "source", "sink"]
                    .iter()
                    .any(|part| name.starts_with(&format!("baton_{part}_"))),
                "{name}"
            );
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
                "{name}"
            );
            let end = if kind == Kind::Counter { "_total" } else { "" };
            assert!(
                name.ends_with(&format!("_{unit}{end}")),
                "{name} is not in {unit}"
            );
        }
    }

    #[test]
    fn every_metric_is_explained_in_one_line() {
        for Metric { name, help, .. } in ALL {
            assert!(
                help.ends_with('.') && !help.contains(['\n', '\\']),
                "{name}: {help}"
            );
        }
    }

    #[test]
    fn buckets_rise_and_are_written_as_what_they_are() {
        assert!(BUCKETS.is_sorted());
        for (ms, text) in BUCKETS {
            let seconds: f64 = text.parse().expect("a number");
            assert!((seconds * 1_000.0 - ms as f64).abs() < 1e-9, "{text}");
        }
    }
}
