//! The checkpoint's directory: its lock, its files, and what else may be in it.

use rustix::fs::{Access, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{filesystem, holder};
use crate::layout::{GUARD, IGNORED, LOG, MARKER, OWNER, SOCKET};
use crate::{Error, Result};

/// A checkpoint's directory, open.
///
/// The lock is a `flock` on this very descriptor: it survives any file in the directory being deleted or copied, the
/// kernel drops it with the process, and a child inherits it only where that is wanted (`O_CLOEXEC`). It belongs to the
/// directory's inode, which is why everything that matters first looks whether the path still leads there.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    fd: OwnedFd,
    inode: (u64, u64),
    locked: AtomicBool,
    tenant: Tenant,
}

/// Whose directory it is. The lock is on the directory in either case, so that one keeps the other out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tenant {
    /// A job of ours: our files fill it.
    Job,
    /// Another program's, which a guard runs: our files are in a hidden directory in it.
    Guard,
}

/// What a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Nothing,
    Checkpoint,
}

impl Directory {
    /// Opens the directory for a look, whoever uses it; `None` if there is none.
    pub(crate) fn find(path: &Path) -> Result<Option<Self>> {
        Ok(Self::open(path, Tenant::Job)?.map(|mut directory| {
            if !directory.exists(MARKER) && directory.exists(GUARD) {
                directory.tenant = Tenant::Guard;
            }
            directory
        }))
    }

    /// Opens the directory; `None` if there is none.
    pub(crate) fn open(path: &Path, tenant: Tenant) -> Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(trouble(path, "open checkpoint", errno.into())),
        };
        let stat =
            rustix::fs::fstat(&fd).map_err(|errno| trouble(path, "look at checkpoint", errno.into()))?;
        Ok(Some(Self {
            path: path.to_owned(),
            fd,
            inode: (stat.st_dev, stat.st_ino),
            locked: AtomicBool::new(false),
            tenant,
        }))
    }

    /// Opens the directory for owning it, and creates it with its parents if there is none.
    pub(crate) fn create(path: &Path, tenant: Tenant) -> Result<Self> {
        // A second look: somebody may remove what we have just made.
        for _ in 0..3 {
            if let Some(directory) = Self::open(path, tenant)? {
                filesystem::check(path, &directory.fd)?;
                directory.check_writable()?;
                return Ok(directory);
            }
            fs::create_dir_all(path).map_err(|error| trouble(path, "create checkpoint directory", error))?;
        }
        Err(trouble(path, "open checkpoint", io::ErrorKind::NotFound.into()))
    }

    fn check_writable(&self) -> Result<()> {
        let access = rustix::fs::accessat(
            &self.fd,
            ".",
            Access::WRITE_OK | Access::EXEC_OK,
            AtFlags::EACCESS,
        );
        access.map_err(|errno| trouble(&self.path, "write to checkpoint", errno.into()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) const fn tenant(&self) -> Tenant {
        self.tenant
    }

    /// Where our files are.
    pub(crate) fn home(&self) -> PathBuf {
        match self.tenant {
            Tenant::Job => self.path.clone(),
            Tenant::Guard => self.path.join(GUARD),
        }
    }

    /// Makes the place for our files, durably.
    pub(crate) fn make_home(&self) -> Result<()> {
        if self.tenant == Tenant::Job || self.exists(GUARD) {
            return Ok(());
        }
        let made = rustix::fs::mkdirat(&self.fd, GUARD, Mode::from_raw_mode(0o755))
            .and_then(|()| rustix::fs::fsync(&self.fd));
        made.map_err(|errno| {
            trouble(
                &self.path.join(GUARD),
                "create the guard's directory",
                errno.into(),
            )
        })
    }

    /// One of our files, by a path that is short however long the directory's is, and that still leads here when the
    /// directory has been moved.
    pub(crate) fn short(&self, name: &str) -> PathBuf {
        PathBuf::from(format!(
            "/proc/self/fd/{}/{}",
            self.fd.as_raw_fd(),
            self.ours(name)
        ))
    }

    /// One of our files, seen from the directory.
    fn ours(&self, name: &str) -> String {
        match self.tenant {
            Tenant::Job => name.to_owned(),
            Tenant::Guard => format!("{GUARD}/{name}"),
        }
    }

    fn exists(&self, entry: &str) -> bool {
        rustix::fs::statat(&self.fd, entry, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// A copy of the descriptor that children inherit, and with it the lock: it is one lock, held until the last copy is
    /// closed or until [`Directory::unlock`].
    pub(crate) fn inheritable(&self) -> io::Result<OwnedFd> {
        Ok(rustix::io::dup(&self.fd)?)
    }

    /// Tries to get the lock. Never waits.
    pub(crate) fn try_lock(&self) -> Result<bool> {
        match rustix::fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                self.locked.store(true, Ordering::Release);
                Ok(true)
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Err(Error::Filesystem {
                path: self.path.clone(),
                filesystem: "a file system without locks".to_owned(),
            }),
            Err(errno) => Err(trouble(&self.path, "lock checkpoint", errno.into())),
        }
    }

    /// Lets go of the lock, whoever else has a copy of the descriptor.
    pub(crate) fn unlock(&self) {
        if self.locked.swap(false, Ordering::AcqRel)
            && let Err(errno) = rustix::fs::flock(&self.fd, FlockOperation::Unlock)
        {
            tracing::warn!(%errno, "the checkpoint's lock could not be given up; it ends with the process");
        }
    }

    /// Whether the path still leads to this directory.
    pub(crate) fn is_in_place(&self) -> bool {
        rustix::fs::stat(&self.path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.inode)
    }

    /// What is in it.
    pub(crate) fn content(&self) -> Result<Content> {
        match self.tenant {
            Tenant::Job => self.content_of_job(),
            Tenant::Guard => self.content_of_guard(),
        }
    }

    /// Whatever another program keeps here is its own business.
    fn content_of_guard(&self) -> Result<Content> {
        if self.exists(MARKER) {
            return Err(Error::NotGuarded {
                path: self.path.clone(),
            });
        }
        if self.exists(&self.ours(MARKER)) {
            return Ok(Content::Checkpoint);
        }
        if self.exists(&self.ours(&format!("{LOG}/CURRENT"))) {
            return Err(Error::DamagedMarker {
                path: self.home(),
                reason: "missing".to_owned(),
            });
        }
        Ok(Content::Nothing)
    }

    fn content_of_job(&self) -> Result<Content> {
        let trouble = |error: io::Error| trouble(&self.path, "list checkpoint", error);
        let mut names = Vec::new();
        for entry in fs::read_dir(self.short("."))
            .or_else(|_| fs::read_dir(&self.path))
            .map_err(trouble)?
        {
            names.push(entry.map_err(trouble)?.file_name().to_string_lossy().into_owned());
        }
        names.retain(|name| !IGNORED.contains(&name.as_str()));
        names.sort_unstable();
        let has = |name: &str| names.iter().any(|found| found == name);
        let path = || self.path.clone();
        if has(MARKER) {
            return Ok(Content::Checkpoint);
        }
        if has("metadata") && (has("offsets") || has("commits")) {
            return Err(Error::SparkCheckpoint { path: path() });
        }
        if has(LOG) && (has(OWNER) || has(SOCKET) || self.short(LOG).join("CURRENT").exists()) {
            return Err(Error::DamagedMarker {
                path: path(),
                reason: "missing".to_owned(),
            });
        }
        // What hints leave behind is nothing.
        match names.into_iter().find(|name| name != OWNER && name != SOCKET) {
            None => Ok(Content::Nothing),
            Some(found) => Err(Error::NotACheckpoint { path: path(), found }),
        }
    }

    /// Reads a file; `None` if there is none.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, self.ours(name), flags, Mode::empty()) {
            Ok(fd) => {
                let mut bytes = Vec::new();
                io::Read::read_to_end(&mut File::from(fd), &mut bytes)?;
                Ok(Some(bytes))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Replaces a file in one go; `durable` outlives a power loss.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8], durable: bool) -> io::Result<()> {
        let name = self.ours(name);
        let temporary = format!("{name}.tmp");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, &temporary, flags, Mode::from_raw_mode(0o644))?;
        let mut file = File::from(fd);
        file.write_all(bytes)?;
        if durable {
            file.sync_all()?;
        }
        rustix::fs::renameat(&self.fd, &temporary, &self.fd, &name)?;
        if durable {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let home = rustix::fs::openat(&self.fd, self.ours("."), flags, Mode::empty())?;
            rustix::fs::fsync(&home)?;
        }
        Ok(())
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) {
        if let Err(errno) = rustix::fs::unlinkat(&self.fd, self.ours(name), AtFlags::empty())
            && errno != Errno::NOENT
        {
            tracing::debug!(%errno, name, "a hint could not be removed");
        }
    }

    /// The process that has the lock; `None` when nobody has it or the process lives in a namespace that we do not see.
    /// Takes nothing and disturbs nobody.
    pub(crate) fn lock_holder(&self) -> Option<u32> {
        holder::of(self.inode)
    }

    /// The process that took the lock, which may be dead while others have inherited it. Tells locks apart; never a process
    /// to do something to.
    pub(crate) fn lock_taker(&self) -> Option<u32> {
        holder::taker(self.inode)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// An error about the directory, or about the disk it is on.
pub(crate) fn trouble(path: &Path, action: &'static str, source: io::Error) -> Error {
    use io::ErrorKind as Kind;
    let path = path.to_owned();
    let advice = match source.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => return Error::Full { path },
        Kind::ReadOnlyFilesystem => "its file system is read-only: give a directory on another",
        Kind::PermissionDenied => "give this user the right to, or another directory",
        Kind::NotADirectory | Kind::AlreadyExists => "a file is in the way: give another directory",
        Kind::NotFound => "something on the way to it is missing: create it",
        _ => "give another directory, or repair this one",
    };
    Error::Directory {
        path,
        action,
        advice,
        source,
    }
}

/// Whether a process of this machine lives; one that we may not signal does.
pub(crate) fn is_alive(pid: u32) -> bool {
    let raw = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    raw.is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH)))
}

/// The name of this machine.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
