//! What candidates and owners say to each other: one JSON object a line. All of it is hints: a message may be lost,
//! late or doubled, and only the lock and the log decide who owns what.

use baton_core::{BatchId, Clock, Position};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::directory::Directory;
use crate::layout::SOCKET;
use crate::status::Status;
use crate::{IfOwned, OwnerInfo};

/// What is asked of an owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Ask {
    /// How are you?
    Status,
    /// Somebody stands by, or wants to take over.
    Request { candidate: OwnerInfo, mode: IfOwned },
    /// Whoever has asked has changed its mind.
    Cancel,
    /// Finish, and end.
    Stop { now: bool },
    /// Give the checkpoint up at once.
    Abandon { by: String },
    /// From a newer version.
    #[serde(other)]
    Unknown,
}

/// What an owner says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Answer {
    /// This is how.
    Status { status: Box<Status> },
    /// You are noted as standing by.
    Waiting { holder: OwnerInfo },
    /// The checkpoint will be yours after this batch.
    Accepted {
        holder: OwnerInfo,
        batch: Option<BatchId>,
        end: Position,
    },
    /// It will not.
    Refused {
        holder: OwnerInfo,
        reason: String,
        wait: bool,
    },
    /// The running batch is committed.
    SinkDone { batch: BatchId },
    /// The checkpoint is free.
    Released,
    /// The end is near.
    Stopping,
    /// From a newer version.
    #[serde(other)]
    Unknown,
}

/// Longer lines are nobody's.
const LONGEST_LINE: u64 = 16 << 20;

/// The reading end of a conversation.
#[derive(Debug)]
pub(crate) struct Ears(BufReader<tokio::io::Take<OwnedReadHalf>>, Vec<u8>);

/// The writing end.
#[derive(Debug)]
pub(crate) struct Mouth(OwnedWriteHalf);

pub(crate) fn split(stream: UnixStream) -> (Ears, Mouth) {
    let (read, write) = stream.into_split();
    (
        Ears(BufReader::new(read.take(LONGEST_LINE)), Vec::new()),
        Mouth(write),
    )
}

impl Ears {
    /// The next message; `None` at the end of the conversation, or of sense.
    ///
    /// # Cancel safety
    /// What has come in stays.
    pub(crate) async fn hear<T: DeserializeOwned>(&mut self) -> Option<T> {
        self.0.read_until(b'\n', &mut self.1).await.ok()?;
        if !self.1.ends_with(b"\n") {
            return None;
        }
        self.0.get_mut().set_limit(LONGEST_LINE);
        let line = std::mem::take(&mut self.1);
        serde_json::from_slice(&line).ok()
    }
}

impl Mouth {
    pub(crate) async fn say<T: Serialize + Sync>(&mut self, message: &T) -> io::Result<()> {
        self.0.write_all(&line(message)).await
    }

    /// Says it if there is room for it, and never waits: farewells.
    pub(crate) fn try_say<T: Serialize>(&self, message: &T) {
        drop(self.0.try_write(&line(message)));
    }
}

fn line<T: Serialize>(message: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(message).expect("messages always serialise");
    bytes.push(b'\n');
    bytes
}

/// The owner at the other end of its socket.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) ears: Ears,
    pub(crate) mouth: Mouth,
    /// By the kernel; absent when it lives in a namespace that we do not see.
    pub(crate) pid: Option<u32>,
}

/// Whether there is somebody at the other end of the socket.
#[derive(Debug)]
pub(crate) enum Call {
    Connected(Box<Peer>),
    /// It lives, but has not taken a call for so long that its queue is full.
    Busy,
    Nobody,
}

impl Peer {
    /// Calls the owner. A stopped process can be called too, the kernel answers for it.
    pub(crate) async fn call(directory: &Directory) -> Call {
        match UnixStream::connect(directory.short(SOCKET)).await {
            Ok(stream) => {
                let credentials = rustix::net::sockopt::socket_peercred(&stream).ok();
                let pid = credentials.and_then(|of| u32::try_from(of.pid.as_raw_nonzero().get()).ok());
                let (ears, mouth) = split(stream);
                Call::Connected(Box::new(Self { ears, mouth, pid }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Call::Busy,
            Err(_) => Call::Nobody,
        }
    }

    /// Asks, and waits so long for the answer.
    pub(crate) async fn ask(
        &mut self,
        ask: &Ask,
        patience: Duration,
        clock: &Arc<dyn Clock>,
    ) -> Option<Answer> {
        let asking = async {
            self.mouth.say(ask).await.ok()?;
            self.ears.hear().await
        };
        tokio::select! {
            biased;
            answer = asking => answer,
            () = clock.sleep(patience) => None,
        }
    }
}
