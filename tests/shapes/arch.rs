//! An arch of voussoirs, flush and dry: stands while the line of thrust fits into it, and falls when it is thinner.

use crate::contact_support::*;
use crate::kinds::voussoir;
use glam::{DQuat, DVec3};
use hecs::{Entity, World};
use std::f64::consts::PI;
use turnbuckle::geometry::{Shape, ShapeHandle};

const STONES: usize = 15;

/// A semicircle of mean radius 1 m and this thickness between two abutments. Returns the stones.
fn arch(world: &mut World, thickness: f64) -> Vec<Entity> {
    let half_angle = 0.5 * PI / STONES as f64;
    let points = voussoir(1.0 - 0.5 * thickness, 1.0 + 0.5 * thickness, half_angle, 0.2);
    let stone = ShapeHandle::new(Shape::ConvexHull { points }).expect("a wedge");
    let abutment = ShapeHandle::cuboid(DVec3::new(0.5, 0.5, 0.5));
    for side in [-1.0, 1.0] {
        spawn_fixed(world, &abutment, 5.0, DVec3::new(side, 0.0, -0.5), DQuat::IDENTITY);
    }
    // Along y the wedge points outwards, about z it is turned: the arch stands in the plane of x and z.
    let up = DQuat::from_rotation_x(0.5 * PI);
    let stones = (0..STONES).map(|i| {
        let angle = 0.5 * PI - half_angle * (2 * i + 1) as f64;
        let turn = up * DQuat::from_rotation_z(angle);
        let mass = stone.mass_properties(2000.0).expect("a wedge has a volume");
        let at = turn * (DVec3::Y + mass.center);
        let body = spawn(world, &stone, 2000.0, 5.0, at);
        world.get::<&mut turnbuckle::components::Rotation>(body).expect("a body").0 = turn;
        body
    });
    stones.collect()
}

/// How far the crown has come down, and how deep stones are at most in each other in the first step.
fn crown_sinks(thickness: f64, seconds: f64) -> (f64, f64) {
    let (mut world, mut physics) = (World::new(), awake());
    let stones = arch(&mut world, thickness);
    let crown = stones[STONES / 2];
    let before = x(&world, crown).z;
    let mut deepest = f64::NAN;
    for step in 0..(60.0 * seconds) as usize {
        let report = physics.step(&mut world, 1.0 / 60.0);
        if step == 0 {
            deepest = report.penetration_max;
        }
    }
    (before - x(&world, crown).z, deepest)
}

/// Theory (Milankovitch 1907; Heyman): a semicircular arch stands from t/R = 0.1075 on.
#[test]
fn an_arch_stands_as_thick_as_theory_says_and_falls_when_it_is_thinner() {
    let (sinks, deepest) = crown_sinks(0.115, 5.0);
    println!("t/R 0.115: the crown sinks {sinks:.2e} m, deepest at first {deepest:.1e} m");
    // Stones are placed by sines: a few roundings of a metre.
    assert!(deepest < 1e-9, "exactly touching stones are {deepest} m deep in each other");
    // The compliance of 14 joints under at most a few loads of the arch is below a hundredth of a millimetre.
    assert!(sinks.abs() < 1e-4, "the crown sinks {sinks} m");
    let (sinks, _) = crown_sinks(0.100, 3.0);
    println!("t/R 0.100: the crown sinks {sinks:.2e} m");
    assert!(sinks > 0.1, "an arch that cannot stand has sunk {sinks} m only");
}
