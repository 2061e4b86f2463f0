//! A scene of ours as rapier's sets: same masses, inertias, shapes, friction, joints, gravity and step.
//!
//! Joints are in `links.rs`, what moves by itself in `script.rs`. What differs, because rapier has no such thing:
//! - A universal joint becomes a generic joint that locks the third component of the relative quaternion. That is the
//!   same joint while only one of its two axes turns (chain_wrap swings in a plane), and differs by the product of both half-angles otherwise.
//! - Friction bounds: rapier's default model bounds friction for a whole manifold, ours for each point.
//! - Torsion and rolling friction are not carried over; a scene that has them is refused.

use crate::links::{self, Link, TWO_TURNS};
use glam::{DQuat, DVec3};
use hecs::Entity;
use rapier3d_f64::prelude as r;
use std::collections::BTreeMap;
use turnbuckle::components::*;
use turnbuckle::geometry::Shape;
use turnbuckle::scene::Scene;

/// A collider in numbers.
pub struct Solid {
    pub body: usize,
    pub at: r::Pose,
    pub shape: r::SharedShape,
    pub filter: CollisionFilter,
    material: Material,
}

/// What both engines have in common.
pub struct Model {
    pub bodies: Vec<Entity>,
    pub links: Vec<Link>,
    pub solids: Vec<Solid>,
}

/// How rapier is to hold joints.
#[derive(Clone, Copy, PartialEq)]
pub enum Joints {
    /// By impulses: its usual way, and the only one for closed loops.
    Impulse,
    /// By reduced coordinates, for trees.
    Multibody,
}

/// Rapier's copy of a scene.
pub struct Twin {
    pub world: r::PhysicsWorld,
    pub handles: Vec<r::RigidBodyHandle>,
    /// Joints held by impulses, by their number in the plan.
    pub joints: Vec<Option<r::ImpulseJointHandle>>,
}

pub fn pose(position: DVec3, rotation: DQuat) -> r::Pose {
    r::Pose::from_parts(position, rotation)
}

impl Model {
    /// Reads a scene; says what of it rapier cannot have.
    pub fn of(scene: &mut Scene) -> Result<Model, String> {
        let world = &mut scene.world;
        let mut bodies: Vec<Entity> =
            world.query_mut::<(Entity, &BodyKind)>().into_iter().map(|(e, _)| e).collect();
        bodies.sort_by_key(|e| e.id());
        let index: BTreeMap<Entity, usize> = bodies.iter().enumerate().map(|(i, e)| (*e, i)).collect();
        let links = links::links(scene, &index)?;
        let solids = solids(scene, &index)?;
        Ok(Model { bodies, links, solids })
    }

    /// Are these two bodies tied by a joint? Such pairs do not collide.
    pub fn tied(&self) -> std::collections::BTreeSet<(usize, usize)> {
        let tied = self.links.iter().filter(|l| !l.collides());
        tied.map(|l| (l.bodies[0].min(l.bodies[1]), l.bodies[0].max(l.bodies[1]))).collect()
    }

    /// Builds rapier's copy. Bodies never sleep, here as there, so that rest is held and not frozen.
    pub fn twin(&self, scene: &Scene, joints: Joints) -> Result<Twin, String> {
        let mut world = r::PhysicsWorld { gravity: scene.physics.settings.gravity, ..Default::default() };
        world.integration_parameters.dt = scene.dt();
        let handles: Vec<_> = self.bodies.iter().map(|&e| insert_body(&mut world, scene, e)).collect();
        for solid in &self.solids {
            world.insert_collider(solid.collider(), Some(handles[solid.body]));
        }
        let mut held = vec![None; scene.joints.len()];
        for link in &self.links {
            let [a, b] = link.bodies.map(|i| handles[i]);
            match joints {
                Joints::Impulse => held[link.number] = Some(world.insert_impulse_joint(a, b, link.joint)),
                Joints::Multibody => reduce(&mut world, a, b, link)?,
            }
        }
        Ok(Twin { world, handles, joints: held })
    }
}

/// Ties two bodies by reduced coordinates.
fn reduce(
    world: &mut r::PhysicsWorld,
    a: r::RigidBodyHandle,
    b: r::RigidBodyHandle,
    link: &Link,
) -> Result<(), String> {
    if link.joint.locked_axes == TWO_TURNS {
        return Err("rapier's multibodies do not implement joints of two turns".into());
    }
    if !link.joint.motor_axes.is_empty() || !link.joint.coupled_axes.is_empty() {
        return Err("joints with motors are tried by impulses only".into());
    }
    world.insert_multibody_joint(a, b, link.joint).map(drop).ok_or("joints close a loop: no multibody".into())
}

fn insert_body(world: &mut r::PhysicsWorld, scene: &Scene, entity: Entity) -> r::RigidBodyHandle {
    let body = scene.world.entity(entity).expect("it was just found");
    let of = |what: &str| -> ! { panic!("body without {what}") };
    let kind = body.get::<&BodyKind>().map_or(BodyKind::Fixed, |k| *k);
    let builder = match kind {
        BodyKind::Dynamic => r::RigidBodyBuilder::dynamic(),
        BodyKind::Kinematic => r::RigidBodyBuilder::kinematic_velocity_based(),
        BodyKind::Fixed => r::RigidBodyBuilder::fixed(),
    };
    let (Some(x), Some(q)) = (body.get::<&Position>(), body.get::<&Rotation>()) else { of("pose") };
    let (Some(v), Some(w)) = (body.get::<&LinearVelocity>(), body.get::<&AngularVelocity>()) else {
        of("velocity")
    };
    let (Some(m), Some(i)) = (body.get::<&Mass>(), body.get::<&Inertia>()) else { of("mass") };
    let damping = body.get::<&Damping>().map_or(Damping::default(), |d| *d);
    let gravity = body.get::<&GravityScale>().map_or(1.0, |g| g.0);
    let mass = r::MassProperties::with_inertia_matrix(DVec3::ZERO, m.0, i.0);
    world.insert_body(
        builder
            .pose(pose(x.0, q.0))
            .linvel(v.0)
            .angvel(w.0)
            .additional_mass_properties(mass)
            .linear_damping(damping.linear)
            .angular_damping(damping.angular)
            .gravity_scale(gravity)
            .can_sleep(false),
    )
}

impl Solid {
    /// Without mass of its own: the body has ours.
    fn collider(&self) -> r::Collider {
        let group = |bits: u32| r::Group::from_bits_retain(bits);
        let groups = r::InteractionGroups::new(
            group(self.filter.groups),
            group(self.filter.mask),
            r::InteractionTestMode::And,
        );
        r::ColliderBuilder::new(self.shape.clone())
            .position(self.at)
            .density(0.0)
            .friction(self.material.friction)
            .friction_combine_rule(r::CoefficientCombineRule::GeometricMean)
            .restitution(self.material.restitution)
            .restitution_combine_rule(r::CoefficientCombineRule::Max)
            .collision_groups(groups)
            .build()
    }
}

fn solids(scene: &mut Scene, index: &BTreeMap<Entity, usize>) -> Result<Vec<Solid>, String> {
    let mut solids = Vec::new();
    for (entity, colliders) in scene.world.query_mut::<(Entity, &Colliders)>() {
        for collider in &colliders.0 {
            let Material { torsion_radius, rolling_radius, .. } = collider.material;
            if torsion_radius != 0.0 || rolling_radius != 0.0 {
                return Err("torsion or rolling friction has no counterpart".into());
            }
            solids.push(Solid {
                body: index[&entity],
                at: pose(collider.position, collider.rotation),
                shape: shape(collider.shape.shape())?,
                filter: collider.filter,
                material: collider.material,
            });
        }
    }
    solids.sort_by_key(|s| s.body);
    Ok(solids)
}

fn shape(shape: &Shape) -> Result<r::SharedShape, String> {
    Ok(match shape {
        Shape::Sphere { radius } => r::SharedShape::ball(*radius),
        Shape::Box { half_extents: e } => r::SharedShape::cuboid(e.x, e.y, e.z),
        Shape::Capsule { half_length, radius } => r::SharedShape::capsule_y(*half_length, *radius),
        Shape::Cylinder { half_length, radius } => r::SharedShape::cylinder(*half_length, *radius),
        Shape::HalfSpace { normal } => r::SharedShape::halfspace(normal.normalize()),
        Shape::ConvexHull { points } => r::SharedShape::convex_hull(points).ok_or("a hull without volume")?,
        _ => return Err("a shape other than ball, box, capsule, cylinder, half-space, hull".into()),
    })
}
