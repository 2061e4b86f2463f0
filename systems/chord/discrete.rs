//! The discrete gradient of constraints between two poses.
//!
//! Energy is kept if J̄ makes of the velocities on which impulses do work what constraints make of the poses:
//!
//! ```text
//!     h J̄ V̄ = φ(q⁺) − φ(q) ,     V̄ = (1 − θ) V + θ V⁺
//! ```
//!
//! With J at the mean pose, half-way along the turn of every body, this is so but for two errors of second order:
//!
//! * A turn by the angle α about n moves an arm by s × r̄, s = 2 sin(α/2) n, and h ω̄ is not s. Body by body, what J makes of ω̄ is
//!   made that of s (Gonzalez): j ← j + hω̄ ((s − hω̄)·j)/|hω̄|². Torque across the spin is left as it is. Joints that hold points
//!   together are exact then.
//! * What curvature is left, of axes and lengths, say, is made up for along the momenta of the two bodies: J̄ ← J̄ + e MΔ/(ΔᵀMΔ),
//!   Δ = h V̄.

use super::Memory;
use crate::solver::RowProblem;
use crate::state::{Bodies, Closing, Island, Rows};
use glam::{DQuat, DVec3};

/// Curvature beyond this share (squared) of what the bodies move along a row is no curvature: an angle that has come round.
const CURVED: f64 = 0.01;

/// Motion of a body over a step, on which impulses do work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Motion {
    /// x⁺ − x.
    pub way: DVec3,
    /// h ω̄.
    pub turn: DVec3,
    /// 2 sin(α/2) n of the turn from q to q⁺.
    pub arc: DVec3,
    /// Momentum of (way, turn), and its products with them.
    momentum: [DVec3; 2],
    products: [f64; 2],
    /// 1/m and one over the mean moment of inertia.
    ease: [f64; 2],
}

impl Motion {
    /// Of a body of this mass block.
    pub fn new(way: DVec3, turn: DVec3, arc: DVec3, mass: &[f64; 36]) -> Motion {
        let row = |i: usize| DVec3::new(mass[6 * i + 3], mass[6 * i + 4], mass[6 * i + 5]);
        let spin = DVec3::new(row(3).dot(turn), row(4).dot(turn), row(5).dot(turn));
        let momentum = [way * mass[0], spin];
        let trace = mass[21] + mass[28] + mass[35];
        Motion {
            way,
            turn,
            arc,
            momentum,
            products: [momentum[0].dot(way), spin.dot(turn)],
            ease: [1.0 / mass[0], if trace > 0.0 { 3.0 / trace } else { 0.0 }],
        }
    }

    /// Of a body that no impulse moves.
    pub fn carried(way: DVec3, arc: DVec3) -> Motion {
        Motion { way, arc, ..Motion::default() }
    }

    /// The conjugate of an angular part.
    fn conjugate(&self, j: DVec3) -> DVec3 {
        let square = self.turn.length_squared();
        if square < 1e-12 { j } else { j + self.turn * ((self.arc - self.turn).dot(j) / square) }
    }
}

/// The rotation half-way along the turn that leads from one orientation over another to a third, and s of this turn.
pub fn half_way(from: DQuat, over: DQuat, to: DQuat) -> (DQuat, DVec3) {
    let short = |q: DQuat| if q.w < 0.0 { -q } else { q };
    // Each half is less than half a turn; together they may be more.
    let turn = short(to * over.conjugate()) * short(over * from.conjugate());
    let root = DQuat::from_xyzw(turn.x, turn.y, turn.z, turn.w + 1.0);
    let s = DVec3::new(turn.x, turn.y, turn.z) * 2.0;
    if root.length_squared() < 1e-6 { (over, s) } else { ((root.normalize() * from).normalize(), s) }
}

/// Writes J̄ into the island's problem, and by how much every row is off into its memory.
pub fn write(island: &mut Island, memory: &Memory, bodies: &Bodies, rows: &Rows) {
    let Island { problem, blocks, chord, .. } = island;
    let mut parts: Vec<Motion> = std::mem::take(&mut chord.parts);
    for (&b, to) in blocks.iter().zip(&problem.blocks) {
        let block = &rows.blocks[b as usize];
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        parts.clear();
        let mut own = problem.block_bodies[to.body as usize..(to.body + to.bodies) as usize].iter();
        for &slot in slots {
            parts.push(match bodies.is_dynamic(slot).then(|| own.next()).flatten() {
                Some(&body) => chord.motion[body as usize],
                None => memory.carried(slot),
            });
        }
        for row in 0..block.rows {
            let i = (block.row + row) as usize;
            let from = block.entry as usize + (row * block.bodies) as usize;
            let j = &memory.jacobian[from..from + slots.len()];
            let k = (to.row + row) as usize;
            let at = (to.entry + 6 * row * to.bodies) as usize;
            let out = &mut problem.jacobian[at..at + 6 * to.bodies as usize];
            let change = memory.violation[i] - chord.violation[k];
            (chord.along[k], chord.tied[k]) = match rows.closing[i] {
                Closing::Tangent => {
                    copy(j, slots, bodies, out);
                    (0.0, 0.0)
                }
                _ => discretise(j, slots, bodies, &parts, change, out),
            };
        }
    }
    chord.parts = parts;
}

fn copy(j: &[[f64; 6]], slots: &[u32], bodies: &Bodies, out: &mut [f64]) {
    let moving = j.iter().zip(slots).filter(|(_, slot)| bodies.is_dynamic(**slot));
    for (out, (j, _)) in out.chunks_exact_mut(6).zip(moving) {
        out.copy_from_slice(j);
    }
}

/// The discrete gradient of one row whose φ changes by `change`; returns what it makes of the motion, which is that change unless the
/// row is no smooth function of the poses, and J M⁻¹ Jᵀ.
fn discretise(
    j: &[[f64; 6]],
    slots: &[u32],
    bodies: &Bodies,
    parts: &[Motion],
    change: f64,
    out: &mut [f64],
) -> (f64, f64) {
    let (mut along, mut tied, mut denominators) = (0.0, 0.0, [0.0; 2]);
    let mut turns_only = true;
    let mut to = out.chunks_exact_mut(6);
    for ((j, &slot), part) in j.iter().zip(slots).zip(parts) {
        let (linear, angular) = (DVec3::new(j[0], j[1], j[2]), DVec3::new(j[3], j[4], j[5]));
        along += linear.dot(part.way) + angular.dot(part.arc);
        turns_only &= linear == DVec3::ZERO;
        if !bodies.is_dynamic(slot) {
            continue;
        }
        tied += part.ease[0] * linear.length_squared() + part.ease[1] * angular.length_squared();
        denominators[0] += part.products[0];
        denominators[1] += part.products[1];
        if let Some(out) = to.next() {
            out[..3].copy_from_slice(&j[..3]);
            out[3..].copy_from_slice(&part.conjugate(angular).to_array());
        }
    }
    let curvature = change - along;
    let denominator = if turns_only { denominators[1] } else { denominators[0] + denominators[1] };
    if !(denominator > 0.0 && curvature * curvature <= CURVED * tied * denominator) {
        return (along, tied);
    }
    let share = curvature / denominator;
    let moving = parts.iter().zip(slots).filter(|(_, slot)| bodies.is_dynamic(**slot));
    for (out, (part, _)) in out.chunks_exact_mut(6).zip(moving) {
        let [p, l] = part.momentum;
        if !turns_only {
            out[..3].iter_mut().zip(p.to_array()).for_each(|(j, p)| *j += share * p);
        }
        out[3..].iter_mut().zip(l.to_array()).for_each(|(j, l)| *j += share * l);
    }
    (change, tied)
}

/// J̄ᵀ λ, subtracted from the momenta.
pub fn subtract_impulses(problem: &RowProblem, lambda: &[f64], momenta: &mut [f64]) {
    for block in &problem.blocks {
        let own = problem.bodies_of(block);
        for row in 0..block.rows {
            let impulse = lambda[(block.row + row) as usize];
            let at = (block.entry + 6 * row * block.bodies) as usize;
            for (j, &body) in problem.jacobian[at..].chunks_exact(6).zip(own) {
                let p = &mut momenta[6 * body as usize..6 * body as usize + 6];
                p.iter_mut().zip(j).for_each(|(p, j)| *p -= j * impulse);
            }
        }
    }
}
