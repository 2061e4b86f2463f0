//! What joints carry, in N and N·m, which of them reach a stop, and which give way.

use crate::components::{Breakable, Broken, JointForce};
use crate::events::ContactEvent;
use crate::schedule::Step;
use crate::state::{ConstraintBlock, Rows, Work};
use glam::DVec3;

/// Writes [`JointForce`] where it is asked for, and breaks what is overloaded.
pub fn report_joint_forces(step: &mut Step<'_>) {
    let (dt, work) = (step.dt, &*step.work);
    let rows = &work.rows;
    if rows.blocks.is_empty() {
        return;
    }
    let mut broken = Vec::new();
    let mut query = step.world.query::<hecs::Or<&mut JointForce, &Breakable>>();
    let mut wanted = query.view();
    for block in rows.blocks.iter().filter(|b| !b.fold) {
        let Some(wanted) = wanted.get_mut(block.entity) else { continue };
        let carried = carried(rows, block, dt, is_followed(work, block));
        let (force, limits) = wanted.split();
        if let Some(force) = force {
            *force = carried;
        }
        if limits.is_some_and(|b| carried.force.length() > b.force || carried.torque.length() > b.torque) {
            broken.push((block.entity, carried));
        }
    }
    drop(wanted);
    drop(query);
    let Work { rows, collision, .. } = &mut *step.work;
    report_limits(rows, &mut collision.events);
    for (entity, by) in broken {
        // The entity was in the query above, so it exists.
        let _ = step.world.insert_one(entity, Broken { by });
        step.report.broken.push(entity);
        step.work.collision.events.push(ContactEvent::JointBroke { joint: entity, by });
    }
}

/// Notes which stops and ropes act that did not in the last step, in the order of the rows.
fn report_limits(rows: &Rows, events: &mut Vec<ContactEvent>) {
    for block in rows.blocks.iter().filter(|b| !b.fold) {
        for row in block.row as usize..(block.row + block.rows) as usize {
            let one_sided = (rows.lo[row] == 0.0) != (rows.hi[row] == 0.0);
            if one_sided && rows.before[row] == 0.0 && rows.lambda[row] != 0.0 {
                events.push(ContactEvent::LimitReached { joint: block.entity, row: rows.key[row] });
            }
        }
    }
}

/// Did the chord step follow the island of a block?
fn is_followed(work: &Work, block: &ConstraintBlock) -> bool {
    let slots = &work.rows.body[block.body as usize..(block.body + block.bodies) as usize];
    let islands =
        slots.iter().filter_map(|&slot| work.islands.get(*work.island_of.get(slot as usize)? as usize));
    islands.into_iter().any(|island| island.is_followed())
}

/// Force and torque on the constraint's last body, about its anchor. Impulses of the chord step close joints in the mean over a step, and
/// so swing from step to step about the force that acts: `smooth` takes the mean of two.
fn carried(rows: &Rows, block: &ConstraintBlock, dt: f64, smooth: bool) -> JointForce {
    let (mut force, mut torque) = (DVec3::ZERO, DVec3::ZERO);
    let own = block.row as usize..(block.row + block.rows) as usize;
    let smooth = smooth && rows.before[own].iter().any(|l| *l != 0.0);
    for row in 0..block.rows {
        let i = (block.row + row) as usize;
        let lambda = if smooth { 0.5 * (rows.before[i] + rows.lambda[i]) } else { rows.lambda[i] } / dt;
        let j = &rows.jacobian[(block.entry + row * block.bodies + block.last) as usize];
        force += DVec3::new(j[0], j[1], j[2]) * lambda;
        torque += DVec3::new(j[3], j[4], j[5]) * lambda;
    }
    JointForce { force, torque: torque - block.lever.cross(force) }
}

impl crate::Physics {
    /// How many rows of two-sided joints depended on others in the last step: what a mechanism is over-constrained by.
    ///
    /// Their forces are shared as equals (least sum of squares). Works out a rank, so it is for a look, not for every step.
    pub fn redundant_rows(&self) -> usize {
        self.work.islands.iter().map(|i| crate::solver::redundancy::redundant_rows(&i.problem)).sum()
    }
}
