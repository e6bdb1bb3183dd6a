//! A checkpoint that stands still: its lock is held for as long as it is read.

use std::sync::Arc;
use std::time::Duration;

use super::RepairError;
use crate::lease::Directory;
use crate::{Deps, Error, Location, Result, State, Status, inspect};

const POLL: Duration = Duration::from_millis(20);

/// How long an owner that is just leaving, or somebody else who only looks, is waited for.
const MOMENT: Duration = Duration::from_secs(1);

/// Takes the lock of a checkpoint for reading; it is free again when the directory is dropped. `None` if there is no
/// directory. A start that comes meanwhile waits a moment for it, as it does for an owner that is just leaving.
pub(super) async fn quiet(
    location: &Location,
    deps: &Deps,
    command: &'static str,
) -> Result<Option<Arc<Directory>>> {
    let start = deps.clock.elapsed();
    loop {
        let Some(directory) = Directory::find(location.local()?)? else {
            return Ok(None);
        };
        // One that was replaced while it was opened is worth nothing; the next round opens the other.
        if directory.try_lock()? && directory.is_in_place() {
            return Ok(Some(Arc::new(directory)));
        }
        let status = inspect(location, deps).await.ok();
        let answers = status
            .as_ref()
            .is_some_and(|status| status.responding == Some(true));
        if answers || deps.clock.elapsed().saturating_sub(start) >= MOMENT {
            let holder = holder(status.as_ref(), directory.lock_holder());
            return Err(owned(location, holder, command));
        }
        drop(directory);
        deps.clock.sleep(POLL).await;
    }
}

/// The refusal that names the owner.
pub(super) fn owned(location: &Location, holder: String, command: &'static str) -> Error {
    let path = location.path().to_owned();
    RepairError::Owned {
        path,
        holder,
        command,
    }
    .into()
}

fn holder(status: Option<&Status>, pid: Option<u32>) -> String {
    let owner = status
        .filter(|status| status.state == State::Running)
        .and_then(|status| Some((status, status.owner.as_ref()?)));
    match (owner, pid) {
        (Some((status, owner)), _) => match status.last_committed_batch {
            Some(batch) => format!("{owner}, last batch {batch}"),
            None => format!("{owner}, no batch yet"),
        },
        (None, Some(pid)) => format!("the process with pid {pid}, which does not say who it is"),
        (None, None) => "another process, which does not say who it is".to_owned(),
    }
}
