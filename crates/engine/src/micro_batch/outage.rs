//! Waiting for something that does not answer.

use baton_core::SourceName;
use std::time::Duration;

/// The shortest and the longest pause between two attempts.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);

/// How often a wait that goes on is said again.
const REMINDER: Duration = Duration::from_secs(30);

/// One outage of one source: how long to pause, and when to say so.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    pub(super) source: SourceName,
    /// On the monotonic clock.
    pub(super) since: Duration,
    said: Option<Duration>,
    pause: Duration,
}

impl Outage {
    /// An outage that is noticed at `now` on the monotonic clock.
    pub(super) const fn new(source: SourceName, now: Duration) -> Self {
        Self {
            source,
            since: now,
            said: None,
            pause: SHORTEST,
        }
    }

    /// How long it has lasted.
    pub(super) fn lasted(&self, now: Duration) -> Duration {
        now.saturating_sub(self.since)
    }

    /// The pause before the next attempt; each is twice the one before.
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST);
        pause
    }

    /// Whether it is time to tell: at first, then every 30 s.
    pub(super) fn is_worth_saying(&mut self, now: Duration) -> bool {
        let due = self.said.is_none_or(|said| now.saturating_sub(said) >= REMINDER);
        if due {
            self.said = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_said_at_once_then_every_thirty_seconds_and_tried_ever_more_slowly() {
        let mut now = Duration::from_secs(100);
        let mut outage = Outage::new(SourceName::new("messages").expect("a name"), now);
        let (mut said, mut attempts) = (0_u32, 0);
        while outage.lasted(now) < Duration::from_secs(62) {
            said += u32::from(outage.is_worth_saying(now));
            attempts += 1;
            now += outage.pause();
        }
        assert_eq!(said, 3, "at 0, 30 and 60 s, give or take a pause");
        assert!((55..70).contains(&attempts), "{attempts} attempts in a minute");
    }
}
