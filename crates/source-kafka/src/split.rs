//! Spark's arithmetic of `maxOffsetsPerTrigger`.

use baton_core::{Offset, PartitionOffsets, TopicPartition};

/// Where a batch that starts at `from` ends, if it may take about `limit` offsets of what lies before `latest`.
///
/// Every partition gets its share of the limit by how much it has to offer: rounded up below one, so that none starves,
/// else rounded down. So the sum may exceed the limit by up to the number of small partitions, or fall short of it.
/// The floating-point expression is Spark's own (`limit * (size / total)`): a batch here takes what it would there.
///
/// Partitions of `latest` that `from` lacks, or that lie behind it, end at `latest`.
pub(crate) fn split(from: &PartitionOffsets, latest: &PartitionOffsets, limit: u64) -> PartitionOffsets {
    let size = |partition: &TopicPartition, end: Offset| {
        from.of(partition)
            .map_or(0, |begin| end.0.saturating_sub(begin.0))
    };
    let total: f64 = latest
        .iter()
        .map(|(partition, end)| size(&partition, end).max(0) as f64)
        .sum();
    if total < 1.0 {
        return latest.clone();
    }
    latest
        .iter()
        .map(|(partition, end)| {
            let size = size(&partition, end);
            let Some(begin) = from.of(&partition).filter(|_| size > 0) else {
                return (partition, end);
            };
            let share = limit as f64 * (size as f64 / total);
            let share = if share < 1.0 { share.ceil() } else { share.floor() };
            (partition, Offset(begin.0.saturating_add(share as i64).min(end.0)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offsets(of: impl IntoIterator<Item = i64>) -> PartitionOffsets {
        (0..)
            .zip(of)
            .map(|(number, at)| (TopicPartition::new("t", number), Offset(at)))
            .collect()
    }

    #[track_caller]
    fn check(limit: u64, sizes: &[i64], takes: &[i64]) {
        let from = offsets(sizes.iter().map(|_| 1_000));
        let latest = offsets(sizes.iter().map(|size| 1_000 + size));
        let until = split(&from, &latest, limit);
        let taken: Vec<i64> = until.iter().map(|(_, end)| end.0 - 1_000).collect();
        assert_eq!(taken, takes, "{limit} of {sizes:?}");
    }

    #[test]
    fn the_split_is_that_of_spark() {
        check(10, &[97, 2, 1], &[9, 1, 1]);
        check(10, &[50, 50, 50], &[3, 3, 3]);
        check(100, &[20; 7], &[14; 7]);
        check(1, &[5; 4], &[1; 4]);
        check(1_000, &[5, 7], &[5, 7]);
        check(10, &[0, 0], &[0, 0]);
        check(u64::MAX, &[5, 0], &[5, 0]);
    }

    #[test]
    fn a_partition_behind_its_start_or_without_one_ends_at_latest() {
        let from = offsets([100, 100]);
        let latest = offsets([90, 200, 300]);
        assert_eq!(split(&from, &latest, 10), offsets([90, 110, 300]));
    }

    proptest! {
        #[test]
        fn no_partition_starves_and_none_runs_past_its_end(
            parts in prop::collection::vec((0..1_i64 << 40, 0..1_i64 << 20), 1..60),
            limit in 1..1_u64 << 30,
        ) {
            let from = offsets(parts.iter().map(|(begin, _)| *begin));
            let latest = offsets(parts.iter().map(|(begin, size)| begin + size));
            let until = split(&from, &latest, limit);
            let mut taken = 0;
            for (partition, begin) in from.iter() {
                let (end, last) = (until.of(&partition).expect("kept"), latest.of(&partition).expect("kept"));
                prop_assert!(end <= last);
                prop_assert!(end > begin || last == begin, "{partition} starves");
                taken += end.0 - begin.0;
            }
            prop_assert!(taken as u64 <= limit + parts.len() as u64);
        }
    }
}
