//! Balls against balls and boxes, in closed form: the pairs that heaps are made of.

use super::{ContactPoint, Placed};
use crate::geometry::shape::Shape;
use glam::DVec3;

/// The one point at which a ball and a ball or box are nearest. `None` for other pairs, `Some(None)` where there is no point
/// (poses that are not finite).
pub(super) fn touch(a: &Placed, b: &Placed) -> Option<Option<ContactPoint>> {
    let apart = b.position - a.position;
    let point = match (a.shape.shape(), b.shape.shape()) {
        (Shape::Sphere { radius: ra }, Shape::Sphere { radius: rb }) => {
            let normal = apart.try_normalize().unwrap_or(DVec3::Z);
            let separation = normal.dot(apart) - ra - rb;
            ContactPoint { offset: normal * (ra + 0.5 * separation), normal, separation }
        }
        (Shape::Box { half_extents }, Shape::Sphere { radius }) => {
            let (surface, out, depth) = box_and_point(*half_extents, a.rotation.inverse() * apart);
            let normal = a.rotation * out;
            let separation = depth - radius;
            let offset = a.rotation * surface + normal * (0.5 * separation);
            ContactPoint { offset, normal, separation }
        }
        (Shape::Sphere { radius }, Shape::Box { half_extents }) => {
            let (_, out, depth) = box_and_point(*half_extents, b.rotation.inverse() * -apart);
            let normal = -(b.rotation * out);
            let separation = depth - radius;
            ContactPoint { offset: normal * (radius + 0.5 * separation), normal, separation }
        }
        _ => return None,
    };
    Some(point.separation.is_finite().then_some(point))
}

/// The point of a box's surface nearest to `p`, the outward direction there, and the distance of `p` (negative inside).
fn box_and_point(half: DVec3, p: DVec3) -> (DVec3, DVec3, f64) {
    let inside = p.clamp(-half, half);
    let away = p - inside;
    let distance = away.length();
    if distance > 0.0 {
        return (inside, away / distance, distance);
    }
    // Within the box, or on it: out through the nearest face.
    let room = half - p.abs();
    let axis = if room.x <= room.y && room.x <= room.z { 0 } else { 1 + usize::from(room.z < room.y) };
    let (mut surface, mut out) = (p, DVec3::ZERO);
    out[axis] = if p[axis] < 0.0 { -1.0 } else { 1.0 };
    surface[axis] = out[axis] * half[axis];
    (surface, out, -room[axis])
}

#[cfg(test)]
mod tests {
    use super::super::{NarrowScratch, collide_parts, part, relative};
    use super::*;
    use crate::geometry::ShapeHandle;
    use glam::DQuat;

    /// The closed forms give what the general way gives.
    #[test]
    fn balls_and_boxes_touch_where_the_general_way_says() {
        let mut seed = 5u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        };
        let mut checked = 0;
        for i in 0..3000 {
            let ball = ShapeHandle::sphere(0.3 + 0.1 * random());
            let other = match i % 2 {
                0 => ShapeHandle::sphere(0.5 + 0.2 * random()),
                _ => ShapeHandle::cuboid(DVec3::new(0.5 + 0.2 * random(), 0.6, 0.4 + 0.1 * random())),
            };
            let turn = DQuat::from_scaled_axis(DVec3::new(random(), random(), random()) * 3.0);
            let at = DVec3::new(random(), random(), random());
            let (x, y) = (
                Placed { shape: &other, position: DVec3::ZERO, rotation: turn },
                Placed { shape: &ball, position: at, rotation: DQuat::IDENTITY },
            );
            for (a, b) in [(x, y), (y, x)] {
                let quick = touch(&a, &b).flatten().expect("a point");
                let (sa, sb) = (&**a.shape.parry(), &**b.shape.parry());
                let (pa, pb) = (part::convex(sa).expect("convex"), part::convex(sb).expect("convex"));
                let mut out = Vec::new();
                collide_parts(&pa, &pb, &relative(&a, &b), 10.0, &mut NarrowScratch::default(), &mut out);
                let general = out[0];
                // Rounding of two rotations on shapes of a metre.
                assert!((general.separation - quick.separation).abs() < 1e-12, "{i}");
                assert!((a.rotation * general.normal - quick.normal).length() < 1e-9, "{i}");
                assert!((a.rotation * general.offset - quick.offset).length() < 1e-9, "{i}");
                checked += 1;
            }
        }
        assert_eq!(checked, 6000);
    }
}
