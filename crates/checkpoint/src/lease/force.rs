//! Ending an owner on this machine. Nobody can take a lock away from a live process: it has to yield, or to die.

use baton_core::OwnerId;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::time::Duration;
use uuid::Uuid;

use super::acquire::{Seeker, describe};
use super::wire::{Ask, Call, Peer};
use crate::{Error, OwnerInfo, Result};

/// How long an owner may take to yield by itself: so long as its sink may be publishing.
const YIELD: Duration = Duration::from_secs(2);

/// How long the kernel may take to end a killed process; longer means that it hangs in a system call.
const DEATH: Duration = Duration::from_secs(10);

const POLL: Duration = Duration::from_millis(20);

impl Seeker {
    /// Ends the owner. Afterwards the lock is worth trying.
    pub(super) async fn force(&mut self) -> Result<()> {
        let (status, _) = self.holders_status().await;
        let words = describe(status.as_ref(), self.directory.lock_holder());
        let holder = status.and_then(|status| status.owner);
        let call = Peer::call(&self.directory).await;
        let mut pid = self.directory.lock_holder();
        if let Call::Connected(mut peer) = call {
            pid = peer.pid.or(pid);
            let by = self.applicant.me.to_string();
            if peer.mouth.say(&Ask::Abandon { by }).await.is_ok() && self.becomes_free(YIELD).await? {
                self.has_forced(holder.unwrap_or_else(|| self.nameless(pid)));
                return Ok(());
            }
        } else if self.becomes_free(POLL * 5).await? {
            // It ended by itself just now.
            return Ok(());
        }
        self.kill(pid, words).await?;
        self.has_forced(holder.unwrap_or_else(|| self.nameless(pid)));
        Ok(())
    }

    async fn kill(&self, pid: Option<u32>, holder: String) -> Result<()> {
        let fail = |reason: &str| Error::ForceFailed {
            path: self.directory.path().to_owned(),
            holder: holder.clone(),
            reason: reason.to_owned(),
        };
        let start = self.applicant.deps.clock.elapsed();
        let lock = self.directory.lock_taker();
        self.kill_one(pid, &fail).await?;
        // A guard's warden needs a moment to end what the guard ran.
        let mut patience = YIELD;
        while !self.becomes_free(patience).await? {
            if self.applicant.deps.clock.elapsed().saturating_sub(start) >= DEATH {
                return Err(fail("it was killed but does not die, most likely its disk hangs"));
            }
            // What has inherited the very same lock: nobody who has claimed the checkpoint since.
            let heir = self.directory.lock_holder().filter(|heir| Some(*heir) != pid);
            if heir.is_some() && self.directory.lock_taker() == lock {
                self.kill_one(heir, &fail).await?;
            }
            patience = POLL * 5;
        }
        Ok(())
    }

    async fn kill_one(&self, pid: Option<u32>, fail: &(dyn Fn(&str) -> Error + Sync)) -> Result<()> {
        let Some(raw) = pid else {
            return Err(fail(
                "its process is not visible (another container or user namespace)",
            ));
        };
        if raw == std::process::id() {
            return Err(fail("it is this very process"));
        }
        let target = i32::try_from(raw).ok().and_then(Pid::from_raw);
        let Some(target) = target else {
            return Err(fail("its process id is none"));
        };
        // A handle first, then a second look: a process id may be another's by now, a handle stays with its process.
        let handle = match rustix::process::pidfd_open(target, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Ok(()),
            Err(errno) => return Err(fail(&errno.to_string())),
        };
        let still = match Peer::call(&self.directory).await {
            Call::Connected(peer) => peer.pid == Some(raw) || self.directory.lock_holder() == Some(raw),
            Call::Busy | Call::Nobody => self.directory.lock_holder() == Some(raw),
        };
        if !still {
            return Ok(());
        }
        match rustix::process::pidfd_send_signal(&handle, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(Errno::PERM) => return Err(fail("this user may not end its process")),
            Err(errno) => return Err(fail(&errno.to_string())),
        }
        Ok(())
    }

    /// Polls the lock; gives it back at once, for the claim to take it in its own way.
    async fn becomes_free(&self, patience: Duration) -> Result<bool> {
        let start = self.applicant.deps.clock.elapsed();
        loop {
            if !self.directory.is_in_place() || self.directory.try_lock()? {
                self.directory.unlock();
                return Ok(true);
            }
            if self.applicant.deps.clock.elapsed().saturating_sub(start) >= patience {
                return Ok(false);
            }
            self.applicant.deps.clock.sleep(POLL).await;
        }
    }

    fn nameless(&self, pid: Option<u32>) -> OwnerInfo {
        OwnerInfo {
            id: OwnerId(Uuid::nil()),
            host: self.applicant.me.host.clone(),
            pid: pid.unwrap_or_default(),
            version: "unknown".to_owned(),
            epoch: None,
            since: self.applicant.deps.clock.now(),
        }
    }
}
