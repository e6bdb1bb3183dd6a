//! Mistakes that the rules must notice: each one alone has to lead to a counterexample.

/// A mistake in an engine or a storage back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flaw {
    /// The marker is read before older producers are shut out.
    MarkerBeforeInit,
    /// Whoever believes that the lease has expired starts to work without a fence in the log.
    NoFence,
    /// Retention takes fences as well.
    CollectedFence,
    /// "Exists already" is taken for a loss, without a look at whose record it is.
    NoReadBack,
    /// Each epoch has a transactional id of its own.
    EpochInTransactionalId,
    /// A batch is committed to the log before the sink has it.
    CommitBeforeSink,
    /// An owner that was asked to leave releases in the middle of a batch.
    ReleaseBeforeCommit,
    /// A batch that was interrupted is planned again, with another range.
    AnotherRange,
    /// A successor starts where the owner said that it would end, instead of where the log does.
    PrefetchPosition,
    /// The plan is sent before the commit of the batch before has been answered.
    TwoInFlight,
    /// Any output of that batch is taken for ours.
    AdoptAny,
    /// Batches are planned before the starting position is in the log.
    PollBeforePosition,
    /// A candidate believes in its fence without a look whether its slot was written and retired before.
    NoLookAboveFence,
}

impl Flaw {
    pub(crate) const ALL: [Self; 13] = [
        Self::MarkerBeforeInit,
        Self::NoFence,
        Self::CollectedFence,
        Self::NoReadBack,
        Self::EpochInTransactionalId,
        Self::CommitBeforeSink,
        Self::ReleaseBeforeCommit,
        Self::AnotherRange,
        Self::PrefetchPosition,
        Self::TwoInFlight,
        Self::AdoptAny,
        Self::PollBeforePosition,
        Self::NoLookAboveFence,
    ];
}
