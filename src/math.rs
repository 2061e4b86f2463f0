//! Functions beyond the arithmetic of IEEE 754, the same bits on every platform.
//!
//! Addition, multiplication, division, square root and rounding are exact to the last bit by the standard; `f64::sin` and its like are
//! whatever the platform's C library makes of them, and differ in it. So all that a step does goes through the crate `libm`,
//! which is plain arithmetic, and `tests/layering.rs` finds what does not. glam's rotations by an angle come through here too: its own feature
//! `libm`, and parry's `enhanced-determinism`, would take the wide registers from all the vectors of a program.

use glam::{DQuat, DVec3};

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($x:ident),+) = $libm:ident;)+) => {
        $($(#[$doc])* #[inline] #[must_use] pub fn $name($($x: f64),+) -> f64 { libm::$libm($($x),+) })+
    };
}

functions! {
    /// The sine of an angle (rad).
    sin(x) = sin;
    /// The cosine of an angle (rad).
    cos(x) = cos;
    /// The tangent of an angle (rad).
    tan(x) = tan;
    /// The angle whose sine is x, within a quarter turn of zero.
    asin(x) = asin;
    /// The angle whose cosine is x, from zero to half a turn.
    acos(x) = acos;
    /// The angle of the point (x, y), within half a turn of zero.
    atan2(y, x) = atan2;
    /// The hyperbolic tangent.
    tanh(x) = tanh;
    /// eˣ.
    exp(x) = exp;
    /// xʸ.
    pow(x, y) = pow;
    /// The number whose cube is x.
    cbrt(x) = cbrt;
    /// √(x² + y²) without overflow.
    hypot(x, y) = hypot;
}

/// Sine and cosine of an angle (rad).
#[inline]
#[must_use]
pub fn sin_cos(x: f64) -> (f64, f64) {
    libm::sincos(x)
}

/// x³, in this order: what `powi` makes of it is left to the compiler.
#[inline]
#[must_use]
pub fn cube(x: f64) -> f64 {
    x * x * x
}

/// The angle between two vectors of any length, exact for small ones too; zero where one of them vanishes.
#[must_use]
pub fn angle_between(a: DVec3, b: DVec3) -> f64 {
    atan2(a.cross(b).length(), a.dot(b))
}

/// The rotation about a unit vector by an angle (rad).
#[must_use]
pub fn rotation(axis: DVec3, angle: f64) -> DQuat {
    let (sin, cos) = sin_cos(0.5 * angle);
    let v = axis * sin;
    DQuat::from_xyzw(v.x, v.y, v.z, cos)
}

/// Axis times angle (rad) of a rotation.
#[must_use]
pub fn rotation_vector(rotation: DQuat) -> DVec3 {
    let v = rotation.xyz();
    let sin = v.length();
    // Below this the arc and its sine are the same number.
    let ratio = if sin < 1e-9 { 2.0 / rotation.w } else { 2.0 * atan2(sin, rotation.w) / sin };
    v * ratio
}

/// A share of the way from one rotation to another, the shorter way round, at constant speed.
#[must_use]
pub fn slerp(a: DQuat, b: DQuat, share: f64) -> DQuat {
    let b = if a.dot(b) < 0.0 { -b } else { b };
    let half = atan2((a - b).length(), (a + b).length());
    let whole = 2.0 * half;
    // Below this the arc and its chord are the same number.
    if whole < 1e-9 {
        return (a * (1.0 - share) + b * share).normalize();
    }
    (a * sin((1.0 - share) * whole) + b * sin(share * whole)) * (1.0 / sin(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the platform's functions: both are good to an ulp or so, and arguments are of order one.
    const TOLERANCE: f64 = 1e-14;

    #[test]
    fn rotations_are_those_of_glam() {
        let mut random = crate::testing::RandomPoses::new(7);
        for _ in 0..1000 {
            let axis = random.vector().normalize();
            let angle = 3.0 * random.number();
            let (a, b) = (rotation(axis, angle), DQuat::from_axis_angle(axis, angle));
            assert!((a - b).length() < TOLERANCE);
            assert!((rotation_vector(a) - axis * angle).length() < TOLERANCE);
            let other = rotation(random.vector().normalize(), angle);
            let share = random.number();
            assert!((slerp(a, other, share) - a.slerp(other, share)).length() < 1e-13, "{a} {other} {share}");
            let (u, w) = (random.vector(), random.vector());
            // An arc cosine loses half its digits where vectors are nearly parallel; this one does not.
            assert!((angle_between(u, w) - u.angle_between(w)).abs() < 1e-7);
        }
        assert_eq!(rotation_vector(DQuat::IDENTITY), DVec3::ZERO);
        assert_eq!(rotation_vector(rotation(DVec3::X, 1e-12)), DVec3::X * 1e-12);
        assert_eq!(angle_between(DVec3::X, DVec3::ZERO), 0.0);
    }
}
