//! Subsystems answer their three questions: free motion and response before the solve, the impulses that came after it.

use super::assemble::{mass_block, times};
use super::rows::{list, number_new};
use crate::components::{AngularVelocity, LinearVelocity, Quarantined};
use crate::constraint::BodyView;
use crate::linalg::dense::DenseLdl;
use crate::report::Trouble;
use crate::schedule::Step;
use crate::subsystem::{Fault, PortResponse, Subsystem};
use hecs::Entity;

/// S may miss its symmetry by this share of its largest number: what iterative simulators leave.
const EVEN: f64 = 1e-6;

/// Pivots of S below this share of the diagonal are round-off.
const LEAST: f64 = 1e-13;

/// The system that asks all subsystems of type `T` for free motion and response, in creation order, and couples their ports.
pub fn couple_ports<T: Subsystem>() -> impl FnMut(&mut Step<'_>) + Send + Sync {
    let (mut order, mut memory) = (Vec::new(), Memory::default());
    move |step| {
        number_new::<T>(step.world, &mut step.work.next_constraint);
        list::<T>(step.world, &mut order);
        for &(_, entity) in &order {
            if step.world.satisfies::<&Quarantined>(entity) {
                continue;
            }
            if !step.world.satisfies::<&PortResponse>(entity) {
                // The entity was listed just now, so it exists.
                let _ = step.world.insert_one(entity, PortResponse::default());
            }
            if let Err(fault) = couple::<T>(step, entity, &mut memory) {
                quarantine::<T>(step, entity);
                step.report.trouble(Trouble::Subsystem { entity, fault });
            }
        }
    }
}

/// The system that hands all subsystems of type `T` the impulses on their ports.
pub fn commit_ports<T: Subsystem>() -> impl FnMut(&mut Step<'_>) + Send + Sync {
    let mut order = Vec::new();
    let (mut impulse, mut change) = (Vec::new(), Vec::new());
    move |step| {
        list::<T>(step.world, &mut order);
        for &(_, entity) in &order {
            let bodies = &step.work.bodies;
            let Ok((subsystem, kept)) = step.world.query_one_mut::<(&mut T, &mut PortResponse)>(entity)
            else {
                continue;
            };
            if !std::mem::take(&mut kept.open) {
                continue;
            }
            // λ = S⁻¹ (v⁺ − v₀)
            let after = kept.ports.iter().flat_map(|(port, _)| {
                bodies.slot_of(*port).map_or([0.0; 6], |slot| bodies.pushed_velocity(slot))
            });
            change.clear();
            change.extend(after.zip(&kept.free).map(|(v, free)| v - free));
            impulse.clear();
            impulse.extend(kept.inverse.chunks_exact(change.len().max(1)).map(|row| dot(row, &change)));
            if subsystem.commit(&impulse) {
                kept.inverse.clear();
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Ports of the subsystem at hand.
#[derive(Default)]
struct Memory {
    slots: Vec<u32>,
    views: Vec<BodyView>,
}

/// Couples the ports of one subsystem: A gets S⁻¹ in place of their masses, and p gets S⁻¹ v₀ in place of M v.
fn couple<T: Subsystem>(
    step: &mut Step<'_>,
    entity: Entity,
    Memory { slots, views }: &mut Memory,
) -> Result<(), Fault> {
    let work = &mut *step.work;
    let (bodies, couplings) = (&work.bodies, &mut work.rows.couplings);
    let Ok((subsystem, kept)) = step.world.query_one_mut::<(&mut T, &mut PortResponse)>(entity) else {
        return Ok(());
    };
    slots.clear();
    for &port in subsystem.ports() {
        let slot = bodies.slot_of(port).ok_or(Fault::PortGone(port))?;
        if slots.contains(&slot) || couplings.ports.contains(&slot) {
            return Err(Fault::PortTaken(port));
        }
        slots.push(slot);
    }
    views.clear();
    views.extend(slots.iter().map(|&slot| bodies.view[slot as usize]));
    let start = views.iter().map(|view| [view.linear_velocity, view.angular_velocity]);
    kept.free.clear();
    kept.free.extend(start.flat_map(|[v, w]| [v.x, v.y, v.z, w.x, w.y, w.z]));
    subsystem.predict(views, step.dt, &mut kept.free);
    if !kept.free.iter().all(|v| v.abs() <= step.settings.tuning.max_speed) {
        return Err(Fault::FreeMotion);
    }
    let widths = views.iter().map(|view| if view.rotates() { 6 } else { 3 });
    let same = subsystem.ports().iter().copied().zip(widths.clone()).eq(kept.ports.iter().copied());
    if !same || kept.made_for != (step.dt, work.restored) || kept.inverse.is_empty() {
        kept.ports.clear();
        kept.ports.extend(subsystem.ports().iter().copied().zip(widths));
        kept.made_for = (step.dt, work.restored);
        ask(subsystem, kept)?;
    }
    let n = kept.free.len();
    let inverse = |a: usize, b: usize| -> [f64; 36] {
        std::array::from_fn(|k| kept.inverse[n * (6 * a + k / 6) + 6 * b + k % 6])
    };
    couplings.push(
        entity,
        slots,
        |a, b| {
            let mut block = inverse(a, b);
            if a == b {
                block.iter_mut().zip(mass_block(&views[a])).for_each(|(h, m)| *h -= m);
            }
            block
        },
        |a| {
            let before = times(&mass_block(&views[a]), [views[a].linear_velocity, views[a].angular_velocity]);
            std::array::from_fn(|i| dot(&kept.inverse[n * (6 * a + i)..][..n], &kept.free) - before[i])
        },
    );
    kept.open = true;
    couplings.ports.extend_from_slice(slots);
    let sleeping = slots.iter().filter(|&&slot| bodies.asleep[slot as usize]);
    work.collision.disturbed.extend(sleeping.map(|&slot| bodies.entity[slot as usize]));
    Ok(())
}

/// Asks for S, one unit impulse after the other, and inverts it.
fn ask<T: Subsystem>(subsystem: &mut T, kept: &mut PortResponse) -> Result<(), Fault> {
    let own: Vec<usize> =
        kept.ports.iter().enumerate().flat_map(|(k, &(_, width))| 6 * k..6 * k + width).collect();
    let (n, m) = (6 * kept.ports.len(), own.len());
    let (mut unit, mut change, mut s) = (vec![0.0; n], vec![0.0; n], vec![0.0; m * m]);
    kept.inverse.clear();
    for (column, &at) in own.iter().enumerate() {
        unit[at] = 1.0;
        change.fill(0.0);
        if !subsystem.respond(&unit, &mut change) {
            return Err(Fault::Unsaid);
        }
        unit[at] = 0.0;
        own.iter().enumerate().for_each(|(row, &i)| s[m * row + column] = change[i]);
    }
    if s.iter().any(|x| !x.is_finite()) {
        return Err(Fault::Response);
    }
    let most = s.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    for i in 0..m {
        for j in 0..i {
            if (s[m * i + j] - s[m * j + i]).abs() > EVEN * most {
                return Err(Fault::Indefinite);
            }
            let mean = 0.5 * (s[m * i + j] + s[m * j + i]);
            (s[m * i + j], s[m * j + i]) = (mean, mean);
        }
    }
    let least: Vec<f64> = (0..m).map(|i| -LEAST * s[m * i + i].abs()).collect();
    let mut factor = DenseLdl::default();
    if factor.factor(m, &s, |_| true, &least) > 0 || factor.factor(m, &s, |_| true, &vec![0.0; m]) > 0 {
        return Err(Fault::Indefinite);
    }
    kept.inverse.resize(n * n, 0.0);
    let mut x = vec![0.0; m];
    for (column, &j) in own.iter().enumerate() {
        x.fill(0.0);
        x[column] = 1.0;
        factor.solve(&mut x);
        // One triangle serves both: A is symmetric to the last bit.
        for (&i, x) in own.iter().zip(&x).skip(column) {
            (kept.inverse[n * i + j], kept.inverse[n * j + i]) = (*x, *x);
        }
    }
    Ok(())
}

/// Takes a subsystem out, and its ports with it: they stand still.
fn quarantine<T: Subsystem>(step: &mut Step<'_>, entity: Entity) {
    let ports = step.world.get::<&T>(entity).map(|subsystem| subsystem.ports().to_vec()).unwrap_or_default();
    // The entity is there, or there is nothing to take out.
    let _ = step.world.insert_one(entity, Quarantined);
    let _ = step.world.remove_one::<PortResponse>(entity);
    for port in ports {
        let Some(slot) = step.work.bodies.slot_of(port) else { continue };
        step.report.quarantined += u32::from(!step.work.bodies.quarantined[slot as usize]);
        step.work.bodies.hold(slot as usize);
        step.work.bodies.velocity[slot as usize] = Default::default();
        let _ = step.world.insert(port, (Quarantined, LinearVelocity::default(), AngularVelocity::default()));
    }
}
