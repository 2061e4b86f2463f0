//! Points of a pair that hardly moves are carried along with its bodies; the shapes are not looked at again.
//!
//! A corner on a face stays a corner on that face while the bodies move against each other by less than what separates
//! features: its separation is n·(p_b − p_a), p the places on the two surfaces and n the normal of the face, each turned with its
//! own body. That is exact for corners on faces, however the bodies tilt. What can be wrong, and by how much at most:
//!
//! | what | limit |
//! |---|---|
//! | a corner has left its face, or a place where edges cross has moved | by what the point has slipped ([`SLIPPED`], [`CROSSED`]), in depth by twice that |
//! | edges cross: the normal is off | by what the bodies have tilted against each other: [`EDGES_TILTED`] |
//! | edges cross: the separation is off | by that times what they have slipped: two thousandths of a millimetre |
//! | a corner that the reduction to four points left out is the deepest now | by half of what the far end of the body has swung: [`SWUNG`] |
//! | a corner that was too far away to be seen is met | not in this step: see [`Limits::unseen`] |
//!
//! All of it vanishes at rest. Round shapes are not carried: their points roll.
//!
//! What is carried depends on the contact entity and the poses alone, so snapshots restore it.

use super::narrow::Motion;
use crate::collision::Mover;
use crate::components::ManifoldPoint;
use crate::geometry::{Rides, Turns};
use glam::DVec3;

/// Points of one normal at most: what two convex shapes have.
pub(super) const MOST: usize = 4;
/// By how much bodies whose edges cross may have tilted against each other (rad). Spinning about the normal is seen as slip.
/// Directions that differ by less are the same to the narrow phase, too.
const EDGES_TILTED: f64 = 4e-3;
/// The same where the normal is a face's.
const TILTED: f64 = 8e-3;
/// Share of the margin by which the far end of the smaller body may have swung by tilting where there are four points: of a manifold
/// with fewer, no corner was left out that is not between them.
const SWUNG: f64 = 0.3;
/// Share of the margin by which corners may have slipped.
const SLIPPED: f64 = 0.3;
/// The same for places where edges cross.
const CROSSED: f64 = 0.1;
/// Share of the margin by which points may have come nearer, or parted.
const CLOSED: f64 = 0.4;

/// How far a pair may have moved since its shapes were last looked at.
struct Limits {
    slipped: f64,
    crossed: f64,
    closed: f64,
    /// Greatest tilt where the normal is a face's.
    tilted: f64,
    /// Twice the reach of the smaller body: no two of its points are further apart (m).
    extent: f64,
    /// What corners that were not seen (they were further away than the margin) may have come nearer, and still not be met in
    /// this step.
    unseen: f64,
}

impl Limits {
    /// `None` for a pair that is too fast to be carried.
    fn of(a: &Mover, b: &Mover, motion: &Motion, points: usize) -> Option<Limits> {
        let margin = motion.margin;
        let unseen = 0.9 * margin - (motion.way - motion.fall);
        let extent = 2.0 * a.reach.min(b.reach);
        (unseen > 0.0).then(|| Limits {
            slipped: SLIPPED * margin,
            crossed: CROSSED * margin,
            closed: CLOSED * margin,
            tilted: if points < MOST { TILTED } else { TILTED.min(SWUNG * margin / extent) },
            extent,
            unseen,
        })
    }
}

/// Moves the points of a pair along. Returns the least separation; `None`, and the points as they were, where the shapes
/// must be looked at.
pub(super) fn carry_along(
    points: &mut [ManifoldPoint],
    a: &Mover,
    b: &Mover,
    motion: &Motion,
) -> Option<f64> {
    let known = points.len() <= MOST && points.iter().all(|p| p.carried);
    let first = points.first().filter(|_| known && !a.reshaped && !b.reshaped)?;
    let limits = Limits::of(a, b, motion, points.len())?;
    // Points that are carried have one normal.
    let (by_a, by_b) = (a.turn * first.normal_a, b.turn * first.normal_b);
    let normal = if first.turns == Turns::B { by_b } else { by_a };
    let crossing = first.turns == Turns::Neither;
    let tilt = (by_a - by_b).length();
    let far = tilt * limits.extent;
    if tilt > if crossing { EDGES_TILTED.min(limits.tilted) } else { limits.tilted } || far > limits.unseen {
        return None;
    }
    let apart = b.center - a.center;
    let mut moved = [(0.0, DVec3::ZERO); MOST];
    for (point, moved) in points.iter().zip(&mut moved) {
        let (on_a, on_b) = (a.turn * point.anchor_a, b.turn * point.anchor_b);
        let gap = apart + on_b - on_a;
        let separation = normal.dot(gap);
        let slip = (gap - normal * separation).length_squared();
        let closed = (separation - point.seen).abs();
        let slipped = if crossing || point.rides == Rides::Between { limits.crossed } else { limits.slipped };
        let stays = slip <= slipped * slipped && closed <= limits.closed && closed + far <= limits.unseen;
        if !stays {
            return None;
        }
        let arm_a = match point.rides {
            Rides::A => on_a + normal * (0.5 * separation),
            Rides::B => on_a + gap - normal * (0.5 * separation),
            Rides::Between => on_a + gap * 0.5,
        };
        *moved = (separation, arm_a);
    }
    let mut nearest = f64::INFINITY;
    for (point, (separation, arm_a)) in points.iter_mut().zip(moved) {
        (point.normal, point.separation) = (normal, separation);
        (point.arm_a, point.arm_b) = (arm_a, arm_a - apart);
        (point.age, point.answered) = (point.age.saturating_add(1), false);
        nearest = nearest.min(separation);
    }
    Some(nearest)
}

#[cfg(test)]
mod tests {
    use super::super::narrow::{Times, place};
    use super::*;
    use crate::collision::PairScratch;
    use crate::components::Material;
    use crate::geometry::{Placed, Posed, Shape, ShapeHandle, collide};
    use glam::{DMat3, DQuat};

    const TIMES: Times = Times { dt: 1.0 / 60.0, fall: 0.0, margin: 5e-3 };

    struct Random(u64);

    impl Random {
        /// Between −1 and 1.
        fn one(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        }

        fn vector(&mut self) -> DVec3 {
            DVec3::new(self.one(), self.one(), self.one())
        }

        /// A box or a hull of ten points, of half a metre or so.
        fn shape(&mut self) -> ShapeHandle {
            if self.one() < 0.4 {
                return ShapeHandle::cuboid(DVec3::splat(0.3) + 0.2 * self.vector());
            }
            let points = (0..10).map(|_| 0.4 * self.vector()).collect();
            ShapeHandle::new(Shape::ConvexHull { points }).expect("ten random points have a volume")
        }
    }

    fn mover(shape: &ShapeHandle, position: DVec3, rotation: DQuat) -> Mover {
        let reach = shape.reach_from(DVec3::ZERO);
        Mover {
            form: shape.form(),
            pose: Posed { position, rotation },
            inner: (DVec3::ZERO, 0.0),
            center: position,
            turn: DMat3::from_quat(rotation),
            velocity: [DVec3::ZERO; 2],
            material: Material::default(),
            mass: 1.0,
            way: 0.0,
            reach,
            own: 0.1 * reach,
            grip: 0.1 * reach,
            fine: (0.05 * reach).min(shape.thickness()),
            size: shape.thickness(),
            span: reach,
            odometer: 0.0,
            faceted: true,
            reshaped: false,
        }
    }

    /// The points as the shapes have them.
    fn look(points: &mut Vec<ManifoldPoint>, a: (&Mover, &ShapeHandle), b: (&Mover, &ShapeHandle)) -> f64 {
        let motion = Motion::of(a.0, b.0, &TIMES);
        let mut scratch = PairScratch::default();
        motion.find(a, b, &mut scratch);
        if scratch.found.is_empty() { f64::INFINITY } else { place(points, a.0, b.0, &mut scratch, &motion) }
    }

    /// Slip and tilt since the shapes were looked at, the greatest of all points.
    fn moved(points: &[ManifoldPoint], a: &Mover, b: &Mover) -> (f64, f64) {
        points.iter().fold((0.0, 0.0), |(slip, tilt), p| {
            let gap = b.center - a.center + b.turn * p.anchor_b - a.turn * p.anchor_a;
            let across = (gap - p.normal * p.normal.dot(gap)).length();
            (f64::max(slip, across), f64::max(tilt, (a.turn * p.normal_a - b.turn * p.normal_b).length()))
        })
    }

    /// Two shapes that touch or nearly do, and where they are.
    fn meeting(random: &mut Random) -> Option<[(ShapeHandle, DVec3, DQuat); 2]> {
        let (x, y) = (random.shape(), random.shape());
        let turn = DQuat::from_scaled_axis(random.vector() * 3.0);
        // Half of them lie face on face, or nearly so.
        let tilt = if random.one() < 0.0 { 2e-3 } else { 3.0 };
        let other = turn * DQuat::from_scaled_axis(random.vector() * tilt);
        let mut at = random.vector().try_normalize()? * 1.5;
        let wanted = 1.5e-3 + 2.5e-3 * random.one();
        let mut scratch = PairScratch::default();
        for _ in 0..6 {
            let a = Placed { shape: &x, position: DVec3::ZERO, rotation: turn };
            let b = Placed { shape: &y, position: at, rotation: other };
            collide(&a, &b, 10.0, &mut scratch.narrow, &mut scratch.found);
            let nearest = scratch.found.iter().min_by(|p, q| p.separation.total_cmp(&q.separation))?;
            at += nearest.normal * (wanted - nearest.separation);
        }
        Some([(x, DVec3::ZERO, turn), (y, at, other)])
    }

    /// Random boxes and hulls, moved a little against each other: while points are carried, the depth is that of the shapes
    /// within what slipping and tilting can do to it.
    #[test]
    fn carried_points_agree_with_fresh_ones() {
        let mut random = Random(11);
        let (mut carried, mut exact) = (0, 0);
        for i in 0..6000 {
            let Some([(x, pa, qa), (y, pb, qb)]) = meeting(&mut random) else { continue };
            let a = mover(&x, pa, qa);
            let (mut points, b) = (Vec::new(), mover(&y, pb, qb));
            if !look(&mut points, (&a, &x), (&b, &y)).is_finite() || points.len() > MOST {
                continue;
            }
            let size = [0.0, 0.1, 1.0][i % 3];
            let turn = DQuat::from_scaled_axis(random.vector() * (6e-3 * size));
            let b = mover(&y, pb + random.vector() * (1e-3 * size), turn * qb);
            let motion = Motion::of(&a, &b, &TIMES);
            let mut along = points.clone();
            let Some(nearest) = carry_along(&mut along, &a, &b, &motion) else { continue };
            let mut fresh = points.clone();
            let seen = look(&mut fresh, (&a, &x), (&b, &y));
            let (slip, tilt) = moved(&points, &a, &b);
            carried += 1;
            exact += usize::from(size == 0.0);
            let extent = 2.0 * a.reach.min(b.reach);
            // Where an edge runs down over the rim of a face, slipping changes the depth there by its slope, which is less than two
            // (a steeper one meets the other body sideways); tilting lowers a corner that was left out, which lies within half
            // of the body of those that were kept.
            let bound = 2.0 * slip + 0.5 * tilt * extent + 1e-9;
            assert!((nearest - seen).abs() <= bound, "{i}: {nearest} {seen}, slip {slip}, tilt {tilt}");
            // Rounding on shapes of half a metre: without motion it is the same manifold.
            let same = |p: &ManifoldPoint, q: &ManifoldPoint| {
                (p.arm_b - q.arm_b).length() < 1e-9 && (p.normal - q.normal).length() < 1e-9
            };
            let all = along.len() == fresh.len() && along.iter().zip(&fresh).all(|(p, q)| same(p, q));
            assert!(size > 0.0 || all, "{i}: {along:?} {fresh:?}");
        }
        assert!(carried > 1500 && exact > 1000, "{carried} {exact}");
    }
}
