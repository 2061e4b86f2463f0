//! Friction under Coulomb's cone against closed forms and fine references: sliding across a slope, pushes from the side, spinning plates,
//! creep, lifting, energy.

mod contact_support;

use contact_support::*;
use glam::DVec3;
use hecs::{Entity, World};
use turnbuckle::components::*;
use turnbuckle::geometry::{Shape, ShapeHandle};
use turnbuckle::settings::FrictionLaw;
use turnbuckle::{Physics, Settings};

const G: f64 = 9.81;

fn cones() -> Physics {
    Physics::with_settings(Settings { sleep: false, friction_law: FrictionLaw::Cone, ..Settings::default() })
}

/// A flat box of 1 m × 1 m × 2 cm that has come to rest on a floor with friction μ.
fn plate(mu: f64, rate: f64) -> (World, Physics, Entity) {
    let (mut world, mut physics) = (World::new(), cones());
    floor(&mut world, mu);
    let shape = ShapeHandle::new(Shape::Box { half_extents: DVec3::new(0.5, 0.5, 0.01) }).expect("a box");
    let body = spawn_mass(&mut world, &shape, 10.0, mu, DVec3::Z * 0.01);
    // At the rate of what follows: how deep contacts rest goes with the step.
    for _ in 0..rate as usize / 2 {
        physics.step(&mut world, 1.0 / rate);
    }
    (world, physics, body)
}

fn step(world: &mut World, physics: &mut Physics, h: f64) {
    let report = physics.step(world, h);
    assert!(report.converged, "step {}: {:?}", report.step, report.troubles);
}

/// The way of a point on a floor with friction under a sideways pull, by steps of a microsecond; until it stops, if it does.
fn slide(mut v: DVec3, pull: DVec3, mu: f64, time: f64) -> DVec3 {
    let (h, mut x) = (1e-6, DVec3::ZERO);
    for _ in 0..(time / h).round() as usize {
        let friction = v.normalize_or_zero() * mu * G;
        let next = v + h * (pull - friction);
        if v.dot(next) < 0.0 && pull.length() < mu * G {
            break;
        }
        x += 0.5 * h * (v + next);
        v = next;
    }
    x
}

/// Error of the way after a second under a tilted gravity, relative to the way.
fn error(v: DVec3, pull: DVec3, mu: f64, rate: f64) -> f64 {
    let (mut world, mut physics, body) = plate(mu, rate);
    physics.settings.gravity = DVec3::new(pull.x, pull.y, -G);
    world.get::<&mut LinearVelocity>(body).expect("a body").0 = v;
    let (start, mut top) = (x(&world, body), 0.0f64);
    let energy = |world: &World| {
        let at = x(world, body) - start;
        0.5 * self::v(world, body).length_squared() - DVec3::new(pull.x, pull.y, -G).dot(at)
    };
    let (mut before, mut gain) = (energy(&world), 0.0f64);
    for _ in 0..rate as usize {
        step(&mut world, &mut physics, 1.0 / rate);
        let now = energy(&world);
        gain = gain.max(now - before);
        before = now;
        top = top.max(x(&world, body).z - start.z);
    }
    let (way, exact) = (x(&world, body) - start, slide(v, pull, mu, 1.0));
    let off = (way - exact).truncate().length() / exact.length();
    println!(
        "{rate} Hz, v {v}, pull {pull}, μ {mu}: way {way:.5}, exact {exact:.5}, off {off:.2e}, lifts {top:.1e}, gains {gain:.1e}"
    );
    // What slides does not lift; friction gives no energy (1e-9 of the J/kg there are).
    assert!(top < 1e-9 && gain < 1e-8, "lifts {top:e} m, gains {gain:e} J/kg");
    off
}

#[test]
fn what_slides_across_a_slope_or_is_pushed_from_the_side_takes_its_path() {
    for (v, pull, mu) in [
        (DVec3::new(2.0, 0.0, 0.0), DVec3::new(0.0, 2.0, 0.0), 0.3), // across a slope
        (DVec3::new(0.0, 4.0, 0.0), DVec3::new(1.5, 0.0, 0.0), 0.35), // dragged, with a push from the side
        (DVec3::ZERO, DVec3::new(4.0 * 0.92388, 4.0 * 0.38268, 0.0), 0.25), // pushed at 22.5°
        (DVec3::new(1.0, -1.0, 0.0), DVec3::new(3.0, 1.0, 0.0), 0.2),
    ] {
        let coarse = error(v, pull, mu, 60.0);
        assert!(coarse < 5e-3, "{coarse}");
    }
}

#[test]
fn sliding_is_second_order() {
    let (v, pull) = (DVec3::new(3.0, 0.0, 0.0), DVec3::new(0.0, 2.5, 0.0));
    let errors = [30.0, 60.0, 120.0].map(|rate| error(v, pull, 0.3, rate));
    let order = (errors[0] / errors[2]).log2() / 2.0;
    println!("order {order:.2}");
    assert!(order >= 1.8, "{errors:?}");
}

#[test]
fn a_spinning_plate_is_braked_by_its_corners() {
    let mu = 0.4;
    let (mut world, mut physics, body) = plate(mu, 60.0);
    let start = 12.0;
    world.get::<&mut AngularVelocity>(body).expect("a body").0 = DVec3::Z * start;
    // Four corners at √½ m carry a quarter each; I/m = (1² + 1²)/12.
    let rate = mu * G * 0.5f64.sqrt() / (2.0 / 12.0);
    let steps = (0.5 * start / rate * 60.0).round();
    for _ in 0..steps as usize {
        step(&mut world, &mut physics, 1.0 / 60.0);
    }
    let (exact, found) = (start - rate * steps / 60.0, w(&world, body).z);
    println!("spin {found}, closed form {exact}");
    assert!((found - exact).abs() < 5e-3 * (start - exact));
}

#[test]
fn what_sticks_does_not_creep() {
    let (mut world, mut physics, body) = plate(0.5, 60.0);
    physics.settings.gravity = DVec3::new(3.0, 2.0, -G);
    for _ in 0..60 {
        step(&mut world, &mut physics, 1.0 / 60.0);
    }
    let start = x(&world, body);
    for _ in 0..600 {
        step(&mut world, &mut physics, 1.0 / 60.0);
    }
    let creep = (x(&world, body) - start).length() / 10.0;
    println!("creep {creep:.1e} m/s");
    assert!(creep < 1e-9, "{creep:e}");
}

/// A point that is thrown on a rough floor comes to rest where its friction has taken all: v²/2μg.
#[test]
fn what_stops_stops_dead() {
    let (mut world, mut physics, body) = plate(0.3, 60.0);
    let start = x(&world, body);
    world.get::<&mut LinearVelocity>(body).expect("a body").0 = DVec3::X * 2.0;
    for _ in 0..90 {
        step(&mut world, &mut physics, 1.0 / 60.0);
    }
    let (way, exact) = ((x(&world, body) - start).x, 4.0 / (2.0 * 0.3 * G));
    println!("way {way}, exact {exact}");
    // The last step may take less than friction could: half of it is μ g h²/8.
    assert!((way / exact - 1.0).abs() < 5e-3 && v(&world, body).length() < 1e-9);
}
