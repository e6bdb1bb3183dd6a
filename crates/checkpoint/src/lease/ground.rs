//! What a lease stands on: a locked directory, or a prefix on shared storage.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use super::directory::{Directory, Tenant};
#[cfg(feature = "object-store")]
use super::remote::Ledger;
use crate::Error;
use crate::codec::encode_slot;
use crate::protocol::Record;
use crate::store::{Append, Keeper};

/// One slot to be written, and what it makes superfluous.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) seq: u64,
    pub(crate) records: &'a [Record],
    pub(crate) retired: Vec<u64>,
    pub(crate) floor: u64,
}

/// Why a slot was not written.
#[derive(Debug)]
pub(crate) enum NotWritten {
    /// It is somebody else's; whose, in words.
    #[cfg_attr(
        not(feature = "object-store"),
        expect(dead_code, reason = "a locked directory has no rivals")
    )]
    Lost(String),
    /// Whether it was is not known.
    Failed(Error),
}

#[derive(Debug)]
pub(crate) enum Ground {
    /// The lock is the right, and a thread owns the store.
    Local(Arc<Directory>, Keeper),
    /// The log alone is the right.
    #[cfg(feature = "object-store")]
    Remote(Box<Ledger>),
}

impl Ground {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Local(directory, _) => directory.path(),
            #[cfg(feature = "object-store")]
            Self::Remote(ledger) => ledger.path(),
        }
    }

    pub(crate) fn tenant(&self) -> Tenant {
        match self {
            Self::Local(directory, _) => directory.tenant(),
            #[cfg(feature = "object-store")]
            Self::Remote(_) => Tenant::Job,
        }
    }

    /// Whether the path still leads to what was claimed. On shared storage a name is all there is.
    pub(crate) fn is_in_place(&self) -> bool {
        match self {
            Self::Local(directory, _) => directory.is_in_place(),
            #[cfg(feature = "object-store")]
            Self::Remote(_) => true,
        }
    }

    /// Makes one slot durable.
    pub(crate) async fn append(&self, entry: Entry<'_>) -> Result<(), NotWritten> {
        match self {
            Self::Local(directory, keeper) => {
                let append = Append {
                    seq: entry.seq,
                    slot: encode_slot(entry.seq, entry.records),
                    retired: entry.retired,
                    floor: entry.floor,
                };
                let written = keeper.append(append).await;
                written.map_err(|failure| NotWritten::Failed(failure.about(&directory.home())))
            }
            #[cfg(feature = "object-store")]
            Self::Remote(ledger) => Box::pin(ledger.append(entry)).await,
        }
    }

    /// Has the status written when there is nothing else to do.
    pub(crate) fn hint(&self, hint: impl FnOnce() -> Vec<u8>) {
        match self {
            Self::Local(_, keeper) => keeper.hint(hint()),
            // It goes with the next renewal.
            #[cfg(feature = "object-store")]
            Self::Remote(_) => {}
        }
    }

    /// Lets go of it, with a last hint.
    pub(crate) async fn close(&self, hint: impl FnOnce() -> Vec<u8>) {
        match self {
            Self::Local(_, keeper) => keeper.close(hint()).await,
            #[cfg(feature = "object-store")]
            Self::Remote(ledger) => ledger.close(),
        }
    }

    /// The same for those who cannot wait.
    pub(crate) fn close_soon(&self) {
        match self {
            Self::Local(_, keeper) => keeper.close_soon(),
            #[cfg(feature = "object-store")]
            Self::Remote(ledger) => ledger.close(),
        }
    }

    /// The same for those who must.
    pub(crate) fn close_now(&self) {
        match self {
            Self::Local(_, keeper) => keeper.close_now(),
            #[cfg(feature = "object-store")]
            Self::Remote(ledger) => ledger.close(),
        }
    }

    /// A last look before something is published; why it is lost, in words.
    pub(crate) async fn look_again(&self, free: u64) -> Result<Option<String>, Error> {
        match self {
            // The kernel holds the lock.
            Self::Local(..) => {
                let _ = free;
                Ok(None)
            }
            #[cfg(feature = "object-store")]
            Self::Remote(ledger) => Box::pin(ledger.look_again(free)).await,
        }
    }

    /// A copy of the lock for a child.
    pub(crate) fn inheritable(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Local(directory, _) => directory.inheritable(),
            #[cfg(feature = "object-store")]
            Self::Remote(_) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a checkpoint on shared storage has no lock that a child could inherit",
            )),
        }
    }
}
