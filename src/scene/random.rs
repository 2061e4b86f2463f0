//! Seeded random numbers for generators: the same scene on every machine.

use crate::math;
use crate::solver::random;
use std::ops::{Deref, DerefMut};

/// The sequence is part of the scene format.
#[derive(Clone, Debug)]
pub struct Random(random::Random);

impl Deref for Random {
    type Target = random::Random;
    fn deref(&self) -> &random::Random {
        &self.0
    }
}

impl DerefMut for Random {
    fn deref_mut(&mut self) -> &mut random::Random {
        &mut self.0
    }
}

impl Random {
    /// A sequence of its own for every seed.
    pub fn new(seed: u64) -> Random {
        Random(random::Random::new(seed ^ 0x5851_f42d_4c95_7f2d))
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
