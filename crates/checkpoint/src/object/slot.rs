//! One conditional append, decided without I/O.
//!
//! A slot is an object that is created once, if it is absent. The store's reply may be lost, late or misleading, so that
//! only what stands in the slot decides:
//!
//! | the store says | is it written? | next |
//! |---|---|---|
//! | created | yes | done |
//! | exists (409, 412) | by somebody: perhaps by our own PUT whose reply was lost; after a 409 perhaps by nobody | read back |
//! | nothing: time-out, 5xx, connection lost | not known, and it may still be applied later | read back |
//! | slow down (429, 503) | no | pause, then PUT |
//! | read back: our write id | yes | done |
//! | read back: another's write id | no, and never: slots are not rewritten | lost, to that one |
//! | read back: absent | not yet; a PUT under way may still come | pause, then PUT the same bytes |
//! | read back: nothing | not known | pause, then read back |
//! | budget or time spent | not known | give up: the lease is poisoned |
//!
//! Repeating the PUT is harmless: it carries the same bytes and the same write id, and at most one is applied.
//! Giving up never means "not written". A pure machine: the caller sends, waits and tells the time.

use baton_core::WriteId;
use std::time::Duration;

/// How much one append may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Requests of both kinds.
    pub requests: u32,
    /// From the first request on; no request and no pause starts beyond it.
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            requests: 12,
            time: Duration::from_secs(20),
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A PUT was answered, or not.
    Put(PutReply),
    /// A read-back was answered, or not.
    Read(ReadBack),
    /// The pause is over.
    Waited,
}

/// How a PUT ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PutReply {
    /// It is written.
    Created,
    /// The condition was not met (412), or somebody else was writing at this moment (409).
    Exists,
    /// No answer, or one that says nothing: time-out, 5xx, connection lost.
    Unknown,
    /// Not taken, there were too many.
    Throttled,
}

/// What stands in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadBack {
    /// A slot of this write id.
    Found(WriteId),
    /// Nothing yet.
    Absent,
    /// No answer, or one that says nothing.
    Unknown,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Action {
    /// Send the PUT, always of the same bytes.
    Put,
    /// Read the slot.
    ReadBack,
    /// Wait so long.
    Pause(Duration),
    /// It is written.
    Done,
    /// Somebody else has the slot, for ever.
    Lost {
        /// The write id that stands in it.
        by: WriteId,
    },
    /// Whether it is written is not known, and may change: nothing more may be written under this lease.
    GiveUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Putting,
    Reading,
    BeforePut,
    BeforeRead,
    Over,
}

/// The append of one slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    mine: WriteId,
    budget: Budget,
    sent: u32,
    pauses: u32,
    phase: Phase,
}

/// The first pause; each is twice the one before, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Attempt {
    /// An append that is about to begin: its first action is [`Action::Put`].
    pub const fn begin(mine: WriteId, budget: Budget) -> (Self, Action) {
        let attempt = Self {
            mine,
            budget,
            sent: 1,
            pauses: 0,
            phase: Phase::Putting,
        };
        (attempt, Action::Put)
    }

    /// Takes what happened, so long after the first request, and says what to do next. What cannot happen in the present
    /// phase ends the attempt as not known.
    pub fn step(&mut self, event: Event, elapsed: Duration) -> Action {
        use PutReply::{Created, Exists, Throttled, Unknown};
        match (self.phase, event) {
            (Phase::Putting, Event::Put(Created)) => self.end(Action::Done),
            // A 409 may be our own first PUT, whose reply was lost: only the slot can tell.
            (Phase::Putting, Event::Put(Exists | Unknown)) => self.send(Phase::Reading, elapsed),
            (Phase::Putting, Event::Put(Throttled)) => self.pause(Phase::BeforePut, elapsed),
            (Phase::Reading, Event::Read(ReadBack::Found(id))) if id == self.mine => self.end(Action::Done),
            (Phase::Reading, Event::Read(ReadBack::Found(by))) => self.end(Action::Lost { by }),
            (Phase::Reading, Event::Read(ReadBack::Absent)) => self.pause(Phase::BeforePut, elapsed),
            (Phase::Reading, Event::Read(ReadBack::Unknown)) => self.pause(Phase::BeforeRead, elapsed),
            (Phase::BeforePut, Event::Waited) => self.send(Phase::Putting, elapsed),
            (Phase::BeforeRead, Event::Waited) => self.send(Phase::Reading, elapsed),
            _ => self.end(Action::GiveUp),
        }
    }

    /// Requests so far.
    #[must_use]
    pub const fn requests(&self) -> u32 {
        self.sent
    }

    const fn end(&mut self, action: Action) -> Action {
        self.phase = Phase::Over;
        action
    }

    fn send(&mut self, phase: Phase, elapsed: Duration) -> Action {
        if self.sent >= self.budget.requests || elapsed >= self.budget.time {
            return self.end(Action::GiveUp);
        }
        self.sent += 1;
        self.phase = phase;
        match phase {
            Phase::Reading => Action::ReadBack,
            _ => Action::Put,
        }
    }

    fn pause(&mut self, phase: Phase, elapsed: Duration) -> Action {
        let pause = FIRST_PAUSE
            .saturating_mul(1 << self.pauses.min(10))
            .min(LONGEST_PAUSE);
        if self.sent >= self.budget.requests || elapsed + pause >= self.budget.time {
            return self.end(Action::GiveUp);
        }
        self.pauses += 1;
        self.phase = phase;
        Action::Pause(pause)
    }
}
