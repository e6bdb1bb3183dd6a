//! What a move of the position means for each partition.

use baton_core::{Offset, Position, SourceName};
use serde::Serialize;

/// One partition whose position moves.
///
/// Counted are offsets: compaction, aborted transactions and control records leave fewer records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Move {
    /// The source.
    pub source: SourceName,
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Where it stands.
    pub from: Offset,
    /// Where it will stand.
    pub to: Offset,
    /// How many offsets are read again.
    pub again: u64,
    /// How many offsets are read by no batch.
    pub skipped: u64,
}

/// The partitions that stand elsewhere in `to` than in `from`, in order.
pub(super) fn moves(from: &Position, to: &Position) -> Vec<Move> {
    let mut moves = Vec::new();
    for (source, offsets) in &from.0 {
        for (at, before) in offsets.iter() {
            let after = to.source(source).and_then(|offsets| offsets.of(&at));
            let Some(after) = after.filter(|after| *after != before) else {
                continue;
            };
            let distance = before.0.abs_diff(after.0);
            let (again, skipped) = if after < before {
                (distance, 0)
            } else {
                (0, distance)
            };
            moves.push(Move {
                source: source.clone(),
                topic: at.topic,
                partition: at.partition,
                from: before,
                to: after,
                again,
                skipped,
            });
        }
    }
    moves
}

/// All of one kind.
pub(super) fn total(moves: &[Move], of: impl Fn(&Move) -> u64) -> u64 {
    moves.iter().map(of).fold(0, u64::saturating_add)
}
