//! The two programs that extend the engine, as in the examples: they run, do what they say, and are timed by name.

use turnbuckle::prelude::*;

struct Drag(f64);
const WIND: DVec3 = DVec3::new(8.0, 0.0, 0.0);

fn wind(step: &mut Step) {
    for (force, v, drag) in step.world.query_mut::<(&mut Force, &LinearVelocity, &Drag)>() {
        force.0 += drag.0 * (WIND - v.0);
    }
}

struct MyRope {
    a: Entity,
    b: Entity,
    length: f64,
}

impl Constraint for MyRope {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }
    fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter) {
        let span = b.position - a.position;
        let n = span.normalize_or(DVec3::Y);
        out.push(Row {
            jacobian: [Twist::linear(-n), Twist::linear(n)],
            violation: span.length() - self.length,
            bounds: Bounds::PULL_ONLY,
            ..Row::default()
        });
    }
}

#[test]
fn a_wind_blows_and_is_timed_by_name() {
    let mut world = World::new();
    let leaf = world.spawn(RigidBody::dynamic(0.1, DMat3::IDENTITY * 1e-3));
    world.insert_one(leaf, Drag(0.2)).unwrap();
    let mut physics = Physics::new();
    physics.add_system(Stage::Forces, "wind", wind);
    for _ in 0..600 {
        physics.step(&mut world, 1.0 / 60.0);
    }
    let v = world.get::<&LinearVelocity>(leaf).unwrap().0;
    // Terminal velocity: the wind's, and m g / c = 4.905 m/s down; e^(−20) is left of the start after 10 s of rate 2/s.
    assert!((v - DVec3::new(8.0, 0.0, -4.905)).length() < 1e-6, "{v}");
    assert!(physics.timings().iter().any(|t| t.name == "wind" && t.calls == 600));
}

#[test]
fn a_rope_of_the_users_own_holds_and_is_timed_by_name() {
    let mut world = World::new();
    let hook = world.spawn(RigidBody::fixed());
    let stone = world.spawn(RigidBody::dynamic(10.0, DMat3::IDENTITY).at(DVec3::new(1.5, 0.0, 0.0)));
    world.spawn((MyRope { a: hook, b: stone, length: 2.0 },));
    let mut physics = Physics::new();
    physics.add_constraint::<MyRope>();
    let mut longest = 0.0f64;
    for _ in 0..300 {
        physics.step(&mut world, 1.0 / 60.0);
        longest = longest.max(world.get::<&Position>(stone).unwrap().0.length());
    }
    // A one-sided row closes a fifth of what curvature opens in a step, ½h²v²/ℓ = 1.4 mm at 4.4 m/s: some five times that.
    assert!(longest < 2.0 + 0.01, "{longest}");
    assert!(physics.timings().iter().any(|t| t.name == "MyRope" && t.calls == 300));
    turnbuckle::testing::check_jacobian(&MyRope { a: hook, b: stone, length: 2.0 }).unwrap();
}
