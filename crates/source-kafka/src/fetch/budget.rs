//! How much is read ahead.

/// Messages read ahead, over all partitions. librdkafka keeps an object of some 400 bytes for each, so that this bounds
/// memory for small messages, and the bytes below for large ones.
const MESSAGES: usize = 120_000;
/// Bytes of messages read ahead, over all partitions.
const BYTES: usize = 48 << 20;
/// Bytes of all partitions' answers that may be under way at once.
const UNDER_WAY: usize = 16 << 20;

/// What one partition may hold. librdkafka's bounds are per partition when each has a queue of its own, and it looks at
/// them before a fetch: one more answer may come on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    pub(super) messages: usize,
    pub(super) kilobytes: usize,
    pub(super) fetch_bytes: usize,
    /// The number of partitions it was made for.
    pub(super) partitions: usize,
}

impl Budget {
    pub(super) fn for_partitions(partitions: usize) -> Self {
        let partitions = partitions.max(1);
        Self {
            messages: (MESSAGES / partitions).clamp(50, 40_000),
            kilobytes: (BYTES / partitions / 1_000).clamp(128, 16_000),
            fetch_bytes: (UNDER_WAY / partitions).clamp(16 << 10, 1 << 20),
            partitions,
        }
    }

    /// Whether it still serves so many partitions.
    pub(super) const fn serves(self, partitions: usize) -> bool {
        partitions <= 2 * self.partitions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_whatever_the_number_of_partitions() {
        for partitions in 1..2_000 {
            let budget = Budget::for_partitions(partitions);
            let messages = budget.messages * 400 + budget.fetch_bytes * 4;
            let bytes = budget.kilobytes * 1_000 + budget.fetch_bytes;
            assert!(
                messages.max(bytes) * partitions < 650 << 20,
                "{partitions}: {budget:?}"
            );
        }
    }

    #[test]
    fn few_partitions_fetch_a_mebibyte_at_a_time() {
        assert_eq!(Budget::for_partitions(3).fetch_bytes, 1 << 20);
        assert!(Budget::for_partitions(3).serves(6) && !Budget::for_partitions(3).serves(7));
    }
}
