//! Joints that repeat or contradict one another on one pair of bodies.
//!
//! Two bodies have six ways to move against each other. Where several joints tie them, two-sided rows may say the same (a door on
//! three hinges) or contradict one another (two `Fixed` that want the second body in two places). What the rows ask for is split into what a
//! displacement δ of the two bodies can give and what none can:
//!
//! ```text
//!     δ = argmin Σ (φᵢ + Jᵢ δ)² ,      φᵢ = −Jᵢ δ + rᵢ
//! ```
//!
//! Where r is more than the curvature of the motion explains, the rows close −J δ and leave r: closing all of φ would drive
//! impulses r/(hC) against one another, which move nothing, and make every joint of the island look open to the step. The joints are
//! named, with the largest rᵢ. How far they are open is measured as ever.

use super::rows::Ease;
use crate::constraint::Twist;
use crate::linalg::dense::DenseLdl;
use crate::report::Trouble;
use crate::schedule::Step;
use crate::state::{Bodies, Closing, ConstraintBlock, Rows};
use glam::DVec3;
use std::ops::Range;

/// Unknowns of a body.
const VELOCITIES: u32 = 6;

/// Two-sided rows for each moving body beyond which the constraints are too many, whatever they say: four for each of its
/// unknowns. A door hangs on three hinges; none has eight.
const CROWDED: u32 = 24;

/// Contradictions below this (m or rad) are left to the compliance of the rows.
const TOLD: f64 = 1e-3;

/// Share of A_ii that the compliance of n crowded rows has n times. Together they are then as hard as one row at this share, and
/// the mass beside them keeps four digits.
const TOGETHER: f64 = 1e-12;

/// Which constraints tie the same two bodies; kept while the constraints stay the same.
#[derive(Default)]
pub struct Memory {
    /// Bodies of all constraints at the last search.
    made_for: Vec<u32>,
    /// Constraints on two bodies by pair of slots, lower first.
    order: Vec<([u32; 2], u32)>,
    /// Stretches of `order` with several constraints.
    crowds: Vec<Range<usize>>,
    ldl: DenseLdl,
}

/// Finds pairs tied by more rows than they have unknowns, and lets contradicting rows close what can be closed.
pub fn meet_half_way(step: &mut Step<'_>) {
    let work = &mut *step.work;
    let mut memory = std::mem::take(&mut work.repeated);
    memory.find(&work.rows);
    for k in 0..memory.crowds.len() {
        let members = &memory.order[memory.crowds[k].clone()];
        let Some(crowd) = Crowd::of(members, &work.rows, &work.bodies) else { continue };
        if crowd.is_crowded() {
            soften(&crowd, &mut work.rows, &work.bodies);
        }
        let contradiction = crowd.contradiction(&mut memory.ldl, &work.rows);
        if crowd.is_crowded() || contradiction.is_some() {
            let by = contradiction.map(|(by, _)| by);
            step.report.trouble(crowd.trouble(&work.rows, &work.bodies, by));
        }
        if let Some((_, delta)) = contradiction {
            close(&crowd, &mut work.rows, &delta, step.dt);
        }
    }
    work.repeated = memory;
}

/// Constraints that tie one pair.
struct Crowd<'a> {
    slots: [u32; 2],
    members: &'a [([u32; 2], u32)],
    /// Two-sided rows.
    rows: u32,
    /// Which of the bodies moves.
    moves: [bool; 2],
}

impl<'a> Crowd<'a> {
    /// None where nothing is to be decided.
    fn of(members: &'a [([u32; 2], u32)], rows: &Rows, bodies: &Bodies) -> Option<Crowd<'a>> {
        let slots = members[0].0;
        let moves = slots.map(|slot| bodies.is_dynamic(slot));
        let count: usize =
            members.iter().map(|&(_, b)| two_sided(&rows.blocks[b as usize], rows).count()).sum();
        let crowd = Crowd { slots, members, rows: count as u32, moves };
        (crowd.rows > 0 && crowd.moving() > 0).then_some(crowd)
    }

    fn moving(&self) -> u32 {
        self.moves.iter().map(|&m| u32::from(m)).sum()
    }

    fn is_crowded(&self) -> bool {
        self.rows > CROWDED * self.moving()
    }

    /// Calls `f(row, its twists on the two bodies)` for every two-sided row; a body that does not move has none.
    fn for_each(&self, rows: &Rows, mut f: impl FnMut(usize, [[f64; 6]; 2])) {
        for block in self.members.iter().map(|&(_, b)| &rows.blocks[b as usize]) {
            let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
            for i in two_sided(block, rows) {
                let first = block.entry as usize + (i - block.row as usize) * block.bodies as usize;
                let mut twists = [[0.0; 6]; 2];
                for (slot, twist) in slots.iter().zip(&rows.jacobian[first..]) {
                    let k = usize::from(*slot != self.slots[0]);
                    if self.moves[k] {
                        twists[k] = *twist;
                    }
                }
                f(i, twists);
            }
        }
    }

    fn trouble(&self, rows: &Rows, bodies: &Bodies, by: Option<f64>) -> Trouble {
        let [a, b] = self.slots.map(|slot| bodies.entity[slot as usize]);
        let entity = |member: &([u32; 2], u32)| rows.blocks[member.1 as usize].entity;
        let [first, last] = [&self.members[0], &self.members[self.members.len() - 1]].map(entity);
        let (joints, rows, unknowns) = (self.members.len() as u32, self.rows, VELOCITIES * self.moving());
        match by {
            Some(by) => Trouble::Contradictory { a, b, first, last, joints, rows, unknowns, by },
            None => Trouble::Repeated { a, b, first, last, joints, rows, unknowns },
        }
    }

    /// By how much rows contradict one another, and the displacement that meets them as well as possible; none if there is one that
    /// closes them all.
    fn contradiction(&self, ldl: &mut DenseLdl, rows: &Rows) -> Option<(f64, [f64; 12])> {
        let mut worst = 0.0f64;
        self.for_each(rows, |i, _| worst = worst.max(rows.violation[i].abs()));
        if worst <= TOLD {
            return None;
        }
        let (mut normal, mut delta) = ([[0.0; 12]; 12], [0.0; 12]);
        self.for_each(rows, |i, twists| {
            let j = twists.as_flattened();
            for c in 0..12 {
                (c..12).for_each(|r| normal[c][r] += j[c] * j[r]);
                delta[c] -= j[c] * rows.violation[i];
            }
        });
        let size = (0..12).map(|c| normal[c][c]).fold(0.0, f64::max);
        let (panel, ld) = ldl.write(12);
        for (c, column) in normal.iter().enumerate() {
            panel[c * ld + c..c * ld + 12].copy_from_slice(&column[c..]);
        }
        // Both bodies moved alike close nothing: of all answers the least.
        ldl.factor_written(|_| true, &[1e-10 * size; 12]);
        ldl.solve(&mut delta);
        let (mut by, mut turn) = (0.0f64, 0.0);
        self.for_each(rows, |i, twists| by = by.max((rows.violation[i] + dot(&twists, &delta)).abs()));
        for d in delta.chunks_exact(6) {
            turn += DVec3::new(d[3], d[4], d[5]).length();
        }
        // Of second order: what a turn by this much moves apart at arms by which the rows are open.
        (by.is_finite() && by > TOLD + turn * worst).then_some((by, delta))
    }
}

/// Rows of a block whose violation is to be closed from both sides.
fn two_sided<'a>(block: &ConstraintBlock, rows: &'a Rows) -> impl Iterator<Item = usize> + use<'a> {
    (block.row as usize..(block.row + block.rows) as usize).filter(|&i| rows.position_level[i])
}

impl Memory {
    /// Groups the constraints by their bodies, if these have changed.
    fn find(&mut self, rows: &Rows) {
        let slots = |b: &ConstraintBlock| &rows.body[b.body as usize..(b.body + b.bodies) as usize];
        let marks =
            || rows.blocks.iter().flat_map(|b| std::iter::once(b.bodies).chain(slots(b).iter().copied()));
        if self.made_for.iter().copied().eq(marks()) {
            return;
        }
        self.made_for.clear();
        self.made_for.extend(marks());
        self.order.clear();
        for (k, block) in (0..).zip(&rows.blocks) {
            if let [a, b] = *slots(block) {
                self.order.push(([a.min(b), a.max(b)], k));
            }
        }
        self.order.sort_unstable();
        self.crowds.clear();
        let mut first = 0;
        for crowd in self.order.chunk_by(|x, y| x.0 == y.0) {
            if crowd.len() > 1 {
                self.crowds.push(first..first + crowd.len());
            }
            first += crowd.len();
        }
    }
}

fn dot(twists: &[[f64; 6]; 2], delta: &[f64; 12]) -> f64 {
    twists.as_flattened().iter().zip(delta).map(|(j, d)| j * d).sum()
}

/// Rows close −J δ in place of φ, and nothing that looks for open joints looks at them.
fn close(crowd: &Crowd<'_>, rows: &mut Rows, delta: &[f64; 12], dt: f64) {
    let mut changes = Vec::new();
    crowd.for_each(rows, |i, twists| {
        let Closing::Share(share) = rows.closing[i] else { return };
        let speed = |phi: f64| (share * phi / dt).clamp(-rows.most[i], rows.most[i]);
        changes.push((i, speed(-dot(&twists, delta)) - speed(rows.violation[i])));
    });
    for (i, change) in changes {
        rows.d[i] += change;
        rows.position_level[i] = false;
        rows.closing[i] = Closing::Velocity;
    }
}

/// Many hard rows side by side are harder than any of them: their compliance is as many times the least that is needed.
fn soften(crowd: &Crowd<'_>, rows: &mut Rows, bodies: &Bodies) {
    let ease = crowd.slots.map(|slot| Ease::of(bodies, slot));
    let mut least = Vec::new();
    crowd.for_each(rows, |i, twists| {
        let tied: f64 = twists.iter().zip(&ease).map(|(t, ease)| ease.along(&twist(t))).sum();
        least.push((i, TOGETHER * f64::from(crowd.rows) * tied));
    });
    for (i, least) in least {
        rows.compliance[i] = rows.compliance[i].max(least);
    }
}

fn twist(t: &[f64; 6]) -> Twist {
    Twist { linear: DVec3::new(t[0], t[1], t[2]), angular: DVec3::new(t[3], t[4], t[5]) }
}
