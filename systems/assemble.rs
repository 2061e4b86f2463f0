//! Rows and masses become one problem per island (000 eqs. 4, 8).

use super::gather::world_inertia;
use super::parallel::for_each;
use crate::constraint::BodyView;
use crate::schedule::Step;
use crate::solver::{Cone, Coupling, RowBlock};
use crate::state::{Bodies, Island, Rows};
use glam::DVec3;
use rayon::prelude::*;

/// Keeps the free velocities and fills every island's problem.
pub fn assemble_islands(step: &mut Step<'_>) {
    step.work.bodies.free.clone_from(&step.work.bodies.velocity);
    assemble_needed(step);
}

/// Fills the problems of islands that are stale. Fixed and kinematic bodies leave them: their velocity moves into d.
pub fn assemble_needed(step: &mut Step<'_>) {
    let work = &mut *step.work;
    let (bodies, rows) = (&work.bodies, &work.rows);
    let local = work.local.as_slice();
    let warm = step.settings.tuning.warm_start;
    let h2 = step.dt * step.dt;
    let share = [step.settings.tuning.geometric_stiffness * h2, step.settings.tuning.stiffness_damping * h2];
    let dt = step.dt;
    for_each(work.islands.par_iter_mut(), |island| {
        if island.needs_solve {
            assemble(island, bodies, rows, local, share, dt, warm);
        }
    });
}

fn assemble(
    island: &mut Island,
    bodies: &Bodies,
    rows: &Rows,
    local: &[u32],
    share: [f64; 2],
    dt: f64,
    warm: bool,
) {
    let problem = &mut island.problem;
    problem.clear();
    if island.bodies.iter().any(|&slot| !bodies.view[slot as usize].rotates()) {
        let width = |slot: &u32| if bodies.view[*slot as usize].rotates() { 6 } else { 3 };
        problem.width.extend(island.bodies.iter().map(width));
    }
    for &slot in &island.bodies {
        let slot = slot as usize;
        let mut mass = mass_block(&bodies.view[slot]);
        let mut momentum = times(&mass, bodies.free[slot]);
        if let Some(stiffness) = bodies.stiffness.get(slot) {
            add_stiffness(&mut mass, &mut momentum, stiffness, &bodies.view[slot], share[0], dt);
        }
        if let Some(damping) = bodies.stiffness_damping.get(slot) {
            add_damping(&mut mass, &mut momentum, damping, share[1]);
        }
        problem.momentum.push(momentum);
        problem.mass.push(mass);
    }
    add_elements(island, bodies, rows, local);
    couple(island, bodies, rows, local);
    let problem = &mut island.problem;
    island.solution.lambda.clear();
    island.solution.labels.clear();
    for &b in &island.blocks {
        let block = &rows.blocks[b as usize];
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        let first_row = problem.d.len() as u32;
        let (first_body, first_entry) = (problem.block_bodies.len() as u32, problem.jacobian.len() as u32);
        problem
            .block_bodies
            .extend(slots.iter().filter(|&&s| bodies.is_dynamic(s)).map(|&s| local[s as usize]));
        for row in 0..block.rows {
            let i = (block.row + row) as usize;
            let mut d = rows.d[i];
            for (k, &slot) in slots.iter().enumerate() {
                let j = &rows.jacobian[block.entry as usize + (row * block.bodies) as usize + k];
                if bodies.is_dynamic(slot) {
                    problem.jacobian.extend_from_slice(j);
                } else {
                    let [v, w] = bodies.velocity[slot as usize];
                    d += DVec3::new(j[0], j[1], j[2]).dot(v) + DVec3::new(j[3], j[4], j[5]).dot(w);
                }
            }
            problem.d.push(d);
            problem.compliance.push(rows.compliance[i]);
            problem.lo.push(rows.lo[i]);
            problem.hi.push(rows.hi[i]);
            problem.kind.push(rows.kind[i]);
            if warm {
                island.solution.lambda.push(rows.lambda[i]);
                island.solution.labels.push(rows.label[i]);
            }
        }
        let first = rows.cones.partition_point(|cone| cone.row < block.row);
        let cones = rows.cones[first..].iter().take_while(|cone| cone.row < block.row + block.rows);
        problem.cones.extend(cones.map(|cone| Cone { row: first_row + cone.row - block.row, mu: cone.mu }));
        problem.blocks.push(RowBlock {
            row: first_row,
            rows: block.rows,
            body: first_body,
            bodies: problem.block_bodies.len() as u32 - first_body,
            entry: first_entry,
            fold: block.fold,
        });
    }
}

/// What the island's elements have on the diagonal of A, and p; the velocities of bodies that do not move by impulses go there, too.
pub(super) fn add_elements(island: &mut Island, bodies: &Bodies, rows: &Rows, local: &[u32]) {
    let (problem, all) = (&mut island.problem, &rows.couplings);
    for element in island.elements.iter().map(|&e| &all.elements[e as usize]) {
        for (slot, impulse) in
            all.impulses[element.impulses.clone()].iter().filter(|i| bodies.is_dynamic(i.0))
        {
            let p = &mut problem.momentum[local[*slot as usize] as usize];
            p.iter_mut().zip(impulse).for_each(|(p, g)| *p += g);
        }
        for (a, b, block) in &all.blocks[element.blocks.clone()] {
            let moved = |slot: u32, at: &dyn Fn(usize, usize) -> f64, p: &mut [f64; 6]| {
                let v = bodies.pushed_velocity(slot);
                (0..6).for_each(|i| p[i] -= (0..6).map(|j| at(i, j) * v[j]).sum::<f64>());
            };
            match (bodies.is_dynamic(*a), bodies.is_dynamic(*b)) {
                (true, true) if a == b => {
                    let mass = &mut problem.mass[local[*a as usize] as usize];
                    mass.iter_mut().zip(block).for_each(|(m, h)| *m += h);
                }
                (true, false) => {
                    moved(*b, &|i, j| block[6 * i + j], &mut problem.momentum[local[*a as usize] as usize]);
                }
                (false, true) => {
                    moved(*a, &|i, j| block[6 * j + i], &mut problem.momentum[local[*b as usize] as usize]);
                }
                _ => {}
            }
        }
    }
}

/// The blocks between two of the island's bodies.
fn couple(island: &mut Island, bodies: &Bodies, rows: &Rows, local: &[u32]) {
    let all = &rows.couplings;
    for element in island.elements.iter().map(|&e| &all.elements[e as usize]) {
        let between = all.blocks[element.blocks.clone()].iter();
        let between = between.filter(|(a, b, _)| a != b && bodies.is_dynamic(*a) && bodies.is_dynamic(*b));
        island.problem.couplings.extend(between.map(|(a, b, block)| Coupling {
            a: local[*a as usize],
            b: local[*b as usize],
            block: *block,
        }));
    }
}

/// M̃ = M + βh²K on the **change** of velocity: M̃ (v⁺ − v) = h f + Jᵀλ.
///
/// Newmark's β: unconditionally stable from β = ¼ on, and it takes nothing from slow motion, where plain backward Euler
/// (M̃ v⁺ = M v + …) brakes every swing. An error in K (it comes from the last step's forces) is an error of the inertia
/// of motions that the step cannot resolve anyway, never one of the forces.
fn add_stiffness(
    mass: &mut [f64; 36],
    momentum: &mut [f64; 6],
    stiffness: &[f64; 36],
    view: &BodyView,
    share: f64,
    dt: f64,
) {
    let kept = kept_velocity(dt * view.angular_velocity.length());
    let kv = times(stiffness, [view.linear_velocity * kept, view.angular_velocity * kept]);
    for (m, k) in mass.iter_mut().zip(stiffness) {
        *m += share * k;
    }
    for (p, kv) in momentum.iter_mut().zip(kv) {
        *p += share * kv;
    }
}

/// How much of its velocity a stiff body may carry over, by the angle it turns in a step. All, up to a quarter of a
/// radian: no swing is braked. Beyond half a radian K no longer means anything for the next pose; then it resists the
/// velocity itself (backward Euler), so that a chain snapping taut loses energy instead of whirling it up.
fn kept_velocity(turn: f64) -> f64 {
    (2.0 - 4.0 * turn).clamp(0.0, 1.0)
}

/// −εh²K (ω⁺ − ω of the neighbour before the step), own part implicit: it damps for any ε and leaves common turning alone.
fn add_damping(mass: &mut [f64; 36], momentum: &mut [f64; 6], damping: &([f64; 9], [f64; 3]), share: f64) {
    for i in 0..3 {
        for j in 0..3 {
            mass[6 * (3 + i) + 3 + j] += share * damping.0[3 * i + j];
        }
        momentum[3 + i] += share * damping.1[i];
    }
}

/// The 6×6 mass block of a body, row by row.
pub(super) fn mass_block(view: &BodyView) -> [f64; 36] {
    let mut block = [0.0; 36];
    let inertia = world_inertia(view);
    for i in 0..3 {
        block[7 * i] = view.mass;
        for j in 0..3 {
            // Both triangles from one product: the tensor must be symmetric to the last bit.
            let (low, high) = (i.min(j), i.max(j));
            block[6 * (3 + i) + 3 + j] = inertia.col(high)[low];
        }
    }
    block
}

pub(super) fn times(mass: &[f64; 36], [v, w]: [DVec3; 2]) -> [f64; 6] {
    let x = [v.x, v.y, v.z, w.x, w.y, w.z];
    std::array::from_fn(|i| (0..6).map(|j| mass[6 * i + j] * x[j]).sum())
}
