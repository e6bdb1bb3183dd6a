//! What the checkpoint's log says.

use serde_json::Value;
use std::collections::BTreeMap;

/// Half-open ranges of a batch: partition, from, until.
pub type Ranges = Vec<(i32, i64, i64)>;

/// A batch of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its number.
    pub id: u64,
    /// Epoch of its plan.
    pub planned_in: u64,
    /// Epoch of its commit.
    pub committed_in: Option<u64>,
    /// Version that planned it.
    pub version: String,
    start: BTreeMap<i32, i64>,
    end: BTreeMap<i32, i64>,
}

impl Batch {
    /// What it reads. A partition that its start does not know begins at its first record.
    pub fn ranges(&self) -> impl Iterator<Item = (i32, i64, i64)> {
        self.end.iter().map(|(partition, end)| {
            (
                *partition,
                self.start.get(partition).copied().unwrap_or(0).min(*end),
                *end,
            )
        })
    }
}

/// The log of a checkpoint whose job reads one topic.
#[derive(Clone, Debug, Default)]
pub struct Log {
    batches: BTreeMap<u64, Batch>,
    kinds: Vec<(String, u64)>,
    complaints: Vec<String>,
}

impl Log {
    /// Reads what `baton checkpoint show --output json` printed.
    ///
    /// # Errors
    /// When it is not the JSON it should be.
    pub fn parse(json: &str) -> Result<Self, String> {
        let shown: Value = serde_json::from_str(json).map_err(|error| format!("{error} in {json:?}"))?;
        let records = shown["records"]
            .as_array()
            .ok_or_else(|| format!("no records in {shown}"))?;
        let mut log = Self::default();
        let mut moved: Option<BTreeMap<i32, i64>> = None;
        let mut last: Option<(u64, BTreeMap<i32, i64>)> = None;
        let (mut seq, mut epoch) = (None, 0);
        for record in records {
            let kind = record["kind"]
                .as_str()
                .ok_or_else(|| format!("no kind in {record}"))?;
            let this = record["epoch"]
                .as_u64()
                .ok_or_else(|| format!("no epoch in {record}"))?;
            let number = record["seq"]
                .as_u64()
                .ok_or_else(|| format!("no seq in {record}"))?;
            if seq.is_some_and(|seq| number < seq) || this < epoch {
                log.complaints.push(format!(
                    "record {number} of epoch {this} comes after {seq:?} of {epoch}"
                ));
            }
            if kind == "fence" && this != epoch + 1 && epoch != 0 {
                log.complaints
                    .push(format!("fence of epoch {this} follows epoch {epoch}"));
            }
            (seq, epoch) = (Some(number), this);
            log.kinds.push((kind.to_owned(), this));
            match kind {
                "position" => {
                    moved = ["next", "end", "start", "offsets"]
                        .iter()
                        .find_map(|at| offsets(&record[*at]))
                }
                "plan" => log.plan(record, this, &mut moved, &mut last)?,
                "commit" => log.commit(record, this)?,
                _ => {}
            }
        }
        Ok(log)
    }

    fn plan(
        &mut self,
        record: &Value,
        epoch: u64,
        moved: &mut Option<BTreeMap<i32, i64>>,
        last: &mut Option<(u64, BTreeMap<i32, i64>)>,
    ) -> Result<(), String> {
        let id = record["batchId"]
            .as_u64()
            .ok_or_else(|| format!("no batchId in {record}"))?;
        let start = offsets(&record["start"]).ok_or_else(|| format!("no start in {record}"))?;
        let end = offsets(&record["end"]).ok_or_else(|| format!("no end in {record}"))?;
        let expected = moved.take().or_else(|| last.as_ref().map(|(_, end)| end.clone()));
        for (partition, from) in expected.iter().flatten() {
            if start.get(partition).is_some_and(|start| start != from) {
                let found = start[partition];
                self.complaints.push(format!(
                    "batch {id} starts partition {partition} at {found}, not at {from}"
                ));
            }
        }
        if let Some((before, _)) = last
            && id != *before + 1
        {
            self.complaints.push(format!("batch {id} follows batch {before}"));
        }
        *last = Some((id, end.clone()));
        let version = record["version"].as_str().unwrap_or_default().to_owned();
        let batch = Batch {
            id,
            planned_in: epoch,
            committed_in: None,
            version,
            start,
            end,
        };
        if self.batches.insert(id, batch).is_some() {
            self.complaints.push(format!("batch {id} was planned twice"));
        }
        Ok(())
    }

    fn commit(&mut self, record: &Value, epoch: u64) -> Result<(), String> {
        let id = record["batchId"]
            .as_u64()
            .ok_or_else(|| format!("no batchId in {record}"))?;
        match self.batches.get_mut(&id) {
            Some(batch) if batch.committed_in.is_none() => batch.committed_in = Some(epoch),
            Some(_) => self.complaints.push(format!("batch {id} was committed twice")),
            None => self
                .complaints
                .push(format!("batch {id} was committed without a plan")),
        }
        Ok(())
    }

    /// What is wrong with the log by itself: order of records and epochs, gaps, overlaps, batches planned twice.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = self.complaints.clone();
        let open: Vec<u64> = self
            .batches
            .values()
            .filter(|b| b.committed_in.is_none())
            .map(|b| b.id)
            .collect();
        if open.len() > 1
            || open
                .first()
                .is_some_and(|id| self.batches.keys().next_back() != Some(id))
        {
            complaints.push(format!("batches {open:?} were never committed"));
        }
        complaints
    }

    /// The batches, in order.
    pub fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.batches.values()
    }

    /// The batches that one owner planned and another committed.
    #[must_use]
    pub fn reran(&self) -> Vec<u64> {
        let moved = |b: &&Batch| b.committed_in.is_some_and(|epoch| epoch != b.planned_in);
        self.batches.values().filter(moved).map(|b| b.id).collect()
    }

    /// How many records of this kind there are.
    #[must_use]
    pub fn count(&self, kind: &str) -> usize {
        self.kinds.iter().filter(|(k, _)| k == kind).count()
    }

    /// The epoch of each fence.
    #[must_use]
    pub fn epochs(&self) -> Vec<u64> {
        self.kinds
            .iter()
            .filter(|(kind, _)| kind == "fence")
            .map(|(_, epoch)| *epoch)
            .collect()
    }
}

/// `{"source":{"topic":{"0":12}}}` of one source and one topic.
fn offsets(value: &Value) -> Option<BTreeMap<i32, i64>> {
    let topics = value.as_object()?.values().next()?.as_object()?;
    let Some(partitions) = topics.values().next() else {
        return Some(BTreeMap::new());
    };
    let each = partitions.as_object()?.iter();
    each.map(|(partition, offset)| Some((partition.parse().ok()?, offset.as_i64()?)))
        .collect()
}
