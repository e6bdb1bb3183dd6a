//! Commits of batches, and what the disk itself takes for as many bytes.

use baton_checkpoint::{
    AcquireOptions, Candidate, Deps, JobShape, Lease, Location, PlanDraft, Planned, PositionReason, acquire,
};
use baton_core::{
    Offset, OwnerId, PartitionOffsets, Position, Receipt, Rng, SinkRef, SourceName, TokioClock,
    TopicPartition,
};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

const PARTITIONS: i32 = 3;
/// Batches over which the size of a commit is averaged.
const SAMPLE: u32 = 100;

/// What any step here may fail with.
pub type Failure = Box<dyn std::error::Error>;

/// An owner of a new checkpoint, with a batch planned. Each commit is that of a steady state: the batch's commit record
/// and the next one's plan, in one synced write.
pub struct Commits {
    lease: Lease,
    planned: Option<Planned>,
    batches: i64,
}

/// A file that records are appended to, each made durable with `fdatasync`.
pub struct Plain {
    file: File,
    record: Vec<u8>,
}

/// Both in `place`, which has to be there and empty; their records are equally long.
///
/// # Errors
/// The checkpoint's and the file's.
pub async fn pair(place: &Path) -> Result<(Commits, Plain), Failure> {
    let checkpoint = place.join("checkpoint");
    let mut commits = Commits::start(&checkpoint).await?;
    let before = log_bytes(&checkpoint)?;
    for _ in 0..SAMPLE {
        commits.commit().await?;
    }
    let size = usize::try_from((log_bytes(&checkpoint)? - before) / u64::from(SAMPLE))?;
    let plain = Plain {
        file: File::create(place.join("plain"))?,
        record: vec![0xb7; size],
    };
    Ok((commits, plain))
}

impl Commits {
    async fn start(checkpoint: &Path) -> Result<Self, Failure> {
        let deps = Deps {
            clock: Arc::new(TokioClock::start()),
            rng: Arc::new(Rng::from_os()),
        };
        let candidate = Candidate {
            owner: OwnerId(deps.rng.uuid()),
            job: "append".to_owned(),
            version: "v1".to_owned(),
            shape: JobShape::default(),
            handover: false,
        };
        let location = Location::parse(checkpoint.to_str().ok_or("the directory's name is not text")?)?;
        // Nobody listens; events are dropped.
        let (events, _) = tokio::sync::mpsc::channel(1);
        let mut lease = acquire(&location, candidate, AcquireOptions::default(), &deps, events).await?;
        lease.record_position(at(0)?, PositionReason::Start).await?;
        let planned = Some(lease.plan(draft(0)?).await?);
        Ok(Self {
            lease,
            planned,
            batches: 0,
        })
    }

    /// Commits the planned batch and plans the next.
    ///
    /// # Errors
    /// The checkpoint's.
    pub async fn commit(&mut self) -> Result<(), Failure> {
        let planned = self.planned.take().ok_or("the commit before this one failed")?;
        self.batches += 1;
        let _published = self.lease.permit(&planned).await?;
        let next = Some(draft(self.batches)?);
        self.planned = self.lease.commit(planned, &Receipt::default(), next).await?;
        Ok(())
    }
}

impl Plain {
    /// Appends one record.
    ///
    /// # Errors
    /// The file's.
    pub fn append(&mut self) -> io::Result<()> {
        self.file.write_all(&self.record)?;
        self.file.sync_data()
    }

    /// Bytes of a record.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.record.len()
    }
}

fn draft(batch: i64) -> Result<PlanDraft, Failure> {
    Ok(PlanDraft {
        from: at(batch)?,
        until: at(batch + 1)?,
        sink: SinkRef::default(),
    })
}

fn at(batch: i64) -> Result<Position, Failure> {
    let mut offsets = PartitionOffsets::new();
    for partition in 0..PARTITIONS {
        offsets.set(TopicPartition::new("messages", partition), Offset(batch * 1_000));
    }
    Ok([(SourceName::new("messages")?, offsets)].into_iter().collect())
}

/// The bytes in RocksDB's write-ahead logs.
fn log_bytes(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            bytes += log_bytes(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "log") {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}
