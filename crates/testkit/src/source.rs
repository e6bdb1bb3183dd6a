//! A source in memory that does what a test's script says.

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use baton_core::{
    Admission, BatchStream, Claimant, ErrorKind, Fault, Gap, Offset, OffsetRange, OpenContext,
    PartitionOffsets, PartitionRange, Source, SourcePlan, TopicPartition,
};
use futures::StreamExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A source in memory: one topic, `value` as text, plus `partition`, `offset` and `timestamp`.
///
/// Clones share everything, so that a test keeps one and gives another to the query.
#[derive(Clone, Debug)]
pub struct ScriptedSource {
    topic: Arc<str>,
    state: Arc<Mutex<State>>,
    /// Whether reads may go on; a slow batch is a read that may not.
    open_gate: Arc<watch::Sender<bool>>,
    /// Whether plans may go on.
    plan_gate: Arc<watch::Sender<bool>>,
}

#[derive(Debug, Default)]
struct State {
    partitions: BTreeMap<i32, Partition>,
    earliest: bool,
    limit: Option<i64>,
    down: bool,
    refuse_claim: Option<String>,
    fail_at: Option<(i32, i64)>,
    calls: Vec<String>,
    published: Option<PartitionOffsets>,
}

#[derive(Debug, Default)]
struct Partition {
    first: i64,
    rows: Vec<(String, i64)>,
}

impl Partition {
    fn end(&self) -> i64 {
        self.first + i64::try_from(self.rows.len()).unwrap_or(i64::MAX)
    }
}

impl ScriptedSource {
    /// A topic with empty partitions, started from its end.
    #[must_use]
    pub fn latest(topic: &str, partitions: i32) -> Self {
        let state = State {
            partitions: (0..partitions).map(|p| (p, Partition::default())).collect(),
            ..State::default()
        };
        let open = || Arc::new(watch::Sender::new(true));
        Self {
            topic: topic.into(),
            state: Arc::new(Mutex::new(state)),
            open_gate: open(),
            plan_gate: open(),
        }
    }

    /// A topic with empty partitions, started from its first records.
    #[must_use]
    pub fn earliest(topic: &str, partitions: i32) -> Self {
        let source = Self::latest(topic, partitions);
        source.state().earliest = true;
        source
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Limits a batch to this many records over all partitions, taken in order of partition.
    #[must_use]
    pub fn with_limit(self, records: i64) -> Self {
        self.state().limit = Some(records);
        self
    }

    /// Appends a record, stamped with the epoch's first millisecond.
    pub fn push(&self, partition: i32, value: &str) {
        self.push_at(partition, value, 0);
    }

    /// Appends a record with a timestamp in milliseconds.
    pub fn push_at(&self, partition: i32, value: &str, timestamp_ms: i64) {
        let mut state = self.state();
        state
            .partitions
            .entry(partition)
            .or_default()
            .rows
            .push((value.to_owned(), timestamp_ms));
    }

    /// Deletes the records before `offset`, as retention does.
    pub fn expire(&self, partition: i32, offset: i64) {
        if let Some(partition) = self.state().partitions.get_mut(&partition) {
            let gone = usize::try_from(offset - partition.first)
                .unwrap_or(0)
                .min(partition.rows.len());
            partition.rows.drain(..gone);
            partition.first = offset;
        }
    }

    /// Makes every call fail as unavailable, or not any more.
    pub fn set_down(&self, down: bool) {
        self.state().down = down;
    }

    /// Refuses claims in favour of another checkpoint's job.
    pub fn refuse_claims_for(&self, other: &str) {
        self.state().refuse_claim = Some(other.to_owned());
    }

    /// Makes the read of one record fail, as a value that cannot be decoded.
    pub fn fail_at(&self, partition: i32, offset: i64) {
        self.state().fail_at = Some((partition, offset));
    }

    /// Keeps reads from delivering anything: the batch is slow until [`ScriptedSource::resume`].
    pub fn stall(&self) {
        self.open_gate.send_replace(false);
    }

    /// Lets stalled reads go on.
    pub fn resume(&self) {
        self.open_gate.send_replace(true);
    }

    /// Keeps plans from being made, until [`ScriptedSource::release_plans`].
    pub fn hold_plans(&self) {
        self.plan_gate.send_replace(false);
    }

    /// Lets held plans be made.
    pub fn release_plans(&self) {
        self.plan_gate.send_replace(true);
    }

    /// What was called, in order: `open`, `start`, `claim`, `plan`, `warm …`, `read {…}`.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// The last position told to the outside.
    #[must_use]
    pub fn published(&self) -> Option<PartitionOffsets> {
        self.state().published.clone()
    }

    fn called(&self, call: impl Into<String>) -> Result<MutexGuard<'_, State>, Fault> {
        let mut state = self.state();
        state.calls.push(call.into());
        if state.down {
            return Err(Fault::new(
                ErrorKind::Unavailable,
                "E0201",
                "the scripted broker is away",
            ));
        }
        Ok(state)
    }

    fn partition(&self, partition: i32) -> TopicPartition {
        TopicPartition::new(self.topic.as_ref(), partition)
    }
}

/// The columns of a [`ScriptedSource`].
#[must_use]
pub fn scripted_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("value", DataType::Utf8, true),
        Field::new("partition", DataType::Int32, true),
        Field::new("offset", DataType::Int64, true),
        Field::new(
            "timestamp",
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            true,
        ),
    ]))
}

#[async_trait]
impl Source for ScriptedSource {
    fn schema(&self) -> SchemaRef {
        scripted_schema()
    }

    fn description(&self) -> String {
        format!("Scripted[{}]", self.topic)
    }

    async fn open(&self, _context: &OpenContext) -> Result<(), Fault> {
        self.called("open").map(drop)
    }

    async fn start(&self) -> Result<PartitionOffsets, Fault> {
        let state = self.called("start")?;
        let at = |p: &Partition| Offset(if state.earliest { p.first } else { p.end() });
        Ok(state
            .partitions
            .iter()
            .map(|(id, p)| (self.partition(*id), at(p)))
            .collect())
    }

    async fn claim(&self, _claimant: &Claimant) -> Result<(), Fault> {
        let state = self.called("claim")?;
        state.refuse_claim.as_ref().map_or(Ok(()), |other| {
            Err(Fault::new(
                ErrorKind::Held,
                "E0230",
                format!("the scripted group belongs to {other}"),
            ))
        })
    }

    async fn plan(&self, from: &PartitionOffsets, admission: &Admission) -> Result<SourcePlan, Fault> {
        let mut gate = self.plan_gate.subscribe();
        // An error means that the sender is gone, which cannot be: `self` holds it.
        let _opened = gate.wait_for(|open| *open).await.is_ok();
        let state = self.called("plan")?;
        let mut plan = SourcePlan::default();
        let mut left = if admission.unlimited {
            i64::MAX
        } else {
            state.limit.unwrap_or(i64::MAX)
        };
        for (id, partition) in &state.partitions {
            let name = self.partition(*id);
            plan.latest.set(name.clone(), Offset(partition.end()));
            if admission.cap.as_ref().is_some_and(|cap| cap.of(&name).is_none()) {
                continue;
            }
            let asked = from.of(&name).unwrap_or(Offset(partition.first));
            let start = asked.max(Offset(partition.first));
            if start > asked {
                plan.gaps.push(Gap {
                    lost: PartitionRange {
                        partition: name.clone(),
                        range: OffsetRange::new(asked, start)?,
                    },
                    reason: "deleted by the script".to_owned(),
                });
            }
            let end = admission
                .cap
                .as_ref()
                .and_then(|cap| cap.of(&name))
                .map_or(partition.end(), |cap| cap.0);
            let until = end.min(start.0.saturating_add(left)).max(start.0);
            left -= until - start.0;
            plan.from.set(name.clone(), start);
            plan.until.set(name, Offset(until));
        }
        Ok(plan)
    }

    async fn warm(&self, at: &PartitionOffsets) {
        drop(self.called(format!("warm {at}")));
    }

    fn read(&self, ranges: &[PartitionRange], streams: usize) -> Result<Vec<BatchStream>, Fault> {
        let said: Vec<String> = ranges
            .iter()
            .map(|r| {
                format!(
                    "{}:{}..{}",
                    r.partition.partition,
                    r.range.from(),
                    r.range.until()
                )
            })
            .collect();
        drop(self.called(format!("read {}", said.join(" ")))?);
        let mut shares: Vec<Vec<PartitionRange>> = vec![Vec::new(); streams.max(1).min(ranges.len())];
        let count = shares.len();
        for (index, range) in ranges.iter().enumerate() {
            shares[index * count / ranges.len()].push(range.clone());
        }
        Ok(shares.into_iter().map(|share| self.stream(share)).collect())
    }

    async fn publish(&self, _claimant: &Claimant, until: &PartitionOffsets) -> Result<(), Fault> {
        self.called("publish")?.published = Some(until.clone());
        Ok(())
    }
}

impl ScriptedSource {
    fn stream(&self, ranges: Vec<PartitionRange>) -> BatchStream {
        let source = self.clone();
        futures::stream::iter(ranges)
            .then(move |range| {
                let source = source.clone();
                async move {
                    let mut gate = source.open_gate.subscribe();
                    // An error means that the sender is gone, which cannot be: `source` holds it.
                    let _opened = gate.wait_for(|open| *open).await.is_ok();
                    source.rows(&range)
                }
            })
            .boxed()
    }

    fn rows(&self, range: &PartitionRange) -> Result<RecordBatch, Fault> {
        let state = self.state();
        if state.down {
            return Err(Fault::new(
                ErrorKind::Unavailable,
                "E0201",
                "the scripted broker is away",
            ));
        }
        let id = range.partition.partition;
        if let Some((partition, offset)) = state.fail_at
            && partition == id
            && range.range.contains(Offset(offset))
        {
            return Err(Fault::new(
                ErrorKind::Failed,
                "E0299",
                format!("record {offset} cannot be decoded"),
            ));
        }
        let lost = || {
            Fault::new(
                ErrorKind::Failed,
                "E0298",
                format!("range of {} is gone", range.partition),
            )
        };
        let partition = state.partitions.get(&id).ok_or_else(lost)?;
        let offsets: Vec<i64> = (range.range.from().0..range.range.until().0).collect();
        let rows = offsets
            .iter()
            .map(|offset| {
                usize::try_from(offset - partition.first)
                    .ok()
                    .and_then(|at| partition.rows.get(at))
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(lost)?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|(value, _)| value))),
            Arc::new(Int32Array::from_value(id, rows.len())),
            Arc::new(Int64Array::from_iter_values(offsets.iter().copied())),
            Arc::new(
                TimestampMicrosecondArray::from_iter_values(rows.iter().map(|(_, ms)| ms * 1_000))
                    .with_timezone("UTC"),
            ),
        ];
        RecordBatch::try_new(scripted_schema(), columns)
            .map_err(|error| Fault::new(ErrorKind::Internal, "E0297", error.to_string()))
    }
}
