//! Reading joints.

use super::error::{Fault, Read, Span};
use super::plan::{CablePlan, JointKind, Limit, Motor};
use super::read::{self, Fields};
use super::text::{Node, Value, shorten};
use glam::DVec3;

/// A joint as its author wrote it, in the coordinates of the part it stands in. Names are not looked up
/// yet: bodies may be declared later.
#[derive(Clone, Debug)]
pub struct JointSpec {
    /// Name, before the names of parts are put in front.
    pub name: String,
    /// What it allows; lengths that are NaN are to be measured from the points.
    pub kind: JointKind,
    /// Body names; `None` is the world.
    pub bodies: [Option<String>; 2],
    /// The body that carries a gear's axles.
    pub frame: Option<String>,
    /// Points on the first and on the second body.
    pub points: [DVec3; 2],
    /// Main axis, on the first and on the second body.
    pub axes: [DVec3; 2],
    /// Direction across the axis.
    pub side: DVec3,
    /// Bodies and points of a pulley rope.
    pub rope: Vec<(Option<String>, DVec3)>,
    /// Ranges.
    pub limits: [Option<Limit>; 2],
    /// Motors.
    pub motors: [Option<Motor>; 2],
    /// Dry friction (N or N·m) on the first and second free coordinate.
    pub friction: [f64; 2],
    /// Strength.
    pub breaks: Option<[f64; 2]>,
    /// May its bodies touch each other?
    pub collide: Option<bool>,
    /// Where it is written.
    pub place: Span,
    /// Where its points are.
    pub points_at: [Span; 2],
    /// What is legal and yet hardly meant.
    pub odd: Vec<Fault>,
}

/// The names of joints as items of a scene.
pub const JOINTS: &[&str] = &[
    "Fixed",
    "Revolute",
    "Prismatic",
    "Cylindrical",
    "Ball",
    "Universal",
    "Planar",
    "PointOnLine",
    "Distance",
    "Rope",
    "Spring",
    "CableJoint",
    "Gear",
    "Rack",
    "Wheel",
    "Pulley",
    "Winch",
];

impl JointSpec {
    /// A joint of a kind at a point, between two bodies; everything else at its default.
    pub fn new(kind: JointKind, bodies: [Option<String>; 2], at: DVec3, place: Span) -> JointSpec {
        JointSpec {
            name: String::new(),
            kind,
            bodies,
            frame: None,
            points: [at; 2],
            axes: [DVec3::Z; 2],
            side: DVec3::X,
            rope: Vec::new(),
            limits: [None; 2],
            motors: [None; 2],
            friction: [0.0; 2],
            breaks: None,
            collide: None,
            place,
            points_at: [place; 2],
            odd: Vec::new(),
        }
    }
}

/// Reads a joint whose item is called `name`.
///
/// # Errors
/// Every field that is not there, unknown, of the wrong kind or not physical.
pub fn read_joint(name: &str, f: &mut Fields<'_, '_>) -> Read<JointSpec> {
    let mut spec = JointSpec::new(JointKind::Fixed, [None, None], DVec3::ZERO, f.at);
    spec.name = f.text("name")?.unwrap_or_default();
    if matches!(name, "Pulley" | "Winch") {
        read_rope(f, &mut spec)?;
    } else {
        read_bodies(f, &mut spec)?;
        read_place(name, f, &mut spec)?;
    }
    if let Some(kind) = read_kind(name, f, &mut spec)? {
        spec.kind = kind;
    }
    read_strength(f, &mut spec)?;
    spec.odd = idle_fields(name, &spec.kind, f);
    Ok(spec)
}

/// Fields that a joint of this kind takes and does not use: it has no such free coordinate.
fn idle_fields(name: &str, kind: &JointKind, f: &mut Fields<'_, '_>) -> Vec<Fault> {
    let none = [false; 2];
    let (limits, motors, friction) = match kind {
        JointKind::Revolute | JointKind::Prismatic | JointKind::Planar | JointKind::PointOnLine => {
            ([true, false], [true, false], [true, false])
        }
        JointKind::Cylindrical | JointKind::Universal => ([true; 2], [true; 2], [true; 2]),
        JointKind::Ball => ([true; 2], [false, true], [false, true]),
        // The second motor of a wheel steers it.
        JointKind::Wheel { .. } => ([true, false], [true; 2], [true, false]),
        // The friction of a rope is that of its sheaves.
        JointKind::Pulley { .. } => (none, none, [true, false]),
        _ => (none, none, none),
    };
    let fields = [
        ("limits", limits[0]),
        ("limits2", limits[1]),
        ("motor", motors[0]),
        ("motor2", motors[1]),
        ("friction", friction[0]),
        ("friction2", friction[1]),
    ];
    let idle = fields.into_iter().filter(|(_, used)| !used);
    let given = idle.filter_map(|(field, _)| f.find(field).map(|node| (field, node.at)));
    given
        .map(|(field, at)| {
            Fault::new(at, format!("`{field}` has no effect: a {name} has no free coordinate for it"))
        })
        .collect()
}

fn body_name(f: &mut Fields<'_, '_>, field: &'static str) -> Read<Option<String>> {
    Ok(f.text(field)?.filter(|n| n != "world"))
}

fn read_bodies(f: &mut Fields<'_, '_>, spec: &mut JointSpec) -> Read<()> {
    spec.bodies[0] = body_name(f, "a")?;
    f.need("b")?;
    spec.bodies[1] = body_name(f, "b")?;
    match &spec.bodies {
        [None, None] => Err(Fault::new(f.at, "a joint needs at least one body; both ends are the world")),
        [a, b] if a == b => {
            let body = a.as_deref().unwrap_or_default();
            Err(Fault::new(f.at, format!("the joint ties `{}` to itself", shorten(body))))
        }
        _ => Ok(()),
    }
}

fn read_place(name: &str, f: &mut Fields<'_, '_>, spec: &mut JointSpec) -> Read<()> {
    if matches!(name, "Distance" | "Rope" | "Spring") {
        spec.points = [f.need_vector("from")?, f.need_vector("to")?];
        spec.points_at = [f.need("from")?.at, f.need("to")?.at];
        return Ok(());
    }
    let at = if name == "Gear" || name == "Rack" {
        f.vector("at")?.unwrap_or(DVec3::ZERO)
    } else {
        f.need_vector("at")?
    };
    spec.points = [at; 2];
    spec.points_at = [f.get("at").map_or(f.at, |n| n.at); 2];
    let axis = f.direction("axis")?.unwrap_or(DVec3::Z);
    spec.axes = [axis, f.direction("axis_b")?.unwrap_or(axis)];
    spec.side = across(axis, f.direction("side")?, f.at)?;
    Ok(())
}

/// The part of `wanted` that is perpendicular to `axis`, or any perpendicular direction.
pub fn across(axis: DVec3, wanted: Option<DVec3>, at: Span) -> Read<DVec3> {
    let Some(wanted) = wanted else { return Ok(axis.any_orthonormal_vector()) };
    let flat = wanted - axis * wanted.dot(axis);
    if flat.length() < 1e-6 {
        return Err(Fault::new(at, "`side` is parallel to `axis`; it must point across it"));
    }
    Ok(flat.normalize())
}

fn read_rope(f: &mut Fields<'_, '_>, spec: &mut JointSpec) -> Read<()> {
    let node = f.need("points")?;
    let points = read::items(node, "a list of points `(\"body\", (x, y, z))`")?;
    if !(2..=super::joints::MOST_ROPE_POINTS).contains(&points.len()) {
        let message = format!(
            "the rope runs through {} points; it needs between 2 and {}",
            points.len(),
            super::joints::MOST_ROPE_POINTS
        );
        return Err(Fault::new(node.at, message));
    }
    for point in points {
        let parts = read::items(point, "a point `(\"body\", (x, y, z))`")?;
        let [body, place] = parts else {
            return Err(Fault::new(point.at, "expected a point `(\"body\", (x, y, z))`"));
        };
        let body = Some(read::text(body, f.variables)?).filter(|n| n != "world");
        spec.rope.push((body, read::vector(place, f.variables)?));
    }
    Ok(())
}

fn read_kind(name: &str, f: &mut Fields<'_, '_>, spec: &mut JointSpec) -> Read<Option<JointKind>> {
    Ok(Some(match name {
        "Fixed" => JointKind::Fixed,
        "Revolute" => JointKind::Revolute,
        "Prismatic" => JointKind::Prismatic,
        "Cylindrical" => JointKind::Cylindrical,
        "Ball" => JointKind::Ball,
        "Universal" => JointKind::Universal,
        "Planar" => JointKind::Planar,
        "PointOnLine" => JointKind::PointOnLine,
        "Distance" => JointKind::Distance(f.positive("length")?.unwrap_or(f64::NAN)),
        "Rope" => JointKind::Rope(f.positive("length")?.unwrap_or(f64::NAN)),
        "Spring" => JointKind::Spring {
            length: f.not_negative("length")?.unwrap_or(f64::NAN),
            stiffness: f.need_positive("stiffness")?,
            damping: f.not_negative("damping")?.unwrap_or(0.0),
            coupled: f.flag("coupled")?.unwrap_or(false),
        },
        "CableJoint" => JointKind::Cable(read_cable(f)?),
        "Gear" | "Rack" => {
            spec.frame = body_name(f, "frame")?;
            let node = f.need("ratio")?;
            let ratio = read::number(node, f.variables)?;
            if ratio == 0.0 {
                return Err(Fault::new(node.at, "the ratio is 0; a gear needs one that is not"));
            }
            if name == "Gear" {
                JointKind::Gear { ratio, frame: None }
            } else {
                JointKind::Rack { ratio, frame: None }
            }
        }
        "Wheel" => JointKind::Wheel {
            stiffness: f.need_positive("stiffness")?,
            damping: f.not_negative("damping")?.unwrap_or(0.0),
            steer: f.number("steer")?.unwrap_or(0.0).to_radians(),
            rest: f.number("rest")?.unwrap_or(0.0),
        },
        _ => JointKind::Pulley {
            points: Vec::new(),
            length: f.positive("length")?.unwrap_or(f64::NAN),
            speed: f.number("speed")?.unwrap_or(0.0),
            max_force: f.positive("max_force")?.unwrap_or(f64::INFINITY),
            friction: f.not_negative("friction")?.unwrap_or(0.0),
        },
    }))
}

/// The rod a cable joint stands for.
pub fn read_cable(f: &mut Fields<'_, '_>) -> Read<CablePlan> {
    Ok(CablePlan {
        length: f.positive("length")?.unwrap_or(f64::NAN),
        radius: f.positive("radius")?.unwrap_or(0.01),
        young: f.not_negative("young")?.unwrap_or(1e8),
        shear: f.not_negative("shear")?.unwrap_or(4e7),
        damping_time: f.not_negative("damping_time")?.unwrap_or(0.02),
    })
}

fn read_strength(f: &mut Fields<'_, '_>, spec: &mut JointSpec) -> Read<()> {
    let variables = f.variables;
    spec.collide = f.flag("collide")?;
    for (i, field) in ["limits", "limits2"].into_iter().enumerate() {
        spec.limits[i] = f.get(field).map(|n| read_limit(n, variables)).transpose()?;
    }
    for (i, field) in ["motor", "motor2"].into_iter().enumerate() {
        spec.motors[i] = f.get(field).map(|n| read_motor(n, variables)).transpose()?;
    }
    if !matches!(spec.kind, JointKind::Pulley { .. }) {
        for (i, field) in ["friction", "friction2"].into_iter().enumerate() {
            spec.friction[i] = f.not_negative(field)?.unwrap_or(0.0);
        }
    }
    if let Some(node) = f.get("breaks") {
        let mut b = Fields::of(node, "breaks", variables)?;
        let strength = |v: Option<f64>| v.unwrap_or(f64::INFINITY);
        spec.breaks = Some([strength(b.positive("force")?), strength(b.positive("torque")?)]);
        b.finish()?;
    }
    Ok(())
}

fn read_limit(node: &Node, variables: &super::expr::Variables) -> Read<Limit> {
    let mut l = Fields::of(node, "limits", variables)?;
    // Angles are written in degrees where a person writes them.
    let degrees = l.flag("degrees")?.unwrap_or(false);
    let scale = if degrees { 1f64.to_radians() } else { 1.0 };
    let lower = l.number("lower")?.map_or(f64::NEG_INFINITY, |v| v * scale);
    let upper = l.number("upper")?.map_or(f64::INFINITY, |v| v * scale);
    if lower > upper {
        return Err(Fault::new(
            node.at,
            format!("the limits are empty: lower {lower} is above upper {upper}"),
        ));
    }
    let soft = match l.positive("stiffness")? {
        Some(k) => Some([k, l.not_negative("damping")?.unwrap_or(0.0)]),
        None => None,
    };
    l.finish()?;
    Ok(Limit { lower, upper, soft })
}

fn read_motor(node: &Node, variables: &super::expr::Variables) -> Read<Motor> {
    let name = match &node.value {
        Value::Struct(Some(name), _) => name.as_str(),
        _ => "",
    };
    let mut m = Fields::of(node, "the motor", variables)?;
    let target = m.number("target")?.unwrap_or(0.0);
    let max = m.not_negative("max")?.unwrap_or(f64::INFINITY);
    let motor = match name {
        "Velocity" => Motor::Velocity { target, max },
        "Position" => {
            let stiffness = m.need_positive("stiffness")?;
            Motor::Position { target, stiffness, damping: m.not_negative("damping")?.unwrap_or(0.0), max }
        }
        _ => {
            return Err(Fault::new(
                node.at,
                "expected a motor: `Velocity(target: .., max: ..)` or `Position(target: .., stiffness: .., damping: .., max: ..)`",
            ));
        }
    };
    m.finish()?;
    Ok(motor)
}
