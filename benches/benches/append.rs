//! One batch's commit in the checkpoint (commit record and next plan, one synced write), beside what the disk itself
//! takes: the same number of bytes appended to a file of the same directory, and `fdatasync`.

use criterion::{Criterion, criterion_group, criterion_main};

fn append(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory on a real disk");
    let (mut commits, mut plain) = runtime
        .block_on(baton_benches::pair(place.path()))
        .expect("a new directory");
    let mut group = criterion.benchmark_group("append");
    group.bench_function("commit_batch", |bencher| {
        bencher.iter(|| runtime.block_on(commits.commit()).expect("durable"));
    });
    group.bench_function(format!("plain_{}_bytes", plain.size()), |bencher| {
        bencher.iter(|| plain.append().expect("durable"));
    });
    group.finish();
}

criterion_group!(benches, append);
criterion_main!(benches);
