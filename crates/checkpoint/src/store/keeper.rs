//! The thread that owns the store and the lock.

use baton_core::CheckpointId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

use super::rocks::{Failure, Found, Rocks};
use crate::layout::{LOG, OWNER, SOCKET};
use crate::lease::Directory;

/// How long a dropped lease waits for a write that is under way. A disk that hangs keeps the lock, which is right.
const FAREWELL: Duration = Duration::from_secs(2);

/// How many commands may wait. There is one append in flight at most, the others only wake the thread.
const QUEUE: usize = 16;

/// One slot to be written.
#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) seq: u64,
    pub(crate) slot: Vec<u8>,
    pub(crate) retired: Vec<u64>,
    pub(crate) floor: u64,
}

enum Command {
    Append(Append, oneshot::Sender<Result<(), Failure>>),
    Wake,
    Close(oneshot::Sender<()>),
}

/// Handle of the thread that owns the store: RocksDB's calls block, and a thread of their own gives an append the
/// latency of its sync.
///
/// The thread closes the store and gives up the directory's lock when it is told to, when a write failed, or when the
/// handle is dropped; always in this order.
#[derive(Debug)]
pub(crate) struct Keeper {
    commands: SyncSender<Command>,
    desk: Arc<Desk>,
    /// Disconnected when the thread is done. The mutex only makes the handle `Sync`.
    ended: Mutex<Receiver<()>>,
}

/// What lies between the handle and the thread beside commands.
#[derive(Debug, Default)]
struct Desk {
    /// The status file's next content; the newest wins.
    hint: Mutex<Option<Vec<u8>>>,
    closing: AtomicBool,
}

impl Keeper {
    /// Opens the store of a directory whose lock is held, and reads it. On failure the lock is given up.
    pub(crate) async fn open(
        directory: Arc<Directory>,
        create: Option<CheckpointId>,
    ) -> Result<(Self, Found), Failure> {
        let (commands, received) = sync_channel(QUEUE);
        let (ends, ended) = sync_channel::<()>(0);
        let (reply, opened) = oneshot::channel();
        let desk = Arc::new(Desk::default());
        let unlock = Unlock(Arc::clone(&directory));
        let keeper = Self {
            commands,
            desk: Arc::clone(&desk),
            ended: Mutex::new(ended),
        };
        let spawned = thread::Builder::new()
            .name("baton-checkpoint".to_owned())
            .spawn(move || {
                // Dropped last: whoever waits for the thread finds the lock free.
                let _ends = ends;
                let _unlock = unlock;
                match open(&directory, create) {
                    // When nobody waits any more the future was dropped, and so is the store.
                    Ok((store, found)) => {
                        if reply.send(Ok(found)).is_ok() {
                            serve(store, &directory, &received, &desk);
                        }
                    }
                    Err(failure) => drop(reply.send(Err(failure))),
                }
            });
        drop(spawned.map_err(|error| Failure::other(format!("no thread: {error}")))?);
        let found = opened
            .await
            .map_err(|_| Failure::other("its thread ended".to_owned()))??;
        Ok((keeper, found))
    }

    /// Writes one slot. When it returns `Ok` the slot is durable.
    ///
    /// # Cancel safety
    /// The write goes on; whether it succeeded is not known.
    pub(crate) async fn append(&self, append: Append) -> Result<(), Failure> {
        let (reply, written) = oneshot::channel();
        self.send(Command::Append(append, reply)).await?;
        written
            .await
            .map_err(|_| Failure::other("it is closed".to_owned()))?
    }

    async fn send(&self, mut command: Command) -> Result<(), Failure> {
        loop {
            match self.commands.try_send(command) {
                Ok(()) => return Ok(()),
                // Full of wake-up calls, which are taken in no time.
                Err(TrySendError::Full(back)) => command = back,
                Err(TrySendError::Disconnected(_)) => return Err(Failure::other("it is closed".to_owned())),
            }
            tokio::task::yield_now().await;
        }
    }

    /// Writes the status file when there is nothing else to do. Never waits.
    pub(crate) fn hint(&self, hint: Vec<u8>) {
        *self.desk.hint() = Some(hint);
        drop(self.commands.try_send(Command::Wake));
    }

    /// Closes the store, leaves a last hint, and gives up the lock.
    pub(crate) async fn close(&self, hint: Vec<u8>) {
        *self.desk.hint() = Some(hint);
        let (reply, closed) = oneshot::channel();
        if self.send(Command::Close(reply)).await.is_ok() {
            drop(closed.await);
        }
    }

    /// The same for those who cannot wait.
    pub(crate) fn close_soon(&self) {
        self.desk.closing.store(true, Ordering::Release);
        drop(self.commands.try_send(Command::Wake));
    }

    /// The same for those who must: the lock is free when it returns, unless the disk hangs.
    pub(crate) fn close_now(&self) {
        self.close_soon();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(ended.recv_timeout(FAREWELL), Err(RecvTimeoutError::Timeout)) {
            tracing::warn!("the disk does not answer; the checkpoint's lock is kept until it does");
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.close_now();
    }
}

impl Desk {
    fn hint(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.hint.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives up the lock, whatever way the thread ends.
struct Unlock(Arc<Directory>);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

fn open(directory: &Directory, create: Option<CheckpointId>) -> Result<(Rocks, Found), Failure> {
    let log = directory.home().join(LOG);
    let store = match create {
        None => Rocks::open(&log, false)?,
        Some(id) => {
            // Left over from a first start that ended before anybody owned anything.
            match std::fs::remove_dir_all(&log) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::other(error.to_string()));
                }
                _ => {}
            }
            let store = Rocks::open(&log, true)?;
            store.name(id.0.as_bytes())?;
            store
        }
    };
    let found = store.found()?;
    Ok((store, found))
}

fn serve(store: Rocks, directory: &Directory, commands: &Receiver<Command>, desk: &Desk) {
    let mut closed = None;
    while !desk.closing.load(Ordering::Acquire) {
        // The status file is written when there is nothing else to do.
        let command = match commands.try_recv() {
            Ok(command) => command,
            Err(_) => {
                write_hint(directory, desk);
                match commands.recv() {
                    Ok(command) => command,
                    Err(_) => break,
                }
            }
        };
        match command {
            Command::Wake => {}
            Command::Append(
                Append {
                    seq,
                    slot,
                    retired,
                    floor,
                },
                reply,
            ) => {
                let written = store.append(seq, &slot, &retired, floor);
                let failed = written.is_err();
                drop(reply.send(written));
                if failed {
                    // After a failed sync nothing more may be written: the next start finds out what is there.
                    break;
                }
            }
            Command::Close(reply) => {
                closed = Some(reply);
                break;
            }
        }
    }
    write_hint(directory, desk);
    directory.remove(SOCKET);
    drop(store);
    directory.unlock();
    if closed.is_some_and(|closed| closed.send(()).is_err()) {
        tracing::debug!("whoever closed the store did not wait for it");
    }
}

fn write_hint(directory: &Directory, desk: &Desk) {
    let hint = desk.hint().take();
    if let Some(hint) = hint
        && let Err(error) = directory.replace(OWNER, &hint, false)
    {
        tracing::debug!(%error, "the status file could not be written");
    }
}
