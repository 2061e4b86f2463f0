//! What the step did, in numbers: energy, joint error.

use super::gather::world_inertia;
use crate::components::BodyKind;
use crate::schedule::Step;
use crate::work::{Question, Told};

/// Energies of all bodies, and how far joints are open after the step.
pub fn measure_step(step: &mut Step<'_>) {
    if !step.settings.measure {
        return;
    }
    let (mut kinetic, mut potential) = (0.0, 0.0);
    let bodies = &step.work.bodies;
    for (view, _) in bodies.view.iter().zip(&bodies.quarantined).filter(|(_, out)| !**out) {
        if view.kind == BodyKind::Dynamic {
            let w = view.angular_velocity;
            kinetic += 0.5 * view.mass * view.linear_velocity.length_squared();
            kinetic += 0.5 * w.dot(world_inertia(view) * w);
            potential -= view.mass * step.settings.gravity.dot(view.position);
        }
    }
    (step.report.kinetic, step.report.potential) = (kinetic, potential);
    measure_joints(step);
}

fn measure_joints(step: &mut Step<'_>) {
    let (mut count, mut squares, mut most, mut whose) = (0u32, 0.0, 0.0f64, None);
    let mut gauges = std::mem::take(&mut step.work.gauges);
    for gauge in &mut gauges {
        let bodies = &step.work.bodies;
        let question = Question::violations(&bodies.view);
        gauge(step.world, bodies, &question, &mut |row: &Told<'_>| {
            if row.measured {
                count += 1;
                squares += row.violation * row.violation;
                if row.violation.abs() > most {
                    (most, whose) = (row.violation.abs(), Some((row.entity, row.key)));
                }
            }
        });
    }
    step.work.gauges = gauges;
    (step.report.joint_error_max, step.report.joint_error_at) = (most, whose);
    step.report.joint_error_rms = if count == 0 { 0.0 } else { (squares / f64::from(count)).sqrt() };
}
