//! What an owner on shared storage does beside its batches: one GET, one PUT and one LIST per renewal.

use baton_core::OwnerId;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::ledger::{Ledger, said};
use super::seek::IDLE_REFRESH;
use super::{Asked, FORGOTTEN, RENEWAL};
use crate::lease::ground::Ground;
use crate::lease::server::Caller;
use crate::lease::shared::{Over, Shared};
use crate::lease::wire::{Answer, Ask};
use crate::object::slot::Budget;
use crate::object::{Letter, Mailbox, ObjectLog, Register, Renewal};
use crate::protocol::Event;
use crate::{IfOwned, Request};

/// Renews until the lease is over. Nothing that fails here does harm: all of it is hints.
pub(in crate::lease) async fn attend(shared: Arc<Shared>) {
    let Ground::Remote(ledger) = &shared.ground else {
        return;
    };
    let (place, deps) = (ledger.place.clone(), ledger.deps.clone());
    let mut attendant = Attendant {
        log: ObjectLog::new(place.clone(), deps.clone(), Budget::default()),
        register: Register::new(place.clone(), deps.clone()),
        mailbox: Mailbox::new(place, deps),
        shared: &shared,
        ledger,
        counter: 0,
        begins: true,
        callers: HashMap::new(),
    };
    let mut over = shared.over.subscribe();
    loop {
        attendant.round().await;
        tokio::select! {
            biased;
            _ = over.wait_for(|over| *over == Over::Released) => break,
            () = ledger.deps.clock.sleep(RENEWAL) => {}
        }
    }
    // For `status`: lag and last error outlive the owner.
    attendant.renew().await;
}

struct Attendant<'a> {
    log: ObjectLog,
    register: Register,
    mailbox: Mailbox,
    shared: &'a Arc<Shared>,
    ledger: &'a Ledger,
    counter: u64,
    /// The mailbox was not looked into yet.
    begins: bool,
    callers: HashMap<OwnerId, Writer>,
}

/// Somebody who writes letters to us.
struct Writer {
    caller: Caller,
    number: u64,
    /// What it asked last; a letter that only says so again needs no new answer.
    ask: Ask,
    /// When it was heard of last, on the monotonic clock.
    heard: Duration,
    /// Its answer has arrived.
    answered: bool,
}

impl Writer {
    fn silent(shared: &Arc<Shared>, number: u64, heard: Duration) -> Self {
        Self {
            caller: Caller::new(Arc::clone(shared)),
            number,
            ask: Ask::Unknown,
            heard,
            answered: true,
        }
    }
}

/// How long somebody who asked so may be silent.
const fn patience(ask: &Ask) -> Duration {
    match ask {
        Ask::Request {
            mode: IfOwned::Wait, ..
        } => IDLE_REFRESH.saturating_mul(3),
        _ => FORGOTTEN,
    }
}

impl Attendant<'_> {
    async fn round(&mut self) {
        if self.shared.look(|owner| owner.end().is_some()) {
            return;
        }
        self.look_for_a_fence().await;
        self.renew().await;
        self.read_mail().await;
        self.write_snapshot().await;
    }

    /// An owner that is idle appends nothing, and would not notice.
    async fn look_for_a_fence(&self) {
        let free = self.shared.look(|owner| owner.log().free());
        let Ok(Some((_, records))) = self.log.read_next(free).await else {
            return;
        };
        // Our own append may have come meanwhile.
        let me = self.shared.me.id;
        if records.iter().any(|record| record.owner != me) {
            drop(self.shared.step(Event::LockLost(said(&records))));
            self.ledger.close();
            self.shared.tell(Request::Stop { now: false });
        }
    }

    async fn renew(&mut self) {
        let sent = self.ledger.deps.clock.elapsed();
        self.counter += 1;
        let renewal = Renewal {
            owner: self.shared.me.clone(),
            counter: self.counter,
            free: self.shared.look(|owner| owner.log().free()),
            lease_ms: u64::try_from(self.ledger.lease.as_millis()).unwrap_or(u64::MAX),
            at: self.ledger.deps.clock.now(),
            status: serde_json::to_value(self.shared.status()).unwrap_or_default(),
        };
        match self.register.renew(&renewal).await {
            Ok(()) => self.ledger.renewed(sent),
            Err(error) => {
                tracing::warn!(%error, "the ownership could not be renewed; others may think this job dead")
            }
        }
    }

    async fn read_mail(&mut self) {
        let now = self.ledger.deps.clock.elapsed();
        let letters: Vec<(OwnerId, Asked)> = match self.mailbox.letters().await {
            Ok(letters) => letters,
            Err(error) => {
                tracing::debug!(%error, "the mailbox could not be read");
                return;
            }
        };
        let begins = std::mem::take(&mut self.begins);
        for (from, Letter { number, message, .. }) in letters {
            if begins {
                // It lay here before us, and may be a dead one's. Whoever still wants it says it again.
                self.callers
                    .insert(from, Writer::silent(self.shared, number, now));
            } else {
                self.open(from, number, message, now).await;
            }
        }
        let forgotten: Vec<OwnerId> = self
            .callers
            .iter()
            .filter(|(_, writer)| now.saturating_sub(writer.heard) >= patience(&writer.ask))
            .map(|(from, _)| *from)
            .collect();
        for from in forgotten {
            // Dropping the caller undoes what it asked for.
            drop(self.callers.remove(&from));
            drop(self.mailbox.clear(from).await);
        }
    }

    async fn open(&mut self, from: OwnerId, number: u64, ask: Ask, now: Duration) {
        let writer = self
            .callers
            .entry(from)
            .or_insert_with(|| Writer::silent(self.shared, 0, now));
        if writer.number == number && writer.answered {
            return;
        }
        let repeats = writer.ask == ask && writer.answered;
        (writer.heard, writer.number) = (now, number);
        if repeats {
            return;
        }
        writer.ask = ask.clone();
        let (answer, tell) = writer.caller.answer(ask).await;
        let letter: Letter<Answer> = Letter::new(number, answer);
        let sent = self.mailbox.answer(from, &letter).await;
        writer.answered = sent.is_ok();
        writer.caller.tell(tell);
    }

    async fn write_snapshot(&self) {
        let Some(snapshot) = self.ledger.due() else {
            return;
        };
        let written = match self.log.write_snapshot(&snapshot).await {
            Ok(()) => {
                self.ledger.snapshot_written(snapshot.seq);
                self.log.collect().await.map(drop)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "old slots are kept until the next snapshot");
        }
    }
}
