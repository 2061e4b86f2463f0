//! Contact and friction against closed forms: inclines, stopping distances, stacks, grips, bounces.

mod contact_support;

use contact_support::*;
use glam::{DQuat, DVec3};
use hecs::World;
use turnbuckle::components::*;
use turnbuckle::geometry::{Shape, ShapeHandle};
use turnbuckle::{Physics, Settings};

const H: f64 = 1.0 / 60.0;
const G: f64 = 9.81;

#[test]
fn a_box_lands_and_stands_still() {
    let mut world = World::new();
    let mut physics = awake();
    floor(&mut world, 0.6);
    let body =
        spawn(&mut world, &ShapeHandle::cuboid(DVec3::splat(0.5)), 1000.0, 0.6, DVec3::new(0.0, 0.0, 1.0));
    for _ in 0..120 {
        physics.step(&mut world, H);
    }
    assert!((x(&world, body).z - 0.5).abs() < 1e-6);
}
