//! A force of your own: wind on everything that has a drag.
//!
//! `cargo run --release --example custom_force`

use turnbuckle::prelude::*;

/// Drag coefficient (N·s/m).
struct Drag(f64);

const WIND: DVec3 = DVec3::new(8.0, 0.0, 0.0);

fn wind(step: &mut Step) {
    for (force, v, drag) in step.world.query_mut::<(&mut Force, &LinearVelocity, &Drag)>() {
        force.0 += drag.0 * (WIND - v.0);
    }
}

fn main() {
    let mut world = World::new();
    let leaf = world.spawn(RigidBody::dynamic(0.1, DMat3::IDENTITY * 1e-3));
    world.insert_one(leaf, Drag(0.2)).expect("the leaf exists");
    let mut physics = Physics::new();
    physics.add_system(Stage::Forces, "wind", wind);
    for _ in 0..300 {
        physics.step(&mut world, 1.0 / 60.0);
    }
    let v = world.get::<&LinearVelocity>(leaf).expect("the leaf exists").0;
    println!("the leaf flies at {:.2} m/s downwind and falls at {:.2} m/s", v.x, -v.z);
    for system in physics.timings().iter().filter(|t| t.name == "wind") {
        println!("system \"{}\": {} calls, {:.4} ms each", system.name, system.calls, system.mean);
    }
}
