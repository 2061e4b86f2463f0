//! Seeded random numbers for generators: the same scene on every machine.

use crate::math;

/// SplitMix64 (Steele, Lea & Flood 2014): tiny, and its sequence is part of the scene format.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for every seed.
    pub fn new(seed: u64) -> Random {
        Random(seed ^ 0x5851_f42d_4c95_7f2d)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A rotation, all of them equally likely (Shoemake 1992).
    pub fn rotation(&mut self) -> glam::DQuat {
        use std::f64::consts::TAU;
        let (u, v, w) = (self.unit(), self.unit() * TAU, self.unit() * TAU);
        let (a, b) = ((1.0 - u).sqrt(), u.sqrt());
        let ((sin_v, cos_v), (sin_w, cos_w)) = (math::sin_cos(v), math::sin_cos(w));
        glam::DQuat::from_xyzw(a * sin_v, a * cos_v, b * sin_w, b * cos_w).normalize()
    }

    /// A direction, all of them equally likely.
    pub fn direction(&mut self) -> glam::DVec3 {
        self.rotation() * glam::DVec3::Z
    }
}
