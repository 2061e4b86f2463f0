//! Chains and cables: equal links along a path, joined end to end.

use super::body::{self, BodySpec};
use super::error::{Fault, Read};
use super::expand::Builder;
use super::joint::{JointSpec, read_cable};
use super::plan::{CablePlan, JointKind};
use super::read::{self, Fields};
use super::scope::Scope;
use super::text::{Node, Value};
use crate::components::{CableLink, Collider};
use crate::geometry::{MassProperties, Shape};
use crate::math;
use glam::{DMat3, DVec3};

/// What a chain says besides the body of its links.
struct ChainSpec {
    name: String,
    corners: Vec<DVec3>,
    radius: f64,
    joint: LinkJoint,
    cable: CablePlan,
    ends: [Option<String>; 2],
    end_joint: LinkJoint,
    partition: Option<String>,
    partition_size: usize,
    cylinder_inertia: bool,
    /// Number of the cable, if it is to be drawn as one.
    cable_number: Option<u32>,
}

#[derive(Clone, Copy, PartialEq)]
enum LinkJoint {
    Ball,
    Universal,
    Fixed,
    Cable,
}

const LINK_JOINTS: &[(&str, LinkJoint)] = &[
    ("ball", LinkJoint::Ball),
    ("universal", LinkJoint::Universal),
    ("fixed", LinkJoint::Fixed),
    ("cable", LinkJoint::Cable),
];

impl Builder<'_> {
    /// `Chain(name: .., path: [..], links: 100, radius: .., mass: .., joint: universal, start: .., end: ..)`.
    ///
    /// `rounding` turns the corners of the path into arcs of that radius.
    /// Links are capsules whose end balls are centred on the joints; they are called `name/0`, `name/1`, ..
    /// Every field of a body (friction, color, damping, ..) applies to each link.
    pub(super) fn chain(&mut self, node: &Node, scope: &Scope, is_cable: bool) -> Read<()> {
        let what = if is_cable { "the cable" } else { "the chain" };
        let mut f = Fields::of(node, what, &self.variables)?;
        let spec = self.read_chain(&mut f, node, is_cable)?;
        let template = body::read_template(&mut f, &mut self.shapes, self.limits)?;
        f.finish()?;
        let links = spec.corners.len() - 1;
        let scope = &scope.moved(template.at, template.rotate);
        for i in 0..links {
            let link = self.link(&spec, &template, i, node)?;
            self.add_body(link, scope)?;
        }
        for i in 0..=links {
            if let Some(joint) = spec.joint_at(i, node) {
                self.add_joint(joint, scope)?;
            }
        }
        Ok(())
    }

    fn read_chain(&self, f: &mut Fields<'_, '_>, node: &Node, is_cable: bool) -> Read<ChainSpec> {
        let name = read::text(f.need("name")?, f.variables)?;
        let path = f.need("path")?;
        let points = read::items(path, "a list of points `(x, y, z)`")?;
        let points: Vec<DVec3> = points.iter().map(|n| read::vector(n, f.variables)).collect::<Read<_>>()?;
        if points.len() < 2 || points.windows(2).any(|w| w[0].distance(w[1]) < 1e-6) {
            return Err(Fault::new(path.at, "the path needs at least two points, none of them repeated"));
        }
        let points = match f.positive("rounding")? {
            Some(radius) => rounded(&points, radius),
            None => points,
        };
        let corners = self.corners(f, &points)?;
        let radius = f.need_positive("radius")?;
        let usual = if is_cable { LinkJoint::Cable } else { LinkJoint::Universal };
        let kind = |f: &mut Fields<'_, '_>, field, usual| -> Read<LinkJoint> {
            let choice =
                f.get(field).map(|n| read::choice(n, "joint of a chain", LINK_JOINTS)).transpose()?;
            Ok(choice.unwrap_or(usual))
        };
        let joint = kind(f, "joint", usual)?;
        let end_joint = kind(f, "end_joint", LinkJoint::Ball)?;
        let cable = match f.get("cable") {
            Some(node) => {
                let mut c = Fields::of(node, "the cable's material", f.variables)?;
                let cable = read_cable(&mut c)?;
                c.finish()?;
                cable
            }
            None => CablePlan { length: f64::NAN, radius, young: 1e8, shear: 4e7, damping_time: 0.02 },
        };
        if radius > super::limits::LARGEST_LENGTH {
            return Err(Fault::new(node.at, "the radius is too large"));
        }
        Ok(ChainSpec {
            name,
            corners,
            radius,
            joint,
            cable,
            ends: [f.text("start")?, f.text("end")?],
            end_joint,
            partition: f.text("partition")?,
            partition_size: f.count("partition_size", usize::MAX >> 12)?.unwrap_or(0),
            cable_number: is_cable.then_some(self.plan.bodies.len() as u32),
            cylinder_inertia: match f.get("link_inertia") {
                None => false,
                Some(n) => read::choice(n, "inertia of links", &[("capsule", false), ("cylinder", true)])?,
            },
        })
    }

    /// Joint points along the path: `links` in all, or a list with the number for each piece.
    fn corners(&self, f: &mut Fields<'_, '_>, points: &[DVec3]) -> Read<Vec<DVec3>> {
        let node = f.need("links")?;
        let mut corners = vec![points[0]];
        if let Value::List(counts) = &node.value {
            if counts.len() != points.len() - 1 {
                let message = format!(
                    "the path has {} pieces, but links are given for {}",
                    points.len() - 1,
                    counts.len()
                );
                return Err(Fault::new(node.at, message));
            }
            for (count, ends) in counts.iter().zip(points.windows(2)) {
                let n = read::count(count, self.limits.bodies, f.variables)?.max(1);
                corners.extend((1..=n).map(|i| ends[0].lerp(ends[1], i as f64 / n as f64)));
            }
            return Ok(corners);
        }
        let n = read::count(node, self.limits.bodies, f.variables)?;
        if n == 0 {
            return Err(Fault::new(node.at, "a chain needs at least one link"));
        }
        let total: f64 = points.windows(2).map(|w| w[0].distance(w[1])).sum();
        let (mut piece, mut before) = (0, 0.0);
        for i in 1..=n {
            let s = total * i as f64 / n as f64;
            loop {
                let length = points[piece].distance(points[piece + 1]);
                if s <= before + length * (1.0 + 1e-12) || piece + 2 == points.len() {
                    let share = ((s - before) / length).clamp(0.0, 1.0);
                    corners.push(points[piece].lerp(points[piece + 1], share));
                    break;
                }
                before += length;
                piece += 1;
            }
        }
        Ok(corners)
    }

    fn link(&mut self, spec: &ChainSpec, template: &BodySpec, i: usize, node: &Node) -> Read<BodySpec> {
        let (from, to) = (spec.corners[i], spec.corners[i + 1]);
        let length = from.distance(to);
        let shape = Shape::Capsule { half_length: length / 2.0, radius: spec.radius };
        let handle = self.shapes.compile(shape, node.at)?;
        let mut link = template.clone();
        let unit = handle.mass_properties(1.0).unwrap_or(MassProperties::ZERO);
        if link.colliders.is_empty() {
            let mut collider = Collider::new(handle);
            (collider.material, collider.filter) = template.surface;
            link.colliders.push(collider);
        }
        let mass = template.given_mass.unwrap_or(unit.mass * template.surface.0.density);
        link.mass = unit.scaled(mass / unit.mass);
        if !(link.mass.inertia.is_finite() && link.mass.inertia.determinant() > 0.0 && mass.is_finite()) {
            return Err(Fault::new(
                node.at,
                "the links are too small or too light for their inertia to be computed",
            ));
        }
        if spec.cylinder_inertia {
            let across = mass * (spec.radius * spec.radius / 4.0 + length * length / 12.0);
            let along = 0.5 * mass * spec.radius * spec.radius;
            link.mass.inertia = DMat3::from_diagonal(DVec3::new(across, along, across));
        }
        link.at = (from + to) / 2.0;
        let direction =
            (to - from).try_normalize().ok_or_else(|| Fault::new(node.at, "a link has no length"))?;
        link.rotate = read::along(direction);
        link.cable = spec.cable_number.map(|cable| CableLink { cable, order: i as u32, radius: spec.radius });
        link.name = format!("{}/{i}", spec.name);
        link.partition = match (&spec.partition, spec.partition_size) {
            (Some(p), 0) => Some(p.clone()),
            (Some(p), size) => Some(format!("{p}/{}", i / size)),
            (None, 0) => None,
            (None, size) => Some(format!("{}/{}", spec.name, i / size)),
        };
        Ok(link)
    }
}

/// The path with its corners replaced by arcs of the given radius, or of what fits between its corners.
fn rounded(points: &[DVec3], radius: f64) -> Vec<DVec3> {
    const PIECES: u32 = 6;
    let mut out = vec![points[0]];
    for w in points.windows(3) {
        let (before, corner, after) = (w[0], w[1], w[2]);
        let (to, from) = ((corner - before).normalize(), (after - corner).normalize());
        let half = math::angle_between(to, from) / 2.0;
        // Straight on needs no arc; straight back has none.
        if !(0.01..1.56).contains(&half) {
            out.push(corner);
            continue;
        }
        let room = 0.5 * before.distance(corner).min(corner.distance(after));
        let reach = (radius * math::tan(half)).min(room);
        let (start, middle) = (corner - to * reach, (from - to).normalize());
        let center = corner + middle * (reach / math::sin(half));
        let axis = to.cross(from).normalize();
        for k in 0..=PIECES {
            let turn = math::rotation(axis, 2.0 * half * f64::from(k) / f64::from(PIECES));
            out.push(center + turn * (start - center));
        }
    }
    out.extend(points.last());
    out.dedup_by(|a, b| a.distance(*b) < 1e-6);
    out
}

impl ChainSpec {
    fn joint_at(&self, i: usize, node: &Node) -> Option<JointSpec> {
        let links = self.corners.len() - 1;
        let link = |k: usize| Some(format!("{}/{k}", self.name));
        let world = |name: &String| Some(name.clone()).filter(|n| n != "world");
        let (a, b, kind) = match i {
            0 => (world(self.ends[0].as_ref()?), link(0), self.end_joint),
            _ if i == links => (link(links - 1), world(self.ends[1].as_ref()?), self.end_joint),
            _ => (link(i - 1), link(i), self.joint),
        };
        let before = if i == 0 { 0 } else { i - 1 };
        let after = i.min(links - 1);
        let incoming = (self.corners[before + 1] - self.corners[before]).normalize();
        let outgoing = (self.corners[after + 1] - self.corners[after]).normalize();
        let length = self.corners[after].distance(self.corners[after + 1]);
        let kind = match kind {
            LinkJoint::Ball => JointKind::Ball,
            LinkJoint::Universal => JointKind::Universal,
            LinkJoint::Fixed => JointKind::Fixed,
            LinkJoint::Cable => JointKind::Cable(CablePlan { length, ..self.cable }),
        };
        let mut joint = JointSpec::new(kind, [a, b], self.corners[i], node.at);
        let tangent = (incoming + outgoing).try_normalize().unwrap_or(incoming);
        if matches!(joint.kind, JointKind::Universal) {
            // Both crossed axes lie across the chain, so that what is blocked is the twist along it.
            let axis = tangent.any_orthonormal_vector();
            joint.axes = [axis; 2];
            joint.side = tangent.cross(axis);
        } else {
            joint.axes = [tangent; 2];
            joint.side = tangent.any_orthonormal_vector();
        }
        Some(joint)
    }
}
