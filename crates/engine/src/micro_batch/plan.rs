//! What the next batch takes.

use baton_core::{Admission, Fault, Gap, Position, Source, SourceName};
use futures::future::try_join_all;
use std::sync::Arc;

use crate::Result;

/// One source of the query.
#[derive(Clone)]
pub(super) struct SourceSeat {
    pub(super) name: SourceName,
    pub(super) source: Arc<dyn Source>,
}

/// What a batch would take, before it is written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) from: Position,
    pub(super) until: Position,
    pub(super) latest: Position,
    pub(super) gaps: Vec<(SourceName, Gap)>,
}

impl Draft {
    /// Whether there is nothing to read.
    pub(super) fn is_empty(&self) -> Result<bool> {
        Ok(self.from.offsets_until(&self.until)? == 0)
    }

    /// Whether the batch starts exactly where the last one ended, nothing lost and nothing new: only then may its plan
    /// share a log slot with that one's commit.
    pub(super) fn continues(&self, position: &Position) -> bool {
        self.gaps.is_empty() && self.from == *position
    }
}

/// How much a batch may take, over all sources.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// Ignore the sources' limits.
    pub(super) unlimited: bool,
    /// Not beyond this.
    pub(super) cap: Option<Position>,
}

/// A source's failure, with its name.
#[derive(Debug)]
pub(super) struct SourceFault {
    pub(super) name: SourceName,
    pub(super) fault: Fault,
}

impl SourceSeat {
    pub(super) fn fault(&self, fault: Fault) -> SourceFault {
        SourceFault {
            name: self.name.clone(),
            fault,
        }
    }
}

/// Asks all sources at once what a batch from `from` would take.
pub(super) async fn draft(
    sources: Vec<SourceSeat>,
    from: Position,
    limits: Limits,
) -> Result<Draft, SourceFault> {
    let plans = try_join_all(sources.iter().map(|seat| {
        let mut admission = Admission::default();
        admission.unlimited = limits.unlimited;
        admission.cap = limits
            .cap
            .as_ref()
            .map(|cap| cap.source(&seat.name).cloned().unwrap_or_default());
        let asked = from.source(&seat.name).cloned().unwrap_or_default();
        async move {
            seat.source
                .plan(&asked, &admission)
                .await
                .map_err(|fault| seat.fault(fault))
        }
    }))
    .await?;
    let mut draft = Draft::default();
    for (seat, plan) in sources.iter().zip(plans) {
        draft.from.0.insert(seat.name.clone(), plan.from);
        draft.until.0.insert(seat.name.clone(), plan.until);
        draft.latest.0.insert(seat.name.clone(), plan.latest);
        draft
            .gaps
            .extend(plan.gaps.into_iter().map(|gap| (seat.name.clone(), gap)));
    }
    Ok(draft)
}

/// How far `position` is behind `latest`.
pub(super) fn lag(position: &Position, latest: &Position) -> Position {
    position
        .0
        .iter()
        .filter_map(|(name, at)| Some((name.clone(), at.lag_behind(latest.source(name)?))))
        .collect()
}
