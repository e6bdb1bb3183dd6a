//! Whether an owner on shared storage is silent for so long that it may be replaced. Pure, and judged by the observer's own
//! monotonic clock alone: no time that another machine wrote is compared with anything.
//!
//! The verdict is never needed for safety. A living owner that is replaced loses the batch that it runs, at its next append.
//!
//! | seen | meaning |
//! |---|---|
//! | renewal counter or its owner changed | it lives: count anew |
//! | the slot that was free is taken | it lives: count anew |
//! | both unchanged for less than T·(1+ρ) | not known yet |
//! | both unchanged for T·(1+ρ) | expired: a fence may be tried (C4) |
//! | no answer | says nothing: neither time nor silence is counted |
//!
//! Silence runs from the moment when the first answer *had come* to the moment when the last one *was asked for*: the
//! shortest time that fits.

use baton_core::OwnerId;
use std::time::Duration;

/// What to look at next; one GET each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// The `owner` object.
    Register,
    /// Whether this slot is still free.
    Slot(u64),
}

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// The register: whose, its counter, and the first free slot that it names. `None`: there is no such object.
    Register(Option<(OwnerId, u64, u64)>),
    /// Whether the slot that was asked for is free.
    Free(bool),
}

/// When something was asked, and when the answer had come, on the observer's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// When it was asked.
    pub asked: Duration,
    /// When the answer was there.
    pub answered: Duration,
}

/// What is to be thought of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Verdict {
    /// It was not seen silent for long enough.
    Waiting {
        /// The silence so far.
        silent: Duration,
    },
    /// It may be replaced.
    Expired,
}

/// Since when something is unchanged, and until when that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Unchanged {
    since: Duration,
    until: Duration,
}

impl Unchanged {
    const fn from(span: Span) -> Self {
        Self {
            since: span.answered,
            until: span.answered,
        }
    }

    fn silent(self) -> Duration {
        self.until.saturating_sub(self.since)
    }
}

/// Watches one owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Observer {
    patience: Duration,
    free: u64,
    counter: Option<(OwnerId, u64)>,
    register: Option<Unchanged>,
    slot: Option<Unchanged>,
    next: Look,
}

impl Observer {
    /// An idle standby looks this often, at one thing: at most one GET per second.
    pub const PACE: Duration = Duration::from_secs(1);

    /// Watches the owner of a log whose first free slot is `free`. `lease` is T, the longer of the owner's and one's own;
    /// `drift_permille` is ρ, by how much two clocks may differ in speed.
    #[must_use]
    pub fn new(lease: Duration, drift_permille: u32, free: u64) -> Self {
        Self {
            patience: lease + lease * drift_permille / 1000,
            free,
            counter: None,
            register: None,
            slot: None,
            next: Look::Register,
        }
    }

    /// What to look at next: the two in turn.
    #[must_use]
    pub const fn look(&self) -> Look {
        self.next
    }

    /// Whether this is the first free slot as far as is known.
    #[must_use]
    pub const fn is_at(&self, free: u64) -> bool {
        self.free == free
    }

    /// What [`Observer::look`] named gave no answer: look at the other next.
    pub const fn missed(&mut self) {
        self.next = match self.next {
            Look::Register => Look::Slot(self.free),
            Look::Slot(_) => Look::Register,
        };
    }

    /// Takes what was seen.
    pub fn saw(&mut self, seen: Seen, span: Span) -> Verdict {
        match seen {
            Seen::Register(found) => {
                let counter = found.map(|(owner, counter, _)| (owner, counter));
                self.register = grown(self.register, self.counter == counter, span);
                self.counter = counter;
                // Further than what is known: the log has moved.
                if let Some((_, _, free)) = found.filter(|(_, _, free)| *free > self.free) {
                    self.free = free;
                    self.slot = None;
                }
            }
            Seen::Free(true) => self.slot = grown(self.slot, true, span),
            Seen::Free(false) => {
                self.free += 1;
                self.slot = None;
            }
        }
        self.missed();
        self.verdict()
    }

    /// What is to be thought of the owner now.
    pub fn verdict(&self) -> Verdict {
        let silence = |of: Option<Unchanged>| of.map_or(Duration::ZERO, Unchanged::silent);
        let silent = silence(self.register).min(silence(self.slot));
        if silent >= self.patience {
            Verdict::Expired
        } else {
            Verdict::Waiting { silent }
        }
    }
}

fn grown(before: Option<Unchanged>, same: bool, span: Span) -> Option<Unchanged> {
    Some(match before.filter(|_| same) {
        Some(known) => Unchanged {
            until: known.until.max(span.asked),
            ..known
        },
        None => Unchanged::from(span),
    })
}
