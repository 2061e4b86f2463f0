//! Questions to the colliders of a world: rays, points, shapes. Answers are in a stable order: nearest first, then by the
//! creation order of the bodies.
//!
//! The tree of the last step's *collide* stage finds candidates, the world's present poses decide. Bodies that were spawned
//! or moved by hand since then are seen from the next step on.

use crate::components::{BodyIndex, CollisionFilter, Position, Rotation};
use crate::geometry::query::{cast_ray, distance_to_point, overlaps};
use crate::geometry::{Box3, Placed, first_touch};
use crate::physics::Physics;
use glam::{DQuat, DVec3};
use hecs::{Entity, World};

/// A collider that answered a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The body.
    pub body: Entity,
    /// Which of its colliders.
    pub collider: u32,
    /// Distance (m) along the ray or motion, or from the point.
    pub distance: f64,
    /// Normal of the surface that was hit; zero where there is none (points, overlaps, a start inside).
    pub normal: DVec3,
}

impl Physics {
    /// All colliders on the ray from `origin` along `direction` (any length) up to `most` metres, nearest first.
    pub fn cast_ray_all(
        &self,
        world: &World,
        origin: DVec3,
        direction: DVec3,
        most: f64,
        filter: CollisionFilter,
    ) -> Vec<Hit> {
        let (Some(along), true) = (direction.try_normalize(), origin.is_finite() && most.is_finite()) else {
            return Vec::new();
        };
        let end = origin + along * most;
        let region = Box3 { low: origin.min(end), high: origin.max(end) };
        self.ask(world, &region, filter, |placed| {
            cast_ray(placed, origin, along, most).map(|hit| (hit.distance, hit.normal))
        })
    }

    /// The first collider on a ray.
    pub fn cast_ray(
        &self,
        world: &World,
        origin: DVec3,
        direction: DVec3,
        most: f64,
        filter: CollisionFilter,
    ) -> Option<Hit> {
        self.cast_ray_all(world, origin, direction, most, filter).into_iter().next()
    }

    /// All colliders that `shape`, moved straight by `motion` without turning, touches on its way, nearest first.
    pub fn cast_shape(
        &self,
        world: &World,
        shape: &Placed,
        motion: DVec3,
        filter: CollisionFilter,
    ) -> Vec<Hit> {
        let region = Box3::around(shape).swept(motion, 0.0);
        self.ask(world, &region, filter, |placed| {
            if overlaps(placed, shape) {
                return Some((0.0, DVec3::ZERO));
            }
            first_touch(placed, shape, motion).map(|share| (share * motion.length(), DVec3::ZERO))
        })
    }

    /// All colliders that overlap `shape`.
    pub fn overlapping(&self, world: &World, shape: &Placed, filter: CollisionFilter) -> Vec<Hit> {
        self.ask(world, &Box3::around(shape), filter, |placed| {
            overlaps(placed, shape).then_some((0.0, DVec3::ZERO))
        })
    }

    /// All colliders within `reach` metres of a point, nearest first; the distance is negative inside.
    pub fn near_point(&self, world: &World, point: DVec3, reach: f64, filter: CollisionFilter) -> Vec<Hit> {
        let region = Box3 { low: point - reach, high: point + reach };
        self.ask(world, &region, filter, |placed| {
            let distance = distance_to_point(placed, point);
            (distance <= reach).then_some((distance, DVec3::ZERO))
        })
    }

    fn ask(
        &self,
        world: &World,
        region: &Box3,
        filter: CollisionFilter,
        question: impl Fn(&Placed) -> Option<(f64, DVec3)>,
    ) -> Vec<Hit> {
        let collision = &self.work.collision;
        let mut hits: Vec<(u32, Hit)> = Vec::new();
        if !(region.low.is_finite() && region.high.is_finite()) {
            return Vec::new();
        }
        collision.broad.in_region(region, &mut |id| {
            let record = &collision.colliders[id as usize];
            let met = record.filter.groups & filter.mask != 0 && filter.groups & record.filter.mask != 0;
            let mut body = world.query_one::<(&Position, &Rotation, &BodyIndex)>(record.entity);
            let (true, Ok((position, rotation, index))) = (met, body.get()) else { return };
            // The record holds the collider's place in the world at the last *collide*; its place on the body is what counts.
            let local = (record.local_position, record.local_rotation);
            let (p, q): (DVec3, DQuat) = (position.0 + rotation.0 * local.0, rotation.0 * local.1);
            let placed = Placed { shape: &record.shape, position: p, rotation: q };
            if let Some((distance, normal)) = question(&placed) {
                let hit = Hit { body: record.entity, collider: record.index, distance, normal };
                hits.push((index.0, hit));
            }
        });
        hits.sort_by(|(i, a), (j, b)| {
            a.distance.total_cmp(&b.distance).then(i.cmp(j)).then(a.collider.cmp(&b.collider))
        });
        hits.into_iter().map(|(_, hit)| hit).collect()
    }
}
