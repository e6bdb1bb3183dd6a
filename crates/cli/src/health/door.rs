//! Who may come in: few at a time, and none for long.
//!
//! Whoever can reach the port must not be able to take the job's file descriptors or memory by opening connections and
//! saying nothing.

use axum::serve::Listener;
use baton_core::Clock;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections at a time. The next ones wait in the system's queue.
const SEATS: usize = 32;

/// How long one may take. A probe is over in milliseconds, a scrape of many partitions in a second.
const VISIT: Duration = Duration::from_secs(10);

/// How long nobody is let in when the system gives no connection, for lack of descriptors.
const BREATH: Duration = Duration::from_millis(200);

/// A listener that lets few in.
pub(super) struct Door {
    listener: TcpListener,
    seats: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
}

impl Door {
    pub(super) fn new(listener: TcpListener, clock: Arc<dyn Clock>) -> Self {
        Self {
            listener,
            seats: Arc::new(Semaphore::new(SEATS)),
            clock,
        }
    }
}

impl Listener for Door {
    type Io = Visit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visit, SocketAddr) {
        let seat = Arc::clone(&self.seats).acquire_owned().await;
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let visit = Visit {
                        stream,
                        end: self.clock.sleep(VISIT),
                        _seat: seat.ok(),
                    };
                    return (visit, address);
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection was not accepted");
                    self.clock.sleep(BREATH).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends in time.
pub(super) struct Visit {
    stream: TcpStream,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Given back with the connection.
    _seat: Option<OwnedSemaphorePermit>,
}

impl Visit {
    /// Fails once the time is up; until then, whoever waits is woken when it is.
    fn is_over(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Visit {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_over(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Visit {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_over(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
