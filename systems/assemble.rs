//! Rows and masses become one problem per island (000 eqs. 4, 8).

use super::gather::world_inertia;
use crate::constraint::BodyView;
use crate::schedule::Step;
use crate::solver::RowBlock;
use crate::work::{Bodies, Island, Rows};
use glam::DVec3;
use rayon::prelude::*;

/// Fills every island's problem. Fixed and kinematic bodies leave it: their velocity moves into d.
pub fn assemble_islands(step: &mut Step<'_>) {
    let work = &mut *step.work;
    let (bodies, rows) = (&work.bodies, &work.rows);
    let local = local_numbers(&work.islands, bodies.len(), &mut work.local);
    let warm = step.settings.warm_start;
    work.islands.par_iter_mut().for_each(|island| assemble(island, bodies, rows, local, warm));
}

/// The number of each slot within its island.
fn local_numbers<'a>(islands: &[Island], n: usize, local: &'a mut Vec<u32>) -> &'a [u32] {
    local.resize(n, 0);
    for island in islands {
        for (k, &slot) in island.bodies.iter().enumerate() {
            local[slot as usize] = k as u32;
        }
    }
    local
}

fn assemble(island: &mut Island, bodies: &Bodies, rows: &Rows, local: &[u32], warm: bool) {
    let problem = &mut island.problem;
    problem.clear();
    for &slot in &island.bodies {
        let slot = slot as usize;
        let mass = mass_block(&bodies.view[slot]);
        problem.momentum.push(times(&mass, bodies.velocity[slot]));
        problem.mass.push(mass);
    }
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

/// The 6×6 mass block of a body, row by row.
fn mass_block(view: &BodyView) -> [f64; 36] {
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

fn times(mass: &[f64; 36], [v, w]: [DVec3; 2]) -> [f64; 6] {
    let x = [v.x, v.y, v.z, w.x, w.y, w.z];
    std::array::from_fn(|i| (0..6).map(|j| mass[6 * i + j] * x[j]).sum())
}
