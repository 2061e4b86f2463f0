//! What a body is to touch: shapes by handle, materials, filters.

use crate::geometry::ShapeHandle;
use glam::{DQuat, DVec3};

/// One shape of a body.
#[derive(Clone, Debug)]
pub struct Collider {
    /// The shape, shared; cloning a handle copies a pointer.
    pub shape: ShapeHandle,
    /// Where it sits in the body frame.
    pub position: DVec3,
    /// How it is turned in the body frame.
    pub rotation: DQuat,
    /// Surface properties.
    pub material: Material,
    /// Who may touch it.
    pub filter: CollisionFilter,
    /// A sensor reports overlaps and pushes nothing.
    pub sensor: bool,
}

impl Collider {
    /// A collider with the default material at the centre of its body.
    pub fn new(shape: ShapeHandle) -> Collider {
        Collider {
            shape,
            position: DVec3::ZERO,
            rotation: DQuat::IDENTITY,
            material: Material::default(),
            filter: CollisionFilter::default(),
            sensor: false,
        }
    }
}

/// The shapes of a body. The component of an entity that collides.
#[derive(Clone, Debug, Default)]
pub struct Colliders(pub Vec<Collider>);

impl Colliders {
    /// A body of one shape.
    pub fn one(collider: Collider) -> Colliders {
        Colliders(vec![collider])
    }
}

/// How a surface rubs and bounces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Material {
    /// Coulomb friction coefficient; two surfaces meet with the geometric mean.
    pub friction: f64,
    /// Share of the approach velocity that comes back; two surfaces meet with the larger.
    pub restitution: f64,
    /// Density (kg/m³) for mass properties from shapes.
    pub density: f64,
    /// Radius (m) by which friction also resists spinning about the normal; two surfaces meet with the larger.
    pub torsion_radius: f64,
    /// Radius (m) by which the normal force also resists rolling; two surfaces meet with the larger.
    pub rolling_radius: f64,
}

impl Default for Material {
    fn default() -> Self {
        Material {
            friction: 0.6,
            restitution: 0.0,
            density: 1000.0,
            torsion_radius: 0.0,
            rolling_radius: 0.0,
        }
    }
}

/// Groups and masks: two colliders meet if each one's groups meet the other's mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollisionFilter {
    /// The groups it belongs to.
    pub groups: u32,
    /// The groups it meets.
    pub mask: u32,
}

impl Default for CollisionFilter {
    fn default() -> Self {
        CollisionFilter { groups: 1, mask: u32::MAX }
    }
}

/// From which blows on a body sends [`Hit`](crate::events::ContactEvent::Hit), in place of `Settings::impulse_event_threshold`.
/// Where both bodies of a pair carry one, either is enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HitThreshold {
    /// Greatest impulse of a blow (N·s) that is not told.
    pub impulse: f64,
    /// Greatest speed of approach (m/s) that is not told.
    pub speed: f64,
}
