//! Questions to the colliders of a world: rays, points, shapes. Answers are in a stable order: nearest first, then by the
//! creation order of the bodies.
//!
//! The tree of the last step finds candidates, the world's present poses decide. So a body that was spawned, teleported or given
//! other colliders since the last step is not where the tree has it: call [`Physics::refresh`] after such changes, and before
//! questions that come before the first step. After a step nothing is needed.

use crate::components::{BodyIndex, CollisionFilter, Position, Rotation};
use crate::geometry::query::{Answer, cast_ray, cast_shape, deepest, nearest_to, overlaps};
use crate::geometry::{Box3, Placed};
use crate::physics::Physics;
use crate::schedule::Step;
use crate::systems::{collide, guard, sleep};
use glam::{DQuat, DVec3};
use hecs::{Entity, World};

/// A collider that answered a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The body.
    pub body: Entity,
    /// Which of its colliders.
    pub collider: u32,
    /// Distance (m) along the ray or motion, or from the point; zero where a ray or motion starts inside.
    pub distance: f64,
    /// Where, on the surface of the collider; where a ray starts inside, its origin.
    pub point: DVec3,
    /// Outward normal of the collider's surface there: what overlaps parts along it.
    pub normal: DVec3,
}

/// Which colliders are asked. A [`CollisionFilter`] alone will do.
#[derive(Clone, Copy, Default)]
pub struct QueryFilter<'a> {
    /// Groups and mask, as for contacts.
    pub groups: CollisionFilter,
    /// Bodies that are passed over: the one that asks, say.
    pub exclude: &'a [Entity],
    /// Is this body's collider of interest? Asked for what the other two let through.
    pub predicate: Option<&'a dyn Fn(Entity, u32) -> bool>,
}

impl From<CollisionFilter> for QueryFilter<'_> {
    fn from(groups: CollisionFilter) -> Self {
        QueryFilter { groups, ..QueryFilter::default() }
    }
}

impl Physics {
    /// Lets queries see the world as it is: bodies that are new, gone, moved by hand or changed in shape. Nothing moves, and no
    /// contact begins or ends. What is wrong with a body is quarantined and told in the report, as in a step.
    pub fn refresh(&mut self, world: &mut World) {
        // From here on the world is no longer what the last step has read.
        self.work.still = None;
        let (settings, work, report) = self.parts();
        // No time passes: colliders are looked for where they are.
        let mut step = Step { world, dt: 0.0, settings, work, report };
        guard::quarantine_bad_state(&mut step);
        sleep::read_rest(&mut step);
        collide::refresh_colliders(&mut step);
    }

    /// All colliders on the ray from `origin` along `direction` (any length) up to `most` metres, nearest first.
    pub fn cast_ray_all<'a>(
        &self,
        world: &World,
        origin: DVec3,
        direction: DVec3,
        most: f64,
        filter: impl Into<QueryFilter<'a>>,
    ) -> Vec<Hit> {
        let (Some(along), true) = (direction.try_normalize(), origin.is_finite() && most.is_finite()) else {
            return Vec::new();
        };
        let end = origin + along * most;
        let region = Box3 { low: origin.min(end), high: origin.max(end) };
        self.ask(world, &region, filter.into(), |placed| {
            let hit = cast_ray(placed, origin, along, most)?;
            let point = origin + along * hit.distance;
            let starts_inside = hit.distance == 0.0;
            let normal = if starts_inside { nearest_to(placed, origin).normal } else { hit.normal };
            Some(Answer { distance: hit.distance, point, normal })
        })
    }

    /// The first collider on a ray.
    pub fn cast_ray<'a>(
        &self,
        world: &World,
        origin: DVec3,
        direction: DVec3,
        most: f64,
        filter: impl Into<QueryFilter<'a>>,
    ) -> Option<Hit> {
        self.cast_ray_all(world, origin, direction, most, filter).into_iter().next()
    }

    /// All colliders that `shape`, moved straight by `motion` without turning, meets on its way, nearest first. What it
    /// overlaps at the start is met there; what it touches is met if the motion leads into it.
    pub fn cast_shape<'a>(
        &self,
        world: &World,
        shape: &Placed,
        motion: DVec3,
        filter: impl Into<QueryFilter<'a>>,
    ) -> Vec<Hit> {
        let region = Box3::around(shape).swept(motion, 0.0);
        self.ask(world, &region, filter.into(), |placed| cast_shape(placed, shape, motion))
    }

    /// All colliders that overlap `shape`. The distance is zero, point and normal are those of the deepest place.
    pub fn overlapping<'a>(
        &self,
        world: &World,
        shape: &Placed,
        filter: impl Into<QueryFilter<'a>>,
    ) -> Vec<Hit> {
        self.ask(world, &Box3::around(shape), filter.into(), |placed| {
            let nowhere = Answer { distance: 0.0, point: shape.position, normal: DVec3::ZERO };
            let there = || deepest(placed, shape, 0.0).map_or(nowhere, |d| Answer { distance: 0.0, ..d });
            overlaps(placed, shape).then(there)
        })
    }

    /// All colliders within `reach` metres of a point, nearest first; the distance is negative inside.
    pub fn near_point<'a>(
        &self,
        world: &World,
        point: DVec3,
        reach: f64,
        filter: impl Into<QueryFilter<'a>>,
    ) -> Vec<Hit> {
        let region = Box3 { low: point - reach, high: point + reach };
        self.ask(world, &region, filter.into(), |placed| {
            let nearest = nearest_to(placed, point);
            (nearest.distance <= reach).then_some(nearest)
        })
    }

    fn ask(
        &self,
        world: &World,
        region: &Box3,
        filter: QueryFilter<'_>,
        question: impl Fn(&Placed) -> Option<Answer>,
    ) -> Vec<Hit> {
        let collision = &self.work.collision;
        let mut hits: Vec<(u32, Hit)> = Vec::new();
        if !(region.low.is_finite() && region.high.is_finite()) {
            return Vec::new();
        }
        collision.broad.in_region(region, &mut |id| {
            let record = &collision.colliders[id as usize];
            let (f, g) = (record.filter, filter.groups);
            let wanted = f.groups & g.mask != 0
                && g.groups & f.mask != 0
                && !filter.exclude.contains(&record.entity)
                && filter.predicate.is_none_or(|p| p(record.entity, record.index));
            let mut body = world.query_one::<(&Position, &Rotation, &BodyIndex)>(record.entity);
            let (true, Ok((position, rotation, index))) = (wanted, body.get()) else { return };
            // The record holds the collider's place in the world at the last *collide*; its place on the body is what counts.
            let local = (record.local_position, record.local_rotation);
            let (p, q): (DVec3, DQuat) = (position.0 + rotation.0 * local.0, rotation.0 * local.1);
            let placed = Placed { shape: &record.shape, position: p, rotation: q };
            if let Some(Answer { distance, point, normal }) = question(&placed) {
                let hit = Hit { body: record.entity, collider: record.index, distance, point, normal };
                hits.push((index.0, hit));
            }
        });
        hits.sort_by(|(i, a), (j, b)| {
            a.distance.total_cmp(&b.distance).then(i.cmp(j)).then(a.collider.cmp(&b.collider))
        });
        hits.into_iter().map(|(_, hit)| hit).collect()
    }
}
