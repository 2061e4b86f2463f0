//! Fast bodies: when do two shapes first touch if one of them moves straight on?

use super::narrow::{Placed, relative};
use glam::DVec3;
use parry3d_f64::query::{DefaultQueryDispatcher, QueryDispatcher, ShapeCastOptions};

/// The share (0..=1) of `motion` after which `b`, moving by it relative to `a` without turning, first touches `a`.
/// `None` if it does not, or if they overlap at the start (that is the narrow phase's business).
pub fn first_touch(a: &Placed, b: &Placed, motion: DVec3) -> Option<f64> {
    let b_in_a = relative(a, b);
    let local = a.rotation.inverse() * motion;
    if !b_in_a.is_finite() || !local.is_finite() || local == DVec3::ZERO {
        return None;
    }
    let options = ShapeCastOptions {
        max_time_of_impact: 1.0,
        target_distance: 0.0,
        stop_at_penetration: false,
        compute_impact_geometry_on_penetration: false,
    };
    let (sa, sb) = (&**a.shape.parry(), &**b.shape.parry());
    let hit = DefaultQueryDispatcher.cast_shapes(&b_in_a, local, sa, sb, options).ok()??;
    hit.time_of_impact.is_finite().then(|| hit.time_of_impact.clamp(0.0, 1.0))
}

/// Does a ball that moves by `motion` relative to `a` stay apart from it for sure? The plane through the nearest point of a convex
/// shape tells, without a cast; `false` says nothing.
pub fn ball_stays_apart(a: &Placed, centre: DVec3, radius: f64, motion: DVec3) -> bool {
    let shape = &**a.shape.parry();
    if !shape.is_convex() {
        return false;
    }
    let back = a.rotation.inverse();
    let (local, motion) = (back * (centre - a.position), back * motion);
    let nearest = shape.project_local_point(local, true);
    let gap = local - nearest.point;
    let distance = gap.length();
    !nearest.is_inside && distance > radius && distance + gap.dot(motion) / distance > radius
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Shape, ShapeHandle};
    use glam::DQuat;

    #[test]
    fn balls_that_stay_apart_touch_nothing() {
        let shapes = [
            ShapeHandle::sphere(0.2),
            ShapeHandle::cuboid(DVec3::new(0.1, 0.3, 0.2)),
            ShapeHandle::new(Shape::Capsule { half_length: 0.3, radius: 0.05 }).expect("valid"),
            ShapeHandle::new(Shape::Cylinder { half_length: 0.2, radius: 0.1 }).expect("valid"),
            ShapeHandle::new(Shape::HalfSpace { normal: DVec3::Z }).expect("valid"),
        ];
        let ball = ShapeHandle::sphere(0.05);
        // A fixed sequence of numbers in −1..1.
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        };
        let (mut apart, mut touching) = (0, 0);
        for k in 0..20_000 {
            let mut vector = || DVec3::new(next(), next(), next());
            let (position, centre, motion) = (0.3 * vector(), 0.5 * vector(), 0.5 * vector());
            let rotation = DQuat::from_scaled_axis(3.0 * vector());
            let a = Placed { shape: &shapes[k % shapes.len()], position, rotation };
            let b = Placed { shape: &ball, position: centre, rotation: DQuat::IDENTITY };
            if ball_stays_apart(&a, centre, 0.05, motion) {
                apart += 1;
                // parry's casts end within some 1e-6 of the surface.
                assert!(first_touch(&a, &b, motion).is_none_or(|t| t > 1.0 - 1e-4), "{k}");
            } else {
                touching += 1;
            }
        }
        assert!(apart > 2_000 && touching > 2_000, "{apart} {touching}");
    }

    #[test]
    fn a_bullet_meets_a_thin_wall_where_the_closed_form_says() {
        let wall = ShapeHandle::cuboid(DVec3::new(0.0005, 5.0, 5.0));
        let bullets = [
            ShapeHandle::sphere(0.005),
            ShapeHandle::cuboid(DVec3::splat(0.005)),
            ShapeHandle::new(Shape::Cylinder { half_length: 0.02, radius: 0.005 }).expect("valid"),
        ];
        for bullet in &bullets {
            let a = Placed { shape: &wall, position: DVec3::ZERO, rotation: DQuat::IDENTITY };
            let b =
                Placed { shape: bullet, position: DVec3::new(-10.0, 0.3, 0.2), rotation: DQuat::IDENTITY };
            let t = first_touch(&a, &b, DVec3::X * 16.0).expect("it hits");
            // parry's directional GJK stops within about 1e-6 of the distance
            assert!((t - (10.0 - 0.0055) / 16.0).abs() < 1e-5, "{t}");
            assert_eq!(first_touch(&a, &b, DVec3::X * -16.0), None);
        }
    }
}
