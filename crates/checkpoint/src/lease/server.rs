//! The owner's end of its socket.

use baton_core::Clock;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::directory::Tenant;
use super::ground::Ground;
use super::shared::{Over, Shared};
use super::wire::{Answer, Ask, split};
use crate::layout::SOCKET;
use crate::protocol::{Action, Event, Refusal};
use crate::{IfOwned, OwnerInfo, Request};

/// More conversations than this at once are nobody's who means well.
const MOST_CALLS: usize = 64;

/// A caller that does not take a farewell in this time does without.
const FAREWELL: Duration = Duration::from_millis(100);

/// Answers calls until it is dropped.
#[derive(Debug)]
pub(crate) struct Server(JoinHandle<()>);

impl Server {
    /// Opens the socket of a directory whose lock is held, or looks into the mailbox on shared storage. Without either the
    /// checkpoint works, but nobody can ask.
    pub(crate) fn start(shared: &Arc<Shared>) -> Option<Self> {
        let shared = Arc::clone(shared);
        let directory = match &shared.ground {
            Ground::Local(directory, _) => Arc::clone(directory),
            #[cfg(feature = "object-store")]
            Ground::Remote(_) => return Some(Self(tokio::spawn(super::remote::attend(shared)))),
        };
        directory.remove(SOCKET);
        match UnixListener::bind(directory.short(SOCKET)) {
            Ok(listener) => Some(Self(tokio::spawn(serve(listener, shared)))),
            Err(error) => {
                tracing::warn!(%error, "the checkpoint has no socket: nobody can ask its owner for anything");
                None
            }
        }
    }
}

impl Server {
    /// Lets the conversations end with a farewell, once the lock is free; not for long.
    pub(crate) async fn finish(mut self, clock: &Arc<dyn Clock>) {
        tokio::select! {
            biased;
            ended = &mut self.0 => drop(ended),
            () = clock.sleep(FAREWELL) => {}
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve(listener: UnixListener, shared: Arc<Shared>) {
    let mut over = shared.over.subscribe();
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            call = listener.accept(), if calls.len() < MOST_CALLS => match call {
                Ok((stream, _)) => drop(calls.spawn(converse(stream, Arc::clone(&shared)))),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // No descriptor is left, most likely: those who talk already end first.
                Err(_) if !calls.is_empty() => drop(calls.join_next().await),
                Err(error) => {
                    tracing::warn!(%error, "the checkpoint's socket failed");
                    return;
                }
            },
            Some(_) = calls.join_next() => {}
            () = released(&mut over) => break,
        }
    }
    drop(listener);
    while calls.join_next().await.is_some() {}
}

/// Waits until the lock is free.
async fn released(over: &mut watch::Receiver<Over>) {
    drop(over.wait_for(|over| *over == Over::Released).await);
}

/// One conversation, and what is undone when it ends.
pub(super) struct Caller {
    shared: Arc<Shared>,
    standby: Option<OwnerInfo>,
    asked: Option<OwnerInfo>,
}

async fn converse(stream: UnixStream, shared: Arc<Shared>) {
    let (mut ears, mut mouth) = split(stream);
    let mut over = shared.over.subscribe();
    let mut committed = shared.committed.subscribe();
    let mut caller = Caller::new(shared);
    loop {
        tokio::select! {
            biased;
            () = released(&mut over) => {
                mouth.try_say(&Answer::Released);
                return;
            }
            ask = ears.hear() => {
                let Some(ask) = ask else { return };
                let (answer, tell) = caller.answer(ask).await;
                // The candidate first: an idle job releases before the next line of this function.
                let said = mouth.say(&answer).await;
                caller.tell(tell);
                if said.is_err() {
                    return;
                }
            },
            Ok(()) = committed.changed() => {
                let batch = *committed.borrow_and_update();
                if let (Some(batch), Some(_)) = (batch, &caller.asked) {
                    mouth.try_say(&Answer::SinkDone { batch });
                }
            }
        }
    }
}

impl Caller {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            standby: None,
            asked: None,
        }
    }

    /// What is answered, and what [`Caller::tell`] tells the job once that has been said.
    pub(super) async fn answer(&mut self, ask: Ask) -> (Answer, Option<Request>) {
        let holder = self.shared.me.clone();
        let answer = match ask {
            Ask::Status => Answer::Status {
                status: Box::new(self.shared.status()),
            },
            Ask::Request {
                candidate,
                mode: IfOwned::Takeover,
            } => return self.hand_over(candidate),
            Ask::Request { candidate, .. } => {
                self.stand_by(candidate);
                Answer::Waiting { holder }
            }
            Ask::Cancel => {
                self.withdraw();
                Answer::Waiting { holder }
            }
            Ask::Stop { now } => {
                self.act(Event::StopAsked { now }).await;
                Answer::Stopping
            }
            Ask::Abandon { by } if self.shared.ground.tenant() == Tenant::Guard => {
                self.shared.is_wanted_by(by);
                Answer::Stopping
            }
            Ask::Abandon { by } => {
                self.act(Event::AbandonAsked(by)).await;
                Answer::Stopping
            }
            Ask::Unknown => Answer::Unknown,
        };
        (answer, None)
    }

    pub(super) fn tell(&self, request: Option<Request>) {
        if let Some(request) = request {
            self.shared.tell(request);
            self.shared.publish();
        }
    }

    fn hand_over(&mut self, candidate: OwnerInfo) -> (Answer, Option<Request>) {
        let holder = self.shared.me.clone();
        let mut answer = Answer::Unknown;
        let mut tell = None;
        for action in self.shared.step(Event::HandOverAsked(candidate.clone())) {
            match action {
                Action::Accept { batch, end } => {
                    self.asked = Some(candidate.clone());
                    answer = Answer::Accepted {
                        holder: holder.clone(),
                        batch,
                        end,
                    };
                }
                Action::Refuse(Refusal::Leaving) => answer = Answer::Released,
                Action::Refuse(refusal) => {
                    let wait = refusal.degrades();
                    if wait {
                        self.stand_by(candidate.clone());
                    }
                    answer = Answer::Refused {
                        holder: holder.clone(),
                        reason: refusal.to_string(),
                        wait,
                    };
                }
                Action::Tell(request) => tell = Some(request),
                _ => {}
            }
        }
        (answer, tell)
    }

    fn stand_by(&mut self, candidate: OwnerInfo) {
        self.shared.stands_by(candidate.clone());
        self.standby = Some(candidate);
        self.shared.publish();
    }

    fn withdraw(&mut self) {
        if let Some(standby) = self.standby.take() {
            self.shared.has_gone(&standby);
        }
        if let Some(candidate) = self.asked.take() {
            for action in self.shared.step(Event::HandOverWithdrawn(candidate.id)) {
                if let Action::Tell(request) = action {
                    self.shared.tell(request);
                }
            }
        }
        if *self.shared.over.borrow() == Over::No {
            self.shared.publish();
        }
    }

    async fn act(&self, event: Event) {
        let actions = self.shared.step(event);
        if actions.contains(&Action::Unlock) {
            self.shared.ground.close(|| self.shared.hint(None)).await;
        }
        for action in actions {
            if let Action::Tell(request) = action {
                self.shared.tell(request);
            }
        }
    }
}

impl Drop for Caller {
    /// Whoever hangs up has gone.
    fn drop(&mut self) {
        if self.standby.is_some() || self.asked.is_some() {
            self.withdraw();
        }
    }
}
