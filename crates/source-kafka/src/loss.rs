//! Records that were to be read and are gone.

use baton_core::{Gap, Offset, OffsetRange, PartitionRange, TopicPartition};

use crate::Error;

/// What to do, where going on is possible.
const GO_ON: &str =
    "to go on without them, set failOnDataLoss = false; to read a copy again, start a new checkpoint";

/// Offsets that are gone, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) partition: TopicPartition,
    pub(crate) range: OffsetRange,
    why: String,
}

impl Lost {
    pub(crate) fn into_error(self) -> Error {
        let (from, until) = (self.range.from(), self.range.until());
        let offsets = if self.range.is_empty() {
            format!("{} from offset {from} on", self.partition)
        } else {
            format!(
                "{} offsets {from} to {} ({} of them)",
                self.partition,
                until.0 - 1,
                self.range.len()
            )
        };
        Error::DataLoss {
            what: format!("{offsets}: {}", self.why),
            next: GO_ON.to_owned(),
        }
    }

    pub(crate) fn into_gap(self) -> Gap {
        Gap {
            lost: PartitionRange {
                partition: self.partition,
                range: self.range,
            },
            reason: self.why,
        }
    }
}

fn range(from: Offset, until: Offset) -> OffsetRange {
    OffsetRange::new(from, until.max(from)).expect("the end is no lower than the start")
}

/// A planned rest that the broker says is out of range, when the partition holds `earliest..latest`.
pub(crate) fn unreadable(rest: &PartitionRange, earliest: Offset, latest: Offset) -> Lost {
    let (from, until) = (rest.range.from(), rest.range.until());
    let go_on = if earliest > from {
        earliest.min(until)
    } else {
        until
    };
    Lost {
        partition: rest.partition.clone(),
        range: range(from, go_on),
        why: format!(
            "Kafka has only {earliest} to {latest} (retention, deleted records, or a re-created topic)"
        ),
    }
}

/// Records before the first one that is left.
pub(crate) fn aged_out(partition: &TopicPartition, from: Offset, earliest: Offset) -> Lost {
    Lost {
        partition: partition.clone(),
        range: range(from, earliest),
        why: format!("the first record left is {earliest} (retention or deleted records)"),
    }
}

/// A partition that ends before the place to go on from.
pub(crate) fn shortened(partition: &TopicPartition, from: Offset, latest: Offset) -> Lost {
    Lost {
        partition: partition.clone(),
        range: range(latest, from),
        why: format!(
            "the partition ends at {latest}, before {from} where reading goes on (re-created topic, or an unclean \
             leader election)"
        ),
    }
}

/// A partition that is gone with what it had.
pub(crate) fn deleted(partition: &TopicPartition, from: Offset) -> Lost {
    Lost {
        partition: partition.clone(),
        range: range(from, from),
        why: "the partition no longer exists".to_owned(),
    }
}

/// A new partition whose first records are gone before they were seen.
pub(crate) fn late(partition: &TopicPartition, earliest: Offset) -> Lost {
    Lost {
        partition: partition.clone(),
        range: range(Offset(0), earliest),
        why: format!("the partition is new here, and its first record left is {earliest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(from: i64, until: i64) -> PartitionRange {
        PartitionRange {
            partition: TopicPartition::new("t", 2),
            range: range(Offset(from), Offset(until)),
        }
    }

    #[track_caller]
    fn check(from: i64, until: i64, earliest: i64, latest: i64, go_on: i64) {
        let lost = unreadable(&rest(from, until), Offset(earliest), Offset(latest));
        assert_eq!((lost.range.from().0, lost.range.until().0), (from, go_on));
    }

    #[test]
    fn reading_goes_on_at_the_first_record_left_or_gives_the_range_up() {
        check(1_000, 2_000, 1_500, 2_000, 1_500);
        check(1_000, 1_200, 1_500, 2_000, 1_200);
        check(1_000, 1_200, 0, 50, 1_200);
    }

    #[test]
    fn the_error_names_partition_range_and_next_step() {
        let text = aged_out(&TopicPartition::new("t", 2), Offset(1_000), Offset(1_500))
            .into_error()
            .to_string();
        for part in ["t-2", "1000 to 1499", "500 of them", "failOnDataLoss"] {
            assert!(text.contains(part), "`{text}` lacks `{part}`");
        }
    }
}
