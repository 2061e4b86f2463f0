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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Shape, ShapeHandle};
    use glam::DQuat;

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
