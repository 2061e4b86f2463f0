//! 500 mixed bodies in a bin: our collide stage beside rapier's collision phase, same scene, same run, one thread each.
//!
//! Rapier simulates; every step's poses and velocities are given to our engine, whose contacts are switched off so that its
//! solver has nothing to do. Timed are our *collide* stage and, by rapier's own counter, its broad and narrow phase.
//! (Its `CollisionPipeline` on poses set from outside costs more than its whole step: not a fair measure.) With `--ours` and a
//! third number our engine also simulates so many steps by itself, for the time of a whole step. With `--no-recycling` rapier
//! looks at every pair in every step.

use glam::{DQuat, DVec3};
use hecs::{Entity, World};
use rapier3d_f64::prelude as r;
use std::time::Instant;
use turnbuckle::components::*;
use turnbuckle::geometry::ShapeHandle;
use turnbuckle::{Physics, Stage};

const H: f64 = 1.0 / 60.0;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|s| s.parse().ok()).collect();
    let (count, steps) = (numbers.first().copied().unwrap_or(500), numbers.get(1).copied().unwrap_or(240));
    let alone =
        if std::env::args().any(|a| a == "--ours") { numbers.get(2).copied().unwrap_or(30) } else { 0 };
    let (mut world, mut physics) = (World::new(), Physics::new());
    physics.set_threads(1);
    physics.settings.sleep = false;
    physics.settings.measure = false;
    physics.settings.gravity = DVec3::ZERO;
    physics.add_system(Stage::Forces, "switch off", |step| {
        for surface in step.world.query_mut::<&mut Surface>() {
            surface.enabled = false;
        }
    });
    let mut rapier = r::PhysicsWorld { gravity: DVec3::new(0.0, 0.0, -9.81), ..Default::default() };
    rapier.integration_parameters.dt = H;
    // Rapier keeps a pair's points as they are, depth included, until the pair has moved by 5 cm; we know every depth in every step.
    rapier.integration_parameters.contact_recycling = !std::env::args().any(|a| a == "--no-recycling");
    let pairs = fill(&mut world, &mut rapier, count);
    rapier.physics_pipeline.counters.enable();
    let (mut ours, mut ahead, mut theirs, mut whole) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut deepest = 0.0f64;
    for step in 0..steps {
        let start = Instant::now();
        rapier.step();
        whole.push(1e3 * start.elapsed().as_secs_f64());
        theirs.push(rapier.physics_pipeline.counters.stages.collision_detection_time.time_ms());
        follow(&mut world, &rapier, &pairs);
        physics.step(&mut world, H);
        let times = physics.last_step_timings();
        let of = |name: &str| times.iter().filter(|(n, _)| n == name).map(|t| t.1).sum::<f64>();
        ours.push(of("collide"));
        ahead.push(of("look ahead"));
        deepest = deepest.max(depth(&mut world));
        if step % 30 == 29 {
            let (near, pairs, points) = counts(&rapier);
            println!(
                "step {:3}: near {:4}, contacts {:4}, points {:4} (rapier {near:4}, {pairs:4}, {points:4}), \
                 collide {:.3} ms, rapier {:.3} ms, ratio {:.2}",
                step + 1,
                physics.near_pairs(),
                physics.report().contacts,
                world.query_mut::<&Manifold>().into_iter().map(|m| m.points.len()).sum::<usize>(),
                median(&ours[step - 29..]),
                median(&theirs[step - 29..]),
                median(&ours[step - 29..]) / median(&theirs[step - 29..])
            );
        }
    }
    println!(
        "collide {:.3} ms, rapier's collision phase {:.3} ms (medians over the run)",
        median(&ours),
        median(&theirs)
    );
    println!("ratio: {:.2}", median(&ours) / median(&theirs));
    let (sum, sum_theirs) = (ours.iter().sum::<f64>(), theirs.iter().sum::<f64>());
    println!("whole run: {sum:.1} ms, rapier {sum_theirs:.1} ms, ratio {:.2}", sum / sum_theirs);
    println!(
        "look ahead at every moving pair: {:.3} ms more; rapier's whole step {:.3} ms",
        median(&ahead),
        median(&whole)
    );
    println!("rapier's bodies overlap by up to {:.1} mm", 1e3 * deepest);
    simulate(count, alone);
}

/// Our engine by itself.
fn simulate(count: usize, steps: usize) {
    if steps == 0 {
        return;
    }
    let (mut world, mut physics) = (World::new(), Physics::new());
    physics.set_threads(1);
    fill(&mut world, &mut r::PhysicsWorld::new(), count);
    let (mut times, mut deepest) = (Vec::new(), 0.0f64);
    for _ in 0..steps {
        let report = physics.step(&mut world, H);
        times.push(report.step_ms);
        deepest = deepest.max(report.penetration_max);
    }
    println!(
        "our whole step over {steps} steps: {:.2} ms; overlap up to {:.2} mm",
        median(&times),
        1e3 * deepest
    );
}

/// Rapier's pairs with boxes that meet, those with contacts, and their points.
fn counts(rapier: &r::PhysicsWorld) -> (usize, usize, usize) {
    let near = rapier.narrow_phase.contact_pairs();
    let active = || rapier.narrow_phase.contact_pairs().filter(|p| p.has_any_active_contact());
    let points = active().flat_map(|p| p.manifolds()).map(|m| m.points.len());
    (near.count(), active().count(), points.sum())
}

/// The deepest overlap that our narrow phase sees.
fn depth(world: &mut World) -> f64 {
    let points = world.query_mut::<&Manifold>().into_iter().flat_map(|m| &m.points);
    points.map(|p| -p.separation).fold(0.0, f64::max)
}

fn median(x: &[f64]) -> f64 {
    let mut x = x.to_vec();
    x.sort_by(f64::total_cmp);
    x[x.len() / 2]
}

/// The same bodies in both; fixed walls and floor first.
fn fill(world: &mut World, rapier: &mut r::PhysicsWorld, count: usize) -> Vec<(Entity, r::RigidBodyHandle)> {
    let walls = [
        (DVec3::new(0.0, 0.0, -0.5), DVec3::new(3.0, 3.0, 0.5)),
        (DVec3::new(2.1, 0.0, 3.0), DVec3::new(0.1, 2.2, 3.0)),
        (DVec3::new(-2.1, 0.0, 3.0), DVec3::new(0.1, 2.2, 3.0)),
        (DVec3::new(0.0, 2.1, 3.0), DVec3::new(2.2, 0.1, 3.0)),
        (DVec3::new(0.0, -2.1, 3.0), DVec3::new(2.2, 0.1, 3.0)),
    ];
    for (at, half) in walls {
        let shape = ShapeHandle::cuboid(half);
        let body = world.spawn(RigidBody::fixed().at(at));
        let _ = world.insert_one(body, Colliders::one(Collider::new(shape)));
        let collider = r::ColliderBuilder::cuboid(half.x, half.y, half.z).friction(0.6);
        rapier.insert(r::RigidBodyBuilder::fixed().translation(at), collider);
    }
    (0..count)
        .map(|i| {
            let (layer, cell) = (i / 49, i % 49);
            let at = DVec3::new(
                0.55 * (cell % 7) as f64 - 1.65 + 0.01 * (i % 5) as f64,
                0.55 * (cell / 7) as f64 - 1.65 + 0.01 * (i % 3) as f64,
                0.4 + 0.5 * layer as f64,
            );
            let size = 0.1 + 0.1 * ((i * 37) % 11) as f64 / 10.0;
            let (shape, collider) = if i % 2 == 0 {
                (ShapeHandle::cuboid(DVec3::splat(size)), r::ColliderBuilder::cuboid(size, size, size))
            } else {
                (ShapeHandle::sphere(size), r::ColliderBuilder::ball(size))
            };
            let body = r::RigidBodyBuilder::dynamic().translation(at).can_sleep(false);
            let (handle, _) = rapier.insert(body, collider.density(1000.0).friction(0.6));
            let mass = shape.mass_properties(1000.0).expect("volume");
            let body = world.spawn(RigidBody::dynamic(mass.mass, mass.inertia).at(at));
            let _ = world.insert_one(body, Colliders::one(Collider::new(shape)));
            (body, handle)
        })
        .collect()
}

/// Gives our bodies the poses and velocities of rapier's; half a step back, for we look at the middle of the step.
fn follow(world: &mut World, rapier: &r::PhysicsWorld, pairs: &[(Entity, r::RigidBodyHandle)]) {
    for (entity, handle) in pairs {
        type Parts<'a> =
            (&'a mut Position, &'a mut Rotation, &'a mut LinearVelocity, &'a mut AngularVelocity);
        let Ok((x, q, v, w)) = world.query_one_mut::<Parts<'_>>(*entity) else { continue };
        let body = &rapier.bodies[*handle];
        (v.0, w.0) = (body.linvel(), body.angvel());
        x.0 = body.translation() - v.0 * (0.5 * H);
        q.0 = DQuat::from_scaled_axis(-w.0 * (0.5 * H)) * *body.rotation();
    }
}
