//! Each system alone: the same step of a warmed-up world, restored before each sample, counting one system's time.
//!
//! `cargo bench --bench systems`; names are `SYSTEM/SCENE`, those of the report.

#[path = "support/scenes.rs"]
mod scenes;

use criterion::{Criterion, criterion_group, criterion_main};
use scenes::{SCENES, Warm};
use std::time::Duration;

fn systems(c: &mut Criterion) {
    for &(name, seconds) in SCENES {
        let mut warm = Warm::new(name, seconds, 1);
        let systems: Vec<String> = warm.scene.physics.systems().into_iter().map(String::from).collect();
        warm.rewind();
        warm.step();
        let total: f64 = warm.scene.physics.last_step_timings().iter().map(|t| t.1).sum();
        for (k, system) in systems.iter().enumerate() {
            // What takes less than 1 % of the step is not worth two seconds of bench.
            if warm.scene.physics.last_step_timings()[k].1 < 0.01 * total {
                continue;
            }
            let mut group = c.benchmark_group(system.replace(' ', "_"));
            group
                .sample_size(20)
                .warm_up_time(Duration::from_millis(300))
                .measurement_time(Duration::from_secs(2));
            group.bench_function(name, |b| {
                b.iter_custom(|n| {
                    let mut time = Duration::ZERO;
                    for _ in 0..n {
                        warm.rewind();
                        warm.step();
                        time += Duration::from_secs_f64(1e-3 * warm.scene.physics.last_step_timings()[k].1);
                    }
                    time
                });
            });
            group.finish();
        }
    }
}

criterion_group!(benches, systems);
criterion_main!(benches);
