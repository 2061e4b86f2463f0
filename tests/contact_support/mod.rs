//! Builders for contact tests.
#![allow(dead_code)]

use glam::{DQuat, DVec3};
use hecs::{Entity, World};
use turnbuckle::components::*;
use turnbuckle::geometry::{Shape, ShapeHandle};
use turnbuckle::{Physics, Settings};

/// A stage in which no body sleeps: creep must show.
pub fn awake() -> Physics {
    Physics::with_settings(Settings { sleep: false, ..Settings::default() })
}

pub fn x(world: &World, body: Entity) -> DVec3 {
    world.get::<&Position>(body).expect("a body").0
}

pub fn v(world: &World, body: Entity) -> DVec3 {
    world.get::<&LinearVelocity>(body).expect("a body").0
}

pub fn w(world: &World, body: Entity) -> DVec3 {
    world.get::<&AngularVelocity>(body).expect("a body").0
}

pub fn material(friction: f64) -> Material {
    Material { friction, ..Material::default() }
}

pub fn colliders(shape: &ShapeHandle, material: Material) -> Colliders {
    Colliders::one(Collider { material, ..Collider::new(shape.clone()) })
}

/// The half-space below z = 0.
pub fn floor(world: &mut World, friction: f64) -> Entity {
    plane(world, DVec3::Z, friction)
}

/// A half-space through the origin.
pub fn plane(world: &mut World, normal: DVec3, friction: f64) -> Entity {
    let shape = ShapeHandle::new(Shape::HalfSpace { normal }).expect("a normal");
    spawn_fixed(world, &shape, friction, DVec3::ZERO, DQuat::IDENTITY)
}

/// A dynamic body of one shape with the mass its density gives.
pub fn spawn(world: &mut World, shape: &ShapeHandle, density: f64, friction: f64, at: DVec3) -> Entity {
    let mass = shape.mass_properties(density).expect("a shape with volume");
    let body = world.spawn(RigidBody::dynamic(mass.mass, mass.inertia).at(at));
    let collider =
        Collider { position: -mass.center, material: material(friction), ..Collider::new(shape.clone()) };
    let _ = world.insert_one(body, Colliders::one(collider));
    body
}

/// The same with a given mass (kg).
pub fn spawn_mass(world: &mut World, shape: &ShapeHandle, mass: f64, friction: f64, at: DVec3) -> Entity {
    let unit = shape.mass_properties(1.0).expect("a shape with volume");
    spawn(world, shape, mass / unit.mass, friction, at)
}

/// A body that never moves.
pub fn spawn_fixed(world: &mut World, shape: &ShapeHandle, friction: f64, at: DVec3, turn: DQuat) -> Entity {
    let body = world.spawn(RigidBody::fixed().at(at).turned(turn));
    let _ = world.insert_one(body, colliders(shape, material(friction)));
    body
}

/// Where a body is and how it is turned.
pub fn pose(world: &World, body: Entity) -> (DVec3, DQuat) {
    (x(world, body), world.get::<&Rotation>(body).expect("a body").0)
}
