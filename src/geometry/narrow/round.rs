//! Balls against balls and boxes, in closed form: the pairs that heaps are made of.

use super::{Approach, ContactPoint, Posed, Rides, Turns};
use crate::geometry::shape::Form;
use glam::DVec3;

/// The one point at which a ball and a ball or box are nearer than `reach`; if there is none, how far apart they are at least
/// (NaN for bad poses, −∞ for other shapes).
#[inline(always)]
pub(super) fn touch(
    (fa, a): (Form, &Posed),
    (fb, b): (Form, &Posed),
    reach: f64,
) -> Result<ContactPoint, f64> {
    let apart = b.position - a.position;
    let (offset, normal, separation) = match (fa, fb) {
        (Form::Ball(ra), Form::Ball(rb)) => {
            let (far, square) = (ra + rb + reach, apart.length_squared());
            if square > far * far {
                return Err(square.sqrt() - ra - rb);
            }
            let normal = apart.try_normalize().unwrap_or(DVec3::Z);
            let separation = normal.dot(apart) - ra - rb;
            (normal * (ra + 0.5 * separation), normal, separation)
        }
        (Form::Box(half), Form::Ball(radius)) => {
            let (out, depth) = box_and_point(half, a.rotation.inverse() * apart, radius + reach)
                .map_err(|far| far - radius)?;
            let (normal, separation) = (a.rotation * out, depth - radius);
            (apart - normal * (radius + 0.5 * separation), normal, separation)
        }
        (Form::Ball(radius), Form::Box(half)) => {
            let (out, depth) = box_and_point(half, b.rotation.inverse() * -apart, radius + reach)
                .map_err(|far| far - radius)?;
            let (normal, separation) = (-(b.rotation * out), depth - radius);
            (normal * (radius + 0.5 * separation), normal, separation)
        }
        _ => return Err(f64::NEG_INFINITY),
    };
    let point = ContactPoint { offset, normal, separation, rides: Rides::Between, turns: Turns::Neither };
    let sound = separation <= reach && offset.is_finite() && normal.is_finite();
    if sound { Ok(point) } else { Err(separation) }
}

/// The same for what moves: a ball that passes by is not stopped.
#[inline(always)]
pub(super) fn touch_moving(
    a: (Form, &Posed),
    b: (Form, &Posed),
    approach: &Approach,
) -> Result<ContactPoint, f64> {
    let point = touch(a, b, approach.reach)?;
    if !approach.closes(point.separation, point.normal) {
        return Ok(point);
    }
    passed(a, b, approach).map_or(Ok(point), Ok)
}

/// The point along the direction in which the two pass each other, if they do.
#[inline(never)]
fn passed(a: (Form, &Posed), b: (Form, &Posed), approach: &Approach) -> Option<ContactPoint> {
    let then = Posed { position: b.1.position + approach.motion, ..*b.1 };
    let normal = touch(a, (b.0, &then), f64::MAX).ok()?.normal;
    let apart = b.1.position - a.1.position;
    let span = |(form, at): (Form, &Posed)| match form {
        Form::Box(half) => half.dot((at.rotation.inverse() * normal).abs()),
        Form::Ball(radius) => radius,
        Form::Other => f64::INFINITY,
    };
    let separation = normal.dot(apart) - span(a) - span(b);
    if !approach.passes(separation, normal) || separation > approach.reach {
        return None;
    }
    let offset = match (a.0, b.0) {
        (Form::Ball(radius), _) => normal * (radius + 0.5 * separation),
        (_, Form::Ball(radius)) => apart - normal * (radius + 0.5 * separation),
        _ => return None,
    };
    Some(ContactPoint { offset, normal, separation, rides: Rides::Between, turns: Turns::Neither })
}

/// The outward direction of a box's surface at the point nearest to `p`, and the distance of `p` (negative inside);
/// its distance alone beyond `reach`.
#[inline]
fn box_and_point(half: DVec3, p: DVec3, reach: f64) -> Result<(DVec3, f64), f64> {
    let inside = p.clamp(-half, half);
    let away = p - inside;
    let square = away.length_squared();
    if square > reach * reach {
        return Err(square.sqrt());
    }
    if square > 0.0 {
        let distance = square.sqrt();
        return Ok((away / distance, distance));
    }
    // Within the box, or on it: out through the nearest face.
    let room = half - p.abs();
    let axis = if room.x <= room.y && room.x <= room.z { 0 } else { 1 + usize::from(room.z < room.y) };
    let mut out = DVec3::ZERO;
    out[axis] = if p[axis] < 0.0 { -1.0 } else { 1.0 };
    Ok((out, -room[axis]))
}

#[cfg(test)]
mod tests {
    use super::super::{NarrowScratch, Placed, collide_parts, part, relative};
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
                let quick =
                    touch((a.shape.form(), &a.pose()), (b.shape.form(), &b.pose()), 10.0).expect("a point");
                let (sa, sb) = (&**a.shape.parry(), &**b.shape.parry());
                let (pa, pb) = (part::convex(sa).expect("convex"), part::convex(sb).expect("convex"));
                let mut out = Vec::new();
                let ten = Approach::still(10.0);
                collide_parts(&pa, &pb, &relative(&a, &b), &ten, &mut NarrowScratch::default(), &mut out);
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
