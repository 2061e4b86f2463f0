//! Rollback for a networked game: save every step, go back when a late input arrives, and catch up.

use std::collections::VecDeque;
use turnbuckle::impulse::apply_impulse_at;
use turnbuckle::prelude::*;
use turnbuckle::snapshot::Snapshot;
use turnbuckle::testing::state_hash;

const H: f64 = 1.0 / 60.0;

fn main() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let ball = world.spawn(Solid::sphere(0.5, 1000.0));
    let mut history: VecDeque<Snapshot> = VecDeque::new();
    for _ in 0..30 {
        history.push_back(physics.snapshot(&world));
        if history.len() > 12 {
            history.pop_front();
        }
        physics.step(&mut world, H);
    }
    println!("predicted: {:016x} after {} steps", state_hash(&world), physics.report().step);

    // A kick that happened eight steps ago arrives only now.
    let late = 8;
    let then = &history[history.len() - late];
    physics.restore(&mut world, then).expect("nothing was despawned since");
    let point = world.get::<&Position>(ball).expect("the ball is there").0;
    apply_impulse_at(&mut world, ball, DVec3::X * 500.0, point).expect("the ball is a body");
    for _ in 0..late {
        physics.step(&mut world, H);
    }
    println!("corrected: {:016x} after {} steps", state_hash(&world), physics.report().step);
}
