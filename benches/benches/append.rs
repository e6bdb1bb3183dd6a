//! One batch's commit in the checkpoint (commit record and next plan, one synced write), beside what the disk itself
//! takes: the same number of bytes appended to a file of the same directory, and `fdatasync`.

use baton_checkpoint::{
    AcquireOptions, Candidate, Deps, JobShape, Lease, Location, PlanDraft, Planned, PositionReason, acquire,
};
use baton_core::{
    Offset, OwnerId, PartitionOffsets, Position, Receipt, Rng, SinkRef, SourceName, TokioClock,
    TopicPartition,
};
use criterion::{Criterion, criterion_group, criterion_main};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const PARTITIONS: i32 = 3;
/// Batches over which the size of a commit is averaged.
const SAMPLE: u32 = 100;

fn append(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory on a real disk");
    let checkpoint = place.path().join("checkpoint");
    let mut owner = runtime.block_on(Owner::new(&checkpoint));

    let before = log_bytes(&checkpoint);
    for _ in 0..SAMPLE {
        runtime.block_on(owner.commit());
    }
    let size =
        usize::try_from((log_bytes(&checkpoint) - before) / u64::from(SAMPLE)).expect("a small record");

    let mut group = criterion.benchmark_group("append");
    group.bench_function("commit_batch", |bencher| {
        bencher.iter(|| runtime.block_on(owner.commit()))
    });
    let mut file = File::create(place.path().join("plain")).expect("a new file");
    let record = vec![0xb7; size];
    group.bench_function(format!("plain_{size}_bytes"), |bencher| {
        bencher.iter(|| {
            file.write_all(&record).expect("appended");
            file.sync_data().expect("durable");
        });
    });
    group.finish();
}

/// An owner with a batch planned.
struct Owner {
    lease: Lease,
    planned: Option<Planned>,
    batches: i64,
}

impl Owner {
    async fn new(checkpoint: &Path) -> Self {
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
        let location = Location::parse(checkpoint.to_str().expect("a path of text")).expect("a local path");
        // Nobody listens; events are dropped.
        let (events, _) = tokio::sync::mpsc::channel(1);
        let mut lease = acquire(&location, candidate, AcquireOptions::default(), &deps, events)
            .await
            .expect("nobody owns it");
        lease
            .record_position(at(0), PositionReason::Start)
            .await
            .expect("recorded");
        let planned = lease.plan(draft(0)).await.expect("planned");
        Self {
            lease,
            planned: Some(planned),
            batches: 0,
        }
    }

    async fn commit(&mut self) {
        let planned = self.planned.take().expect("each commit plans the next batch");
        self.batches += 1;
        let _published = self.lease.permit(&planned).expect("it owns");
        let next = Some(draft(self.batches));
        self.planned = self
            .lease
            .commit(planned, &Receipt::default(), next)
            .await
            .expect("durable");
    }
}

fn draft(batch: i64) -> PlanDraft {
    PlanDraft {
        from: at(batch),
        until: at(batch + 1),
        sink: SinkRef::default(),
    }
}

fn at(batch: i64) -> Position {
    let mut offsets = PartitionOffsets::new();
    for partition in 0..PARTITIONS {
        offsets.set(TopicPartition::new("messages", partition), Offset(batch * 1_000));
    }
    [(SourceName::new("messages").expect("a name"), offsets)]
        .into_iter()
        .collect()
}

/// The bytes in RocksDB's write-ahead logs.
fn log_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).expect("the checkpoint is there");
    let sizes = entries.map(|entry| {
        let entry = entry.expect("it can be read");
        let kind = entry.file_type().expect("it has a type");
        let path = entry.path();
        match path.extension() {
            _ if kind.is_dir() => log_bytes(&path),
            Some(extension) if extension == "log" => entry.metadata().map_or(0, |file| file.len()),
            _ => 0,
        }
    });
    sizes.sum()
}

criterion_group!(benches, append);
criterion_main!(benches);
