//! The work that bodies are given: what a rise of their energy may come from.
//!
//! From v to v⁺ the kinetic energy changes by every impulse times the mean velocity it acts along,
//!
//! ```text
//!     ½ v⁺ᵀ M v⁺ − ½ vᵀ M v = (h f + Jᵀ λ)ᵀ ½ (v + v⁺)
//! ```
//!
//! so it falls into the work of each force and of each row. RowSample is that of rows that drive, of all rows that tie a body to a
//! kinematic one that moves, and of forces other than gravity. Rigid joints do none, and contacts, friction and damping
//! take energy: what rises beyond the work told is an error of the step.

use super::energy::along;
use super::measure::energies;
use crate::components::BodyKind;
use crate::schedule::Step;
use crate::state::{Bodies, ConstraintBlock, Rows};
use glam::DVec3;

/// What the game changed since the last step: velocities and poses set, bodies added, freed or taken away.
pub fn count_changes(step: &mut Step<'_>) {
    if !step.settings.measure {
        return;
    }
    if let Some(before) = step.work.energy {
        let (kinetic, potential) = energies(&step.work.bodies, step.settings.gravity);
        step.report.work_done += kinetic + potential - before;
    }
}

/// The work of the step's impulses and forces, once the velocities at its end are known.
pub fn count_work(step: &mut Step<'_>) {
    if !step.settings.measure {
        return;
    }
    let (bodies, rows) = (&step.work.bodies, &step.work.rows);
    let blocks: f64 = rows.blocks.iter().map(|block| of_block(block, rows, bodies)).sum();
    step.report.work_done += blocks + step.dt * of_forces(bodies, step.settings.gravity);
    step.report.work_done += of_couplings(rows, bodies);
}

/// Work (J) of couplings: what they give they have taken before, but energies of springs and subsystems are not measured.
fn of_couplings(rows: &Rows, bodies: &Bodies) -> f64 {
    let mut work = 0.0;
    for element in &rows.couplings.elements {
        rows.couplings.for_each_impulse(
            element,
            |slot| bodies.pushed_velocity(slot),
            |slot, impulse| {
                if bodies.is_dynamic(slot) {
                    let [v, w] = mean(bodies, slot);
                    work += along(&impulse, v, w);
                }
            },
        );
    }
    work
}

/// Power (W) of forces other than gravity.
fn of_forces(bodies: &Bodies, gravity: DVec3) -> f64 {
    let mut power = 0.0;
    for slot in (0..bodies.len()).filter(|&slot| bodies.is_dynamic(slot as u32)) {
        let ([force, torque], mass) = (bodies.force[slot], bodies.view[slot].mass);
        let [v, w] = mean(bodies, slot as u32);
        power += (force - gravity * mass).dot(v) + torque.dot(w);
    }
    power
}

/// Mean of the velocities before and after: linear, angular.
fn mean(bodies: &Bodies, slot: u32) -> [DVec3; 2] {
    let (view, [v, w]) = (&bodies.view[slot as usize], bodies.velocity[slot as usize]);
    [(view.linear_velocity + v) * 0.5, (view.angular_velocity + w) * 0.5]
}

fn of_block(block: &ConstraintBlock, rows: &Rows, bodies: &Bodies) -> f64 {
    let own = block.row as usize..(block.row + block.rows) as usize;
    let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
    let carried = slots
        .iter()
        .any(|&slot| bodies.view[slot as usize].kind == BodyKind::Kinematic && bodies.is_awake(slot));
    if !carried && !rows.drives[own.clone()].contains(&true) {
        return 0.0;
    }
    let mut work = 0.0;
    for row in own.filter(|&row| carried || rows.drives[row]) {
        let entry = block.entry as usize + (row - block.row as usize) * slots.len();
        for (j, &slot) in
            rows.jacobian[entry..].iter().zip(slots).filter(|(_, slot)| bodies.is_dynamic(**slot))
        {
            let [v, w] = mean(bodies, slot);
            let speed = DVec3::new(j[0], j[1], j[2]).dot(v) + DVec3::new(j[3], j[4], j[5]).dot(w);
            work += rows.lambda[row] * speed;
        }
    }
    work
}
