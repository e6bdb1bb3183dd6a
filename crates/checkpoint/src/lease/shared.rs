//! What a lease and its socket have in common: the state machine, the store, the status.

use baton_core::{BatchId, CheckpointId, Position, Timestamp};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};

use super::directory::Tenant;
use super::ground::Ground;
use crate::protocol::{Action, End, Event, Owner, step};
use crate::status::{Hint, Standby, State, Status};
use crate::{Deps, OwnerInfo, Report, Request};

/// How a lease ended, for those who listen at the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Not yet.
    No,
    /// The lock is free.
    Released,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) ground: Ground,
    pub(crate) checkpoint: CheckpointId,
    pub(crate) me: OwnerInfo,
    pub(crate) deps: Deps,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) over: watch::Sender<Over>,
    /// Told of each commit.
    pub(crate) committed: watch::Sender<Option<BatchId>>,
    machine: Mutex<Option<Owner>>,
    said: Mutex<Said>,
}

/// What the owner and its listeners say beyond the log.
#[derive(Debug, Default)]
struct Said {
    lag: Option<Position>,
    lag_at: Option<Timestamp>,
    last_error: Option<String>,
    standbys: Vec<OwnerInfo>,
    wanted_by: Option<String>,
}

impl Shared {
    pub(crate) fn new(
        ground: Ground,
        checkpoint: CheckpointId,
        me: OwnerInfo,
        deps: Deps,
        requests: mpsc::Sender<Request>,
        machine: Owner,
    ) -> Self {
        Self {
            ground,
            checkpoint,
            me,
            deps,
            requests,
            over: watch::channel(Over::No).0,
            committed: watch::channel(None).0,
            machine: Mutex::new(Some(machine)),
            said: Mutex::default(),
        }
    }

    fn machine(&self) -> MutexGuard<'_, Option<Owner>> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Feeds the state machine.
    pub(crate) fn step(&self, event: Event) -> Vec<Action> {
        let mut machine = self.machine();
        let Some(owner) = machine.take() else {
            return Vec::new();
        };
        let (owner, actions) = step(owner, event);
        *machine = Some(owner);
        actions
    }

    /// Looks at the state machine.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Owner) -> T) -> T {
        look(
            self.machine()
                .as_ref()
                .expect("it is only absent while it steps, under this lock"),
        )
    }

    /// Changes the state machine's memory of retired slots.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Owner) -> T) -> T {
        change(
            self.machine()
                .as_mut()
                .expect("it is only absent while it steps, under this lock"),
        )
    }

    /// Passes a request on to the job. One that does not fit any more is dropped, as any message may be.
    pub(crate) fn tell(&self, request: Request) {
        if let Err(error) = self.requests.try_send(request) {
            tracing::debug!(%error, "a request was dropped");
        }
    }

    pub(crate) fn report(&self, report: Report) {
        let mut said = self.said();
        if let Some(lag) = report.lag {
            said.lag = Some(lag);
            said.lag_at = Some(self.deps.clock.now());
        }
        said.last_error = report.last_error;
    }

    /// Somebody takes a guard's checkpoint by force. The lock must outlive what the guard runs, so it is only told.
    pub(crate) fn is_wanted_by(&self, by: String) {
        self.said().wanted_by = Some(by);
        self.tell(Request::Stop { now: true });
    }

    pub(crate) fn wanted_by(&self) -> Option<String> {
        self.said().wanted_by.clone()
    }

    pub(crate) fn stands_by(&self, candidate: OwnerInfo) {
        let mut said = self.said();
        said.standbys.retain(|other| other.id != candidate.id);
        said.standbys.push(candidate);
    }

    pub(crate) fn has_gone(&self, candidate: &OwnerInfo) {
        self.said().standbys.retain(|other| other.id != candidate.id);
    }

    /// The status as the owner sees it.
    pub(crate) fn status(&self) -> Status {
        let (mut status, ended, successor) = self.look(|owner| {
            let status = Status::of_log(
                self.ground.path().display().to_string(),
                self.checkpoint,
                owner.log(),
            );
            (status, owner.end().cloned(), owner.successor().cloned())
        });
        match ended {
            None => {
                status.state = State::Running;
                status.owner = Some(self.me.clone());
                status.responding = Some(true);
            }
            Some(End::Released) => status.state = State::Released,
            Some(_) => status.state = State::Interrupted,
        }
        let said = self.said();
        status.standby = successor
            .as_ref()
            .or_else(|| said.standbys.first())
            .map(Standby::of);
        status.lag.clone_from(&said.lag);
        status.lag_at = said.lag_at;
        status.last_error.clone_from(&said.last_error);
        status.guard = self.ground.tenant() == Tenant::Guard;
        status
    }

    /// The status file's content.
    pub(crate) fn hint(&self, successor: Option<OwnerInfo>) -> Vec<u8> {
        let hint = Hint {
            status: self.status(),
            seq: self.look(|owner| owner.log().tail()),
            successor,
        };
        serde_json::to_vec(&hint).expect("a status always serialises")
    }

    /// Has the status file written soon.
    pub(crate) fn publish(&self) {
        self.ground.hint(|| self.hint(None));
    }
}
