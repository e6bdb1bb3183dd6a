//! A stream of batches over some partitions' ranges.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use baton_core::{Clock, Offset, OffsetRange, TopicPartition};
use futures::Stream;
use futures::future::{Either, select};
use rdkafka::error::RDKafkaErrorCode;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::lane::{Filled, Trouble};
use super::librdkafka::{SharedLane, cannot_fetch, locked};
use crate::control::Control;
use crate::loss;
use crate::rows::Rows;
use crate::{Error, Result};

/// After so long without a record a broker is asked whether it is there.
const PATIENCE: Duration = Duration::from_secs(3);
/// After so many silent spells, each with a broker that answers, the fetch is begun anew; after twice as many the stream
/// fails, and whoever reads tries again.
const SPELLS: u32 = 4;

/// One partition's part in a stream.
pub(super) struct Part {
    lane: SharedLane,
    range: OffsetRange,
    done: bool,
}

impl Part {
    pub(super) const fn new(lane: SharedLane, range: OffsetRange) -> Self {
        Self {
            lane,
            range,
            done: false,
        }
    }

    pub(super) const fn range(&self) -> OffsetRange {
        self.range
    }
}

/// Some partitions' ranges on their way into batches.
pub(super) struct Reading {
    parts: Vec<Part>,
    /// Which part is looked at first, so that none waits for the others.
    turn: usize,
    rows: Rows,
    control: Arc<Control>,
    fail_on_data_loss: bool,
    clock: Arc<dyn Clock>,
    placed: bool,
    silent: u32,
    begun_anew: u32,
}

impl Reading {
    pub(super) fn new(
        parts: Vec<Part>,
        schema: SchemaRef,
        control: Arc<Control>,
        fail_on_data_loss: bool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let rows = Rows::new(schema);
        Self {
            parts,
            turn: 0,
            rows,
            control,
            fail_on_data_loss,
            clock,
            placed: false,
            silent: 0,
            begun_anew: 0,
        }
    }

    /// The stream; it ends after its first failure.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<RecordBatch>> + Send {
        futures::stream::unfold(Some(self), |reading| async move {
            let mut reading = reading?;
            match reading.next().await {
                Ok(Some(batch)) => Some((Ok(batch), Some(reading))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if !self.placed {
            self.place(self.parts.iter().map(|part| part.range.from().0).collect())
                .await?;
            self.placed = true;
        }
        loop {
            let before = self.rows.len();
            if let Some((at, trouble)) = self.fill() {
                self.solve(at, trouble).await?;
                continue;
            }
            let done = self.parts.iter().all(|part| part.done);
            if self.rows.is_full() || (done && self.rows.len() > 0) {
                self.silent = 0;
                return self.rows.finish().map(Some);
            }
            if done {
                return Ok(None);
            }
            if self.rows.len() > before {
                self.silent = 0;
            }
            self.wait().await?;
        }
    }

    /// Takes what has come in; the first part that cannot go on, with its trouble.
    fn fill(&mut self) -> Option<(usize, Trouble)> {
        let count = self.parts.len();
        self.turn = (self.turn + 1) % count.max(1);
        for at in (0..count).map(|step| (self.turn + step) % count) {
            let part = &mut self.parts[at];
            if part.done {
                continue;
            }
            match locked(&part.lane).fill(part.range, &mut self.rows) {
                Filled::Done => part.done = true,
                Filled::Full => break,
                Filled::Dry => {}
                Filled::Stuck(trouble) => return Some((at, trouble)),
            }
        }
        None
    }

    /// Takes the lanes to these offsets. Nearly always they are there already.
    async fn place(&mut self, offsets: Vec<i64>) -> Result<()> {
        let astray: Vec<(SharedLane, i64)> = self
            .parts
            .iter()
            .zip(offsets)
            .filter(|(part, from)| !part.done && !locked(&part.lane).leads_to(*from))
            .map(|(part, from)| (Arc::clone(&part.lane), from))
            .collect();
        if astray.is_empty() {
            return Ok(());
        }
        self.control
            .blocking(move |control, _| {
                for (lane, from) in astray {
                    let mut lane = locked(&lane);
                    let partition = lane.partition().clone();
                    lane.go_to(from)
                        .map_err(|failure| cannot_fetch(control.address(), &partition, &failure))?;
                }
                Ok(())
            })
            .await
    }

    /// Waits until something comes in, for a while.
    async fn wait(&mut self) -> Result<()> {
        let parts = &self.parts;
        let came = poll_fn(|context| {
            // Registered before the look, so that nothing comes unnoticed in between.
            let open = parts.iter().filter(|part| !part.done);
            let mut came = false;
            for part in open {
                let mut lane = locked(&part.lane);
                lane.wake_by(context.waker());
                let rest = lane.rest(part.range);
                came |= !lane.is_quiet_at(rest.range.from().0);
            }
            if came { Poll::Ready(()) } else { Poll::Pending }
        });
        match select(std::pin::pin!(came), self.clock.sleep(PATIENCE)).await {
            Either::Left(_) => Ok(()),
            Either::Right(_) => self.after_silence().await,
        }
    }

    /// Nothing came for a while: is a broker there at all?
    async fn after_silence(&mut self) -> Result<()> {
        self.silent += 1;
        let waiting: Vec<TopicPartition> = self
            .parts
            .iter()
            .filter(|part| !part.done)
            .map(|part| locked(&part.lane).partition().clone())
            .collect();
        let asked = waiting.clone();
        let answer = self
            .control
            .blocking(move |control, given_up| control.all_at(asked, Offset::LATEST, given_up))
            .await;
        if let Err(error) = answer {
            self.forget();
            return Err(error);
        }
        if self.silent == SPELLS {
            tracing::warn!(partition = %waiting[0], "nothing is read although Kafka answers: reading is begun anew");
            self.forget();
            let offsets = self
                .parts
                .iter()
                .map(|part| locked(&part.lane).rest(part.range).range.from().0)
                .collect();
            return self.place(offsets).await;
        }
        if self.silent >= 2 * SPELLS {
            self.forget();
            let seconds = (PATIENCE * self.silent).as_secs();
            return Err(Error::Passing {
                address: self.control.address().to_owned(),
                task: format!("deliver records of {}", waiting[0]),
                cause: format!("nothing came for {seconds} s, although a broker answers"),
            });
        }
        Ok(())
    }

    fn forget(&self) {
        for part in &self.parts {
            if !part.done {
                locked(&part.lane).forget();
            }
        }
    }

    /// One part cannot go on: records that are gone are skipped if the user said so, all else fails.
    async fn solve(&mut self, at: usize, trouble: Trouble) -> Result<()> {
        let part = &self.parts[at];
        let rest = locked(&part.lane).rest(part.range);
        let partition = rest.partition.clone();
        match trouble {
            Trouble::Record(error) => Err(error),
            Trouble::Client(failure) if failure.code == RDKafkaErrorCode::BadMessage => Err(Error::Refused {
                address: self.control.address().to_owned(),
                task: format!("deliver {partition} at offset {}", rest.range.from()),
                cause: failure.text,
            }),
            Trouble::Client(failure) => {
                let task = format!("deliver records of {partition}");
                Err(self
                    .control
                    .failed(&task, Some(failure.code), &failure.text, PATIENCE))
            }
            Trouble::OutOfRange => {
                let asked = partition.clone();
                let bounds = self.control.blocking(move |control, given_up| {
                    let first = control.all_at([asked.clone()], Offset::EARLIEST, given_up)?;
                    let last = control.all_at([asked.clone()], Offset::LATEST, given_up)?;
                    Ok((
                        first.of(&asked).unwrap_or_default(),
                        last.of(&asked).unwrap_or_default(),
                    ))
                });
                let (earliest, latest) = bounds.await?;
                let (from, until) = (rest.range.from(), rest.range.until());
                if earliest <= from && until <= latest {
                    // The answer to a fetch from before: of a topic that has been made again since.
                    return self.begin_anew(at, from.0).await;
                }
                let lost = loss::unreadable(&rest, earliest, latest);
                if self.fail_on_data_loss {
                    return Err(lost.into_error());
                }
                tracing::warn!(%partition, from = %lost.range.from(), until = %lost.range.until(), "records are lost");
                let go_on = lost.range.until().0;
                let lane = Arc::clone(&part.lane);
                if go_on >= part.range.until().0 {
                    locked(&lane).give_up_until(part.range.until().0);
                    return Ok(());
                }
                self.take_to(at, go_on).await
            }
        }
    }

    /// Takes one part's lane to this offset.
    async fn take_to(&mut self, at: usize, offset: i64) -> Result<()> {
        let offsets = self.parts.iter().enumerate();
        let offsets = offsets
            .map(|(number, part)| {
                if number == at {
                    offset
                } else {
                    locked(&part.lane).reached()
                }
            })
            .collect();
        self.place(offsets).await
    }

    /// The same, if this has not been tried too often.
    async fn begin_anew(&mut self, at: usize, offset: i64) -> Result<()> {
        self.begun_anew += 1;
        if self.begun_anew > SPELLS {
            let partition = locked(&self.parts[at].lane).partition().clone();
            return Err(Error::Passing {
                address: self.control.address().to_owned(),
                task: format!("deliver {partition} from offset {offset}"),
                cause: "a broker denies having it and lists it at the same time".to_owned(),
            });
        }
        self.take_to(at, offset).await
    }
}
