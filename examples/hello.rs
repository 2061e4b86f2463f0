//! The smallest program: a ball falls for a second.

use turnbuckle::prelude::*;

fn main() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let ball = world.spawn(Solid::sphere(0.5, 1000.0).at(DVec3::Z * 10.0));
    for _ in 0..60 {
        physics.step(&mut world, 1.0 / 60.0);
    }
    let height = world.get::<&Position>(ball).expect("the ball is still there").0.z;
    println!("after {:.2} s the ball is {height:.3} m high", physics.report().time);
    for timing in physics.timings().iter().filter(|t| t.total > 0.01) {
        println!("{:<16} {:>6} calls {:>8.4} ms", timing.name, timing.calls, timing.mean);
    }
}
