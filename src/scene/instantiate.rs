//! From a plan to a world that moves.

use super::plan::{BodyPlan, JointKind, ScenePlan};
use super::play::Player;
use super::{joints, judge};
use crate::Physics;
use crate::components::*;
use hecs::{Entity, World};

/// A scene ready to step.
pub struct Scene {
    /// The bodies and joints.
    pub world: World,
    /// The stage, with the scene's settings and its script.
    pub physics: Physics,
    /// What the file said.
    pub plan: ScenePlan,
    /// Entities of the plan's bodies, in its order.
    pub bodies: Vec<Entity>,
    /// Entities of the plan's joints, in its order.
    pub joints: Vec<Entity>,
}

/// Step of scenes that say nothing else (s).
pub const DEFAULT_DT: f64 = 1.0 / 60.0;
/// Length of scenes that say nothing else (s).
pub const DEFAULT_SECONDS: f64 = 10.0;

impl Scene {
    /// Puts a plan into a new world.
    pub fn new(plan: ScenePlan) -> Scene {
        let mut world = World::new();
        let bodies: Vec<Entity> = plan.bodies.iter().map(|b| spawn_body(&mut world, b)).collect();
        // Joints to the world hold on to one fixed body at its origin, made only if a joint asks for it.
        let anchored = plan.joints.iter().any(ties_to_world);
        let ground = anchored.then(|| world.spawn(RigidBody::fixed()));
        let entity = |body: Option<u32>| match body {
            Some(i) => bodies[i as usize],
            None => ground.unwrap_or(Entity::DANGLING),
        };
        let spawned: Vec<Entity> =
            plan.joints.iter().map(|j| joints::spawn_joint(&mut world, j, entity)).collect();
        let mut physics = Physics::new();
        apply_settings(&plan, &mut physics);
        // What a script does before the first step is work, as it is before any other.
        physics.work.energy = Some(judge::energy(&plan, physics.settings.gravity));
        if let Some(player) = Player::new(&plan, &bodies, &spawned) {
            player.attach(&mut physics);
        }
        Scene { world, physics, plan, bodies, joints: spawned }
    }

    /// The step the scene asks for (s).
    pub fn dt(&self) -> f64 {
        self.plan.settings.dt.unwrap_or(DEFAULT_DT)
    }

    /// How many steps of `dt` its length is.
    pub fn steps(&self, dt: f64) -> u64 {
        (self.plan.settings.seconds.unwrap_or(DEFAULT_SECONDS) / dt).round().max(1.0) as u64
    }
}

fn ties_to_world(joint: &super::plan::JointPlan) -> bool {
    match &joint.kind {
        JointKind::Pulley { points, .. } => points.iter().any(|(body, _)| body.is_none()),
        JointKind::Gear { frame, .. } | JointKind::Rack { frame, .. } if frame.is_none() => true,
        _ => joint.a.body.is_none() || joint.b.body.is_none(),
    }
}

fn apply_settings(plan: &ScenePlan, physics: &mut Physics) {
    let (from, to) = (&plan.settings, &mut physics.settings);
    if let Some(v) = from.gravity {
        to.gravity = v;
    }
    for &(name, value) in &from.numbers {
        // The loader has held it against its range; a plan by hand may hold anything, which leaves the default.
        let _ = to.set(name, value);
    }
    if let Some(v) = from.solver {
        to.method = v;
    }
    if let Some(v) = from.partition {
        to.partitioning = v;
    }
    if let Some(v) = from.friction_law {
        to.friction_law = v;
    }
    if let Some(v) = from.sleep {
        to.sleep = v;
    }
}

fn spawn_body(world: &mut World, plan: &BodyPlan) -> Entity {
    let body = match plan.kind {
        BodyKind::Dynamic => RigidBody::dynamic(plan.mass, plan.inertia),
        BodyKind::Kinematic => RigidBody::kinematic(),
        BodyKind::Fixed => RigidBody::fixed(),
    };
    let mut body = body.at(plan.position).turned(plan.rotation).moving(plan.velocity, plan.spin);
    if plan.inertia.determinant() > 0.0 {
        // Bodies that do not move by forces keep their mass too: a script may free them.
        (body.mass, body.inertia) = (Mass(plan.mass), Inertia(plan.inertia));
    }
    let mut builder = hecs::EntityBuilder::new();
    builder.add_bundle(body);
    if !plan.colliders.is_empty() {
        builder.add(Colliders(plan.colliders.clone()));
    }
    if plan.point {
        builder.add(PointMass);
    }
    if plan.gravity_scale != 1.0 {
        builder.add(GravityScale(plan.gravity_scale));
    }
    if plan.damping != [0.0; 2] {
        let [linear, angular] = plan.damping;
        builder.add(Damping { linear, angular });
    }
    if plan.origin != glam::DVec3::ZERO {
        builder.add(LocalOrigin(plan.origin));
    }
    if let Some(partition) = plan.partition {
        builder.add(PartitionHint(partition));
        if plan.pinned {
            builder.add(PartitionPin(partition));
        }
    }
    if let Some(color) = plan.color {
        builder.add(color);
    }
    if let Some(cable) = plan.cable {
        builder.add(cable);
    }
    if !plan.name.is_empty() {
        builder.add(Name(plan.name.clone()));
    }
    world.spawn(builder.build())
}
