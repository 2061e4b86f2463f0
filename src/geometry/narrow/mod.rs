//! Narrow phase: where two placed shapes touch, or are about to.
//!
//! [`collide`] is a pure function of two shapes and their poses: it keeps no history, so a restored snapshot, another
//! thread or another order of pairs gives the same bits. For two convex parts it finds the direction of least distance
//! (closed forms, separating axes, or GJK/EPA), lays the facing features over each other along that direction, and
//! takes the corners of the overlap. Meshes, height fields and compounds are taken apart into convex parts first.

mod boxes;
mod clip;
mod direction;
mod feature;
mod part;
mod parting;
mod passing;
mod plane;
mod reduce;
mod round;

use super::shape::{Form, ShapeHandle};
use clip::Touch;
use glam::{DQuat, DVec3};
use parry3d_f64::bounding_volume::BoundingVolume;
use parry3d_f64::math::Pose;
use part::Part;
pub use passing::Approach;

/// A shape in the world.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    /// Which shape.
    pub shape: &'a ShapeHandle,
    /// Where its origin is.
    pub position: DVec3,
    /// How it is turned.
    pub rotation: DQuat,
}

impl Placed<'_> {
    /// Its place without the shape.
    pub fn pose(&self) -> Posed {
        Posed { position: self.position, rotation: self.rotation }
    }
}

/// A place in the world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posed {
    /// Where the origin is.
    pub position: DVec3,
    /// How it is turned.
    pub rotation: DQuat,
}

/// One place where two shapes touch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactPoint {
    /// From the origin of the first shape to the point half way between the two surfaces (m, world axes).
    ///
    /// Relative on purpose: a million metres from the origin it is as exact as at the origin.
    pub offset: DVec3,
    /// Unit normal from the first shape to the second (world axes).
    pub normal: DVec3,
    /// Distance between the surfaces along the normal (m); negative where they overlap.
    pub separation: f64,
    /// Where it stays when the shapes move a little.
    pub rides: Rides,
    /// Whose face the normal is that of.
    pub turns: Turns,
}

/// With which of two shapes a normal turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Turns {
    /// It is that of a face of the first.
    A,
    /// It is that of a face of the second.
    B,
    /// It is no face's: edges cross, or a surface is round.
    #[default]
    Neither,
}

/// With which of two shapes a point moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rides {
    /// A corner of the first.
    A,
    /// A corner of the second.
    B,
    /// Neither: edges cross, or a round surface rolls.
    #[default]
    Between,
}

/// Buffers of the narrow phase, one a thread; what is in them never reaches a result.
#[derive(Default)]
pub struct NarrowScratch {
    touches: Vec<Touch>,
    kept: Vec<ContactPoint>,
    /// Points that most likely belong to a neighbouring triangle.
    doubtful: Vec<ContactPoint>,
}

/// Writes the points at which `a` and `b` are closer than `reach` to `out`: at most four for each direction of the
/// normal, in a fixed order. Non-finite poses and pairs that cannot meet (two half-spaces) give none.
pub fn collide(a: &Placed, b: &Placed, reach: f64, scratch: &mut NarrowScratch, out: &mut Vec<ContactPoint>) {
    collide_moving(a, b, &Approach::still(reach), scratch, out);
}

/// The same for shapes that move: what they pass by is not met. See [`Approach`].
pub fn collide_moving(
    a: &Placed,
    b: &Placed,
    approach: &Approach,
    scratch: &mut NarrowScratch,
    out: &mut Vec<ContactPoint>,
) {
    out.clear();
    let reach = approach.reach;
    if !reach.is_finite() || !approach.motion.is_finite() {
        return;
    }
    let forms = [(a.shape.form(), &a.pose()), (b.shape.form(), &b.pose())];
    if collide_forms(forms[0], forms[1], approach, scratch, out).is_some() {
        return;
    }
    let approach = &approach.seen_from(a.rotation);
    let b_in_a = relative(a, b);
    if !b_in_a.is_finite() {
        return;
    }
    let (sa, sb) = (&**a.shape.parry(), &**b.shape.parry());
    if let (Some(pa), Some(pb)) = (part::convex(sa), part::convex(sb)) {
        collide_parts(&pa, &pb, &b_in_a, approach, scratch, out);
    } else {
        scratch.doubtful.clear();
        let near_b = sa.compute_aabb(&b_in_a.inverse()).loosened(reach);
        let near_a = sb.compute_aabb(&b_in_a).loosened(reach);
        part::each_part(sa, &near_a, &mut |pa, pose_a| {
            part::each_part(sb, &near_b, &mut |pb, pose_b| {
                let from = (out.len(), scratch.doubtful.len());
                let b_part = pose_a.inv_mul(&(b_in_a * *pose_b));
                let approach = approach.seen_from(pose_a.rotation);
                collide_parts(&pa, &pb, &b_part, &approach, scratch, out);
                for point in out[from.0..].iter_mut().chain(&mut scratch.doubtful[from.1..]) {
                    point.offset = pose_a.transform_point(point.offset);
                    point.normal = pose_a.rotation * point.normal;
                }
            });
        });
        keep_orphans(&scratch.doubtful, out);
    }
    finish(a.rotation, scratch, out);
}

/// The same for shapes that closed forms know; `None` if these two are not of that kind. Where no point is found, returns how far
/// apart they are at least (−∞ if that is not known).
pub fn collide_forms(
    (form_a, a): (Form, &Posed),
    (form_b, b): (Form, &Posed),
    approach: &Approach,
    scratch: &mut NarrowScratch,
    out: &mut Vec<ContactPoint>,
) -> Option<f64> {
    out.clear();
    match (form_a, form_b) {
        (Form::Other, _) | (_, Form::Other) => None,
        (Form::Box(ea), Form::Box(eb)) => {
            let back = a.rotation.inverse();
            let b_in_a = Pose::from_parts(back * (b.position - a.position), back * b.rotation);
            if !b_in_a.is_finite() {
                return Some(f64::NEG_INFINITY);
            }
            let gap = boxes::touch(ea, eb, &b_in_a, &approach.seen_from(a.rotation), scratch, out);
            finish(a.rotation, scratch, out);
            Some(gap)
        }
        _ => Some(match round::touch_moving((form_a, a), (form_b, b), approach) {
            Ok(point) => {
                out.push(point);
                f64::NEG_INFINITY
            }
            Err(gap) => gap,
        }),
    }
}

/// Are these a ball and a ball or box?
#[inline]
pub fn is_ball_pair(a: Form, b: Form) -> bool {
    let known = !matches!(a, Form::Other) && !matches!(b, Form::Other);
    known && (matches!(a, Form::Ball(_)) || matches!(b, Form::Ball(_)))
}

/// The one point of a ball and a ball or box, or how far apart they are at least (−∞ for other pairs).
#[inline(always)]
pub fn collide_ball(a: (Form, &Posed), b: (Form, &Posed), approach: &Approach) -> Result<ContactPoint, f64> {
    round::touch_moving(a, b, approach)
}

/// Leaves the points that say as much as all, in world axes.
fn finish(rotation: DQuat, scratch: &mut NarrowScratch, out: &mut Vec<ContactPoint>) {
    if out.is_empty() {
        return;
    }
    out.retain(|p| p.offset.is_finite() && p.normal.is_finite() && p.separation.is_finite());
    reduce::reduce(out, &mut scratch.kept);
    for point in out {
        point.offset = rotation * point.offset;
        point.normal = rotation * point.normal;
    }
}

/// Doubtful points count where the neighbours that they were thought to belong to have none.
fn keep_orphans(doubtful: &[ContactPoint], out: &mut Vec<ContactPoint>) {
    let sure = out.len();
    for point in doubtful {
        let has_owner = out[..sure].iter().any(|p| {
            let near = (p.offset - point.offset).length_squared() < 1e-6 * p.offset.length_squared();
            near || p.normal.dot(point.normal) > 0.99
        });
        if !has_owner {
            out.push(*point);
        }
    }
}

/// The pose of `b` in the frame of `a`; differences first, so that places far from the origin lose nothing.
pub(super) fn relative(a: &Placed, b: &Placed) -> Pose {
    let back = a.rotation.inverse();
    Pose::from_parts(back * (b.position - a.position), back * b.rotation)
}

/// Two convex parts; points in the frame of `a`.
fn collide_parts(
    a: &Part,
    b: &Part,
    b_in_a: &Pose,
    approach: &Approach,
    scratch: &mut NarrowScratch,
    out: &mut Vec<ContactPoint>,
) {
    let reach = approach.reach;
    match (a, b) {
        (Part::HalfSpace(_), Part::HalfSpace(_)) => {}
        (Part::HalfSpace(up), _) => {
            let up_b = b_in_a.rotation.inverse() * *up;
            plane::low_points(b, up_b, &mut |p| {
                let p = b_in_a.transform_point(p);
                push(
                    out,
                    Touch { on_a: p - *up * up.dot(p), on_b: p, rides: Rides::B },
                    *up,
                    Turns::A,
                    reach,
                );
            });
        }
        (_, Part::HalfSpace(up)) => {
            let up_a = b_in_a.rotation * *up;
            plane::low_points(a, up_a, &mut |p| {
                let height = up_a.dot(p - b_in_a.translation);
                push(
                    out,
                    Touch { on_a: p, on_b: p - up_a * height, rides: Rides::A },
                    -up_a,
                    Turns::B,
                    reach,
                );
            });
        }
        (Part::Box(x), Part::Box(y)) => {
            boxes::touch(x.half_extents, y.half_extents, b_in_a, approach, scratch, out);
        }
        _ => collide_convex(a, b, b_in_a, approach, scratch, out),
    }
}

fn push(out: &mut Vec<ContactPoint>, touch: Touch, normal: DVec3, turns: Turns, reach: f64) {
    let separation = (touch.on_b - touch.on_a).dot(normal);
    if separation <= reach {
        let offset = 0.5 * (touch.on_a + touch.on_b);
        out.push(ContactPoint { offset, normal, separation, rides: touch.rides, turns });
    }
}

fn collide_convex(
    a: &Part,
    b: &Part,
    b_in_a: &Pose,
    approach: &Approach,
    scratch: &mut NarrowScratch,
    out: &mut Vec<ContactPoint>,
) {
    let reach = approach.reach;
    let Some(nearest) = direction::nearest(a, b, b_in_a, reach) else { return };
    let nearest = passing::passed(a, b, b_in_a, approach, nearest.normal).unwrap_or(nearest);
    let found = nearest.normal;
    let back = b_in_a.rotation.inverse();
    let mut normal = found;
    if !a.allow_normal(&mut normal) {
        return;
    }
    let mut normal_b = back * -normal;
    if !b.allow_normal(&mut normal_b) {
        return;
    }
    if matches!(b, Part::Triangle { rim: Some(_), .. }) {
        normal = b_in_a.rotation * -normal_b;
    }
    // Two meshes must both agree; a normal that one of them turns belongs to a neighbour, which is looked at too.
    let both = matches!((a, b), (Part::Triangle { .. }, Part::Triangle { .. }));
    if both && normal.dot(found) < 0.99 {
        return;
    }
    // The side of a mesh that stands on its lower edge: least deep is the way up, which belongs to the bottom; along its own
    // normal the partner is as deep as it is wide. What is turned by about a right angle is another meeting altogether.
    // (Turned right round is what lies behind a surface that has only one side: that stays.)
    if normal.dot(found).abs() < 0.5 {
        return;
    }
    // A normal that the neighbours turned belongs to one of them; so do the nearest points, which lie on the rim, beside
    // the place that the new normal points at. By more than 8°, the whole meeting does.
    let (turned, far_off) = (normal.dot(found) < 1.0 - 1e-12, normal.dot(found) < 0.99);
    let touch = nearest.touch.filter(|_| !far_off);
    let (ra, rb) = (a.radius(), b.radius());
    scratch.touches.clear();
    let (mut sure, mut turns) = (0, Turns::Neither);
    if matches!(a, Part::Ball(_)) || matches!(b, Part::Ball(_)) {
        // A ball touches at one point, whatever its partner.
        scratch.touches.extend(touch);
    } else {
        let fa = feature::feature_towards(a, normal);
        let fb = feature::feature_towards(b, back * -normal).moved(b_in_a);
        (normal, turns) = snap(normal, fa.normal, fb.normal);
        let size = extent(fa.corners()).max(extent(fb.corners()));
        let parallel = (0.1 * (ra + rb)).max(1e-3 * size);
        clip::overlap(&fa, &fb, normal, 1e-9 * size, parallel, &mut scratch.touches);
        // The nearest points of flat shapes are anywhere on the face: they count only where the corners miss the depth.
        let along = |t: &Touch| (t.on_b - t.on_a).dot(normal);
        sure = scratch.touches.len();
        let deepest = scratch.touches.iter().map(along).fold(f64::INFINITY, f64::min);
        let few = || scratch.touches.iter().filter(|t| along(t) < deepest + 1e-2 * size).count() <= 2;
        let round = (a.is_round() || b.is_round()) && few();
        match touch.filter(|t| along(t) < deepest) {
            Some(touch) if along(&touch) < deepest - 1e-4 * size => scratch.touches.push(touch),
            // The rim of a round surface beside a corner or an edge: their nearest points are what the features mean.
            Some(touch) if round && along(&touch) < deepest - 1e-10 * size => {
                let at = scratch.touches.iter_mut().find(|t| along(t) == deepest);
                *at.expect("the deepest is one of them") = touch;
            }
            _ => {}
        }
    }
    let NarrowScratch { touches, doubtful, .. } = scratch;
    for (i, touch) in touches.iter().enumerate() {
        let grown = Touch { on_a: touch.on_a + normal * ra, on_b: touch.on_b - normal * rb, ..*touch };
        let owned = if i < sure { !far_off } else { !turned };
        push(if owned { out } else { doubtful }, grown, normal, turns, reach);
    }
}

/// Directions that differ by less than 4 mrad are the same (the cosine).
const PARALLEL: f64 = 1.0 - 8e-6;

/// A normal that differs from a face's by less than 4 mrad is the face's: GJK and EPA know the direction of
/// nearly touching surfaces only to the square root of rounding, the face knows it exactly. Also tells whose it is.
fn snap(normal: DVec3, face_a: DVec3, face_b: DVec3) -> (DVec3, Turns) {
    if face_a.dot(normal) > PARALLEL {
        (face_a, Turns::A)
    } else if -face_b.dot(normal) > PARALLEL {
        (-face_b, Turns::B)
    } else {
        (normal, Turns::Neither)
    }
}

fn extent(corners: &[DVec3]) -> f64 {
    let Some(first) = corners.first() else { return 0.0 };
    corners.iter().map(|c| (*c - *first).length()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
