//! What one batch takes, decided from what Kafka answered. Pure.

use baton_core::{Admission, Offset, PartitionOffsets, SourcePlan, TopicPartition};

use crate::Result;
use crate::loss::{self, Lost};
use crate::split::split;

/// What Kafka answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Where the partitions end; those that exist.
    pub(crate) latest: PartitionOffsets,
    /// The first record of those that are new or have something to read.
    pub(crate) earliest: PartitionOffsets,
}

impl Facts {
    /// Whether something known seems to be gone. A broker that has just come back may err: worth a second look.
    pub(crate) fn look_wrong(&self, from: &PartitionOffsets) -> bool {
        from.iter()
            .any(|(partition, at)| self.latest.of(&partition).is_none_or(|end| end < at))
    }

    /// The partitions whose first record matters.
    pub(crate) fn open_starts<'a>(
        &'a self,
        from: &'a PartitionOffsets,
    ) -> impl Iterator<Item = TopicPartition> + 'a {
        let matters = |partition: &TopicPartition, end| from.of(partition).is_none_or(|at| at < end);
        self.latest
            .iter()
            .filter(move |(partition, end)| matters(partition, *end))
            .map(|(partition, _)| partition)
    }
}

/// How the user wants batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) limit: Option<u64>,
    pub(crate) fail_on_data_loss: bool,
}

/// Decides what a batch from `from` takes.
///
/// # Errors
/// [`Error::DataLoss`](crate::Error::DataLoss) when records are gone and the user wants to know.
pub(crate) fn decide(
    from: &PartitionOffsets,
    facts: &Facts,
    admission: &Admission,
    rules: Rules,
) -> Result<SourcePlan> {
    let mut plan = SourcePlan::default();
    plan.latest = facts.latest.clone();
    let mut lose = |lost: Lost| {
        if rules.fail_on_data_loss {
            return Err(lost.into_error());
        }
        plan.gaps.push(lost.into_gap());
        Ok(())
    };
    let mut target = PartitionOffsets::new();
    for (partition, end) in facts.latest.iter() {
        let cap = admission.cap.as_ref().map(|cap| cap.of(&partition));
        let first = facts.earliest.of(&partition);
        let start = match from.of(&partition) {
            // Came after the end was frozen.
            None if cap == Some(None) => continue,
            None => {
                let first = first.unwrap_or_default();
                if first > Offset(0) {
                    lose(loss::late(&partition, first))?;
                }
                first
            }
            Some(at) if end < at => {
                lose(loss::shortened(&partition, at, end))?;
                end
            }
            Some(at) => match first.filter(|first| at < *first) {
                Some(first) => {
                    lose(loss::aged_out(&partition, at, first))?;
                    first
                }
                None => at,
            },
        };
        let end = match cap {
            None => end,
            Some(cap) => end.min(cap.unwrap_or(start)),
        };
        target.set(partition.clone(), end.max(start));
        plan.from.set(partition, start);
    }
    for (partition, at) in from
        .iter()
        .filter(|(partition, _)| facts.latest.of(partition).is_none())
    {
        lose(loss::deleted(&partition, at))?;
    }
    plan.until = match rules.limit {
        Some(limit) if !admission.unlimited => split(&plan.from, &target, limit),
        _ => target,
    };
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn at(offsets: &[i64]) -> PartitionOffsets {
        (0..)
            .zip(offsets)
            .map(|(number, at)| (TopicPartition::new("t", number), Offset(*at)))
            .collect()
    }

    fn facts(earliest: &[i64], latest: &[i64]) -> Facts {
        Facts {
            latest: at(latest),
            earliest: at(earliest),
        }
    }

    const STRICT: Rules = Rules {
        limit: None,
        fail_on_data_loss: true,
    };
    const LENIENT: Rules = Rules {
        limit: None,
        fail_on_data_loss: false,
    };

    /// Fails when strict, saying `says`; when lenient goes on at `from` with gaps of so many offsets.
    #[track_caller]
    fn loses(asked: &[i64], facts: &Facts, says: &str, from: &[i64], lost: &[u64]) {
        let all = Admission::default();
        let error = decide(&at(asked), facts, &all, STRICT).expect_err("records are lost");
        assert!(
            matches!(error, Error::DataLoss { .. }) && error.to_string().contains(says),
            "{error}"
        );
        let plan = decide(&at(asked), facts, &all, LENIENT).expect("goes on");
        assert_eq!(plan.from, at(from));
        assert_eq!(
            plan.gaps
                .iter()
                .map(|gap| gap.lost.range.len())
                .collect::<Vec<_>>(),
            lost
        );
        plan.from
            .ranges_until(&plan.until)
            .expect("a plan ends behind its start");
    }

    #[test]
    fn a_batch_takes_everything_up_to_the_end() {
        let plan = decide(
            &at(&[5, 7]),
            &facts(&[0, 0], &[9, 7]),
            &Admission::default(),
            STRICT,
        )
        .expect("decided");
        assert_eq!(
            (plan.from, plan.until, plan.latest),
            (at(&[5, 7]), at(&[9, 7]), at(&[9, 7]))
        );
    }

    #[test]
    fn a_new_partition_starts_at_its_first_record() {
        let plan = decide(
            &at(&[5]),
            &facts(&[0, 0], &[5, 100]),
            &Admission::default(),
            STRICT,
        )
        .expect("decided");
        assert_eq!((plan.from, plan.until), (at(&[5, 0]), at(&[5, 100])));
        loses(
            &[5],
            &facts(&[0, 30], &[5, 100]),
            "first record left is 30",
            &[5, 30],
            &[30],
        );
    }

    #[test]
    fn what_is_gone_is_named_or_becomes_a_gap() {
        loses(
            &[1_000],
            &facts(&[1_500], &[2_000]),
            "1000 to 1499",
            &[1_500],
            &[500],
        );
        loses(&[1_000], &facts(&[0], &[50]), "ends at 50", &[50], &[950]);
        loses(&[3, 4], &facts(&[0], &[3]), "t-1", &[3], &[0]);
    }

    #[test]
    fn a_frozen_end_is_never_passed_and_later_partitions_wait() {
        let mut admission = Admission::default();
        admission.cap = Some(at(&[8]));
        let plan = decide(&at(&[5]), &facts(&[0, 0], &[20, 3]), &admission, STRICT).expect("decided");
        assert_eq!((plan.from, plan.until), (at(&[5]), at(&[8])));
        // An end that Kafka no longer has cannot be reached, nor waited for.
        let plan = decide(&at(&[8]), &facts(&[0], &[6]), &admission, LENIENT).expect("decided");
        assert_eq!((plan.from.clone(), plan.until), (at(&[6]), at(&[6])));
    }

    #[test]
    fn a_limit_splits_unless_it_is_lifted() {
        let rules = Rules {
            limit: Some(10),
            ..STRICT
        };
        let facts = facts(&[0, 0, 0], &[97, 2, 1]);
        let plan = decide(&at(&[0, 0, 0]), &facts, &Admission::default(), rules).expect("decided");
        assert_eq!(plan.until, at(&[9, 1, 1]));
        let mut all = Admission::default();
        all.unlimited = true;
        let plan = decide(&at(&[0, 0, 0]), &facts, &all, rules).expect("decided");
        assert_eq!(plan.until, at(&[97, 2, 1]));
    }

    #[test]
    fn only_starts_that_matter_are_asked_for() {
        let facts = facts(&[], &[9, 7, 4]);
        let asked: Vec<i32> = facts
            .open_starts(&at(&[5, 7]))
            .map(|partition| partition.partition)
            .collect();
        assert_eq!(asked, [0, 2]);
    }
}
