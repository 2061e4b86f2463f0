//! Towers of logs: 80 layers and 2,500 kg on top.

mod contact_support;

use contact_support::*;
use glam::{DQuat, DVec3};
use hecs::{Entity, World};
use turnbuckle::geometry::{Shape, ShapeHandle};

const H: f64 = 1.0 / 60.0;

/// Layers of two logs of 50 kg, crosswise, 1.4 m apart, and 2,500 kg on top.
fn tower(world: &mut World, log: &ShapeHandle, layers: u32, overlap: f64) -> Vec<Entity> {
    floor(world, 0.6);
    let mut bodies = Vec::new();
    for layer in 0..layers {
        let height = 0.15 + f64::from(layer) * (0.3 - overlap);
        for side in [-0.7, 0.7] {
            let across = layer % 2 == 1;
            let at = if across { DVec3::new(side, 0.0, height) } else { DVec3::new(0.0, side, height) };
            let body = spawn_mass(world, log, 50.0, 0.6, at);
            if !across {
                let turn = DQuat::from_rotation_z(-std::f64::consts::FRAC_PI_2);
                world.get::<&mut turnbuckle::components::Rotation>(body).expect("a body").0 = turn;
            }
            bodies.push(body);
        }
    }
    let top = ShapeHandle::cuboid(DVec3::new(0.9, 0.9, 0.4));
    let height = f64::from(layers) * (0.3 - overlap) + 0.4;
    bodies.push(spawn_mass(world, &top, 2500.0, 0.6, DVec3::Z * height));
    bodies
}

/// Steps a tower and tells how far its bodies end from their start, and how deep any contact was.
fn stands(name: &str, log: &ShapeHandle, overlap: f64, seconds: f64) {
    let (mut world, mut physics) = (World::new(), awake());
    let bodies = tower(&mut world, log, 80, overlap);
    let start: Vec<DVec3> = bodies.iter().map(|b| x(&world, *b)).collect();
    let (mut depth, mut unconverged, mut time) = (0.0f64, 0, 0.0);
    let steps = (seconds / H) as usize;
    for _ in 0..steps {
        let report = physics.step(&mut world, H);
        depth = depth.max(report.penetration_max);
        unconverged += usize::from(!report.converged);
        time += report.step_ms;
    }
    let moved = bodies.iter().zip(&start).map(|(b, s)| (x(&world, *b) - *s).length()).fold(0.0, f64::max);
    let speed = bodies.iter().map(|b| v(&world, *b).length()).fold(0.0, f64::max);
    println!(
        "{name}, overlap {overlap}: {} rows, {:.2} ms a step, moved {moved:.2e} m, last speed {speed:.1e} m/s, \
         depth {depth:.2e} m, unconverged {unconverged}",
        physics.report().rows,
        time / steps as f64
    );
    assert_eq!(unconverged, 0);
    // Overlapping layers part: 80 of them by the overlap each; beyond that a tenth of a millimetre, as stacks.
    assert!(moved < 1e-4 + 81.0 * overlap, "{name} moved {moved}");
    assert!(depth < 1e-4 + overlap, "{name}: {depth} deep");
}

#[test]
fn towers_of_boxes_stand() {
    let log = ShapeHandle::cuboid(DVec3::new(0.15, 1.0, 0.15));
    stands("boxes", &log, 0.0, 20.0);
    stands("boxes", &log, 1e-4, 5.0);
}

#[test]
fn towers_of_capsules_stand() {
    let log = ShapeHandle::new(Shape::Capsule { half_length: 0.85, radius: 0.15 }).expect("a capsule");
    stands("capsules", &log, 0.0, 20.0);
    stands("capsules", &log, 1e-4, 5.0);
}

#[test]
fn towers_of_cylinders_stand() {
    let log = ShapeHandle::new(Shape::Cylinder { half_length: 1.0, radius: 0.15 }).expect("a cylinder");
    stands("cylinders", &log, 0.0, 20.0);
    stands("cylinders", &log, 1e-4, 5.0);
}
