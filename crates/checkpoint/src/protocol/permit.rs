//! Where permits come from.

use baton_core::{CheckpointId, CommitPermit, Epoch};

use crate::Planned;

/// Issues the right to publish a planned batch. Only a lease that [`step`](super::step) has told to
/// [`CommitSink`](super::Action::CommitSink) asks for it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that decides who may publish"
)]
pub(crate) const fn permit(checkpoint: CheckpointId, planned: &Planned, epoch: Epoch) -> CommitPermit {
    CommitPermit::issue(checkpoint, planned.batch, epoch, planned.write_id)
}
