//! The gyroscopic term, implicit, so that a thin fast rotor neither gains nor loses energy.
//!
//! Torque-free rotation in the body frame, implicit midpoint: with Π = J Ω the angular momentum and
//! s = ½ (Π₀ + Π₁),
//!
//! ```text
//!     s = Π₀ + ½ h s × J⁻¹ s ,     Ω_mid = J⁻¹ s
//! ```
//!
//! Turned by the update of (6) with Ω_mid, the body keeps |Π| and ½ Π·Ω exactly: both are quadratic, and the
//! midpoint rule keeps quadratic invariants. The explicit term gains energy, backward Euler loses it.

use crate::constraint::BodyView;
use glam::{DMat3, DVec3};

/// The world angular velocity of the coming step for a body on which no torque acts.
/// `momentum` is its angular momentum in world axes.
pub fn mid_velocity(view: &BodyView, momentum: DVec3, dt: f64) -> DVec3 {
    let omega = view.angular_velocity;
    let scale = momentum.length();
    // Below round-off the term changes nothing (balls, boxes at rest, spin about a principal axis).
    if dt.abs() * momentum.cross(omega).length() <= f64::EPSILON * scale {
        return omega;
    }
    let to_body = view.rotation.conjugate();
    let inverse = view.inertia.inverse();
    match midpoint(inverse, to_body * momentum, dt, scale) {
        Some(s) => view.rotation * (inverse * s),
        None => omega,
    }
}

/// The angular velocity that carries an angular momentum at the orientation of `view`, with no more than `energy`
/// (twice the kinetic energy): where a body turns too fast for the midpoint to settle, no energy may come of it.
pub fn carried(view: &BodyView, momentum: DVec3, energy: f64) -> DVec3 {
    let omega = super::gather::world_inertia(view).inverse() * momentum;
    let carried = momentum.dot(omega);
    // What the midpoint keeps only to round-off must not be scaled: 1e-9 is far above it and far below a mistake.
    if carried > energy * (1.0 + 1e-9) && carried > 0.0 {
        omega * (energy.max(0.0) / carried).sqrt()
    } else {
        omega
    }
}

/// Newton on s − Π₀ − ½ h s × J⁻¹ s = 0; `None` where it does not settle (more than about a turn per step).
fn midpoint(inverse: DMat3, start: DVec3, dt: f64, scale: f64) -> Option<DVec3> {
    let half = 0.5 * dt;
    let mut s = start;
    for _ in 0..12 {
        let u = inverse * s;
        let residual = s - start - s.cross(u) * half;
        if residual.length() <= 2.0 * f64::EPSILON * scale {
            return Some(s);
        }
        let jacobian = DMat3::IDENTITY - (skew(s) * inverse - skew(u)) * half;
        let change = jacobian.inverse() * residual;
        if !change.is_finite() {
            return None;
        }
        s -= change;
    }
    let u = inverse * s;
    let residual = s - start - s.cross(u) * half;
    (residual.length() <= 1e-12 * scale).then_some(s)
}

/// The matrix of `v ×`.
fn skew(v: DVec3) -> DMat3 {
    DMat3::from_cols(DVec3::new(0.0, v.z, -v.y), DVec3::new(-v.z, 0.0, v.x), DVec3::new(v.y, -v.x, 0.0))
}
