//! What the step did, in numbers: energy, joint error.

use super::gather::world_inertia;
use crate::components::BodyKind;
use crate::constraint::BodyView;
use crate::schedule::Step;
use crate::state::{Bodies, EvaluateAt, RowSample};
use glam::DVec3;

/// Energies of all bodies, and how far joints are open after the step.
pub fn measure_step(step: &mut Step<'_>) {
    if !step.settings.measure {
        return;
    }
    let energies = energies(&step.work.bodies, step.settings.gravity);
    // Squares of a speed that the next step's guard quarantines may be no numbers; the report has numbers only.
    let [kinetic, potential] = [energies.0, energies.1]
        .map(|e: f64| if e.is_nan() { -f64::MAX } else { e.clamp(-f64::MAX, f64::MAX) });
    (step.report.kinetic, step.report.potential) = (kinetic, potential);
    step.work.energy = Some(kinetic + potential);
    measure_joints(step);
}

/// Kinetic and potential energy (J) of the bodies that move by forces.
pub fn energies(bodies: &Bodies, gravity: DVec3) -> (f64, f64) {
    let (mut kinetic, mut potential) = (0.0, 0.0);
    for (view, _) in bodies.view.iter().zip(&bodies.quarantined).filter(|(_, out)| !**out) {
        if view.kind == BodyKind::Dynamic {
            let w = view.angular_velocity;
            kinetic += 0.5 * view.mass * view.linear_velocity.length_squared();
            if w != DVec3::ZERO {
                kinetic += 0.5 * w.dot(world_inertia(view) * w);
            }
            potential -= view.mass * gravity.dot(view.position);
        }
    }
    (kinetic, potential)
}

/// How far a body reaches from one side to the other (m), from its inertia: for a box its diagonal, 2 √(3/2 tr I / m).
fn reach(view: &BodyView) -> f64 {
    let i = view.inertia;
    2.0 * (1.5 * (i.x_axis.x + i.y_axis.y + i.z_axis.z) / view.mass).sqrt()
}

/// The distance (m) by which a row is open. That of an angle is seen at the far side of the smaller body.
fn gap(row: &RowSample<'_>, bodies: &Bodies) -> f64 {
    if row.jacobian.iter().any(|j| j[..3] != [0.0; 3]) {
        return row.violation.abs();
    }
    let dynamic = row.slots.iter().filter(|&&slot| bodies.view[slot as usize].kind == BodyKind::Dynamic);
    let least = dynamic.map(|&slot| reach(&bodies.view[slot as usize])).fold(f64::INFINITY, f64::min);
    if least.is_finite() { row.violation.abs() * least } else { row.violation.abs() }
}

fn measure_joints(step: &mut Step<'_>) {
    let (mut count, mut squares, mut most, mut widest, mut whose) = (0u32, 0.0, 0.0f64, 0.0f64, None);
    let mut constraints = std::mem::take(&mut step.work.constraints);
    for of in constraints.iter_mut().filter(|of| of.present) {
        let bodies = &step.work.bodies;
        let question = EvaluateAt::violations(&bodies.view);
        (of.gauge)(step.world, bodies, &question, &mut |row: &RowSample<'_>| {
            if row.measured {
                count += 1;
                widest = widest.max(gap(row, bodies));
                squares += row.violation * row.violation;
                if row.violation.abs() > most {
                    (most, whose) = (row.violation.abs(), Some((row.entity, row.key)));
                }
            }
        });
    }
    step.work.constraints = constraints;
    (step.report.joint_error_max, step.report.joint_error_at) = (most, whose);
    step.report.joint_gap_max = widest;
    step.report.joint_error_rms = if count == 0 { 0.0 } else { (squares / f64::from(count)).sqrt() };
}
