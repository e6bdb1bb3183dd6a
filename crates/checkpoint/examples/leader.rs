//! Owns a checkpoint, does numbered work while it does, and hands over to whoever asks.
//!
//! Run it twice with one directory: `cargo run -p baton-checkpoint --example leader -- /tmp/leader`. The second asks the
//! first, which finishes its step and leaves; the second goes on with the next number.

use baton_checkpoint::{
    AcquireOptions, Candidate, Deps, IfOwned, JobShape, Location, PlanDraft, PositionReason, Request, acquire,
};
use baton_core::{Marker, TopicPartition};
use baton_core::{
    Offset, OwnerId, PartitionOffsets, Position, Receipt, Rng, SinkRef, SourceName, TokioClock,
};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "/tmp/baton-leader".to_owned());
    let deps = Deps {
        clock: Arc::new(TokioClock::start()),
        rng: Arc::new(Rng::from_os()),
    };
    let candidate = Candidate {
        owner: OwnerId(deps.rng.uuid()),
        job: "leader".to_owned(),
        // Each start is a version of its own, so that a later one may replace an earlier one.
        version: deps.clock.now().0.to_string(),
        shape: JobShape::default(),
        handover: true,
    };
    let options = AcquireOptions {
        if_owned: IfOwned::Takeover,
        ..AcquireOptions::default()
    };
    let (events, mut heard) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        while let Some(event) = heard.recv().await {
            drop(writeln!(std::io::stderr(), "{event:?}"));
        }
    });
    let mut lease = acquire(&Location::parse(&place)?, candidate, options, &deps, events).await?;
    let mut at = match lease.recovery().next.clone() {
        Some(next) => next,
        None => {
            lease.record_position(number(0)?, PositionReason::Start).await?;
            number(0)?
        }
    };
    // A step that was interrupted is done again; the log has its number.
    let mut pending = match lease.resume(Marker::Untracked)? {
        baton_checkpoint::Resume::Rerun(planned) => Some(planned),
        _ => None,
    };
    loop {
        let planned = match pending.take() {
            Some(planned) => planned,
            None => {
                let draft = PlanDraft {
                    from: at.clone(),
                    until: number(count(&at) + 1)?,
                    sink: SinkRef::default(),
                };
                lease.plan(draft).await?
            }
        };
        let _permit = lease.permit(&planned).await?;
        writeln!(
            std::io::stdout(),
            "epoch {} does number {}",
            lease.epoch(),
            count(&planned.until)
        )?;
        at = planned.until.clone();
        lease.commit(planned, &Receipt::default(), None).await?;
        tokio::select! {
            () = deps.clock.sleep(Duration::from_secs(1)) => {}
            asked = lease.requests().recv() => match asked {
                Some(Request::HandOver { candidate }) => return Ok(lease.release(Some(candidate.id)).await?),
                Some(Request::HandOverWithdrawn) => {}
                Some(Request::Stop { .. }) | None => return Ok(lease.release(None).await?),
            }
        }
    }
}

fn number(n: i64) -> Result<Position, Box<dyn std::error::Error>> {
    let mut offsets = PartitionOffsets::new();
    offsets.set(TopicPartition::new("numbers", 0), Offset(n));
    Ok([(SourceName::new("numbers")?, offsets)].into_iter().collect())
}

fn count(at: &Position) -> i64 {
    at.0.values()
        .filter_map(|offsets| offsets.get("numbers", 0))
        .map(|offset| offset.0)
        .sum()
}
