//! A game loop: fixed steps, drawn poses in between.

use std::time::{Duration, Instant};
use turnbuckle::prelude::*;

fn main() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let ball = world.spawn(Solid::sphere(0.5, 1000.0).moving(DVec3::new(1.0, 0.0, 9.0), DVec3::Y));
    // The pose before the last step, for drawing in between; only bodies that are drawn need it.
    world.insert_one(ball, PreviousPose::default()).expect("just spawned");

    let mut clock = FixedClock::new(1.0 / 60.0);
    let mut last = Instant::now();
    for frame in 0..20 {
        let now = Instant::now();
        for _ in 0..clock.advance((now - last).as_secs_f64()) {
            physics.step(&mut world, clock.dt());
        }
        last = now;
        if let Some((position, _)) = interpolated_pose(&world, ball, clock.alpha()) {
            println!("frame {frame:2}: draw the ball at x = {:.4}, z = {:.4}", position.x, position.z);
        }
        std::thread::sleep(Duration::from_millis(11)); // a display of some other rate
    }
}
