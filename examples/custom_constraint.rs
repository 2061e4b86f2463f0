//! A constraint of your own: a rope, in sixteen lines, through the door that the built-in joints use.
//!
//! `cargo run --release --example custom_constraint`

use turnbuckle::prelude::*;

/// Holds two bodies no further apart than `length`; pulls, never pushes.
struct Rope {
    a: Entity,
    b: Entity,
    length: f64,
}

#[rustfmt::skip]
impl Constraint for Rope {
    fn bodies(&self) -> [Entity; 2] { [self.a, self.b] }
    fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter) {
        let span = b.position - a.position;
        let n = span.normalize_or(DVec3::Y);
        out.push(Row {
            jacobian: [Twist::linear(-n), Twist::linear(n)],
            violation: span.length() - self.length,
            bounds: Bounds::PULL_ONLY,
            ..Row::default() // rigid, no target velocity
        });
    }
}

fn main() {
    let mut world = World::new();
    let hook = world.spawn(RigidBody::fixed());
    let start = DVec3::new(1.5, 0.0, 0.0);
    let stone = world.spawn(RigidBody::dynamic(10.0, DMat3::IDENTITY).at(start));
    world.spawn((Rope { a: hook, b: stone, length: 2.0 },));
    turnbuckle::testing::check_jacobian(&Rope { a: hook, b: stone, length: 2.0 })
        .expect("J is the derivative");
    let mut physics = Physics::new();
    physics.add_constraint::<Rope>();
    let mut longest = 0.0f64;
    for _ in 0..300 {
        physics.step(&mut world, 1.0 / 60.0);
        longest = longest.max(world.get::<&Position>(stone).expect("the stone exists").0.length());
    }
    println!("a rope of 2 m was never longer than {longest:.4} m");
    for system in physics.timings().iter().filter(|t| t.name == "Rope" && t.mean > 0.0) {
        println!("system \"{}\": {} calls, {:.4} ms each", system.name, system.calls, system.mean);
    }
}
