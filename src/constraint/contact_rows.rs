//! The rows of a contact point: a normal that pushes, two tangents that rub, and, where asked for, spin and roll.
//!
//! Symbols: n normal from a to b, φ separation, λₙ normal impulse, μ friction. What bounces is not for the rows.
//!
//! ```text
//!     normal     n·v_rel + C λₙ + d ≥ 0 ⟂ λₙ ≥ 0        d = φ/h apart, max(β φ/h, −v_max) overlapping
//!     tangents   |λ_t| ≤ μ λₙ                            (000 eq. 11, a box)
//! ```
//!
//! The bound of a tangent comes from the normal impulses of the last steps (their running mean), zero for a point that is
//! new; the solve stage looks again once the step's own λₙ is known (000 §8.2) and the report says how far λₙ had moved. A box is a cone only
//! along its axes, so the first tangent is laid along sliding, or along the friction that held in the last step.

use super::{BodyView, Twist};
use crate::components::{ManifoldPoint, RowImpulses, Surface};
use crate::solver::RowKind;
use glam::DVec3;

/// Rows that a point may have; row `r` of the point with key `k` has the key `STRIDE k + r`.
pub const STRIDE: u32 = 8;

/// An approach (m/s) that is slower than that is no blow; what presses may be far away.
pub const SLOW: f64 = 0.01;

/// Numbers that all contacts of a step share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactRules {
    /// The step (s).
    pub dt: f64,
    /// Share of a penetration recovered in a step.
    pub correction: f64,
    /// Greatest velocity of recovery (m/s).
    pub max_recovery_speed: f64,
    /// Share by which the running mean of normal impulses follows the last step's; 1 is 000 eq. 11 to the letter.
    pub load_follow: f64,
}

/// One row of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactRow {
    /// On a and on b.
    pub jacobian: [Twist; 2],
    /// φ.
    pub violation: f64,
    /// C.
    pub compliance: f64,
    /// d.
    pub d: f64,
    /// Greatest impulse; the least is zero for normals and its opposite for friction.
    pub hi: f64,
    /// Bound per normal impulse, for friction rows.
    pub friction: f64,
    /// Which row of the contact.
    pub key: u32,
    /// Normal or friction.
    pub kind: RowKind,
    /// Warm start.
    pub lambda: f64,
}

/// Velocity of b over a at a point.
pub fn relative_velocity(point: &ManifoldPoint, [a, b]: [&BodyView; 2]) -> DVec3 {
    let at = |v: &BodyView, arm: DVec3| v.linear_velocity + v.angular_velocity.cross(arm);
    at(b, point.arm_b) - at(a, point.arm_a)
}

/// Writes the rows of one point with `push`, the normal first. The point remembers its tangent. `d` is that of the normal
/// row (see [`normal_offset`]).
pub fn write_point(
    point: &mut ManifoldPoint,
    surface: &Surface,
    views: [&BodyView; 2],
    d: f64,
    last: &RowImpulses,
    rules: &ContactRules,
    push: &mut dyn FnMut(ContactRow),
) {
    let n = point.normal;
    let relative = relative_velocity(point, views);
    let (first, is_new, [arm_a, arm_b]) = (STRIDE * point.key, point.age == 0, [point.arm_a, point.arm_b]);
    let key = |row: u32| first + row;
    let impulse = |row: u32| if is_new { 0.0 } else { last.lambda(first + row) };
    let pushed = impulse(0).max(0.0);
    // What stopped an approach is not there again in the next step. (A wedged body whose friction follows the last step alone
    // sticks and slips by turns for ever; the mean settles.)
    let carried = pushed * point.resting_fraction;
    let fresh = point.age <= 1 || point.load == 0.0;
    point.load = if fresh { carried } else { point.load + rules.load_follow * (carried - point.load) };
    let load = point.load;
    let on = |twists: [Twist; 2]| [views[0].acting(twists[0]), views[1].acting(twists[1])];
    let along = |dir: DVec3| on([-Twist::at(arm_a, dir), Twist::at(arm_b, dir)]);
    push(ContactRow {
        jacobian: along(n),
        violation: point.separation,
        compliance: surface.compliance,
        d,
        hi: f64::INFINITY,
        friction: 0.0,
        key: key(0),
        kind: RowKind::Normal,
        lambda: pushed,
    });
    let rub = ContactRow {
        jacobian: [Twist::ZERO; 2],
        violation: 0.0,
        compliance: surface.friction_compliance,
        d: 0.0,
        hi: 0.0,
        friction: 0.0,
        key: 0,
        kind: RowKind::Friction,
        lambda: 0.0,
    };
    let mut rub = |jacobian: [Twist; 2], d: f64, friction: f64, row: u32, lambda: f64| {
        push(ContactRow { jacobian, d, hi: friction * load, friction, key: key(row), lambda, ..rub });
    };
    let held = held_back(point, impulse(1), impulse(2));
    let t = first_tangent(point, relative - surface.velocity, held, surface.friction * load);
    let s = n.cross(t);
    if surface.friction > 0.0 {
        rub(along(t), -surface.velocity.dot(t), surface.friction, 1, held.dot(t));
        rub(along(s), -surface.velocity.dot(s), surface.friction, 2, held.dot(s));
    }
    let about = |dir: DVec3| on([Twist::angular(-dir), Twist::angular(dir)]);
    if surface.torsion_radius > 0.0 && surface.friction > 0.0 {
        rub(about(n), 0.0, surface.friction * surface.torsion_radius, 3, impulse(3));
    }
    if surface.rolling_radius > 0.0 {
        rub(about(t), 0.0, surface.rolling_radius, 4, impulse(4));
        rub(about(s), 0.0, surface.rolling_radius, 5, impulse(5));
    }
    point.tangent = t;
}

/// d of the normal row of a point.
pub fn normal_offset(separation: f64, rules: &ContactRules) -> f64 {
    if separation > 0.0 {
        separation / rules.dt
    } else {
        (rules.correction * separation / rules.dt).max(-rules.max_recovery_speed)
    }
}

/// Share of the coming normal impulse that is there because forces press the surfaces together, and not because they approach.
/// `speed` is the velocity of b over a along the normal, `gain` what the step's forces add to it (m/s).
pub fn resting_fraction_of(separation: f64, speed: f64, gain: f64, dt: f64) -> f64 {
    let approach = (-speed - separation.max(0.0) / dt).max(0.0);
    let presses = gain.abs() + SLOW;
    presses / (presses + approach)
}

/// Share of the coming normal impulse that belongs to a blow: it stops the approach.
pub fn impacting_fraction_of(separation: f64, speed: f64, gain: f64, dt: f64) -> f64 {
    let blow = (-speed - separation.max(0.0) / dt).max(0.0);
    blow / (gain.abs() + SLOW + blow)
}

/// Does a new point slide so fast that friction cannot hold it in this step? Then the impulse of sticking would tell nothing
/// about the normal impulse: it tips the body over.
pub fn slides(point: &ManifoldPoint, surface: &Surface, views: [&BodyView; 2], closing: f64) -> bool {
    let over = relative_velocity(point, views) - surface.velocity;
    let slip = over - point.normal * point.normal.dot(over);
    let held = (surface.friction * closing).max(0.01);
    slip.length_squared() > held * held
}

/// The friction impulse of the last step, as a vector in the tangent plane of this one.
fn held_back(point: &ManifoldPoint, first: f64, second: f64) -> DVec3 {
    if point.tangent == DVec3::ZERO {
        return DVec3::ZERO;
    }
    let old = point.tangent * first + point.normal.cross(point.tangent) * second;
    old - point.normal * point.normal.dot(old)
}

fn first_tangent(point: &ManifoldPoint, relative: DVec3, held: DVec3, bound: f64) -> DVec3 {
    let n = point.normal;
    let slide = relative - n * n.dot(relative);
    // 0.1 mm/s: well above what a held contact creeps, well below what an eye calls sliding.
    if slide.length_squared() > 1e-8 {
        return slide.normalize();
    }
    if held.length() > 1e-3 * bound && held != DVec3::ZERO {
        return held.normalize();
    }
    let old = point.tangent - n * n.dot(point.tangent);
    old.try_normalize().unwrap_or_else(|| n.any_orthonormal_vector())
}
