//! Each system alone: the same step of a warmed-up world, restored before each sample, counting one system's time.
//!
//! `cargo bench --bench systems`; names are `SYSTEM/SCENE`, those of the report. Every sample is one step, whatever share of it the
//! system takes: all of it ends in a few minutes.

#[path = "support/scenes.rs"]
mod scenes;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use scenes::{SCENES, Warm};
use std::time::{Duration, Instant};

/// Steps a system is timed in.
const SAMPLES: usize = 20;

fn systems(c: &mut Criterion) {
    for &(name, seconds) in SCENES {
        let mut warm = Warm::new(name, seconds, 1);
        let systems: Vec<String> = warm.scene.physics.systems().into_iter().map(String::from).collect();
        let clock = Instant::now();
        warm.rewind();
        warm.step();
        // As long as all samples take at one step each.
        let once = clock.elapsed();
        let total: f64 = warm.scene.physics.last_step_timings().iter().map(|t| t.1).sum();
        for (k, system) in systems.iter().enumerate() {
            // What takes less than 1 % of the step is not worth a bench.
            if warm.scene.physics.last_step_timings()[k].1 < 0.01 * total {
                continue;
            }
            let mut group = c.benchmark_group(system.replace(' ', "_"));
            group
                .sampling_mode(SamplingMode::Flat)
                .sample_size(SAMPLES)
                .nresamples(2000)
                .warm_up_time(Duration::from_millis(100))
                .measurement_time(once.mul_f64(1.5 * SAMPLES as f64));
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
