//! Looking at a checkpoint, and stopping its owner, from outside.

use std::sync::Arc;
use std::time::Duration;

use super::acquire::describe;
use super::directory::{Directory, Tenant};
use super::marker::{Marker, read_hint};
use super::read::look;
use super::wire::{Answer, Ask, Call, Peer};
use crate::status::{State, Status};
use crate::{Deps, Error, Location, Result};

/// How long an owner may take to answer before it counts as not responding.
const ANSWER: Duration = Duration::from_millis(500);

const POLL: Duration = Duration::from_millis(20);

/// Says who owns a checkpoint and how far it is. Takes no lock and disturbs nobody.
///
/// # Errors
/// When the directory is something else, or its log cannot be read and nobody alive owns it.
///
/// # Cancel safety
/// It changes nothing.
pub async fn inspect(location: &Location, deps: &Deps) -> Result<Status> {
    #[cfg(feature = "object-store")]
    if let Some(place) = location.place() {
        return Box::pin(super::remote::inspect(place, deps)).await;
    }
    let empty = Status::empty(location.to_string());
    let Some(directory) = Directory::find(location.path())?.map(Arc::new) else {
        return Ok(empty);
    };
    let call = Peer::call(&directory).await;
    let lives = !matches!(call, Call::Nobody) || directory.lock_holder().is_some();
    if let Call::Connected(mut peer) = call
        && let Some(Answer::Status { status }) = peer.ask(&Ask::Status, ANSWER, &deps.clock).await
    {
        return Ok(*status);
    }
    let Some(marker) = Marker::read(&directory)? else {
        return Ok(empty);
    };
    // A living owner may be writing what we would read, but its last word is as good.
    let hint = read_hint(&directory, marker.checkpoint_id);
    if lives {
        let said = hint.filter(|hint| {
            let pid = hint.status.owner.as_ref().map(|owner| owner.pid);
            hint.status.state == State::Running
                && directory.lock_holder().is_none_or(|holder| pid == Some(holder))
        });
        let mut status = match said {
            Some(hint) => hint.status,
            None => of_log(&directory, empty).await?,
        };
        status.checkpoint = location.to_string();
        status.state = State::Running;
        status.responding = Some(false);
        return Ok(status);
    }
    let mut status = of_log(&directory, empty).await?;
    if let Some(hint) = hint {
        status.lag = hint.status.lag;
        status.lag_at = hint.status.lag_at;
        status.last_error = hint.status.last_error;
    }
    Ok(status)
}

async fn of_log(directory: &Arc<Directory>, empty: Status) -> Result<Status> {
    let mut status = match look(directory).await? {
        Some(look) => Status::of_log(empty.checkpoint, look.marker.checkpoint_id, &look.contents.log()),
        None => empty,
    };
    status.guard = directory.tenant() == Tenant::Guard;
    Ok(status)
}

/// How a stop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopOutcome {
    /// The owner has released, or is gone.
    Released,
    /// The owner was told to abandon its batch.
    Told,
    /// Nobody owns it.
    NotRunning,
}

/// Asks the owner to finish its batch and end; returns when it has. With `now` it is told to abandon its batch, and is
/// not waited for.
///
/// # Errors
/// [`Error::StopTimeout`] if it takes longer than `timeout`.
///
/// # Cancel safety
/// The owner may have been asked already; it ends all the same.
pub async fn stop(location: &Location, now: bool, timeout: Duration, deps: &Deps) -> Result<StopOutcome> {
    #[cfg(feature = "object-store")]
    if let Some(place) = location.place() {
        return Box::pin(super::remote::stop(place, now, timeout, deps)).await;
    }
    let Some(directory) = Directory::find(location.path())? else {
        return Ok(StopOutcome::NotRunning);
    };
    let start = deps.clock.elapsed();
    let left = || timeout.saturating_sub(deps.clock.elapsed().saturating_sub(start));
    let mut holder = describe(None, directory.lock_holder());
    let mut asked = false;
    loop {
        if left().is_zero() && (asked || directory.lock_holder().is_some()) {
            let waited = format!("{timeout:?}");
            return Err(Error::StopTimeout { holder, waited });
        }
        match Peer::call(&directory).await {
            Call::Connected(mut peer) => {
                asked = true;
                if let Some(Answer::Status { status }) =
                    peer.ask(&Ask::Status, left().min(ANSWER), &deps.clock).await
                {
                    holder = describe(Some(&status), peer.pid);
                }
                let Some(Answer::Stopping) = peer.ask(&Ask::Stop { now }, left(), &deps.clock).await else {
                    continue;
                };
                if now {
                    return Ok(StopOutcome::Told);
                }
                // Released is said when the lock is free, and a line that breaks means that its process is gone.
                tokio::select! {
                    biased;
                    () = until_end(&mut peer) => return Ok(StopOutcome::Released),
                    () = deps.clock.sleep(left()) => {}
                }
            }
            Call::Nobody if directory.lock_holder().is_none() => {
                return Ok(if asked {
                    StopOutcome::Released
                } else {
                    StopOutcome::NotRunning
                });
            }
            // It starts, or it ends.
            Call::Nobody | Call::Busy => deps.clock.sleep(POLL).await,
        }
    }
}

async fn until_end(peer: &mut Peer) {
    while !matches!(peer.ears.hear::<Answer>().await, None | Some(Answer::Released)) {}
}
