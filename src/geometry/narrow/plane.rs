//! Everything against a half-space.

use super::part::Part;
use glam::DVec3;

/// Calls `f` with the points of `part` (their place, radius included, in the part's frame) that may be nearest
/// to a half-space whose outward normal is `up`, in that frame.
pub(super) fn low_points(part: &Part, up: DVec3, f: &mut dyn FnMut(DVec3)) {
    match part {
        Part::Ball(s) => f(-up * s.radius),
        Part::Box(s) => {
            for i in 0..8u32 {
                let sign = |bit: u32| if i >> bit & 1 == 0 { -1.0 } else { 1.0 };
                f(s.half_extents * DVec3::new(sign(0), sign(1), sign(2)));
            }
        }
        Part::Capsule { core, radius } => {
            f(core.a - up * *radius);
            f(core.b - up * *radius);
        }
        Part::Cylinder(s) => {
            rim(s.radius, s.half_height, up, f);
            rim(s.radius, -s.half_height, up, f);
        }
        Part::Cone(s) => {
            f(DVec3::Y * s.half_height);
            rim(s.radius, -s.half_height, up, f);
        }
        Part::Hull(s) => s.points().iter().for_each(|p| f(*p)),
        Part::Triangle { triangle, .. } => [triangle.a, triangle.b, triangle.c].into_iter().for_each(f),
        Part::HalfSpace(_) => {}
    }
}

/// The lowest point of a circle around y and, where the circle lies nearly flat, corners fixed in the body.
fn rim(radius: f64, y: f64, up: DVec3, f: &mut dyn FnMut(DVec3)) {
    let down = DVec3::new(-up.x, 0.0, -up.z);
    let tilt = down.length();
    // 1 mrad: below it the corners miss the lowest point by less than 4e-5 of the radius, and it wanders with rounding.
    if tilt > 1e-3 {
        f(down * (radius / tilt) + DVec3::Y * y);
    }
    // 0.2 rad: a rim that stands steeper touches at one point only.
    if tilt < 0.2 {
        const H: f64 = std::f64::consts::FRAC_1_SQRT_2;
        for (c, s) in [(1.0, 0.0), (H, H), (0.0, 1.0), (-H, H), (-1.0, 0.0), (-H, -H), (0.0, -1.0), (H, -H)] {
            f(DVec3::new(c * radius, y, s * radius));
        }
    }
}
