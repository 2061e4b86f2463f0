//! 500 mixed bodies in a bin: our collide stage beside rapier's collision phase on the same poses, in one run.

use glam::{DQuat, DVec3};
use hecs::{Entity, World};
use rapier3d_f64::prelude as r;
use std::time::Instant;
use turnbuckle::Physics;
use turnbuckle::components::*;
use turnbuckle::geometry::ShapeHandle;

const H: f64 = 1.0 / 60.0;

struct Rapier {
    islands: r::IslandManager,
    bodies: r::RigidBodySet,
    colliders: r::ColliderSet,
    broad: r::BroadPhaseBvh,
    narrow: r::NarrowPhase,
    pipeline: r::CollisionPipeline,
}

fn main() {
    let count: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(500);
    let steps: usize = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(240);
    let (mut world, mut physics) = (World::new(), Physics::new());
    physics.set_threads(1);
    physics.settings.sleep = false;
    physics.settings.measure = false;
    let mut rapier = Rapier {
        islands: r::IslandManager::new(),
        bodies: r::RigidBodySet::new(),
        colliders: r::ColliderSet::new(),
        broad: r::BroadPhaseBvh::new(),
        narrow: r::NarrowPhase::new(),
        pipeline: r::CollisionPipeline::new(),
    };
    let pairs = fill(&mut world, &mut rapier, count);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for step in 0..steps {
        physics.step(&mut world, H);
        let collide = physics.last_step_timings().into_iter().find(|(name, _)| name == "collide").map_or(0.0, |t| t.1);
        let start = Instant::now();
        follow(&world, &mut rapier, &pairs);
        let copied = Instant::now();
        rapier.pipeline.step(
            0.002,
            &mut rapier.islands,
            &mut rapier.broad,
            &mut rapier.narrow,
            &mut rapier.bodies,
            &mut rapier.colliders,
            &(),
            &(),
        );
        let _ = start;
        ours.push(collide);
        theirs.push(1e3 * copied.elapsed().as_secs_f64());
        if step % 30 == 29 {
            println!(
                "step {:3}: contacts {:4}, collide {:.3} ms, rapier {:.3} ms",
                step + 1,
                physics.report().contacts,
                mean(&ours[step - 29..]),
                mean(&theirs[step - 29..])
            );
        }
    }
    let settled = steps / 2;
    println!("falling: {:.3} ms against {:.3} ms", median(&ours[..settled]), median(&theirs[..settled]));
    println!("settled: {:.3} ms against {:.3} ms", median(&ours[settled..]), median(&theirs[settled..]));
    println!("ratio (median over the run): {:.2}", median(&ours) / median(&theirs));
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn median(x: &[f64]) -> f64 {
    let mut x = x.to_vec();
    x.sort_by(f64::total_cmp);
    x[x.len() / 2]
}

/// The same bodies in both; fixed walls and floor first.
fn fill(world: &mut World, rapier: &mut Rapier, count: usize) -> Vec<(Entity, r::RigidBodyHandle)> {
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
        let handle = rapier.bodies.insert(r::RigidBodyBuilder::fixed().translation(at));
        let collider = r::ColliderBuilder::cuboid(half.x, half.y, half.z);
        rapier.colliders.insert_with_parent(collider, handle, &mut rapier.bodies);
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
            let handle = rapier.bodies.insert(r::RigidBodyBuilder::dynamic().translation(at).can_sleep(false));
            let (shape, collider) = if i % 2 == 0 {
                (ShapeHandle::cuboid(DVec3::splat(size)), r::ColliderBuilder::cuboid(size, size, size))
            } else {
                (ShapeHandle::sphere(size), r::ColliderBuilder::ball(size))
            };
            rapier.colliders.insert_with_parent(collider, handle, &mut rapier.bodies);
            let mass = shape.mass_properties(1000.0).expect("volume");
            let body = world.spawn(RigidBody::dynamic(mass.mass, mass.inertia).at(at));
            let _ = world.insert_one(body, Colliders::one(Collider::new(shape)));
            (body, handle)
        })
        .collect()
}

/// Gives rapier the poses and velocities of our bodies.
fn follow(world: &World, rapier: &mut Rapier, pairs: &[(Entity, r::RigidBodyHandle)]) {
    for (entity, handle) in pairs {
        let mut query = world.query_one::<(&Position, &Rotation, &LinearVelocity, &AngularVelocity)>(*entity);
        let Ok((x, q, v, w)) = query.get() else { continue };
        let body = &mut rapier.bodies[*handle];
        let rotation: DQuat = q.0;
        body.set_position(r::Pose::from_parts(x.0, rotation), true);
        body.set_linvel(v.0, true);
        body.set_angvel(w.0, true);
    }
}
