//! Signals that come in.

use std::future::poll_fn;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

use super::{PASSED, refused};
use crate::failure::Result;
use crate::signals::is_ignored;

/// Some signals, listened for.
#[derive(Debug)]
pub(crate) struct Inbox(Vec<(Signal, unix::Signal)>);

impl Inbox {
    /// Listens for what is passed on to a command. A signal that the process was started with ignored stays so, and the
    /// command inherits that: `nohup` means the command.
    pub(crate) fn passed() -> Result<Self> {
        let heard = PASSED
            .into_iter()
            .filter(|signal| !is_ignored(signal.as_raw().unsigned_abs()));
        Self::listen(&heard.collect::<Vec<_>>())
    }

    /// Listens from now on, whatever the process was started with.
    pub(crate) fn listen(signals: &[Signal]) -> Result<Self> {
        let streams = signals.iter().map(|&signal| {
            let stream = unix::signal(SignalKind::from_raw(signal.as_raw()))
                .map_err(|error| refused("listen for signals", error))?;
            Ok((signal, stream))
        });
        Ok(Self(streams.collect::<Result<_>>()?))
    }

    /// The next signal.
    ///
    /// # Cancel safety
    /// A signal that nobody waits for is kept for the next call.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.0 {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}
