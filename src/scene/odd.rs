//! What is legal in a scene and yet hardly meant.

use super::error::{Fault, MOST_FAULTS};
use super::plan::{Anchor, BodyPlan, JointKind, JointPlan, ScenePlan};
use super::text::shorten;
use crate::components::{BodyKind, Collider};
use glam::DVec3;

/// An anchor is far from its body beyond this many times the body's size, and beyond [`FAR`].
const TIMES: f64 = 20.0;
/// Distance (m) that is not far for any body: arms of bodies without a shape.
const FAR: f64 = 20.0;

/// Adds what only the finished plan shows to what was found while it was read.
pub(super) fn look(plan: &ScenePlan, mut odd: Vec<Fault>) -> Vec<Fault> {
    for joint in &plan.joints {
        for fault in far_anchors(plan, joint) {
            if odd.len() < MOST_FAULTS && !odd.iter().any(|f| f.at == fault.at) {
                odd.push(fault);
            }
        }
    }
    odd.sort_by_key(|f| (f.at.file, f.at.line, f.at.column));
    odd
}

fn far_anchors<'a>(plan: &'a ScenePlan, joint: &'a JointPlan) -> impl Iterator<Item = Fault> + 'a {
    // A gear holds on to directions alone.
    let points = !matches!(joint.kind, JointKind::Gear { .. } | JointKind::Rack { .. });
    let ends = [&joint.a, &joint.b].into_iter().zip(joint.points_at).filter(move |_| points);
    ends.filter_map(|(anchor, at)| {
        let body = &plan.bodies[anchor.body? as usize];
        // A fixed body is as good as the world; so is one without an end.
        if body.kind == BodyKind::Fixed {
            return None;
        }
        let (away, size) = (distance(anchor, body), size(body));
        (away > FAR.max(TIMES * size)).then(|| {
            let name = if body.name.is_empty() { "its body" } else { &body.name };
            let message = format!(
                "this point is {away:.1} m from the middle of `{}`, whose size is {size:.1} m; is it the right body?",
                shorten(name)
            );
            Fault::new(at, message)
        })
    })
}

fn distance(anchor: &Anchor, body: &BodyPlan) -> f64 {
    // From the author's origin or the centre of mass, whichever is nearer.
    anchor.point.length().min(anchor.point.distance(body.origin))
}

/// How far the shapes of a body reach from its middle.
fn size(body: &BodyPlan) -> f64 {
    let reach = |c: &Collider| c.position.length() + c.shape.reach_from(DVec3::ZERO);
    body.colliders.iter().map(reach).fold(0.0, f64::max)
}
