//! One side of the box: distances to a bound, their multipliers, and the directions of both.
//!
//! Rows without this bound have z = 0 and a reciprocal distance of 0, so that every formula gives 0 for them
//! without asking: the loops have neither branches nor divisions.

/// A side of the box: distances to the bound, multipliers, and the directions of both.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// +1 for the lower bound (g = λ − lo), −1 for the upper one.
    pub(super) sign: f64,
    pub(super) bounded: Vec<bool>,
    pub(super) g: Vec<f64>,
    pub(super) z: Vec<f64>,
    pub(super) dz: Vec<f64>,
    /// 1/g and 1/z of the iterate at hand; 0 where there is no bound.
    inverse_g: Vec<f64>,
    inverse_z: Vec<f64>,
    /// Right-hand side of the complementarity equation, then of a corrector.
    pub(super) c: Vec<f64>,
    pub(super) corrector: Vec<f64>,
}

/// Partial sums and maxima are kept per lane: fixed order, and two or four rows at a time.
const LANES: usize = 4;

fn fill(buffer: &mut Vec<f64>, n: usize) {
    buffer.clear();
    buffer.resize(n, 0.0);
}

/// Least distance and multiplier.
const LEAST: f64 = 1e-250;

/// The larger of two numbers, the second if the first is none: one instruction.
#[inline(always)]
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// max(0, −s·d·r) over all rows: the reciprocal of the step at which the first of them meets its bound.
#[inline(always)]
fn steepest(sign: f64, d: &[f64], inverse: &[f64]) -> f64 {
    let mut most = [0.0f64; LANES];
    let (head, tail) = d.as_chunks::<LANES>();
    let (inverse_head, inverse_tail) = inverse.as_chunks::<LANES>();
    for (d, r) in head.iter().zip(inverse_head) {
        for k in 0..LANES {
            most[k] = larger(-sign * d[k] * r[k], most[k]);
        }
    }
    for (d, r) in tail.iter().zip(inverse_tail) {
        most[0] = larger(-sign * d * r, most[0]);
    }
    most.into_iter().fold(0.0, larger)
}

impl Side {
    pub(super) fn prepare(&mut self, sign: f64, bound: &[f64], active: &[bool]) {
        let n = bound.len();
        self.sign = sign;
        self.bounded.clear();
        let finite = bound.iter().zip(active);
        self.bounded.extend(finite.map(|(b, &a)| a && b.is_finite()));
        for buffer in [
            &mut self.g,
            &mut self.z,
            &mut self.dz,
            &mut self.c,
            &mut self.corrector,
            &mut self.inverse_g,
            &mut self.inverse_z,
        ] {
            fill(buffer, n);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.bounded.iter().filter(|&&b| b).count()
    }

    /// Places one row; its product g z is μ.
    pub(super) fn place(&mut self, i: usize, g: f64, mu: f64) {
        if self.bounded[i] {
            self.g[i] = g.max(1e-200);
            self.z[i] = mu / self.g[i];
        }
    }

    /// Reciprocals of the iterate at hand, and its z/g added to `shift`.
    #[inline(always)]
    pub(super) fn renew(&mut self, shift: &mut [f64]) {
        let n = shift.len();
        let (bounded, g, z) = (&self.bounded[..n], &self.g[..n], &self.z[..n]);
        let (inverse_g, inverse_z) = (&mut self.inverse_g[..n], &mut self.inverse_z[..n]);
        for i in 0..n {
            let on = if bounded[i] { 1.0 } else { 0.0 };
            inverse_g[i] = on / if bounded[i] { g[i] } else { 1.0 };
            inverse_z[i] = on / if bounded[i] { z[i] } else { 1.0 };
            shift[i] += z[i] * inverse_g[i];
        }
    }

    /// Reciprocal of the longest step that keeps g + α s Δλ ≥ 0.
    #[inline(always)]
    pub(super) fn steepest_distance(&self, dl: &[f64]) -> f64 {
        steepest(self.sign, dl, &self.inverse_g)
    }

    /// Reciprocal of the longest step that keeps z + α Δz ≥ 0.
    #[inline(always)]
    pub(super) fn steepest_multiplier(&self, dz: &[f64]) -> f64 {
        steepest(1.0, dz, &self.inverse_z)
    }

    /// c := σμ − s Δλ Δz, what the linearisation left out.
    #[inline(always)]
    pub(super) fn second_order(&mut self, sigma_mu: f64, dl: &[f64]) {
        let sign = self.sign;
        for ((c, dl), dz) in self.c.iter_mut().zip(dl).zip(&self.dz) {
            *c = sigma_mu - sign * dl * dz;
        }
    }

    /// Δz of g Δz + z s Δλ = c − g z, row by row.
    #[inline(always)]
    pub(super) fn multiplier_direction(&mut self, dl: &[f64]) {
        let n = dl.len();
        let (c, z, inverse) = (&self.c[..n], &self.z[..n], &self.inverse_g[..n]);
        let sign = self.sign;
        for (i, dz) in self.dz[..n].iter_mut().enumerate() {
            *dz = (c[i] - z[i] * sign * dl[i]) * inverse[i] - z[i];
        }
    }

    /// Adds s c / g, the part of the complementarity right-hand side that enters (A + D) Δλ = rhs.
    #[inline(always)]
    pub(super) fn add_to_rhs(&self, rhs: &mut [f64]) {
        for ((rhs, c), inverse) in rhs.iter_mut().zip(&self.c).zip(&self.inverse_g) {
            *rhs += self.sign * c * inverse;
        }
    }

    /// What products g z outside of [0.1, 10] `target` lack after a step `aim`, into `corrector`, and its s c / g
    /// added to `rhs`.
    #[inline(always)]
    pub(super) fn outliers(&mut self, aim: f64, target: f64, dl: &[f64], rhs: &mut [f64]) {
        let n = dl.len();
        let (g, z, dz, inverse) = (&self.g[..n], &self.z[..n], &self.dz[..n], &self.inverse_g[..n]);
        let (low, high, along, sign) = (0.1 * target, 10.0 * target, aim * self.sign, self.sign);
        let (corrector, rhs) = (&mut self.corrector[..n], &mut rhs[..n]);
        for i in 0..n {
            let product = (g[i] + along * dl[i]) * (z[i] + aim * dz[i]);
            let lack = if product < low {
                low - product
            } else if product > high {
                high - product
            } else {
                0.0
            };
            let c = if lack < -high { -high } else { lack };
            corrector[i] = c;
            rhs[i] += sign * c * inverse[i];
        }
    }

    /// Δz plus the correction that belongs to a change of Δλ, in place of the corrector.
    #[inline(always)]
    pub(super) fn corrected(&mut self, change: &[f64]) {
        let n = change.len();
        let (z, dz, inverse) = (&self.z[..n], &self.dz[..n], &self.inverse_g[..n]);
        let sign = self.sign;
        for (i, c) in self.corrector[..n].iter_mut().enumerate() {
            *c = dz[i] + (*c - z[i] * sign * change[i]) * inverse[i];
        }
    }

    #[inline(always)]
    pub(super) fn advance(&mut self, dl: &[f64], primal: f64, dual: f64) {
        let (n, sign) = (dl.len(), self.sign);
        let (bounded, dz) = (&self.bounded[..n], &self.dz[..n]);
        let (g, z) = (&mut self.g[..n], &mut self.z[..n]);
        for i in 0..n {
            // Round-off may land on the bound itself.
            let (new_g, new_z) =
                (larger(g[i] + primal * sign * dl[i], LEAST), larger(z[i] + dual * dz[i], LEAST));
            g[i] = if bounded[i] { new_g } else { g[i] };
            z[i] = if bounded[i] { new_z } else { z[i] };
        }
    }
}
