//! Going on from the log: at a start, and after a sink that did not answer.
//!
//! ```text
//! log's tail        the sink's marker          →
//! Commit(c)         c, or none kept            idle: the next batch is planned anew
//! Plan(p)           p, with Plan(p)'s write id adopt: append Commit(p), output is not repeated
//! Plan(p)           anything before p, or none re-run p with the same range
//! anything          anything else              halt
//! ```
//! The decision is the checkpoint's ([`Lease::resume`]); here it is carried out.

use baton_checkpoint::{Lease, Planned, Resume};
use baton_core::{Epoch, Marker, Receipt, SinkRef, SourceName};

use super::plan::SourceSeat;
use super::run::Runner;
use super::seat::SinkSeat;
use crate::event::{Events, QueryEvent};
use crate::{Error, Result};

/// Shuts older owners out of the sink and reads what it has. Only after a durable fence, never before.
pub(super) async fn fence_and_look(sink: &mut SinkSeat, epoch: Epoch, at: SinkRef) -> Result<Marker> {
    let looked = sink
        .call(move |sink| {
            Box::pin(async move {
                sink.fence(epoch, &at).await?;
                sink.last_committed().await
            })
        })
        .await?;
    looked.map_err(|fault| Error::sink_failed(&sink.format, fault))
}

/// Decides how to go on; commits an adopted batch. Returns the batch that has to run again.
pub(super) async fn resume(lease: &mut Lease, marker: Marker, events: &Events) -> Result<Option<Planned>> {
    match lease.resume(marker)? {
        Resume::Idle => Ok(None),
        Resume::Rerun(planned) => Ok(Some(planned)),
        Resume::Adopt(planned) => {
            let batch = planned.batch;
            let receipt = Receipt {
                rows: 0,
                note: "adopted".to_owned(),
            };
            lease.commit(planned, &receipt, None).await?;
            events.emit(QueryEvent::Adopted { batch }).await;
            Ok(None)
        }
    }
}

/// Refuses a batch that takes rows from a source that this job does not have.
pub(super) fn check_sources(planned: &Planned, sources: &[SourceSeat]) -> Result<()> {
    let is_ours = |name: &SourceName| sources.iter().any(|seat| seat.name == *name);
    for (name, from) in &planned.from.0 {
        let until = planned.until.source(name);
        if until.is_some_and(|until| until != from) && !is_ours(name) {
            return Err(Error::ForeignPlan {
                batch: planned.batch,
                name: name.clone(),
            });
        }
    }
    Ok(())
}

impl Runner {
    /// After a passing failure of the sink: asks the log whether we still own the checkpoint, then the sink what it has.
    /// Returns the batch to run again, or none if it was published after all and is now committed.
    pub(super) async fn ask_sink_again(&mut self, planned: Planned) -> Result<Option<Planned>> {
        // A newer fence in the log means that the sink was right to refuse us.
        drop(self.helm.lease.permit(&planned).await?);
        let (epoch, until) = (self.helm.lease.epoch(), planned.until.clone());
        let marker = fence_and_look(&mut self.sink, epoch, planned.sink.clone()).await?;
        drop(planned);
        let again = resume(&mut self.helm.lease, marker, &self.helm.events).await?;
        if again.is_none() {
            self.position = until.clone();
            self.publisher.publish(until);
        }
        Ok(again)
    }
}
