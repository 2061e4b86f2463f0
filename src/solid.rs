//! Bodies from shapes: the usual way to make one.

use crate::components::*;
use crate::geometry::{MassProperties, Shape, ShapeError, ShapeHandle};
use glam::{DQuat, DVec3};

/// A body with its shapes, ready to be spawned: `world.spawn(Solid::sphere(0.5, 7800.0).at(...))`.
///
/// Mass and inertia follow from shape and density. The body frame's origin is the centre of mass; where a shape's own
/// origin is elsewhere (cones, hulls, compounds), [`LocalOrigin`] says where it lies, and [`Solid::at`] places *it*, as
/// an author expects.
#[derive(Clone, Debug, hecs::Bundle)]
pub struct Solid {
    kind: BodyKind,
    position: Position,
    rotation: Rotation,
    linear_velocity: LinearVelocity,
    angular_velocity: AngularVelocity,
    mass: Mass,
    inertia: Inertia,
    force: Force,
    torque: Torque,
    colliders: Colliders,
    origin: LocalOrigin,
}

impl Solid {
    /// A dynamic body made of these colliders; each brings its density in its material.
    ///
    /// # Errors
    /// If none of them has a volume, or the mass is not a positive finite number.
    pub fn new(mut colliders: Vec<Collider>) -> Result<Solid, ShapeError> {
        let parts = colliders.iter().filter_map(|c| {
            let part = c.shape.mass_properties(c.material.density)?;
            Some(part.moved(c.position, c.rotation))
        });
        let whole = parts.fold(MassProperties::ZERO, MassProperties::joined);
        if !(whole.mass.is_finite() && whole.mass > 0.0) {
            let what = "a dynamic body needs a shape with a volume and a positive density".into();
            return Err(ShapeError::Malformed { shape: "body", what });
        }
        for collider in &mut colliders {
            collider.position -= whole.center;
        }
        let body = RigidBody::dynamic(whole.mass, whole.inertia);
        Ok(Solid::from_parts(body, colliders, -whole.center).at(DVec3::ZERO))
    }

    /// A body that never moves, of any shape.
    pub fn fixed(shape: ShapeHandle) -> Solid {
        Solid::from_parts(RigidBody::fixed(), vec![Collider::new(shape)], DVec3::ZERO)
    }

    /// A body that moves by its velocity only, of any shape.
    pub fn kinematic(shape: ShapeHandle) -> Solid {
        Solid::from_parts(RigidBody::kinematic(), vec![Collider::new(shape)], DVec3::ZERO)
    }

    /// A ball of this radius (m) and density (kg/m³).
    ///
    /// # Panics
    /// If a number is not positive and finite.
    pub fn sphere(radius: f64, density: f64) -> Solid {
        Solid::of(Shape::Sphere { radius }, density)
    }

    /// A box with these half edges (m) and density (kg/m³).
    ///
    /// # Panics
    /// If a number is not positive and finite.
    pub fn cuboid(half_extents: DVec3, density: f64) -> Solid {
        Solid::of(Shape::Box { half_extents }, density)
    }

    /// A body of one shape. Files and users' numbers go through [`Solid::new`], which returns its errors.
    ///
    /// # Panics
    /// If the shape cannot be built or has no volume.
    pub fn of(shape: Shape, density: f64) -> Solid {
        let build = || {
            let mut collider = Collider::new(ShapeHandle::new(shape)?);
            collider.material.density = density;
            Solid::new(vec![collider])
        };
        build().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same body with its shape's origin somewhere else.
    pub fn at(mut self, position: DVec3) -> Solid {
        self.position.0 = position - self.rotation.0 * self.origin.0;
        self
    }

    /// The same body turned about its shape's origin.
    pub fn turned(mut self, rotation: DQuat) -> Solid {
        let origin = self.position.0 + self.rotation.0 * self.origin.0;
        self.rotation.0 = rotation;
        self.at(origin)
    }

    /// The same body in motion.
    pub fn moving(mut self, linear: DVec3, angular: DVec3) -> Solid {
        (self.linear_velocity.0, self.angular_velocity.0) = (linear, angular);
        self
    }

    /// The same body with other surfaces; the mass stays.
    pub fn surface(mut self, friction: f64, restitution: f64) -> Solid {
        for collider in &mut self.colliders.0 {
            collider.material.friction = friction;
            collider.material.restitution = restitution;
        }
        self
    }

    /// The same body weighing `mass` kilograms; the inertia follows in proportion.
    pub fn weighing(mut self, mass: f64) -> Solid {
        self.inertia.0 *= mass / self.mass.0;
        self.mass.0 = mass;
        self
    }

    fn from_parts(body: RigidBody, colliders: Vec<Collider>, origin: DVec3) -> Solid {
        Solid {
            kind: body.kind,
            position: body.position,
            rotation: body.rotation,
            linear_velocity: body.linear_velocity,
            angular_velocity: body.angular_velocity,
            mass: body.mass,
            inertia: body.inertia,
            force: body.force,
            torque: body.torque,
            colliders: Colliders(colliders),
            origin: LocalOrigin(origin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cone_stands_where_its_author_put_it() {
        let shape = Shape::Cone { half_height: 1.0, radius: 0.5 };
        let turn = DQuat::from_rotation_x(0.7);
        let cone = Solid::of(shape, 1000.0).turned(turn).at(DVec3::new(1.0, 2.0, 3.0));
        // the centre of mass lies a quarter of the height above the base: 0.5 m below the origin, along the axis
        let expected = DVec3::new(1.0, 2.0, 3.0) + turn * DVec3::new(0.0, -0.5, 0.0);
        assert!((cone.position.0 - expected).length() < 1e-15);
        assert!((cone.colliders.0[0].position - DVec3::new(0.0, 0.5, 0.0)).length() < 1e-15);
    }

    #[test]
    fn a_body_without_volume_is_refused() {
        let plane = ShapeHandle::new(Shape::HalfSpace { normal: DVec3::Z }).expect("a plane");
        let error = Solid::new(vec![Collider::new(plane)]).expect_err("no volume");
        assert!(error.to_string().contains("a shape with a volume"), "{error}");
    }
}
