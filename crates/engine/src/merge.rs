//! Parallel streams merged into one, in order where that costs nothing, and bounded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How many items of one lane may wait.
const LANE_ITEMS: usize = 3;

/// Where parallel streams meet before the sink.
///
/// The receiver takes the first lane that has not ended, so that a small batch leaves in order of partition, as
/// Spark's does, whatever order the threads ran in. Only when that lane has nothing yet and another is full does it take
/// from the full one: a large batch keeps all streams at work. At most [`LANE_ITEMS`] items a lane wait at any time.
pub(crate) struct Merge<T> {
    lanes: Mutex<Vec<Lane<T>>>,
    /// Something was pushed, or a lane ended.
    filled: Notify,
    /// Something was taken.
    drained: Notify,
}

struct Lane<T> {
    items: VecDeque<T>,
    ended: bool,
}

/// One stream's end of a [`Merge`]; dropping it ends the lane.
pub(crate) struct LaneSender<T> {
    merge: Arc<Merge<T>>,
    lane: usize,
}

impl<T> Merge<T> {
    pub(crate) fn new(lanes: usize) -> (Arc<Self>, Vec<LaneSender<T>>) {
        let merge = Arc::new(Self {
            lanes: Mutex::new(
                (0..lanes)
                    .map(|_| Lane {
                        items: VecDeque::new(),
                        ended: false,
                    })
                    .collect(),
            ),
            filled: Notify::new(),
            drained: Notify::new(),
        });
        let senders = (0..lanes)
            .map(|lane| LaneSender {
                merge: Arc::clone(&merge),
                lane,
            })
            .collect();
        (merge, senders)
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Lane<T>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next item, or none when all lanes have ended.
    ///
    /// # Cancel safety
    /// An item is taken only when it is returned.
    pub(crate) async fn next(&self) -> Option<T> {
        loop {
            // One receiver: `notify_one` keeps a permit for it, so nothing is missed between look and wait.
            match take(&mut self.lanes()) {
                Taken::Item(item) => {
                    self.drained.notify_waiters();
                    return Some(item);
                }
                Taken::Ended => return None,
                Taken::NotYet => {}
            }
            self.filled.notified().await;
        }
    }
}

enum Taken<T> {
    Item(T),
    NotYet,
    Ended,
}

fn take<T>(lanes: &mut [Lane<T>]) -> Taken<T> {
    let Some(head) = lanes
        .iter()
        .position(|lane| !lane.ended || !lane.items.is_empty())
    else {
        return Taken::Ended;
    };
    if let Some(item) = lanes[head].items.pop_front() {
        return Taken::Item(item);
    }
    let full = lanes.iter_mut().find(|lane| lane.items.len() >= LANE_ITEMS);
    full.and_then(|lane| lane.items.pop_front())
        .map_or(Taken::NotYet, Taken::Item)
}

impl<T> LaneSender<T> {
    /// Adds an item, waiting while the lane is full.
    ///
    /// # Cancel safety
    /// The item is either in the lane or dropped.
    pub(crate) async fn send(&self, item: T) {
        let mut item = Some(item);
        loop {
            let drained = self.merge.drained.notified();
            tokio::pin!(drained);
            // Registered before the look, so that a take between look and wait is not missed.
            drained.as_mut().enable();
            {
                let mut lanes = self.merge.lanes();
                let lane = &mut lanes[self.lane];
                if lane.items.len() < LANE_ITEMS {
                    lane.items.extend(item.take());
                }
            }
            if item.is_none() {
                self.merge.filled.notify_one();
                return;
            }
            drained.await;
        }
    }
}

impl<T> Drop for LaneSender<T> {
    fn drop(&mut self) {
        self.merge.lanes()[self.lane].ended = true;
        self.merge.filled.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_streams_leave_in_order_of_lane_whoever_was_first() {
        let (merge, mut senders) = Merge::new(2);
        let (second, first) = (senders.pop().expect("two"), senders.pop().expect("two"));
        second.send("b").await;
        drop(second);
        first.send("a").await;
        drop(first);
        assert_eq!(
            (merge.next().await, merge.next().await, merge.next().await),
            (Some("a"), Some("b"), None)
        );
    }

    #[tokio::test]
    async fn a_full_lane_is_drained_while_the_first_has_nothing_and_no_item_is_lost() {
        let (merge, mut senders) = Merge::new(2);
        let (second, first) = (senders.pop().expect("two"), senders.pop().expect("two"));
        let filler = tokio::spawn(async move {
            for item in 0..100 {
                second.send(item).await;
            }
        });
        let mut taken = Vec::new();
        for _ in 0..(100 - LANE_ITEMS) {
            taken.extend(merge.next().await);
        }
        filler
            .await
            .expect("the filler ends although the first lane is silent");
        first.send(1_000).await;
        drop(first);
        while let Some(item) = merge.next().await {
            taken.push(item);
        }
        assert_eq!(taken.len(), 101);
        taken.sort_unstable();
        assert_eq!(taken.last(), Some(&1_000));
    }

    #[tokio::test]
    async fn a_lane_never_holds_more_than_its_bound() {
        let (merge, senders) = Merge::new(1);
        for item in 0..LANE_ITEMS {
            senders[0].send(item).await;
        }
        let one_more = senders[0].send(LANE_ITEMS);
        tokio::pin!(one_more);
        assert!(futures::poll!(&mut one_more).is_pending(), "the lane is full");
        assert_eq!(merge.next().await, Some(0));
        assert!(futures::poll!(&mut one_more).is_ready());
    }
}
