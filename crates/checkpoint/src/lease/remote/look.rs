//! Looking at a checkpoint on shared storage from outside, and stopping its owner.

use baton_core::{CheckpointId, OwnerId};
use std::time::Duration;

use super::{Asked, REFRESH, checked};
use crate::lease::StopOutcome;
use crate::lease::acquire::describe;
use crate::lease::read::{Show, json_of};
use crate::lease::wire::Ask;
use crate::object::slot::Budget;
use crate::object::{Letter, Loaded, Mailbox, ObjectLog, Place, Register, Renewal};
use crate::protocol::Log;
use crate::status::{State, Status};
use crate::{Deps, Error, Recovery, Result};

/// How long to look for a sign of life: an owner renews every second.
const SIGN: Duration = Duration::from_millis(2500);

const POLL: Duration = Duration::from_millis(200);

async fn read(place: &Place, deps: &Deps) -> Result<Option<(CheckpointId, Loaded, Log)>> {
    let loaded = ObjectLog::new(place.clone(), deps.clone(), Budget::default())
        .load()
        .await?;
    let Some(id) = checked(place, &loaded)? else {
        return Ok(None);
    };
    let log = Log::replay(loaded.records());
    Ok(Some((id, loaded, log)))
}

/// What a start would find; see [`crate::preview`].
pub(in crate::lease) async fn preview(place: &Place, deps: &Deps) -> Result<Option<Recovery>> {
    Ok(read(place, deps).await?.map(|(id, _, log)| {
        let mut recovery = log.recovery(id);
        // Who handed over to the present owner is not for us.
        recovery.handed_over_by = None;
        recovery
    }))
}

/// The log; see [`crate::show`].
pub(in crate::lease) async fn show(place: &Place, deps: &Deps, mut shown: Show) -> Result<Show> {
    if let Some((id, loaded, _)) = read(place, deps).await? {
        shown.checkpoint_id = Some(id);
        shown.records = loaded.records().map(json_of).collect();
    }
    Ok(shown)
}

/// Who owns it, and how far it is; see [`crate::inspect`]. An owner that is not leaving is looked at until it renews.
pub(in crate::lease) async fn inspect(place: &Place, deps: &Deps) -> Result<Status> {
    let Some((id, _, log)) = read(place, deps).await? else {
        return Ok(Status::empty(place.to_string()));
    };
    let mut status = Status::of_log(place.to_string(), id, &log);
    let register = Register::new(place.clone(), deps.clone());
    let owner = log.owner().map(|owner| owner.id);
    let theirs = |renewal: &Renewal| Some(renewal.owner.id) == owner;
    let Some(first) = register.look().await?.filter(theirs) else {
        return Ok(status);
    };
    if status.state == State::Released {
        told(&mut status, &first);
        return Ok(status);
    }
    let start = deps.clock.elapsed();
    let mut last = first.clone();
    while last.counter == first.counter && deps.clock.elapsed().saturating_sub(start) < SIGN {
        deps.clock.sleep(POLL).await;
        last = register.look().await?.filter(theirs).unwrap_or(last);
    }
    if last.counter != first.counter
        && let Ok(by_itself) = serde_json::from_value(last.status.clone())
    {
        return Ok(by_itself);
    }
    told(&mut status, &last);
    status.owner = Some(last.owner.clone());
    status.responding = Some(false);
    // Wall clocks, because this is only shown: nobody decides by it.
    let silent = deps.clock.now().0.saturating_sub(last.at.0);
    if u64::try_from(silent).is_ok_and(|silent| silent < last.lease_ms) {
        status.state = State::Unknown;
    } else {
        (status.owner, status.responding) = (None, None);
    }
    Ok(status)
}

/// What only the owner knew.
fn told(status: &mut Status, renewal: &Renewal) {
    if let Ok(said) = serde_json::from_value::<Status>(renewal.status.clone()) {
        status.lag = said.lag;
        status.lag_at = said.lag_at;
        status.last_error = said.last_error;
    }
}

/// Asks the owner to end; see [`crate::stop`].
pub(in crate::lease) async fn stop(
    place: &Place,
    now: bool,
    timeout: Duration,
    deps: &Deps,
) -> Result<StopOutcome> {
    let status = inspect(place, deps).await?;
    if !matches!(status.state, State::Running | State::Unknown) {
        return Ok(StopOutcome::NotRunning);
    }
    let holder = describe(Some(&status), None);
    let reader = ObjectLog::new(place.clone(), deps.clone(), Budget::default());
    let mailbox = Mailbox::new(place.clone(), deps.clone());
    let me = OwnerId(deps.rng.uuid());
    let outcome = ask_to_stop(&reader, &mailbox, me, now, timeout, deps).await;
    drop(mailbox.clear(me).await);
    outcome?.ok_or_else(|| Error::StopTimeout {
        holder,
        waited: format!("{timeout:?}"),
    })
}

/// `None` when the time is over.
async fn ask_to_stop(
    reader: &ObjectLog,
    mailbox: &Mailbox,
    me: OwnerId,
    now: bool,
    timeout: Duration,
    deps: &Deps,
) -> Result<Option<StopOutcome>> {
    let start = deps.clock.elapsed();
    let waited = || deps.clock.elapsed().saturating_sub(start);
    let mut log = Log::replay(reader.load().await?.records());
    let epoch = log.epoch();
    let (mut number, mut posted) = (0, None);
    while waited() < timeout {
        if posted.is_none_or(|at| waited().saturating_sub(at) >= REFRESH) {
            number += 1;
            posted = Some(waited());
            let letter: Asked = Letter::new(number, Ask::Stop { now });
            mailbox.post(me, &letter).await?;
        }
        while let Some((_, records)) = reader.read_next(log.free()).await? {
            records.iter().for_each(|record| log.apply(record));
        }
        if log.released().is_some() || log.epoch() > epoch {
            return Ok(Some(StopOutcome::Released));
        }
        if now
            && mailbox
                .read_answer::<crate::lease::wire::Answer>(me)
                .await?
                .is_some()
        {
            return Ok(Some(StopOutcome::Told));
        }
        deps.clock.sleep(POLL).await;
    }
    Ok(None)
}
