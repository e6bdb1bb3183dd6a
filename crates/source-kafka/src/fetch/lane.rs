//! One partition being read: what is known of it, and what was fetched but not asked for yet.

use baton_core::{Offset, OffsetRange, PartitionRange, TopicPartition};
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::RDKafkaErrorCode;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use crate::ffi::{Failure, Message, Partition};
use crate::rows::Rows;
use crate::{Error, Result};

/// Messages moved out of librdkafka's queue in one call.
const CHUNK: usize = 1_024;

/// A start that lies this far ahead is reached by skipping what is fetched on the way; farther ones by fetching anew,
/// which throws away what is under way and waits for the request before.
const SKIP: i64 = 20_000;

/// Why a lane cannot go on.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// The offset that was asked for is not there.
    OutOfRange,
    /// Whatever the client said.
    Client(Failure),
    /// A record that cannot become a row.
    Record(Error),
}

/// How a fill ended.
#[derive(Debug)]
pub(super) enum Filled {
    /// The batch is full; there is more.
    Full,
    /// Nothing more has come in yet.
    Dry,
    /// The range's end is reached.
    Done,
    /// The lane cannot go on.
    Stuck(Trouble),
}

/// One partition being read.
///
/// `floor <= reached`. Everything at `floor` and above is still to come, from `kept` or the queue; below `reached`
/// nothing comes any more. Between them lie offsets without records. A range is done when `reached` is at its end, and
/// the next range goes on without a fetch thrown away when it starts at `floor` or above.
pub(super) struct Lane<C: ConsumerContext + 'static> {
    partition: TopicPartition,
    topic: Arc<str>,
    source: Partition<C>,
    kept: VecDeque<Message>,
    floor: i64,
    reached: i64,
    /// The last end of the partition that was told of since the fetch began. Telling of it moves librdkafka's own
    /// position one too far, as if a record had been there.
    end: Option<i64>,
    fetching: bool,
}

impl<C: ConsumerContext> Lane<C> {
    pub(super) fn new(source: Partition<C>, partition: TopicPartition) -> Self {
        let topic = partition.topic.as_str().into();
        Self {
            partition,
            topic,
            source,
            kept: VecDeque::new(),
            floor: 0,
            reached: 0,
            end: None,
            fetching: false,
        }
    }

    pub(super) fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// Below this nothing is missing any more.
    pub(super) const fn reached(&self) -> i64 {
        self.reached
    }

    /// Whether reading from `from` needs no new fetch.
    pub(super) const fn leads_to(&self, from: i64) -> bool {
        self.fetching && self.floor <= from && from <= self.reached.saturating_add(SKIP)
    }

    /// Goes to `from`; blocks for a moment unless it [leads there](Self::leads_to).
    pub(super) fn go_to(&mut self, from: i64) -> Result<(), Failure> {
        if !self.leads_to(from) {
            self.kept.clear();
            self.fetching = false;
            self.source.fetch_from(from)?;
            (self.floor, self.reached, self.end, self.fetching) = (from, from, None, true);
        }
        Ok(())
    }

    /// The next read fetches anew.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
        self.fetching = false;
    }

    /// Counts offsets that no longer exist as reached.
    pub(super) fn give_up_until(&mut self, until: i64) {
        self.forget();
        self.reached = until;
    }

    pub(super) fn wake_by(&self, waker: &Waker) {
        self.source.waker().register(waker);
    }

    /// Whether nothing has come in at `at` or above.
    pub(super) fn is_quiet_at(&mut self, at: i64) -> bool {
        if !self.leads_to(at) {
            return false;
        }
        loop {
            let Some(event) = self.kept.front() else {
                if self.source.take(&mut self.kept, 16) == 0 {
                    self.catch_up();
                    return self.reached <= at;
                }
                continue;
            };
            // The end of the partition, which a look takes in: the queue must be empty to tell of news.
            if event
                .failure()
                .is_none_or(|failure| failure.code != RDKafkaErrorCode::PartitionEOF)
            {
                return false;
            }
            let end = event.offset();
            self.kept.pop_front();
            self.ends_at(end);
        }
    }

    /// Copies what has come in of `range` into `rows`, without waiting.
    pub(super) fn fill(&mut self, range: OffsetRange, rows: &mut Rows) -> Filled {
        let filled = self.fill_run(range, rows);
        rows.end_run(&self.topic, self.partition.partition);
        filled
    }

    fn fill_run(&mut self, range: OffsetRange, rows: &mut Rows) -> Filled {
        let (from, until) = (range.from().0, range.until().0);
        loop {
            if self.reached >= until {
                return Filled::Done;
            }
            if rows.is_full() {
                return Filled::Full;
            }
            let Some(message) = self.kept.front() else {
                // Not more than can be of this range or fit: what lies beyond stays in the queue, where it is bounded.
                let wanted = usize::try_from(until - self.reached.max(self.floor)).unwrap_or(CHUNK);
                let wanted = wanted.min(rows.room()).clamp(1, CHUNK);
                if self.source.take(&mut self.kept, wanted) > 0 {
                    continue;
                }
                if !self.catch_up() {
                    return Filled::Dry;
                }
                continue;
            };
            let offset = message.offset();
            if let Some(failure) = message.failure() {
                self.kept.pop_front();
                match failure.code {
                    RDKafkaErrorCode::PartitionEOF => self.ends_at(offset),
                    RDKafkaErrorCode::AutoOffsetReset => return self.stuck(Trouble::OutOfRange),
                    _ => return self.stuck(Trouble::Client(failure)),
                }
                continue;
            }
            // A record proves that there is none between the last one and it.
            self.reached = self.reached.max(offset);
            if offset >= until {
                return Filled::Done;
            }
            if offset >= from && offset >= self.floor {
                match Self::push(message, rows) {
                    Ok(()) => {}
                    Err(Some(failure)) => return self.stuck(Trouble::Client(failure)),
                    Err(None) => {
                        let millis = message.record().millis;
                        let TopicPartition { topic, partition } = self.partition.clone();
                        let error = Error::Timestamp {
                            topic,
                            partition,
                            offset,
                            millis,
                        };
                        return self.stuck(Trouble::Record(error));
                    }
                }
            }
            self.kept.pop_front();
            self.floor = self.floor.max(offset + 1);
            self.reached = self.reached.max(offset + 1);
        }
    }

    /// Notes where the partition ends for now: nothing before it is missing.
    fn ends_at(&mut self, end: i64) {
        self.reached = self.reached.max(end);
        self.end = self.end.max(Some(end));
    }

    /// Counts what the client took itself – control records – as reached; only its position tells of them. Right behind an
    /// end it may be the end alone that moved it: a record there has yet to come, and a control record is followed by
    /// another end.
    fn catch_up(&mut self) -> bool {
        let news = |at: &i64| *at > self.reached && self.end.is_none_or(|end| *at > end + 1);
        let position = self.source.position().filter(news);
        self.reached = position.unwrap_or(self.reached);
        position.is_some()
    }

    fn stuck(&mut self, trouble: Trouble) -> Filled {
        self.forget();
        Filled::Stuck(trouble)
    }

    /// Copies one message; the client's failure, or none for a time that does not fit.
    #[inline]
    fn push(message: &Message, rows: &mut Rows) -> Result<(), Option<Failure>> {
        rows.push(&message.record()).map_err(|_malformed| None)?;
        if rows.wants_headers() {
            rows.headers(message.headers()?);
        }
        Ok(())
    }

    /// What is left of `range`.
    pub(super) fn rest(&self, range: OffsetRange) -> PartitionRange {
        let from = Offset(self.reached.clamp(range.from().0, range.until().0));
        let range = OffsetRange::new(from, range.until()).expect("clamped to the end");
        PartitionRange {
            partition: self.partition.clone(),
            range,
        }
    }
}
