//! A clock that only moves when it is told to.

use baton_core::{Clock, Timestamp};
use futures::future::BoxFuture;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// A clock that only moves when it is told to, so that a test of an hour takes no time and never depends on the
/// machine's load.
///
/// Clones share one time. The wall clock starts at `base` and moves with the monotonic one, unless
/// [`ManualClock::jump`] pushes it aside.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    elapsed: Duration,
    wall_ms: i64,
    next_id: u64,
    sleepers: Vec<Sleeper>,
    /// Wakers of [`ManualClock::sleeping`].
    observers: Vec<Waker>,
}

#[derive(Debug)]
struct Sleeper {
    id: u64,
    deadline: Duration,
    waker: Waker,
}

impl ManualClock {
    /// A clock that shows `base` milliseconds since the Unix epoch.
    #[must_use]
    pub fn at(base: i64) -> Self {
        let clock = Self::default();
        clock.state().wall_ms = base;
        clock
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass and wakes who has slept long enough.
    pub fn advance(&self, by: Duration) {
        let woken: Vec<Waker> = {
            let mut state = self.state();
            state.elapsed += by;
            state.wall_ms += i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            let now = state.elapsed;
            state
                .sleepers
                .iter()
                .filter(|s| s.deadline <= now)
                .map(|s| s.waker.clone())
                .collect()
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// Moves the wall clock alone, forwards or backwards, as an administrator or NTP does.
    pub fn jump(&self, by_ms: i64) {
        self.state().wall_ms += by_ms;
    }

    /// Waits until somebody sleeps, and says for how much longer the first of them will.
    pub async fn sleeping(&self) -> Duration {
        poll_fn(|context| {
            let mut state = self.state();
            let now = state.elapsed;
            match state
                .sleepers
                .iter()
                .filter(|s| s.deadline > now)
                .map(|s| s.deadline)
                .min()
            {
                Some(deadline) => Poll::Ready(deadline - now),
                None => {
                    state.observers.push(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Waits until somebody sleeps and advances to the moment at which the first of them wakes.
    pub async fn advance_to_next(&self) -> Duration {
        let left = self.sleeping().await;
        self.advance(left);
        left
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.state().wall_ms)
    }

    fn elapsed(&self) -> Duration {
        self.state().elapsed
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        let deadline = self.elapsed() + duration;
        Box::pin(async move {
            let mut entry = Entry { clock, id: None };
            poll_fn(|context| entry.poll(deadline, context.waker())).await;
        })
    }
}

/// A sleeper's place in the list, given up when its future is dropped.
struct Entry {
    clock: ManualClock,
    id: Option<u64>,
}

impl Entry {
    fn poll(&mut self, deadline: Duration, waker: &Waker) -> Poll<()> {
        let mut state = self.clock.state();
        if state.elapsed >= deadline {
            return Poll::Ready(());
        }
        match self.id {
            Some(id) => {
                if let Some(sleeper) = state.sleepers.iter_mut().find(|s| s.id == id) {
                    sleeper.waker.clone_from(waker);
                }
            }
            None => {
                let id = state.next_id;
                state.next_id += 1;
                state.sleepers.push(Sleeper {
                    id,
                    deadline,
                    waker: waker.clone(),
                });
                self.id = Some(id);
            }
        }
        let observers = std::mem::take(&mut state.observers);
        drop(state);
        observers.into_iter().for_each(Waker::wake);
        Poll::Pending
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.clock.state().sleepers.retain(|s| s.id != id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_its_time_has_come_and_not_before() {
        let clock = ManualClock::at(1_000);
        let sleeper = tokio::spawn(clock.sleep(Duration::from_secs(2)));
        assert_eq!(clock.sleeping().await, Duration::from_secs(2));
        clock.advance(Duration::from_millis(1_999));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished(), "a millisecond is left");
        assert_eq!(clock.advance_to_next().await, Duration::from_millis(1));
        sleeper.await.expect("the sleeper does not panic");
        assert_eq!(clock.now(), Timestamp(3_000));
    }
}
