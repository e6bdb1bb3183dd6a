//! When a batch starts: Spark's triggers, without a clock in them.
//!
//! ```text
//!            fires        took a batch        found nothing
//! default    at once      at once             in 10 ms
//! processing at once      next multiple of t  next multiple of t
//! once       at once      end                 end
//! available  at once      at once             end
//! ```

use baton_core::{Timestamp, parse_duration};
use std::time::Duration;

/// How long a query that has found nothing waits before it looks again, where its trigger does not say.
pub const POLL_DELAY: Duration = Duration::from_millis(10);

/// When batches start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// As soon as the previous batch is done.
    #[default]
    Default,
    /// At the multiples of an interval since the Unix epoch, and at once at the start.
    ProcessingTime(Duration),
    /// One batch that takes everything, whatever the sources' limits. An uncommitted batch of an earlier run counts as
    /// that one, and new data stays unread, as in Spark.
    Once,
    /// Everything that is there at the start, in batches under the sources' limits; then the end.
    AvailableNow,
}

impl Trigger {
    /// A trigger from Spark's interval words, `1 second`; zero is the default trigger.
    ///
    /// # Errors
    /// [`baton_core::Error::InvalidDuration`] for what is no duration, months and years included.
    pub fn processing_time(interval: &str) -> baton_core::Result<Self> {
        let interval = parse_duration(interval)?;
        Ok(if interval < Duration::from_millis(1) {
            Self::Default
        } else {
            Self::ProcessingTime(interval)
        })
    }

    /// Whether the query ends by itself.
    #[must_use]
    pub const fn is_bounded(self) -> bool {
        matches!(self, Self::Once | Self::AvailableNow)
    }
}

/// What a trigger came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fired {
    /// A batch ran.
    Ran,
    /// There was nothing new.
    Nothing,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Fire again at once.
    Now,
    /// Fire again after this long.
    Wait(Duration),
    /// The query is done.
    End,
}

/// A batch that took longer than its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// The trigger's interval.
    pub interval: Duration,
    /// What the batch took.
    pub took: Duration,
    /// Ticks that passed meanwhile and will not be made up for.
    pub missed: u64,
}

/// A trigger in the course of its firings.
#[derive(Debug)]
pub(crate) struct Pace {
    trigger: Trigger,
    fired: Timestamp,
}

impl Pace {
    pub(crate) const fn new(trigger: Trigger) -> Self {
        Self {
            trigger,
            fired: Timestamp(0),
        }
    }

    /// Notes that the trigger fires now.
    pub(crate) const fn fire(&mut self, now: Timestamp) {
        self.fired = now;
    }

    /// Whether another batch would start the moment the running one is done, so that its plan may share the log slot
    /// of the running one's commit.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        match self.trigger {
            Trigger::Default | Trigger::AvailableNow => true,
            Trigger::ProcessingTime(interval) => self.wait(interval, now).is_zero(),
            Trigger::Once => false,
        }
    }

    /// What follows a firing.
    pub(crate) fn after(&self, fired: Fired, now: Timestamp) -> (Next, Option<Overrun>) {
        match (self.trigger, fired) {
            (Trigger::Default | Trigger::AvailableNow, Fired::Ran) => (Next::Now, None),
            (Trigger::Default, Fired::Nothing) => (Next::Wait(POLL_DELAY), None),
            (Trigger::Once, _) | (Trigger::AvailableNow, Fired::Nothing) => (Next::End, None),
            (Trigger::ProcessingTime(interval), _) => {
                let wait = self.wait(interval, now);
                let next = if wait.is_zero() {
                    Next::Now
                } else {
                    Next::Wait(wait)
                };
                (next, self.overrun(interval, now))
            }
        }
    }

    /// How long until the multiple of `interval` that follows the last firing.
    ///
    /// Never longer than the interval: a wall clock set back by an hour must not stop the query for an hour.
    fn wait(&self, interval: Duration, now: Timestamp) -> Duration {
        let step = step_ms(interval);
        let tick = (self.fired.0.div_euclid(step) + 1) * step;
        Duration::from_millis(u64::try_from((tick - now.0).clamp(0, step)).unwrap_or(0))
    }

    fn overrun(&self, interval: Duration, now: Timestamp) -> Option<Overrun> {
        let step = step_ms(interval);
        let took = now.0 - self.fired.0;
        (took > step).then(|| Overrun {
            interval,
            took: Duration::from_millis(took.unsigned_abs()),
            // The tick that starts the next batch, late, is not missed; those before it are.
            missed: (now.0.div_euclid(step) - self.fired.0.div_euclid(step) - 1)
                .max(0)
                .unsigned_abs(),
        })
    }
}

fn step_ms(interval: Duration) -> i64 {
    i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Trigger = Trigger::ProcessingTime(Duration::from_secs(1));

    fn after(trigger: Trigger, fired_at: i64, fired: Fired, now: i64) -> (Next, Option<Overrun>) {
        let mut pace = Pace::new(trigger);
        pace.fire(Timestamp(fired_at));
        pace.after(fired, Timestamp(now))
    }

    fn wait(ms: u64) -> Next {
        Next::Wait(Duration::from_millis(ms))
    }

    #[test]
    fn processing_time_waits_for_the_next_multiple_since_the_epoch() {
        assert_eq!(after(SECOND, 10_300, Fired::Ran, 10_400), (wait(600), None));
        assert_eq!(after(SECOND, 10_300, Fired::Nothing, 10_300), (wait(700), None));
        assert_eq!(
            after(SECOND, 11_000, Fired::Ran, 11_000),
            (wait(1_000), None),
            "a tick is not its own successor"
        );
    }

    #[test]
    fn an_overrun_starts_the_next_batch_at_once_and_says_which_ticks_were_missed() {
        let (next, overrun) = after(SECOND, 10_000, Fired::Ran, 13_400);
        assert_eq!(next, Next::Now);
        let overrun = overrun.expect("3.4 s is more than 1 s");
        assert_eq!((overrun.took, overrun.missed), (Duration::from_millis(3_400), 2));
    }

    #[test]
    fn a_batch_that_crosses_a_tick_within_its_interval_is_late_but_no_overrun() {
        assert_eq!(after(SECOND, 10_900, Fired::Ran, 11_300), (Next::Now, None));
    }

    #[test]
    fn ticks_stay_aligned_after_an_overrun() {
        let mut pace = Pace::new(SECOND);
        pace.fire(Timestamp(13_400));
        assert_eq!(pace.after(Fired::Ran, Timestamp(13_500)).0, wait(500));
    }

    #[test]
    fn a_wall_clock_set_back_delays_by_one_interval_at_most() {
        assert_eq!(after(SECOND, 3_600_000, Fired::Ran, 0).0, wait(1_000));
    }

    #[test]
    fn bounded_triggers_end_and_unbounded_ones_do_not() {
        assert_eq!(after(Trigger::Once, 0, Fired::Ran, 5).0, Next::End);
        assert_eq!(after(Trigger::Once, 0, Fired::Nothing, 5).0, Next::End);
        assert_eq!(after(Trigger::AvailableNow, 0, Fired::Ran, 5).0, Next::Now);
        assert_eq!(after(Trigger::AvailableNow, 0, Fired::Nothing, 5).0, Next::End);
        assert_eq!(after(Trigger::Default, 0, Fired::Ran, 5).0, Next::Now);
        assert_eq!(
            after(Trigger::Default, 0, Fired::Nothing, 5).0,
            Next::Wait(POLL_DELAY)
        );
    }

    #[test]
    fn the_next_plan_shares_a_slot_only_when_it_is_due() {
        let mut pace = Pace::new(SECOND);
        pace.fire(Timestamp(10_100));
        assert!(!pace.is_due(Timestamp(10_900)));
        assert!(pace.is_due(Timestamp(11_000)));
        assert!(Pace::new(Trigger::Default).is_due(Timestamp(0)));
        assert!(
            !Pace::new(Trigger::Once).is_due(Timestamp(0)),
            "once is one batch"
        );
    }

    #[test]
    fn intervals_are_read_as_spark_reads_them() {
        let read = |text| Trigger::processing_time(text).expect("a duration");
        assert_eq!(read("1 second"), SECOND);
        assert_eq!(read("0 seconds"), Trigger::Default);
        assert!(Trigger::processing_time("1 month").is_err());
        assert!(Trigger::processing_time("-1 second").is_err());
    }
}
