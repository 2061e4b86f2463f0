//! What slides without friction over surfaces laid flush keeps its speed.

use crate::contact_support::*;
use glam::{DQuat, DVec3};
use hecs::World;
use std::f64::consts::FRAC_PI_2;
use turnbuckle::components::*;
use turnbuckle::geometry::{Shape, ShapeHandle};

const TILES: usize = 22;
/// No whole number of steps at any of the speeds, so that seams are met at every place.
const TILE: f64 = 0.4713;

fn handle(shape: Shape) -> ShapeHandle {
    ShapeHandle::new(shape).expect("a valid shape")
}

fn corners(half: DVec3) -> Vec<DVec3> {
    crate::kinds::corners(half)
}

/// Shape, turn and height of the centre of what slides.
fn movers() -> Vec<(&'static str, ShapeHandle, DQuat, f64)> {
    let (lying, along) = (DQuat::from_rotation_z(FRAC_PI_2), DQuat::IDENTITY);
    let upright = DQuat::from_rotation_x(FRAC_PI_2);
    let half = DVec3::new(0.2, 0.15, 0.1);
    let part = |x: f64| {
        (DVec3::X * x, DQuat::IDENTITY, Shape::Box { half_extents: half * DVec3::new(0.5, 1.0, 1.0) })
    };
    vec![
        ("box", ShapeHandle::cuboid(half), along, 0.1),
        ("box askew", ShapeHandle::cuboid(half), DQuat::from_rotation_z(0.4), 0.1),
        ("ball", ShapeHandle::sphere(0.2), along, 0.2),
        ("hull", handle(Shape::ConvexHull { points: corners(half) }), along, 0.1),
        ("compound", handle(Shape::Compound { parts: vec![part(-0.1), part(0.1)] }), along, 0.1),
        ("capsule along", handle(Shape::Capsule { half_length: 0.2, radius: 0.1 }), lying, 0.1),
        ("capsule across", handle(Shape::Capsule { half_length: 0.2, radius: 0.1 }), along, 0.1),
        ("cylinder along", handle(Shape::Cylinder { half_length: 0.2, radius: 0.1 }), lying, 0.1),
        ("cylinder across", handle(Shape::Cylinder { half_length: 0.2, radius: 0.1 }), along, 0.1),
        ("drum", handle(Shape::Cylinder { half_length: 0.1, radius: 0.2 }), upright, 0.1),
        ("cone", handle(Shape::Cone { half_height: 0.1, radius: 0.2 }), upright, 0.1),
    ]
}

/// Lays the ground of a lane: its top is at z = 0, from x = −0.5 tiles on.
fn lay(world: &mut World, ground: &str, lane: f64) {
    let half = DVec3::new(0.5 * TILE, 1.0, 0.25);
    let length = TILE * TILES as f64;
    let middle = 0.5 * length - 0.5 * TILE;
    let at = |x: f64, z: f64| DVec3::new(x, lane, z);
    let tile = match ground {
        "boxes" => ShapeHandle::cuboid(half),
        "hulls" => handle(Shape::ConvexHull { points: corners(half) }),
        "compound" => {
            let part = |i: usize| {
                let place = DVec3::new(TILE * i as f64, 0.0, -0.25);
                (place, DQuat::IDENTITY, Shape::Box { half_extents: half })
            };
            let shape = handle(Shape::Compound { parts: (0..TILES).map(part).collect() });
            spawn_fixed(world, &shape, 0.0, at(0.0, 0.0), DQuat::IDENTITY);
            return;
        }
        "mesh" => {
            let row = |x: usize| [-1.0, -0.1, 1.0].map(|y| DVec3::new(TILE * (x as f64 - 0.5), y, 0.0));
            let vertices = (0..=TILES).flat_map(row).collect();
            let cells = (0..TILES as u32).flat_map(|i| [3 * i, 3 * i + 1]);
            let indices = cells.flat_map(|v| [[v, v + 3, v + 4], [v, v + 4, v + 1]]).collect();
            let shape = handle(Shape::TriMesh { vertices, indices });
            spawn_fixed(world, &shape, 0.0, at(0.0, 0.0), DQuat::IDENTITY);
            return;
        }
        _ => {
            let shape = Shape::HeightField {
                size: [4, TILES + 1],
                heights: vec![0.0; 4 * (TILES + 1)],
                scale: DVec3::new(length, 1.0, 2.0),
            };
            let up = DQuat::from_rotation_x(FRAC_PI_2);
            spawn_fixed(world, &handle(shape), 0.0, at(middle, 0.0), up);
            return;
        }
    };
    for i in 0..TILES {
        spawn_fixed(world, &tile, 0.0, at(TILE * i as f64, -0.25), DQuat::IDENTITY);
    }
}

/// Lets everything that slides run over twenty tiles, each in a lane of its own. Returns who did not keep its velocity to 1 %.
fn run(ground: &str, speed: f64) -> Vec<String> {
    let (mut world, mut physics) = (World::new(), awake());
    let mut lanes = Vec::new();
    for (i, (name, shape, turn, height)) in movers().into_iter().enumerate() {
        let lane = 3.0 * i as f64;
        lay(&mut world, ground, lane);
        let center = shape.mass_properties(1.0).expect("a shape with volume").center;
        let at = DVec3::new(0.0, lane + 0.03, height) + turn * center;
        let body = spawn(&mut world, &shape, 1000.0, 0.0, at);
        world.get::<&mut Rotation>(body).expect("a body").0 = turn;
        world.get::<&mut LinearVelocity>(body).expect("a body").0 = DVec3::X * speed;
        lanes.push((name, body, 0.0f64));
    }
    for _ in 0..(60.0 * TILE * 20.0 / speed) as usize {
        physics.step(&mut world, 1.0 / 60.0);
        for (_, body, worst) in &mut lanes {
            let off = (v(&world, *body) - DVec3::X * speed).length() / speed;
            *worst = worst.max(off).max(0.1 * w(&world, *body).length() / speed);
        }
    }
    // A line that lies over two parts of one shape gets its points from both, and wavers where it passes from one to the other.
    let limit = |name: &str| if ground == "compound" && name == "capsule along" { 0.03 } else { 0.01 };
    let off = lanes.iter().filter(|l| l.2 > limit(l.0));
    off.map(|l| format!("{} on {ground} at {speed} m/s: off by {:.3}, at {}", l.0, l.2, x(&world, l.1)))
        .collect()
}

#[test]
fn what_slides_over_flush_surfaces_keeps_its_speed() {
    let mut off = Vec::new();
    for ground in ["boxes", "hulls", "compound", "mesh", "height field"] {
        for speed in [1.0, 3.0] {
            off.extend(run(ground, speed));
        }
    }
    assert!(off.is_empty(), "speed is not kept:\n{}", off.join("\n"));
}

/// A step that stands up is still a wall.
#[test]
fn a_step_that_stands_up_stops_what_slides() {
    for (name, shape, turn, height) in movers() {
        let (mut world, mut physics) = (World::new(), awake());
        lay(&mut world, "boxes", 0.0);
        let wall = ShapeHandle::cuboid(DVec3::new(0.2, 1.0, 0.3));
        // Two millimetres are eight times what counts as flush; round things roll up on a low edge, so these meet a wall.
        let low = name.contains("box") || name == "hull" || name == "compound";
        let top = if low { 0.002 } else { 0.3 };
        spawn_fixed(&mut world, &wall, 0.0, DVec3::new(2.0, 0.0, top - 0.3), DQuat::IDENTITY);
        let body = spawn(&mut world, &shape, 1000.0, 0.0, DVec3::new(0.5, 0.0, height));
        world.get::<&mut Rotation>(body).expect("a body").0 = turn;
        world.get::<&mut LinearVelocity>(body).expect("a body").0 = DVec3::X * 2.0;
        for _ in 0..60 {
            physics.step(&mut world, 1.0 / 60.0);
        }
        assert!(x(&world, body).x < 1.8, "{name} went through a wall: {}", x(&world, body));
    }
}
