//! `baton exec`.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use baton_checkpoint::{
    AcquireEvent, AcquireOptions, Candidate, Deps, IfOwned, JobShape, Lease, Location, OnDrainTimeout,
    OwnerInfo, Request, acquire,
};
use baton_core::{Clock, ErrorKind, OwnerId};
use rustix::process::Signal;
use tokio::sync::mpsc;

use crate::args::{ExecArgs, IfOwnedArg, OnDrainTimeoutArg};
use crate::child::{self, Inbox, Ward};
use crate::failure::{Failure, Result, chain};
use crate::talk::{say, warn};
use crate::{job, report, wire};

/// How often a guard looks whether the checkpoint is still its own.
const LOOK: Duration = Duration::from_millis(500);

/// How long a command may take to end when the checkpoint is taken by force. Whoever takes it waits 2 s before it kills.
const FORCED: Duration = Duration::from_secs(1);

pub(super) async fn run(args: ExecArgs) -> Result<u8> {
    let mut inbox = Inbox::passed()?;
    // Before anybody is disturbed.
    let program = args.command.first().map_or(OsStr::new(""), |program| program);
    child::find(program)?;
    let location = wire::location(&args.checkpoint)?;
    let deps = wire::deps();
    let candidate = candidate(&args, &location, &deps);
    say!(
        job = candidate.job,
        version = candidate.version,
        checkpoint = %location,
        "command {}, version {}, checkpoint {location}",
        program.to_string_lossy(),
        candidate.version
    );
    let lease = match own(&location, candidate, options(&args), &deps, &mut inbox).await? {
        Ok(lease) => lease,
        Err(signal) => {
            say!("stopped before it owned the checkpoint; the command was not started");
            return Ok(128 + number(signal));
        }
    };
    let epoch = lease.epoch();
    say!(checkpoint = %lease.checkpoint(), epoch = epoch.0, "owner of checkpoint {} since epoch {epoch}", lease.checkpoint());
    let (epoch, place) = (epoch.to_string(), location.to_string());
    let environment = [
        ("BATON_EPOCH", OsStr::new(&epoch)),
        ("BATON_CHECKPOINT", OsStr::new(&place)),
    ];
    let lock = lease.inheritable_lock().map_err(|error| {
        Failure::new(
            ErrorKind::Internal,
            "E0511",
            format!("cannot pass the lock on to the command: {error}"),
        )
    })?;
    let guard = Guard {
        ward: Ward::start(&args.command, environment, args.stop_timeout, lock)?,
        lease,
        clock: deps.clock,
        stop_timeout: args.stop_timeout,
        deadline: None,
        successor: None,
        deaf: false,
    };
    guard.watch(inbox).await
}

/// Gets the checkpoint, or the signal that came before.
async fn own(
    location: &Location,
    candidate: Candidate,
    options: AcquireOptions,
    deps: &Deps,
    inbox: &mut Inbox,
) -> Result<Result<Lease, Signal>> {
    let (sender, mut events) = mpsc::channel::<AcquireEvent>(64);
    let mut acquiring = Box::pin(acquire(location, candidate, options, deps, sender));
    let owned = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => report::acquire(&event),
            owned = &mut acquiring => break owned,
            signal = inbox.next() => if ends(signal) {
                return Ok(Err(signal));
            },
        }
    };
    while let Ok(event) = events.try_recv() {
        report::acquire(&event);
    }
    owned.map(Ok).map_err(|error| wire::of_checkpoint(&error))
}

/// Whether a signal ends a process that does not care.
fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::QUIT | Signal::TERM | Signal::HUP)
}

fn number(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).unwrap_or_default()
}

/// A guard and its command. The command comes first, because fields are dropped in order: the lock must outlive it.
struct Guard {
    ward: Ward,
    lease: Lease,
    clock: Arc<dyn Clock>,
    stop_timeout: Duration,
    /// When the command is killed, once it was told to end.
    deadline: Option<Duration>,
    successor: Option<OwnerInfo>,
    /// Nobody will ask any more.
    deaf: bool,
}

impl Guard {
    /// Until nothing is left of the command.
    async fn watch(mut self, mut inbox: Inbox) -> Result<u8> {
        let mut lost = false;
        let code = loop {
            let now = self.clock.elapsed();
            let patience = self.deadline.map(|deadline| deadline.saturating_sub(now));
            let run_out = async {
                match patience {
                    Some(patience) => self.clock.sleep(patience).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                code = self.ward.ended() => break code?,
                signal = inbox.next() => {
                    say!("signal {} is passed on to the command", number(signal));
                    self.ward.pass_on(signal);
                }
                () = run_out => {
                    warn!("the command has not ended in time: killing it");
                    self.ward.kill();
                    self.deadline = None;
                }
                request = self.lease.requests().recv(), if !self.deaf => self.heed(request),
                () = self.clock.sleep(LOOK), if !lost => if !self.lease.is_ours() {
                    lost = true;
                    warn!("the checkpoint is lost: stopping the command");
                    self.stop(self.stop_timeout);
                },
            }
        };
        self.leave(code).await
    }

    fn heed(&mut self, request: Option<Request>) {
        match request {
            None => self.deaf = true,
            Some(Request::HandOver { candidate }) => {
                say!(by = %candidate, "{candidate} asks for the checkpoint; stopping the command");
                self.successor = Some(candidate);
                self.stop(self.stop_timeout);
            }
            Some(Request::HandOverWithdrawn) => {
                self.successor = None;
                warn!("the request for the checkpoint was withdrawn, but the command has been told to end");
            }
            Some(Request::Stop { now: false }) => {
                say!("stopping the command, as asked");
                self.stop(self.stop_timeout);
            }
            Some(Request::Stop { now: true }) => match self.lease.wanted_by() {
                Some(by) => {
                    warn!(by, "{by} takes the checkpoint by force; stopping the command");
                    self.deadline = None;
                    self.stop(FORCED.min(self.stop_timeout));
                }
                None => {
                    say!("killing the command, as asked");
                    self.ward.kill();
                }
            },
        }
    }

    /// Tells the command to end, and sets it a time.
    fn stop(&mut self, patience: Duration) {
        if self.deadline.is_none() {
            self.ward.pass_on(Signal::TERM);
            self.deadline = self.clock.elapsed().checked_add(patience);
        }
    }

    async fn leave(self, code: u8) -> Result<u8> {
        let Self { lease, successor, .. } = self;
        let id: Option<OwnerId> = successor.as_ref().map(|successor| successor.id);
        match lease.surrender(id).await {
            Ok(()) => {
                let became = successor.map_or_else(
                    || "the checkpoint is released".to_owned(),
                    |to| format!("handed over to {to}"),
                );
                say!(code, "the command ended with exit code {code}; {became}");
                Ok(code)
            }
            Err(error) if error.kind() == ErrorKind::Fenced => Err(wire::of_checkpoint(&error)),
            // The command's end is what counts. Whoever starts next finds no release, and needs none.
            Err(error) => {
                warn!(
                    "the command ended with exit code {code}; the release could not be written: {}",
                    chain(&error)
                );
                Ok(code)
            }
        }
    }
}

fn candidate(args: &ExecArgs, location: &Location, deps: &Deps) -> Candidate {
    let place = location.to_string();
    let name = args
        .name
        .clone()
        .or_else(|| place.rsplit('/').find(|part| !part.is_empty()).map(str::to_owned))
        .unwrap_or_else(|| "exec".to_owned());
    let version = args.version.clone().unwrap_or_else(|| {
        let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
        job::fingerprint(words.iter().map(AsRef::as_ref))
    });
    Candidate {
        owner: OwnerId(deps.rng.uuid()),
        job: name.clone(),
        version,
        // Nothing of the command: it may hold secrets, and it may change from version to version.
        shape: JobShape {
            job: name,
            sink: "exec".to_owned(),
            ..JobShape::default()
        },
        handover: true,
    }
}

fn options(args: &ExecArgs) -> AcquireOptions {
    AcquireOptions {
        if_owned: match args.if_owned {
            IfOwnedArg::Fail => IfOwned::Fail,
            IfOwnedArg::Wait => IfOwned::Wait,
            IfOwnedArg::Takeover => IfOwned::Takeover,
            IfOwnedArg::Force => IfOwned::Force,
        },
        wait_timeout: args.wait_timeout,
        drain_timeout: args.drain_timeout,
        on_drain_timeout: match args.on_drain_timeout {
            OnDrainTimeoutArg::Giveup => OnDrainTimeout::GiveUp,
            OnDrainTimeoutArg::Force => OnDrainTimeout::Force,
        },
        // A guard does not know what its command depends on. A difference is said.
        accept_changes: true,
        guard: true,
        ..AcquireOptions::default()
    }
}
