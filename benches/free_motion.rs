//! 100,000 free bodies: what the ECS costs over a hand-written loop on plain arrays with the same arithmetic.
//!
//! `cargo bench --bench free_motion` prints the ratio, measured by turns in one run, then criterion's own figures.

use criterion::Criterion;
use glam::{DMat3, DQuat, DVec3};
use hecs::World;
use std::hint::black_box;
use std::time::{Duration, Instant};
use turnbuckle::components::*;
use turnbuckle::constraint::BodyView;
use turnbuckle::settings::Integrator;
use turnbuckle::systems::{gather::world_inertia, gyro, integrate::turned};
use turnbuckle::{Physics, Settings};

const BODIES: usize = 100_000;
const H: f64 = 1.0 / 60.0;
const GRAVITY: DVec3 = DVec3::new(0.0, 0.0, -9.81);

fn body(k: usize) -> RigidBody {
    let s = k as f64;
    let inertia = DMat3::from_diagonal(DVec3::new(1.0, 1.5 + 0.1 * (s % 7.0), 2.0));
    let spin = DVec3::new((0.1 * s).sin(), (0.3 * s).cos(), 0.5);
    RigidBody::dynamic(1.0 + s % 3.0, inertia).at(DVec3::splat(s)).moving(DVec3::X * (s % 5.0), spin)
}

/// The hand-written loop: one array per quantity.
struct Plain {
    position: Vec<DVec3>,
    rotation: Vec<DQuat>,
    linear: Vec<DVec3>,
    angular: Vec<DVec3>,
    mass: Vec<f64>,
    inertia: Vec<DMat3>,
    force: Vec<DVec3>,
    torque: Vec<DVec3>,
}

impl Plain {
    fn new() -> Plain {
        let bodies = || (0..BODIES).map(body);
        Plain {
            position: bodies().map(|b| b.position.0).collect(),
            rotation: bodies().map(|b| b.rotation.0).collect(),
            linear: bodies().map(|b| b.linear_velocity.0).collect(),
            angular: bodies().map(|b| b.angular_velocity.0).collect(),
            mass: bodies().map(|b| b.mass.0).collect(),
            inertia: bodies().map(|b| b.inertia.0).collect(),
            force: vec![DVec3::ZERO; BODIES],
            torque: vec![DVec3::ZERO; BODIES],
        }
    }

    fn step(&mut self) {
        for i in 0..self.position.len() {
            let mut view = BodyView {
                kind: BodyKind::Dynamic,
                position: self.position[i],
                rotation: self.rotation[i],
                linear_velocity: self.linear[i],
                angular_velocity: self.angular[i],
                mass: self.mass[i],
                inertia: self.inertia[i],
            };
            let force = GRAVITY * view.mass + self.force[i];
            let v = view.linear_velocity + force * (H / view.mass);
            let before = world_inertia(&view);
            let momentum = before * view.angular_velocity;
            let mut w = gyro::mid_velocity(&view, momentum, H);
            if self.torque[i] != DVec3::ZERO {
                w += before.inverse() * self.torque[i] * H;
            }
            self.position[i] += v * H;
            self.linear[i] = v;
            view.rotation = turned(view.rotation, w, H);
            self.rotation[i] = view.rotation;
            self.angular[i] = world_inertia(&view).inverse() * (momentum + self.torque[i] * H);
        }
    }
}

fn engine() -> (Physics, World) {
    let mut world = World::new();
    for k in 0..BODIES {
        world.spawn(body(k));
    }
    // The integrator whose arithmetic the hand-written loop has; the midpoint turns every body twice.
    let integrator = Integrator::SemiImplicit;
    let settings = Settings { measure: false, integrator, ..Settings::default() };
    let mut physics = Physics::with_settings(settings);
    physics.set_threads(1);
    physics.step(&mut world, H);
    (physics, world)
}

/// Milliseconds of the named systems in the last step.
fn systems(physics: &mut Physics, names: &[&str]) -> f64 {
    physics.last_step_timings().iter().filter(|(n, _)| names.contains(&n.as_str())).map(|(_, t)| t).sum()
}

fn print_ratio() {
    let (mut physics, mut world) = engine();
    let mut plain = Plain::new();
    let (mut hand, mut ours, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..40 {
        let start = Instant::now();
        plain.step();
        hand.push(1e3 * start.elapsed().as_secs_f64());
        physics.step(&mut world, H);
        ours.push(systems(&mut physics, &["drift", "gather", "integrate", "scatter"]));
        whole.push(physics.report().step_ms);
    }
    black_box(&plain.position);
    let median = |list: &mut Vec<f64>| {
        list.sort_by(f64::total_cmp);
        list[list.len() / 2]
    };
    let (hand, ours, whole) = (median(&mut hand), median(&mut ours), median(&mut whole));
    println!("free_motion/{BODIES}: hand-written loop {hand:.2} ms");
    println!(
        "free_motion/{BODIES}: drift + gather + integrate + scatter {ours:.2} ms, ratio {:.2}",
        ours / hand
    );
    println!(
        "free_motion/{BODIES}: whole step (guard, gravity, empty stages too) {whole:.2} ms, ratio {:.2}",
        whole / hand
    );
    for (name, ms) in physics.last_step_timings().iter().filter(|(_, ms)| *ms > 0.05) {
        println!("    {name:<16} {ms:.2} ms");
    }
    print_snapshot();
}

fn print_snapshot() {
    let mut world = World::new();
    for k in 0..10_000 {
        world.spawn(body(k));
    }
    let mut physics = Physics::new();
    physics.set_threads(1);
    let best = |times: &[Duration]| times.iter().min().map_or(0.0, |t| 1e3 * t.as_secs_f64());
    let (mut step, mut save, mut restore) = (Vec::new(), Vec::new(), Vec::new());
    let mut bytes = 0;
    for _ in 0..20 {
        let start = Instant::now();
        physics.step(&mut world, H);
        step.push(start.elapsed());
        let start = Instant::now();
        let saved = physics.snapshot(&world);
        save.push(start.elapsed());
        bytes = saved.as_bytes().len();
        let start = Instant::now();
        physics.restore(&mut world, &saved).expect("nothing was despawned");
        restore.push(start.elapsed());
    }
    println!(
        "snapshot/10000: step {:.2} ms, save {:.2} ms, restore {:.2} ms, {} bytes a body",
        best(&step),
        best(&save),
        best(&restore),
        bytes / 10_000
    );
}

fn main() {
    print_ratio();
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    let mut plain = Plain::new();
    criterion.bench_function("free_motion/hand-written/100000", |b| b.iter(|| plain.step()));
    let (mut physics, mut world) = engine();
    criterion.bench_function("free_motion/step/100000", |b| b.iter(|| physics.step(&mut world, H).step));
    criterion.final_summary();
}
