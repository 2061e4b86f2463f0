//! Kinetic energy of an island before and after its solve, and what its joints have to do with it.

use super::assemble::{mass_block, times};
use crate::state::{Bodies, Island, Rows};
use glam::DVec3;

/// Twice the kinetic energy without constraints.
pub fn free(island: &Island, bodies: &Bodies) -> f64 {
    twice(island, bodies, &bodies.free)
}

/// Twice the kinetic energy that the solve added to it; mostly it takes some.
pub fn gain(island: &Island, bodies: &Bodies) -> f64 {
    twice(island, bodies, &bodies.velocity) - free(island, bodies)
}

/// Twice the kinetic energy that came from rigid joints, less what motors, springs, contacts and driven bodies gave. A joint
/// does no work, so whatever it gives is an error of the step.
pub fn gain_by_joints(island: &Island, bodies: &Bodies, rows: &Rows) -> f64 {
    let mut others = 0.0;
    for block in island.blocks.iter().map(|&b| &rows.blocks[b as usize]) {
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        let driven = slots.iter().any(|&slot| {
            let view = &bodies.view[slot as usize];
            let still = view.linear_velocity == DVec3::ZERO && view.angular_velocity == DVec3::ZERO;
            !bodies.is_dynamic(slot) && !still
        });
        for row in 0..block.rows {
            let i = (block.row + row) as usize;
            if rows.position_level[i] && !driven {
                continue;
            }
            for (k, &slot) in slots.iter().enumerate().filter(|(_, slot)| bodies.is_dynamic(**slot)) {
                let j = &rows.jacobian[(block.entry + row * block.bodies) as usize + k];
                // ½|v⁺|² − ½|v|² is the impulse times the mean of both velocities.
                let ([v, w], [x, y]) = (bodies.free[slot as usize], bodies.velocity[slot as usize]);
                let speed = DVec3::new(j[0], j[1], j[2]).dot(v + x) + DVec3::new(j[3], j[4], j[5]).dot(w + y);
                others += rows.lambda[i] * speed;
            }
        }
    }
    let couplings = &rows.couplings;
    for element in island.elements.iter().map(|&e| &couplings.elements[e as usize]) {
        couplings.for_each_impulse(
            element,
            |slot| bodies.pushed_velocity(slot),
            |slot, impulse| {
                if bodies.is_dynamic(slot) {
                    let ([v, w], [x, y]) = (bodies.free[slot as usize], bodies.velocity[slot as usize]);
                    others += along(&impulse, v + x, w + y);
                }
            },
        );
    }
    gain(island, bodies) - others
}

/// A twist's six numbers times a velocity.
pub(super) fn along(j: &[f64; 6], v: DVec3, w: DVec3) -> f64 {
    DVec3::new(j[0], j[1], j[2]).dot(v) + DVec3::new(j[3], j[4], j[5]).dot(w)
}

fn twice(island: &Island, bodies: &Bodies, velocity: &[[DVec3; 2]]) -> f64 {
    let of = |&slot: &u32| {
        let [v, w] = velocity[slot as usize];
        let p = times(&mass_block(&bodies.view[slot as usize]), [v, w]);
        v.dot(DVec3::new(p[0], p[1], p[2])) + w.dot(DVec3::new(p[3], p[4], p[5]))
    };
    island.bodies.iter().map(of).sum()
}
