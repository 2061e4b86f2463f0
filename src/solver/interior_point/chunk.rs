//! The state of an interior point on some of the rows, and the passes over it.
//!
//! Rows fall into chunks: one for a problem solved whole, one per partition (and one for the rows between them) where
//! it is cut. Every pass reads and writes one chunk only and ends in a few sums, so chunks can be worked on at once and the
//! sums added in their order. What needs several sums over the same rows takes them in one pass; sums at a step
//! length not yet known are kept as the coefficients of the polynomial they are.
//!
//! A chunk keeps the velocities of its bodies beside λ: Newton directions obey M Δv = Jᵀ Δλ, so v goes along with λ and
//! w = J v + C λ + d needs no product with A.

use super::root;
use super::side::{Side, larger};
use crate::linalg::kernels::with_avx2;
use crate::solver::Label;
use crate::solver::index_sets::is_held;

/// Partial sums are kept per lane: a fixed order, and several rows at a time.
const LANES: usize = 4;

/// The rows of one part of a problem.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// Its rows, by their number in the problem.
    pub rows: Vec<u32>,
    /// Its bodies, by their number in the problem; empty where those of no body are followed.
    pub bodies: Vec<u32>,
    /// Do rows take part? Those that do not keep their λ.
    pub active: Vec<bool>,
    /// `Free` for rows that take part, `Lower` for the others.
    pub state: Vec<Label>,
    /// λ of the iterate.
    pub lambda: Vec<f64>,
    /// Its slack velocities.
    pub w: Vec<f64>,
    /// Velocities that belong to λ, six numbers a body, or one a row.
    pub v: Vec<f64>,
    /// D of the next factorization.
    pub shift: Vec<f64>,
    /// Least compliance that a factorization needs beyond C; empty where it needs none.
    pub floor: Vec<f64>,
    /// Right-hand side of the next linear solve, its answer, and the velocities of the answer.
    pub rhs: Vec<f64>,
    /// See `rhs`.
    pub x: Vec<f64>,
    /// See `rhs`.
    pub xv: Vec<f64>,
    /// The momentum side of the linear solve: none.
    pub momentum: Vec<f64>,
    lo: Vec<f64>,
    hi: Vec<f64>,
    /// 1/A_ii, 0 for rows that take no part.
    weight: Vec<f64>,
    sides: [Side; 2],
    rd: Vec<f64>,
    dl: Vec<f64>,
    dv: Vec<f64>,
    narrow: Vec<u32>,
    pub(super) labels: Vec<Label>,
    previous: Vec<Label>,
    pub(super) reading: Reading,
    pub(super) state_sums: StateSums,
}

/// An iterate, row by row.
#[derive(Clone, Copy)]
struct Iterate<'a> {
    lambda: &'a [f64],
    w: &'a [f64],
    lo: &'a [f64],
    hi: &'a [f64],
    weight: &'a [f64],
    zl: &'a [f64],
    zu: &'a [f64],
    gl: &'a [f64],
    gu: &'a [f64],
}

impl Iterate<'_> {
    /// rd of a row, Σ g z, rd²/A_ii, and the square of its natural residual, which is not a number where the row is none.
    #[inline(always)]
    fn look(self, i: usize) -> [f64; 4] {
        let (lambda, w) = (self.lambda[i], self.w[i]);
        let rd = w - self.zl[i] + self.zu[i];
        let products = self.gl[i] * self.zl[i] + self.gu[i] * self.zu[i];
        let (below, above) = (lambda - self.lo[i], self.hi[i] - lambda);
        let (push, pull) = (larger(w, 0.0), larger(-w, 0.0));
        let down = if below < push { below } else { push }.abs();
        let up = if above < pull { above } else { pull }.abs();
        let r = larger(down, up);
        [rd, products, rd * rd * self.weight[i], r * r + 0.0 * (lambda + w)]
    }
}

/// What a pass over the iterate found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StateSums {
    /// Σ g z.
    pub products: f64,
    /// Σ rd²/A_ii.
    pub rd: f64,
    /// Square of the natural residual.
    pub natural: f64,
    /// Labels that changed.
    pub changes: usize,
    /// Was a row set aside moved to its other bound?
    pub moved: bool,
}

/// What a pass over a direction found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// Reciprocals of the longest steps of λ and z.
    primal: f64,
    dual: f64,
    /// Σ g z after steps α of λ and β of z, less what it is now: α along + β across + αβ both.
    along: f64,
    across: f64,
    both: f64,
    /// Σ rd (Δz_lo − Δz_hi)/A_ii and Σ (Δz_lo − Δz_hi)²/A_ii.
    mixed: f64,
    square: f64,
    /// Zero, or not a number if the direction is none.
    finite: f64,
}

impl Reading {
    pub(super) fn add(&mut self, other: &Reading) {
        self.primal = larger(other.primal, self.primal);
        self.dual = larger(other.dual, self.dual);
        self.along += other.along;
        self.across += other.across;
        self.both += other.both;
        self.mixed += other.mixed;
        self.square += other.square;
        self.finite += other.finite;
    }

    /// Longest steps in [0, 1] of λ and of z.
    pub(super) fn steps(&self) -> (f64, f64) {
        let step = |steepest: f64| if steepest > 1.0 { 1.0 / steepest } else { 1.0 };
        (step(self.primal), step(self.dual))
    }

    /// Change of Σ g z by steps of λ and z.
    pub(super) fn product_change(&self, primal: f64, dual: f64) -> f64 {
        primal * self.along + dual * self.across + primal * dual * self.both
    }

    /// Σ rd²/A_ii after steps of λ and z, for a direction that removes `share` of rd: A Δλ − Δz_lo + Δz_hi = −share·rd.
    pub(super) fn rd_after(&self, now: f64, share: f64, primal: f64, dual: f64) -> f64 {
        let (keep, apart) = (1.0 - share * primal, primal - dual);
        (keep * keep * now + 2.0 * keep * apart * self.mixed + apart * apart * self.square).max(0.0)
    }

    pub(super) fn is_finite(&self) -> bool {
        self.finite == 0.0
    }
}

fn sum(lanes: [f64; LANES]) -> f64 {
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

fn fill(buffer: &mut Vec<f64>, n: usize) {
    buffer.clear();
    buffer.resize(n, 0.0);
}

impl Chunk {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Is there no row?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Takes the rows and bodies of a part of the problem.
    pub fn shape(&mut self, rows: impl Iterator<Item = u32>, bodies: impl Iterator<Item = u32>) {
        self.bodies.clear();
        self.bodies.extend(bodies);
        self.fit(rows, |chunk| 6 * chunk.bodies.len());
    }

    /// Takes some rows and follows their own velocities, J v, in place of those of bodies.
    pub fn shape_by_rows(&mut self, rows: impl Iterator<Item = u32>) {
        self.bodies.clear();
        self.fit(rows, Chunk::len);
    }

    /// Takes rows and makes room for so many velocities.
    fn fit(&mut self, rows: impl Iterator<Item = u32>, velocities: impl Fn(&Chunk) -> usize) {
        self.rows.clear();
        self.rows.extend(rows);
        let (n, m) = (self.rows.len(), velocities(self));
        for buffer in [
            &mut self.lambda,
            &mut self.w,
            &mut self.shift,
            &mut self.rhs,
            &mut self.x,
            &mut self.weight,
            &mut self.rd,
            &mut self.dl,
        ] {
            fill(buffer, n);
        }
        for buffer in [&mut self.v, &mut self.xv, &mut self.dv, &mut self.momentum] {
            fill(buffer, m);
        }
        for labels in [&mut self.labels, &mut self.previous, &mut self.state] {
            labels.clear();
            labels.resize(n, Label::Free);
        }
        self.floor.clear();
        self.narrow.clear();
    }

    /// Takes bounds and diagonal of its rows. Rows that are held, or whose box is narrower than `narrow`/√A_ii, take no
    /// part: the D of a narrow box would be twenty decades above the others. Such rows sit at the bound their slack
    /// points to, and the crossover frees the few that belong in between.
    pub(super) fn take(&mut self, lo: &[f64], hi: &[f64], diagonal: &[f64], narrow: f64) {
        for (to, from) in [(&mut self.lo, lo), (&mut self.hi, hi)] {
            to.clear();
            to.extend(self.rows.iter().map(|&row| from[row as usize]));
        }
        self.active.clear();
        for i in 0..self.rows.len() {
            let a = diagonal[self.rows[i] as usize];
            let (lo, hi) = (self.lo[i], self.hi[i]);
            let held = is_held(lo, hi);
            let thin = !held && (hi - lo) * root(a) <= narrow;
            if thin {
                self.narrow.push(i as u32);
            }
            let active = !(held || thin);
            self.active.push(active);
            self.weight[i] = if active { 1.0 / a.max(f64::MIN_POSITIVE) } else { 0.0 };
            self.state[i] = if active { Label::Free } else { Label::Lower };
        }
        let [lower, upper] = &mut self.sides;
        lower.prepare(1.0, &self.lo, &self.active);
        upper.prepare(-1.0, &self.hi, &self.active);
    }

    /// Puts λ `margin`/√A_ii inside of its bounds.
    pub(super) fn place_inside(&mut self, diagonal: &[f64], margin: f64) {
        for i in 0..self.rows.len() {
            let (lo, hi) = (self.lo[i], self.hi[i]);
            let margin = (margin / root(diagonal[self.rows[i] as usize])).min(0.5 * (hi - lo));
            self.lambda[i] = if self.active[i] { 0.0f64.max(lo + margin).min(hi - margin) } else { lo };
        }
    }

    /// Σ |w|/√A_ii over the rows that take part, and their number.
    pub(super) fn slack_size(&self, diagonal: &[f64]) -> (f64, usize) {
        let (mut sum, mut count) = (0.0, 0);
        for i in 0..self.rows.len() {
            if self.active[i] {
                sum += self.w[i].abs() / root(diagonal[self.rows[i] as usize]);
                count += 1;
            }
        }
        (sum, count)
    }

    /// Every product g z the same: a start on the central path, however narrow a box is. In the middle of a narrow box
    /// the two multipliers are large and cancel.
    pub(super) fn place_multipliers(&mut self, mu: f64) {
        let [lower, upper] = &mut self.sides;
        for i in 0..self.rows.len() {
            lower.place(i, self.lambda[i] - self.lo[i], mu);
            upper.place(i, self.hi[i] - self.lambda[i], mu);
        }
    }

    pub(super) fn bounds(&self) -> usize {
        self.sides[0].count() + self.sides[1].count()
    }

    /// Looks at the iterate whose w was just found: labels, rd, residual; and moves rows that were set aside to the bound
    /// their slack points to.
    pub(super) fn observe(&mut self) {
        std::mem::swap(&mut self.previous, &mut self.labels);
        self.look_again();
        let labels = self.labels.iter().zip(&self.previous).zip(&self.active);
        self.state_sums.changes = labels.filter(|((now, before), active)| **active && now != before).count();
        for &i in &self.narrow {
            let i = i as usize;
            let up = self.w[i] < 0.0;
            let bound = if up { self.hi[i] } else { self.lo[i] };
            self.state_sums.moved |= self.lambda[i] != bound;
            self.lambda[i] = bound;
            self.labels[i] = if up { Label::Upper } else { Label::Lower };
        }
    }

    /// Looks at an iterate whose rows that were set aside have been moved: they stay, even if the new w points back. A row that
    /// belongs between its bounds would go to and fro for ever, and the residual be that of the other bound.
    pub(super) fn look_again(&mut self) {
        with_avx2(
            #[inline(always)]
            || self.look_again_plainly(),
        );
    }

    #[inline(always)]
    fn look_again_plainly(&mut self) {
        self.find_labels();
        let [lower, upper] = &self.sides;
        let n = self.rows.len();
        let lists = [&self.lambda, &self.w, &self.lo, &self.hi, &self.weight];
        let [lambda, w, lo, hi, weight] = lists.map(|list| &list[..n]);
        let [zl, zu, gl, gu] = [&lower.z, &upper.z, &lower.g, &upper.g].map(|list| &list[..n]);
        let iterate = Iterate { lambda, w, lo, hi, weight, zl, zu, gl, gu };
        let rd = &mut self.rd[..n];
        let (mut products, mut squares, mut natural) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        let whole = n - n % LANES;
        for first in (0..whole).step_by(LANES) {
            for k in 0..LANES {
                let seen = iterate.look(first + k);
                rd[first + k] = seen[0];
                products[k] += seen[1];
                squares[k] += seen[2];
                natural[k] += seen[3];
            }
        }
        for i in whole..n {
            let seen = iterate.look(i);
            rd[i] = seen[0];
            products[i % LANES] += seen[1];
            squares[i % LANES] += seen[2];
            natural[i % LANES] += seen[3];
        }
        for &i in &self.narrow {
            let i = i as usize;
            if self.lambda[i] == self.hi[i] {
                self.labels[i] = Label::Upper;
            }
        }
        let changes = self.state_sums.changes;
        self.state_sums = StateSums {
            products: sum(products),
            rd: sum(squares),
            natural: sum(natural),
            changes,
            moved: false,
        };
    }

    /// A bound is active when its distance is small beside what its multiplier could move.
    #[inline(always)]
    fn find_labels(&mut self) {
        let [lower, upper] = &self.sides;
        let n = self.rows.len();
        let (labels, active, weight) = (&mut self.labels[..n], &self.active[..n], &self.weight[..n]);
        let (below, above) = (&lower.bounded[..n], &upper.bounded[..n]);
        let (zl, zu, gl, gu) = (&lower.z[..n], &upper.z[..n], &lower.g[..n], &upper.g[..n]);
        for i in 0..n {
            let reach = (zl[i] - zu[i]) * weight[i];
            let down = !active[i] | (below[i] & (gl[i] < reach));
            let up = above[i] & (gu[i] < -reach);
            let side = if up { Label::Upper } else { Label::Free };
            labels[i] = if down { Label::Lower } else { side };
        }
    }

    /// Before a factorization: D = z/g, and the right-hand side of the predictor, which aims at μ = 0.
    pub(super) fn prepare_predictor(&mut self) {
        with_avx2(
            #[inline(always)]
            || self.prepare_predictor_plainly(),
        );
    }

    #[inline(always)]
    fn prepare_predictor_plainly(&mut self) {
        self.shift.fill(0.0);
        for side in &mut self.sides {
            side.renew(&mut self.shift);
            side.c.fill(0.0);
        }
        for (shift, weight) in self.shift.iter_mut().zip(&self.weight) {
            // Beyond this a row does not move in double precision, and larger numbers overflow.
            let most = 1e24 / weight.clamp(1e-30, 1e30);
            *shift = if *shift < most { *shift } else { most };
        }
        for (shift, floor) in self.shift.iter_mut().zip(&self.floor) {
            *shift += floor;
        }
        self.plain_rhs(1.0);
    }

    /// The corrector's right-hand side: centre, and take back the product the linearisation left out.
    pub(super) fn prepare_corrector(&mut self, sigma_mu: f64) {
        with_avx2(
            #[inline(always)]
            || self.prepare_corrector_plainly(sigma_mu),
        );
    }

    #[inline(always)]
    fn prepare_corrector_plainly(&mut self, sigma_mu: f64) {
        for side in &mut self.sides {
            side.second_order(sigma_mu, &self.dl);
        }
        self.full_rhs(1.0);
    }

    /// The right-hand side of a direction that only evens out the products g z.
    pub(super) fn prepare_centring(&mut self, mu: f64) {
        for side in &mut self.sides {
            side.c.fill(mu);
        }
        self.full_rhs(0.0);
    }

    #[inline(always)]
    fn plain_rhs(&mut self, share: f64) {
        let [lower, upper] = &self.sides;
        let n = self.rd.len();
        let (rd, down, up) = (&self.rd[..n], &lower.z[..n], &upper.z[..n]);
        for (i, rhs) in self.rhs[..n].iter_mut().enumerate() {
            *rhs = up[i] - down[i] - share * rd[i];
        }
    }

    #[inline(always)]
    fn full_rhs(&mut self, share: f64) {
        self.plain_rhs(share);
        for side in &self.sides {
            side.add_to_rhs(&mut self.rhs);
        }
    }

    /// Takes the answer of a solve as the direction.
    pub(super) fn take_direction(&mut self) {
        with_avx2(
            #[inline(always)]
            || self.take_direction_plainly(),
        );
    }

    #[inline(always)]
    fn take_direction_plainly(&mut self) {
        std::mem::swap(&mut self.dl, &mut self.x);
        std::mem::swap(&mut self.dv, &mut self.xv);
        for side in &mut self.sides {
            side.multiplier_direction(&self.dl);
        }
        let [lower, upper] = &self.sides;
        self.reading = self.read(&self.dl, &lower.dz, &upper.dz);
    }

    /// The right-hand side of a centrality corrector (Gondzio 1996) for a step `aim`: products outside of [0.1, 10]
    /// `target` are pulled back.
    pub(super) fn prepare_centrality(&mut self, aim: f64, target: f64) {
        with_avx2(
            #[inline(always)]
            || self.prepare_centrality_plainly(aim, target),
        );
    }

    #[inline(always)]
    fn prepare_centrality_plainly(&mut self, aim: f64, target: f64) {
        self.rhs.fill(0.0);
        for side in &mut self.sides {
            side.outliers(aim, target, &self.dl, &mut self.rhs);
        }
    }

    /// The answer of a corrector as a direction on trial.
    pub(super) fn try_direction(&mut self) {
        with_avx2(
            #[inline(always)]
            || self.try_direction_plainly(),
        );
    }

    #[inline(always)]
    fn try_direction_plainly(&mut self) {
        for side in &mut self.sides {
            side.corrected(&self.x);
        }
        for (x, dl) in self.x.iter_mut().zip(&self.dl) {
            *x += dl;
        }
        for (x, dv) in self.xv.iter_mut().zip(&self.dv) {
            *x += dv;
        }
        let [lower, upper] = &self.sides;
        self.reading = self.read(&self.x, &lower.corrector, &upper.corrector);
    }

    /// The direction on trial is the direction from now on.
    pub(super) fn keep_trial(&mut self) {
        std::mem::swap(&mut self.dl, &mut self.x);
        std::mem::swap(&mut self.dv, &mut self.xv);
        for side in &mut self.sides {
            std::mem::swap(&mut side.dz, &mut side.corrector);
        }
    }

    #[inline(always)]
    fn read(&self, dl: &[f64], down: &[f64], up: &[f64]) -> Reading {
        let n = self.rows.len();
        let [lower, upper] = &self.sides;
        let mut reading = Reading {
            primal: larger(lower.steepest_distance(dl), upper.steepest_distance(dl)),
            dual: larger(lower.steepest_multiplier(down), upper.steepest_multiplier(up)),
            ..Reading::default()
        };
        let lists = [dl, down, up, &self.rd, &self.weight, &lower.z, &upper.z, &lower.g, &upper.g];
        let [dl, down, up, rd, weight, zl, zu, gl, gu] = lists.map(|list| list[..n].as_chunks::<LANES>());
        let mut sums = [[0.0; LANES]; 6];
        for b in 0..dl.0.len() {
            let (dl, down, up, rd, weight) = (&dl.0[b], &down.0[b], &up.0[b], &rd.0[b], &weight.0[b]);
            let (zl, zu, gl, gu) = (&zl.0[b], &zu.0[b], &gl.0[b], &gu.0[b]);
            for k in 0..LANES {
                let apart = down[k] - up[k];
                sums[0][k] += dl[k] * (zl[k] - zu[k]);
                sums[1][k] += gl[k] * down[k] + gu[k] * up[k];
                sums[2][k] += dl[k] * apart;
                sums[3][k] += rd[k] * apart * weight[k];
                sums[4][k] += apart * apart * weight[k];
                sums[5][k] += dl[k] * 0.0;
            }
        }
        for k in 0..n % LANES {
            let (dl, down, up) = (dl.1[k], down.1[k], up.1[k]);
            let apart = down - up;
            sums[0][k] += dl * (zl.1[k] - zu.1[k]);
            sums[1][k] += gl.1[k] * down + gu.1[k] * up;
            sums[2][k] += dl * apart;
            sums[3][k] += rd.1[k] * apart * weight.1[k];
            sums[4][k] += apart * apart * weight.1[k];
            sums[5][k] += dl * 0.0;
        }
        let [along, across, both, mixed, square, finite] = sums.map(sum);
        (reading.along, reading.across, reading.both) = (along, across, both);
        (reading.mixed, reading.square, reading.finite) = (mixed, square, finite);
        reading
    }

    pub(super) fn advance(&mut self, primal: f64, dual: f64) {
        with_avx2(
            #[inline(always)]
            || self.advance_plainly(primal, dual),
        );
    }

    #[inline(always)]
    fn advance_plainly(&mut self, primal: f64, dual: f64) {
        for (lambda, dl) in self.lambda.iter_mut().zip(&self.dl) {
            *lambda += primal * dl;
        }
        for (v, dv) in self.v.iter_mut().zip(&self.dv) {
            *v += primal * dv;
        }
        for side in &mut self.sides {
            side.advance(&self.dl, primal, dual);
        }
        self.measure_from_bounds();
    }

    /// λ of rows with a bound from their distance to it, to the nearer one if there are two.
    ///
    /// Nearly redundant rows start from impulses some ten decades above their own: λ keeps the round-off of the decades it came
    /// down, its distance loses it on the way. Round-off may also carry λ beyond a bound.
    #[inline(always)]
    fn measure_from_bounds(&mut self) {
        let [lower, upper] = &self.sides;
        let n = self.lambda.len();
        let (lambda, lo, hi, active) =
            (&mut self.lambda[..n], &self.lo[..n], &self.hi[..n], &self.active[..n]);
        let (lower_on, upper_on, gl, gu) =
            (&lower.bounded[..n], &upper.bounded[..n], &lower.g[..n], &upper.g[..n]);
        for i in 0..n {
            let below = if upper_on[i] { gu[i] } else { f64::INFINITY };
            let from_hi = if upper_on[i] { hi[i] - below } else { lambda[i] };
            let l = if lower_on[i] & (gl[i] <= below) { lo[i] + gl[i] } else { from_hi };
            let high = if l > lo[i] { l } else { lo[i] };
            let within = if high < hi[i] { high } else { hi[i] };
            lambda[i] = if active[i] { within } else { l };
        }
    }

    /// Largest |λ|√A_ii after a step, over the rows with a bound.
    pub(super) fn impulse_size(&self, diagonal: &[f64], primal: f64) -> f64 {
        let mut size = 0.0f64;
        for i in 0..self.rows.len() {
            if self.sides[0].bounded[i] || self.sides[1].bounded[i] {
                let a = root(diagonal[self.rows[i] as usize]);
                size = size.max((self.lambda[i] + primal * self.dl[i]).abs() * a);
            }
        }
        size
    }
}
