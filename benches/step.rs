//! Whole steps: each scene × threads, on a warmed-up world that is restored before each sample.
//!
//! `cargo bench --bench step`; names are `step/SCENE/THREADS`.

#[path = "support/scenes.rs"]
mod scenes;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use scenes::{SCENES, Warm};
use std::time::Duration;

fn steps(c: &mut Criterion) {
    let mut group = c.benchmark_group("step");
    group
        .sample_size(20)
        .nresamples(5000)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    for &(name, seconds) in SCENES {
        for threads in [1, 2, 4, 8] {
            if threads > std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
                continue;
            }
            let mut warm = Warm::new(name, seconds, threads);
            group.bench_function(BenchmarkId::new(name, threads), |b| {
                let cell = std::cell::RefCell::new(&mut warm);
                b.iter_batched(
                    || cell.borrow_mut().rewind(),
                    |()| cell.borrow_mut().step(),
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
