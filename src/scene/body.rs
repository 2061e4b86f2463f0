//! Reading bodies and shapes.

use super::error::{Fault, Read, Span, suggestion};
use super::limits::{LARGEST_LENGTH, Limits};
use super::random::Random;
use super::read::{self, Fields};
use super::text::{Node, Value, shorten};
use crate::components::{Appearance, BodyKind, CableLink, Collider, CollisionFilter, Material};
use crate::geometry::{MassProperties, Shape, ShapeHandle};
use crate::math;
use glam::{DMat3, DQuat, DVec3};
use std::collections::HashMap;

/// A body as its author wrote it, in the coordinates of the part it stands in.
#[derive(Clone, Debug)]
pub struct BodySpec {
    /// Name, before the names of parts are put in front.
    pub name: String,
    /// How it takes part.
    pub kind: BodyKind,
    /// Author's origin.
    pub at: DVec3,
    /// Orientation.
    pub rotate: DQuat,
    /// Velocity of the centre of mass.
    pub velocity: DVec3,
    /// Angular velocity.
    pub spin: DVec3,
    /// Mass, centre of mass and inertia in the author's frame.
    pub mass: MassProperties,
    /// The mass as it was given, if it was.
    pub given_mass: Option<f64>,
    /// Shapes in the author's frame.
    pub colliders: Vec<Collider>,
    /// What shapes are made of that a generator adds.
    pub surface: (Material, CollisionFilter),
    /// Factor on gravity.
    pub gravity_scale: f64,
    /// Damping.
    pub damping: [f64; 2],
    /// Partition, before the names of parts are put in front, and whether it is one of its own whatever else is cut.
    pub partition: Option<String>,
    /// See `partition`.
    pub pinned: bool,
    /// Is it a point mass: without rotation?
    pub point: bool,
    /// Colour.
    pub color: Option<Appearance>,
    /// Place in a cable, for pictures.
    pub cable: Option<CableLink>,
    /// Where it is written.
    pub place: Span,
    /// What is legal and yet hardly meant.
    pub odd: Vec<Fault>,
}

const KINDS: &[(&str, BodyKind)] =
    &[("dynamic", BodyKind::Dynamic), ("kinematic", BodyKind::Kinematic), ("fixed", BodyKind::Fixed)];

/// Compiled shapes, shared between bodies that have the same, and the points they hold.
#[derive(Default)]
pub struct ShapeCache {
    known: HashMap<Vec<u64>, ShapeHandle>,
    points: usize,
}

impl ShapeCache {
    pub(super) fn compile(&mut self, shape: Shape, at: Span) -> Read<ShapeHandle> {
        let key = key_of(&shape);
        if let Some(handle) = key.as_ref().and_then(|k| self.known.get(k)) {
            return Ok(handle.clone());
        }
        let handle = ShapeHandle::new(shape).map_err(|e| Fault::new(at, e.to_string()))?;
        if let Some(key) = key {
            self.known.insert(key, handle.clone());
        }
        Ok(handle)
    }

    /// Counts points of hulls and meshes against the limit.
    fn spend(&mut self, points: usize, at: Span, limits: &Limits) -> Read<()> {
        self.points += points;
        if self.points > limits.points {
            return Err(Fault::last(
                at,
                format!("the shapes have more than {} points in all", limits.points),
            ));
        }
        Ok(())
    }
}

/// Numbers that make two simple shapes the same.
fn key_of(shape: &Shape) -> Option<Vec<u64>> {
    let (tag, numbers): (u64, Vec<f64>) = match shape {
        Shape::Sphere { radius } => (0, vec![*radius]),
        Shape::Box { half_extents: e } => (1, vec![e.x, e.y, e.z]),
        Shape::Capsule { half_length, radius } => (2, vec![*half_length, *radius]),
        Shape::Cylinder { half_length, radius } => (3, vec![*half_length, *radius]),
        Shape::Cone { half_height, radius } => (4, vec![*half_height, *radius]),
        Shape::HalfSpace { normal: n } => (5, vec![n.x, n.y, n.z]),
        _ => return None,
    };
    Some(std::iter::once(tag).chain(numbers.iter().map(|v| v.to_bits())).collect())
}

/// Reads a body and checks its mass.
///
/// # Errors
/// Every field that is not there, unknown, of the wrong kind or not physical.
pub fn read_body(f: &mut Fields<'_, '_>, shapes: &mut ShapeCache, limits: &Limits) -> Read<BodySpec> {
    read(f, shapes, limits, true)
}

/// Reads a body whose shape and mass a generator will make.
///
/// # Errors
/// As for [`read_body`], but the mass may be missing.
pub fn read_template(f: &mut Fields<'_, '_>, shapes: &mut ShapeCache, limits: &Limits) -> Read<BodySpec> {
    read(f, shapes, limits, false)
}

fn read(f: &mut Fields<'_, '_>, shapes: &mut ShapeCache, limits: &Limits, shaped: bool) -> Read<BodySpec> {
    let name = f.text("name")?.unwrap_or_default();
    let kind = f.get("kind").map(|n| read::choice(n, "kind of body", KINDS)).transpose()?.unwrap_or_default();
    let mut surface = read_surface(f)?;
    let mut colliders = read_shapes(f, &surface, shapes, limits)?;
    let (mass, given_mass) = read_mass(f, &colliders, kind, shaped)?;
    let odd = idle_fields(f, &colliders, kind);
    if f.flag("collide")? == Some(false) {
        surface.filter = CollisionFilter { groups: 0, mask: 0 };
        for c in &mut colliders {
            c.filter = surface.filter;
        }
    }
    let damping = match f.get("damping") {
        None => [0.0; 2],
        Some(node) => {
            let mut d = Fields::of(node, "damping", f.variables)?;
            let both = [d.not_negative("linear")?.unwrap_or(0.0), d.not_negative("angular")?.unwrap_or(0.0)];
            d.finish()?;
            both
        }
    };
    Ok(BodySpec {
        name,
        kind,
        at: f.vector("at")?.unwrap_or(DVec3::ZERO),
        rotate: f.rotation("rotate")?.unwrap_or(DQuat::IDENTITY),
        velocity: f.vector("velocity")?.unwrap_or(DVec3::ZERO),
        spin: f.vector("spin")?.unwrap_or(DVec3::ZERO),
        mass,
        given_mass,
        colliders,
        surface: (surface.material, surface.filter),
        gravity_scale: f.number("gravity_scale")?.unwrap_or(1.0),
        damping,
        partition: f.text("partition")?,
        pinned: f.flag("pinned")?.unwrap_or(false),
        point: f.flag("point")?.unwrap_or(false),
        color: f.get("color").map(read_color).transpose()?,
        cable: None,
        place: f.at,
        odd,
    })
}

/// Fields that say nothing beside others.
fn idle_fields(f: &Fields<'_, '_>, colliders: &[Collider], kind: BodyKind) -> Vec<Fault> {
    let mut odd = Vec::new();
    let same = colliders.windows(2).all(|c| c[0].material.density == c[1].material.density);
    if let (Some(_), Some(node), true) = (f.find("mass"), f.find("density"), same) {
        odd.push(Fault::new(node.at, "`density` has no effect beside `mass`; give one of them"));
    }
    for field in ["velocity", "spin"] {
        if let (BodyKind::Fixed, Some(node)) = (kind, f.find(field)) {
            odd.push(Fault::new(node.at, format!("`{field}` has no effect: a fixed body never moves")));
        }
    }
    odd
}

struct Surface {
    material: Material,
    filter: CollisionFilter,
    sensor: bool,
}

fn read_surface(f: &mut Fields<'_, '_>) -> Read<Surface> {
    let mut material = Material::default();
    if let Some(v) = f.not_negative("friction")? {
        material.friction = v;
    }
    if let Some(v) = f.positive("density")? {
        material.density = v;
    }
    if let Some(node) = f.get("restitution") {
        material.restitution = read::number(node, f.variables)?;
        if !(0.0..=1.0).contains(&material.restitution) {
            let message = format!("`restitution` is {}; it must be between 0 and 1", material.restitution);
            return Err(Fault::new(node.at, message));
        }
    }
    let mut filter = CollisionFilter::default();
    let variables = f.variables;
    let bits = |node: &Node| read::count(node, u32::MAX as usize, variables).map(|v| v as u32);
    if let Some(node) = f.get("groups") {
        filter.groups = bits(node)?;
    }
    if let Some(node) = f.get("mask") {
        filter.mask = bits(node)?;
    }
    Ok(Surface { material, filter, sensor: f.flag("sensor")?.unwrap_or(false) })
}

fn read_shapes(
    f: &mut Fields<'_, '_>,
    s: &Surface,
    cache: &mut ShapeCache,
    limits: &Limits,
) -> Read<Vec<Collider>> {
    let mut out = Vec::new();
    let collider = |shape: ShapeHandle, position: DVec3, rotation: DQuat| Collider {
        shape,
        position,
        rotation,
        material: s.material,
        filter: s.filter,
        sensor: s.sensor,
    };
    if let Some(node) = f.get("shape") {
        out.push(collider(read_shape(node, f, cache, limits)?, DVec3::ZERO, DQuat::IDENTITY));
    }
    if let Some(node) = f.get("shapes") {
        for part in read::items(node, "a list of shapes")? {
            let mut p = Fields::of(part, "a placed shape", f.variables)?;
            let node = p.need("shape")?;
            let shape = match p.flag("when")? {
                Some(false) => None,
                _ => Some(read_shape(node, f, cache, limits)?),
            };
            let at = p.vector("at")?.unwrap_or(DVec3::ZERO);
            let (rotate, density) = (p.rotation("rotate")?, p.positive("density")?);
            p.finish()?;
            let Some(shape) = shape else { continue };
            let mut placed = collider(shape, at, rotate.unwrap_or(DQuat::IDENTITY));
            if let Some(density) = density {
                placed.material.density = density;
            }
            out.push(placed);
        }
    }
    Ok(out)
}

/// The names of shapes.
pub const SHAPES: &[&str] =
    &["Sphere", "Box", "Capsule", "Cylinder", "Cone", "Hull", "Rock", "Plane", "Mesh", "Heights"];

fn measure(p: &mut Fields<'_, '_>, name: &'static str) -> Read<f64> {
    let node = p.need(name)?;
    let v = read::positive(node, name, p.variables)?;
    // Below a micrometre, volumes and inertias leave the range in which they can be inverted.
    if !(1e-6..=LARGEST_LENGTH).contains(&v) {
        let message = format!("`{name}` is {v:e} m; it must be between 1e-6 and {LARGEST_LENGTH:e}");
        return Err(Fault::new(node.at, message));
    }
    Ok(v)
}

fn read_shape(
    node: &Node,
    outer: &Fields<'_, '_>,
    cache: &mut ShapeCache,
    limits: &Limits,
) -> Read<ShapeHandle> {
    let name = match &node.value {
        Value::Struct(Some(name), _) | Value::Tuple(Some(name), _) => name.as_str(),
        _ => {
            let found = node.kind();
            return Err(Fault::new(
                node.at,
                format!("expected a shape such as `Box(size: (1, 1, 1))`, found {found}"),
            ));
        }
    };
    if !SHAPES.contains(&name) {
        let hint = suggestion(name, SHAPES.iter().copied());
        return Err(Fault::new(node.at, format!("there is no shape `{}`{hint}", shorten(name))));
    }
    let mut p = Fields::of(node, name, outer.variables)?;
    let shape = match name {
        "Sphere" => Shape::Sphere { radius: measure(&mut p, "radius")? },
        "Box" => {
            let size = p.need_vector("size")?;
            if size.min_element() < 1e-6 {
                return Err(Fault::new(
                    node.at,
                    format!("the size of the box is {size}; every edge must be positive"),
                ));
            }
            Shape::Box { half_extents: size / 2.0 }
        }
        "Capsule" => {
            let (length, radius) = (measure(&mut p, "length")?, measure(&mut p, "radius")?);
            if length <= 2.0 * radius {
                let message = format!(
                    "the capsule is {length} m long, ends included; that must be more than twice its radius {radius}"
                );
                return Err(Fault::new(node.at, message));
            }
            Shape::Capsule { half_length: length / 2.0 - radius, radius }
        }
        "Cylinder" => Shape::Cylinder {
            half_length: measure(&mut p, "length")? / 2.0,
            radius: measure(&mut p, "radius")?,
        },
        "Cone" => {
            Shape::Cone { half_height: measure(&mut p, "height")? / 2.0, radius: measure(&mut p, "radius")? }
        }
        "Plane" => Shape::HalfSpace { normal: p.direction("normal")?.unwrap_or(DVec3::Z) },
        "Hull" => {
            let points = points(p.need("points")?, &p)?;
            // A hull builder is slow on clouds: 256 corners are more than any collider wants.
            if points.len() > 256 {
                return Err(Fault::new(
                    node.at,
                    format!("the hull has {} points; at most 256 are allowed", points.len()),
                ));
            }
            cache.spend(points.len(), node.at, limits)?;
            Shape::ConvexHull { points }
        }
        "Rock" => {
            let radius = measure(&mut p, "radius")?;
            let corners = p.count("points", 64)?.unwrap_or(14).max(6);
            cache.spend(corners, node.at, limits)?;
            let mut random = match p.get("seed") {
                Some(n) => Random::new(read::number(n, p.variables)?.abs() as u64),
                None => Random::new(p.variables.random().bits()),
            };
            let squash = p.vector("squash")?.unwrap_or(DVec3::ONE);
            Shape::ConvexHull { points: rock(radius, corners, squash, &mut random) }
        }
        "Mesh" => {
            let vertices = points(p.need("vertices")?, &p)?;
            let triangles = read::items(p.need("triangles")?, "a list of triangles `(a, b, c)`")?;
            cache.spend(vertices.len() + triangles.len(), node.at, limits)?;
            let indices: Read<Vec<[u32; 3]>> =
                triangles.iter().map(|t| triangle(t, vertices.len(), &p)).collect();
            Shape::TriMesh { vertices, indices: indices? }
        }
        _ => {
            let rows = read::items(p.need("rows")?, "rows of heights")?;
            let size = p.need_vector("size")?;
            let columns =
                rows.first().map_or(0, |r| read::items(r, "a row of heights").map_or(0, <[Node]>::len));
            cache.spend(rows.len().saturating_mul(columns), node.at, limits)?;
            let mut heights = Vec::new();
            for row in rows {
                for h in read::items(row, "a row of heights")? {
                    heights.push(read::number(h, p.variables)?.clamp(-LARGEST_LENGTH, LARGEST_LENGTH));
                }
            }
            Shape::HeightField { size: [rows.len(), columns], heights, scale: size }
        }
    };
    p.finish()?;
    cache.compile(shape, node.at)
}

fn points(node: &Node, p: &Fields<'_, '_>) -> Read<Vec<DVec3>> {
    read::items(node, "a list of points `(x, y, z)`")?.iter().map(|n| read::vector(n, p.variables)).collect()
}

fn triangle(node: &Node, vertices: usize, p: &Fields<'_, '_>) -> Read<[u32; 3]> {
    let corners = read::items(node, "a triangle `(a, b, c)`")?;
    let [a, b, c] = corners else {
        return Err(Fault::new(node.at, format!("expected three corners, found {}", corners.len())));
    };
    let corner = |n: &Node| read::count(n, vertices.saturating_sub(1), p.variables).map(|v| v as u32);
    Ok([corner(a)?, corner(b)?, corner(c)?])
}

/// Points on a slightly uneven ball: golden-spiral directions, jittered, so that every seed gives a fat hull.
fn rock(radius: f64, corners: usize, squash: DVec3, random: &mut Random) -> Vec<DVec3> {
    let golden = std::f64::consts::PI * (3.0 - 5f64.sqrt());
    (0..corners)
        .map(|i| {
            let z = 1.0 - (2 * i + 1) as f64 / corners as f64;
            let (r, angle) = ((1.0 - z * z).sqrt(), golden * i as f64);
            let even = DVec3::new(r * math::cos(angle), r * math::sin(angle), z);
            let jittered = (even + 0.35 * random.direction()).normalize_or(even);
            jittered * squash * (radius * random.range(0.8, 1.0))
        })
        .collect()
}

/// Mass properties in the author's frame, and the mass if it was given. `shaped` bodies must have one.
fn read_mass(
    f: &mut Fields<'_, '_>,
    colliders: &[Collider],
    kind: BodyKind,
    shaped: bool,
) -> Read<(MassProperties, Option<f64>)> {
    let given = f.get("mass").map(|node| read_kilograms(node, f)).transpose()?;
    let mut sum = MassProperties::ZERO;
    for c in colliders {
        if let Some(part) = c.shape.mass_properties(c.material.density) {
            sum = sum.joined(part.moved(c.position, c.rotation));
        }
    }
    let mut result = match given {
        Some(m) if sum.mass > 0.0 => sum.scaled(m / sum.mass),
        // A point without a shape turns like a ball of 0.1 m.
        Some(m) => MassProperties {
            mass: m,
            center: DVec3::ZERO,
            inertia: DMat3::from_diagonal(DVec3::splat(0.004 * m)),
        },
        None => sum,
    };
    if let Some(node) = f.get("inertia") {
        result.inertia = read_inertia(node, f)?;
    }
    if let Some(center) = f.vector("center")? {
        result.center = center;
    }
    let checked = check_mass(&result, f.at);
    if kind == BodyKind::Dynamic && shaped {
        checked.map_err(|fault| f.misspelt("mass").unwrap_or(fault))?;
    } else if checked.is_err() {
        result = MassProperties { mass: 1.0, ..MassProperties::ZERO };
    }
    Ok((result, given))
}

fn read_kilograms(node: &Node, f: &Fields<'_, '_>) -> Read<f64> {
    let v = read::number(node, f.variables)?;
    if v <= 0.0 {
        let message = format!(
            "the mass is {v} kg; it must be greater than 0 (write `kind: fixed` for a body that never moves)"
        );
        return Err(Fault::new(node.at, message));
    }
    Ok(v)
}

fn check_mass(m: &MassProperties, at: Span) -> Read<()> {
    if m.mass <= 0.0 || !m.mass.is_finite() {
        return Err(Fault::new(at, "a dynamic body needs a mass: give `mass`, or a shape that has volume"));
    }
    let i = m.inertia;
    let smallest = i.x_axis.x.min(i.y_axis.y).min(i.z_axis.z);
    let invertible = i.is_finite() && smallest > 0.0 && smallest.recip().is_finite() && i.determinant() > 0.0;
    if !invertible || !m.center.is_finite() {
        return Err(Fault::new(
            at,
            "the inertia of the body is not positive and finite; check its mass and the sizes of its shapes",
        ));
    }
    Ok(())
}

/// `(Ixx, Iyy, Izz)` about the centre of mass in body axes.
fn read_inertia(node: &Node, f: &Fields<'_, '_>) -> Read<DMat3> {
    let parts = read::items(node, "the inertia `(Ixx, Iyy, Izz)`")?;
    let numbers: Vec<f64> = parts.iter().map(|n| read::number(n, f.variables)).collect::<Read<_>>()?;
    let &[x, y, z] = numbers.as_slice() else {
        return Err(Fault::new(
            node.at,
            format!("expected the inertia `(Ixx, Iyy, Izz)`, found {} numbers", numbers.len()),
        ));
    };
    if let Some(bad) = [x, y, z].into_iter().find(|v| *v <= 0.0 || v.recip().is_infinite()) {
        return Err(Fault::new(
            node.at,
            format!("a moment of inertia is {bad} kg·m²; it must be greater than 0"),
        ));
    }
    // A rod of no thickness has Ixx + Iyy = Izz exactly; 1e-9 is for its rounding.
    for (a, b, c, names) in
        [(x, y, z, "Ixx + Iyy < Izz"), (y, z, x, "Iyy + Izz < Ixx"), (z, x, y, "Izz + Ixx < Iyy")]
    {
        if a + b < c * (1.0 - 1e-9) {
            let message = format!(
                "the inertia ({x}, {y}, {z}) violates the triangle inequality: {names}; no body of positive density has it"
            );
            return Err(Fault::new(node.at, message));
        }
    }
    Ok(DMat3::from_diagonal(DVec3::new(x, y, z)))
}

/// A colour by name, or `"#rrggbb"`.
fn read_color(node: &Node) -> Read<Appearance> {
    let word = read::word(node)?;
    Appearance::named(word).ok_or_else(|| {
        let names: Vec<&str> = Appearance::names().collect();
        let hint = suggestion(word, names.iter().copied());
        Fault::new(
            node.at,
            format!("there is no colour `{}` (write \"#c0a080\" for any){hint}", shorten(word)),
        )
    })
}
