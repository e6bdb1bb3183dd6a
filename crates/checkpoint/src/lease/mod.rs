//! The lease (signatures first; bodies follow).

use baton_core::{CheckpointId, CommitPermit, Epoch, Marker, OwnerId, Position, Receipt};
use serde::Serialize;
use std::time::Duration;
use tokio::sync::mpsc;

use crate::{
    AcquireEvent, AcquireOptions, Candidate, Deps, Error, Location, PlanDraft, Planned, PositionReason,
    Recovery, Report, Request, Result, Resume,
};

fn later<T>() -> Result<T> {
    Err(Error::Misuse { what: "not built yet".to_owned() })
}

/// The checkpoint, owned.
#[derive(Debug)]
pub struct Lease { recovery: Recovery, requests: mpsc::Receiver<Request> }

/// The state of a checkpoint.
#[derive(Clone, Debug, Serialize)]
pub struct Status {}
/// The records of a checkpoint.
#[derive(Clone, Debug, Serialize)]
pub struct Show {}
/// How a stop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopOutcome {
    /// The owner has released.
    Released,
    /// The owner was told to abandon its batch.
    Told,
    /// Nobody owns it.
    NotRunning,
}

/// Gets the checkpoint.
pub async fn acquire(_: &Location, _: Candidate, _: AcquireOptions, _: &Deps, _: mpsc::Sender<AcquireEvent>) -> Result<Lease> { later() }
/// What a start would find.
pub async fn preview(_: &Location) -> Result<Option<Recovery>> { later() }
/// Who owns it.
pub async fn inspect(_: &Location, _: &Deps) -> Result<Status> { later() }
/// Stops the owner.
pub async fn stop(_: &Location, _: bool, _: Duration, _: &Deps) -> Result<StopOutcome> { later() }
/// The records.
pub async fn show(_: &Location) -> Result<Show> { later() }

impl Lease {
    /// Which.
    pub fn checkpoint(&self) -> CheckpointId { self.recovery.checkpoint }
    /// The fencing token.
    pub fn epoch(&self) -> Epoch { Epoch(0) }
    /// What was found.
    pub fn recovery(&self) -> &Recovery { &self.recovery }
    /// Position.
    pub async fn record_position(&mut self, _: Position, _: PositionReason) -> Result<()> { later() }
    /// Plan.
    pub async fn plan(&mut self, _: PlanDraft) -> Result<Planned> { later() }
    /// Resume.
    pub fn resume(&mut self, _: Marker) -> Result<Resume> { later() }
    /// Permit.
    pub fn permit(&mut self, _: &Planned) -> Result<CommitPermit> { later() }
    /// Commit.
    pub async fn commit(&mut self, _: Planned, _: &Receipt, _: Option<PlanDraft>) -> Result<Option<Planned>> { later() }
    /// Release.
    pub async fn release(self, _: Option<OwnerId>) -> Result<()> { later() }
    /// Requests.
    pub fn requests(&mut self) -> &mut mpsc::Receiver<Request> { &mut self.requests }
    /// Report.
    pub fn report(&self, _: Report) {}
}
