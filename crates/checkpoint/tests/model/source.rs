//! One partition that always has more records.

use baton_checkpoint::PlanDraft;
use baton_core::{Offset, PartitionOffsets, Position, SinkRef, SourceName, TopicPartition};

/// `by` records behind `before`, or behind the first.
pub(crate) fn at(before: Option<&Position>, by: i64) -> Position {
    let partition = TopicPartition::new("t", 0);
    let name = SourceName::new("s").expect("a name");
    let before = before
        .and_then(|position| position.source(&name))
        .and_then(|offsets| offsets.of(&partition))
        .map_or(0, |offset| offset.0);
    let mut offsets = PartitionOffsets::new();
    offsets.set(partition, Offset(before + by));
    [(name, offsets)].into_iter().collect()
}

/// The next five records.
pub(crate) fn draft(next: Option<&Position>) -> PlanDraft {
    PlanDraft {
        from: at(next, 0),
        until: at(next, 5),
        sink: SinkRef("sink".into()),
    }
}
