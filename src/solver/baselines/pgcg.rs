//! Preconditioned generalised conjugate gradients (003 Algorithm 11, after O'Leary 1980).
//!
//! Conjugate gradients on the free rows that stop at the first bound: rows that reach one become tight
//! there and the iteration starts again on what is left; when the free rows are solved, tight rows whose
//! slack has the wrong sign are freed. λ never leaves its bounds and the energy ½ λᵀAλ + bᵀλ never grows.

use super::bpp_pcg::{PcgSystem, PcgSystemMemory};
use super::pcg::{dot, round_off};
use super::softening::{Softening, SofteningMemory};
use crate::solver::bpp::Best;
use crate::solver::index_sets::{self, Tolerance};
use crate::solver::residual;
use crate::solver::system::PivotSystem;
use crate::solver::{Label, Solution};

/// Settings of the outer loop.
#[derive(Clone, Copy, Debug)]
pub struct PgcgSettings {
    /// Most outer iterations.
    pub max_outer: u32,
    /// Natural residual relative to max(1, ‖b‖) at which it ends.
    pub target: f64,
    /// τ of the sign tests, relative like `target`.
    pub tau: f64,
    /// Adaptive regularisation, if any.
    pub softening: Option<Softening>,
}

impl Default for PgcgSettings {
    fn default() -> Self {
        PgcgSettings { max_outer: 500, target: 1e-9, tau: 1e-11, softening: None }
    }
}

/// Buffers of the method.
#[derive(Clone, Debug, Default)]
pub struct PgcgMemory {
    lambda: Vec<f64>,
    w: Vec<f64>,
    r: Vec<f64>,
    z: Vec<f64>,
    q: Vec<f64>,
    aq: Vec<f64>,
    free: Vec<bool>,
    labels: Vec<Label>,
    violators: Vec<(u32, Label)>,
    seen: Vec<u64>,
    /// Friction rows softened so far.
    pub softening: SofteningMemory,
}

/// Runs from the labels and impulses of `start`; returns the number of outer iterations. The best point goes into `best`.
pub fn generalised<S: PivotSystem>(
    system: &mut PcgSystem<'_, S>,
    start: &Solution,
    settings: &PgcgSettings,
    memory: &mut PgcgMemory,
    best: &mut Best,
) -> u32 {
    let scale = system.scale();
    memory.begin(system, start);
    let mut outer = 0;
    let mut single = 0u32;
    loop {
        memory.descend(system);
        outer += 1;
        system.slack(&memory.lambda, &mut memory.w);
        let r = residual::natural(&memory.lambda, &memory.w, system.lo(), system.hi());
        best.offer(&memory.lambda, &memory.labels, r);
        if r <= settings.target * scale || outer >= settings.max_outer {
            return outer;
        }
        let tolerance = Tolerance::new(settings.tau, scale);
        let PgcgMemory { labels, lambda, w, violators, .. } = &mut *memory;
        index_sets::violators(system, labels, lambda, w, tolerance, violators);
        violators.retain(|&(_, new)| new == Label::Free);
        if memory.violators.is_empty() {
            return outer;
        }
        // A repeated index set: free one row at a time for a while, the worst first.
        let checksum = index_sets::checksum(&memory.labels);
        if single == 0 && memory.seen.contains(&checksum) {
            single = 5;
        }
        memory.seen.push(checksum);
        if single > 0 {
            single -= 1;
            let worst = |a: &&(u32, Label), b: &&(u32, Label)| {
                memory.w[a.0 as usize].abs().total_cmp(&memory.w[b.0 as usize].abs())
            };
            let row = memory.violators.iter().max_by(worst).copied();
            memory.violators.clear();
            memory.violators.extend(row);
        }
        if let Some(softening) = settings.softening {
            memory.softening.observe(softening, system.kind(), &memory.violators);
        }
        for &(row, new) in &memory.violators {
            memory.labels[row as usize] = new;
        }
    }
}

impl PgcgMemory {
    fn begin<S: PivotSystem>(&mut self, system: &PcgSystem<'_, S>, start: &Solution) {
        let n = system.rows();
        self.labels.clear();
        self.labels.extend_from_slice(&start.labels);
        index_sets::legalise(&mut self.labels, system.lo(), system.hi());
        for buffer in [&mut self.lambda, &mut self.w, &mut self.r, &mut self.z, &mut self.q, &mut self.aq] {
            buffer.clear();
            buffer.resize(n, 0.0);
        }
        // Free rows start from the last step's impulse, or without one from zero (003 §5.3), or the bound next to it. From
        // zero every contact starts at its bound and most of a warm index set is lost at the first step.
        let guess = if start.lambda.len() == n { &start.lambda[..] } else { &[] };
        for i in 0..n {
            let last = guess.get(i).copied().filter(|l| l.is_finite()).unwrap_or(0.0);
            self.lambda[i] = match self.labels[i] {
                Label::Lower => system.lo()[i],
                Label::Upper => system.hi()[i],
                Label::Free => last.max(system.lo()[i]).min(system.hi()[i]),
            };
        }
        self.free.clear();
        self.free.resize(n, false);
        self.seen.clear();
        self.softening.reset(n);
    }

    /// Residual of the free rows, search direction z = P⁻¹ r.
    fn restart<S: PivotSystem>(&mut self, system: &mut PcgSystem<'_, S>) {
        system.slack(&self.lambda, &mut self.w);
        for i in 0..self.r.len() {
            let shift = self.softening.shift()[i] * self.lambda[i];
            self.r[i] = if self.free[i] { -self.w[i] - shift } else { 0.0 };
        }
        self.direction(system);
        self.q.copy_from_slice(&self.z);
    }

    /// P of the rows that are free now.
    ///
    /// Keeping the old one and masking its rows was tried: a factor that is nearly exact for one free set
    /// is worse than the diagonal for its neighbour, because E A⁻¹ E is not (E A E)⁻¹.
    fn precondition<S: PivotSystem>(&self, system: &mut PcgSystem<'_, S>) {
        let shift = self.softening.any().then_some(self.softening.shift());
        system.factor(&self.free, shift);
    }

    /// z = P⁻¹ r.
    fn direction<S: PivotSystem>(&mut self, system: &mut PcgSystem<'_, S>) {
        let PcgSystemMemory { preconditioner, .. } = &mut *system.memory;
        preconditioner.apply(&self.r, &mut self.z);
    }

    /// Conjugate gradients with bounds, until the free rows are solved.
    fn descend<S: PivotSystem>(&mut self, system: &mut PcgSystem<'_, S>) {
        let settings = system.pcg_settings();
        for i in 0..self.free.len() {
            self.free[i] = self.labels[i] == Label::Free;
        }
        self.precondition(system);
        self.restart(system);
        let mut rz = dot(&self.r, &self.z);
        let mut iterations = 0;
        let mut enough = settings.tolerance;
        while dot(&self.r, &self.r).sqrt() > enough && iterations < settings.max_iterations {
            if iterations % 32 == 0 {
                enough = settings.tolerance.max(round_off(system.diagonal(), &self.lambda));
            }
            iterations += 1;
            system.multiply(&self.q, &mut self.aq);
            for i in 0..self.aq.len() {
                let d = self.softening.shift()[i] * self.q[i];
                self.aq[i] = if self.free[i] { self.aq[i] + d } else { 0.0 };
            }
            let curvature = dot(&self.q, &self.aq);
            if curvature.is_nan() || curvature <= 0.0 {
                break;
            }
            let wanted = rz / curvature;
            let alpha = wanted.min(self.room(system));
            for i in 0..self.lambda.len() {
                self.lambda[i] += alpha * self.q[i];
            }
            if alpha < wanted {
                self.tighten(system, alpha);
                self.precondition(system);
                self.restart(system);
                rz = dot(&self.r, &self.z);
                continue;
            }
            for i in 0..self.r.len() {
                self.r[i] -= alpha * self.aq[i];
            }
            self.direction(system);
            let next = dot(&self.r, &self.z);
            let beta = next / rz;
            rz = next;
            for i in 0..self.q.len() {
                self.q[i] = self.z[i] + beta * self.q[i];
            }
        }
        let report = &mut system.memory.report;
        report.iterations += u64::from(iterations);
        report.solves += 1;
        report.unconverged += u32::from(iterations == settings.max_iterations);
    }

    /// α_max of (5.1).
    fn room<S: PivotSystem>(&self, system: &PcgSystem<'_, S>) -> f64 {
        let mut room = f64::INFINITY;
        for i in 0..self.q.len() {
            let q = self.q[i];
            if q < 0.0 {
                room = room.min((system.lo()[i] - self.lambda[i]) / q);
            } else if q > 0.0 {
                room = room.min((system.hi()[i] - self.lambda[i]) / q);
            }
        }
        room.max(0.0)
    }

    /// Rows that reached a bound become tight there.
    fn tighten<S: PivotSystem>(&mut self, system: &PcgSystem<'_, S>, alpha: f64) {
        for i in 0..self.q.len() {
            let q = self.q[i];
            if q == 0.0 || !self.free[i] {
                continue;
            }
            let (bound, label) =
                if q < 0.0 { (system.lo()[i], Label::Lower) } else { (system.hi()[i], Label::Upper) };
            // Round-off of the step itself: a few ε of the terms it was computed from.
            let near = 4.0 * f64::EPSILON * (bound.abs() + (alpha * q).abs());
            if bound.is_finite() && (bound - self.lambda[i]) * q.signum() <= near {
                self.lambda[i] = bound;
                self.labels[i] = label;
                self.free[i] = false;
            }
        }
    }
}
