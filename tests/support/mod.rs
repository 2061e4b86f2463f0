//! Builders shared by tests.

#![allow(dead_code)] // each test uses its own part

use glam::{DMat3, DQuat, DVec3};
use hecs::{Entity, World};
use turnbuckle::Physics;
use turnbuckle::components::*;
use turnbuckle::constraint::{BodyView, Bounds, Constraint, Row, RowWriter, Twist};

/// A rope between points of two bodies: pulls, never pushes.
pub struct Tether {
    pub bodies: [Entity; 2],
    pub anchors: [DVec3; 2],
    pub length: f64,
    pub bounds: Bounds,
}

impl Constraint for Tether {
    fn bodies(&self) -> [Entity; 2] {
        self.bodies
    }
    fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter<'_>) {
        let (pa, pb) = (a.point(self.anchors[0]), b.point(self.anchors[1]));
        let span = pb - pa;
        let n = span.normalize_or(DVec3::Z);
        out.push(Row {
            jacobian: [-Twist::at(pa - a.position, n), Twist::at(pb - b.position, n)],
            violation: span.length() - self.length,
            bounds: self.bounds,
            ..Row::default()
        });
    }
}

pub struct CurtainOptions {
    pub ropes: usize,
    pub links: usize,
    pub free: usize,
}

impl Default for CurtainOptions {
    fn default() -> Self {
        CurtainOptions { ropes: 30, links: 30, free: 100 }
    }
}

/// Ropes of boxes hanging from a fixed beam, neighbours tied here and there, and bodies flying freely: 1,000 by default.
pub fn curtain(world: &mut World, options: &CurtainOptions) -> (Physics, Vec<Entity>) {
    let mut physics = Physics::new();
    physics.add_constraint::<Tether>();
    let beam = world.spawn(RigidBody::fixed());
    let mut bodies = Vec::new();
    let tie = |world: &mut World, a, b, anchors, length, bounds| {
        world.spawn((Tether { bodies: [a, b], anchors, length, bounds },));
    };
    for rope in 0..options.ropes {
        let (mut above, mut anchor) = (beam, DVec3::new(rope as f64, 0.0, 0.0));
        for link in 0..options.links {
            let mass = 0.5 + ((rope * 7 + link * 3) % 5) as f64;
            let inertia = DMat3::from_diagonal(DVec3::new(0.1, 0.2, 0.25) * mass);
            let x = DVec3::new(rope as f64 + 0.3 * link as f64, 0.05 * (link % 3) as f64, -0.5 * link as f64);
            let body = world.spawn(RigidBody::dynamic(mass, inertia).at(x));
            let bounds = if link % 4 == 0 { Bounds::PULL_ONLY } else { Bounds::BOTH };
            tie(world, above, body, [anchor, DVec3::new(0.0, 0.0, 0.2)], 0.3, bounds);
            if rope % 3 == 1 && link % 10 == 9 {
                let neighbour = bodies[bodies.len() - options.links];
                tie(world, neighbour, body, [DVec3::ZERO; 2], 1.2, Bounds::PULL_ONLY);
            }
            bodies.push(body);
            (above, anchor) = (body, DVec3::new(0.0, 0.0, -0.2));
        }
    }
    for k in 0..options.free {
        let s = k as f64;
        let inertia = DMat3::from_diagonal(DVec3::new(1.0, 2.0, 2.5));
        let spin = DVec3::new((s * 0.37).sin(), (s * 0.71).cos(), 0.1) * 3.0;
        let body = RigidBody::dynamic(1.0 + s % 3.0, inertia).at(DVec3::new(s, 50.0, 0.0));
        let turned = DQuat::from_rotation_x(s).normalize();
        bodies.push(world.spawn(body.turned(turned).moving(DVec3::new(0.0, 1.0, s % 7.0), spin)));
    }
    (physics, bodies)
}
