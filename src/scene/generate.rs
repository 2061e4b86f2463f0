//! Generators: repeat, grid, stack, scatter.

use super::body::BodySpec;
use super::error::{Fault, Read, Span};
use super::expand::Builder;
use super::random::Random;
use super::read::{self, Fields};
use super::scope::Scope;
use super::text::Node;
use crate::components::Collider;
use crate::geometry::Shape;
use crate::math;
use glam::{DQuat, DVec3};
use std::collections::HashMap;

impl Builder<'_> {
    /// `Repeat(count: 3, index: "i", items: [..])`: the items once per turn, with `$i` counting from 0.
    pub(super) fn repeat(&mut self, node: &Node, scope: &Scope) -> Read<()> {
        let mut f = Fields::of(node, "the repetition", &self.variables)?;
        f.need("count")?;
        let count = f.count("count", self.limits.work)?.unwrap_or(0);
        let index = f.text("index")?.unwrap_or_else(|| "i".into());
        let items = read::items(f.need("items")?, "a list of items")?;
        f.finish()?;
        let mark = self.variables.len();
        self.variables.push(index.clone(), 0.0);
        for i in 0..count {
            self.spend(node.at)?;
            self.variables.set(&index, i as f64);
            self.items(items, scope)?;
        }
        self.variables.truncate(mark);
        Ok(())
    }

    /// `Grid(counts: (4, 4, 4), spacing: (1, 1, 1), at: .., jitter: .., body: Body(..))`, with `$ix $iy $iz $i`
    /// and `$u`, a random number from 0 to 1 of each body.
    pub(super) fn grid(&mut self, node: &Node, scope: &Scope) -> Read<()> {
        let mut f = Fields::of(node, "the grid", &self.variables)?;
        let counts = f.need("counts")?;
        let parts = read::items(counts, "three counts `(nx, ny, nz)`")?;
        let [nx, ny, nz] = parts else {
            return Err(Fault::new(counts.at, format!("expected three counts, found {}", parts.len())));
        };
        let most = self.limits.work;
        let count = |n: &Node| read::count(n, most, f.variables);
        let (nx, ny, nz) = (count(nx)?, count(ny)?, count(nz)?);
        let spacing = f.need_vector("spacing")?;
        let at = f.vector("at")?.unwrap_or(DVec3::ZERO);
        let jitter = f.not_negative("jitter")?.unwrap_or(0.0);
        let mut random = seed(&mut f)?;
        let body = f.need("body")?;
        f.finish()?;
        let mark = self.variables.len();
        let outer = self.variables.reseed(Random::new(random.bits()));
        for name in ["ix", "iy", "iz", "i", "u"] {
            self.variables.push(name, 0.0);
        }
        let mut number = 0usize;
        for iz in 0..nz {
            for iy in 0..ny {
                self.spend(node.at)?;
                for ix in 0..nx {
                    self.spend(node.at)?;
                    let place = DVec3::new(ix as f64, iy as f64, iz as f64);
                    for (name, v) in [("ix", ix), ("iy", iy), ("iz", iz), ("i", number)] {
                        self.variables.set(name, v as f64);
                    }
                    self.variables.set("u", random.unit());
                    let mut spec = self.read_body(body, "the body of the grid")?;
                    let shake = DVec3::from_array(std::array::from_fn(|_| random.range(-jitter, jitter)));
                    spec.at += at + spacing * place + shake;
                    self.add_body(spec, scope)?;
                    number += 1;
                }
            }
        }
        self.variables.truncate(mark);
        self.variables.reseed(outer);
        Ok(())
    }

    /// `Stack(count: 10, gap: 0, turn: 90, body: Body(..))`: each body on top of the one before, with `$i`.
    pub(super) fn stack(&mut self, node: &Node, scope: &Scope) -> Read<()> {
        let mut f = Fields::of(node, "the stack", &self.variables)?;
        f.need("count")?;
        let count = f.count("count", self.limits.work)?.unwrap_or(0);
        let at = f.vector("at")?.unwrap_or(DVec3::ZERO);
        let gap = f.number("gap")?.unwrap_or(0.0);
        let turn = f.number("turn")?.unwrap_or(0.0).to_radians();
        let body = f.need("body")?;
        f.finish()?;
        let mark = self.variables.len();
        self.variables.push("i", 0.0);
        let mut height = 0.0;
        for i in 0..count {
            self.variables.set("i", i as f64);
            let mut spec = self.read_body(body, "the body of the stack")?;
            spec.rotate = math::rotation(DVec3::Z, turn * i as f64) * spec.rotate;
            let (low, high) = extent(&spec, node.at)?;
            spec.at += at + DVec3::Z * (height - low);
            height += high - low + gap;
            self.add_body(spec, scope)?;
        }
        self.variables.truncate(mark);
        Ok(())
    }

    /// `Scatter(count: 50, min: .., max: .., apart: 0.5, seed: 1, turn: true, body: Body(..))`, with `$i`
    /// and `$u`, a random number from 0 to 1 of each body.
    pub(super) fn scatter(&mut self, node: &Node, scope: &Scope) -> Read<()> {
        let mut f = Fields::of(node, "the scatter", &self.variables)?;
        f.need("count")?;
        let count = f.count("count", self.limits.work)?.unwrap_or(0);
        let (min, max) = (f.need_vector("min")?, f.need_vector("max")?);
        if min.cmpgt(max).any() {
            return Err(Fault::new(node.at, format!("the box is empty: min {min} is above max {max}")));
        }
        let apart = f.not_negative("apart")?.unwrap_or(0.0);
        let turn = f.flag("turn")?.unwrap_or(true);
        let mut random = seed(&mut f)?;
        let body = f.need("body")?;
        f.finish()?;
        let mark = self.variables.len();
        let outer = self.variables.reseed(Random::new(random.bits()));
        self.variables.push("i", 0.0);
        self.variables.push("u", 0.0);
        let mut taken = Taken { cell: apart.max(1e-3), places: HashMap::new() };
        for i in 0..count {
            self.variables.set("i", i as f64);
            let mut free = None;
            for _ in 0..500 {
                self.spend(node.at)?;
                let place = DVec3::from_array(std::array::from_fn(|k| random.range(min[k], max[k])));
                if apart == 0.0 || taken.is_free(place, apart) {
                    free = Some(place);
                    break;
                }
            }
            let Some(place) = free else {
                let message =
                    format!("only {i} of {count} bodies fit {apart} m apart into the box; make it larger");
                return Err(Fault::new(node.at, message));
            };
            taken.take(place);
            self.variables.set("u", random.unit());
            let mut spec = self.read_body(body, "the body of the scatter")?;
            spec.at += place;
            if turn {
                spec.rotate = random.rotation() * spec.rotate;
            }
            self.add_body(spec, scope)?;
        }
        self.variables.truncate(mark);
        self.variables.reseed(outer);
        Ok(())
    }
}

fn seed(f: &mut Fields<'_, '_>) -> Read<Random> {
    Ok(match f.number("seed")? {
        Some(v) => Random::new(v.abs() as u64),
        None => Random::new(f.variables.random().bits()),
    })
}

/// Places taken so far, in cells as wide as the distance to keep.
struct Taken {
    cell: f64,
    places: HashMap<[i64; 3], Vec<DVec3>>,
}

impl Taken {
    fn key(&self, p: DVec3) -> [i64; 3] {
        p.to_array().map(|v| (v / self.cell).floor() as i64)
    }

    fn is_free(&self, p: DVec3, apart: f64) -> bool {
        let [x, y, z] = self.key(p);
        let near = (-1..=1).flat_map(|i| (-1..=1).flat_map(move |j| (-1..=1).map(move |k| [i, j, k])));
        !near
            .filter_map(|[i, j, k]| {
                self.places.get(&[x.saturating_add(i), y.saturating_add(j), z.saturating_add(k)])
            })
            .flatten()
            .any(|q| q.distance(p) < apart)
    }

    fn take(&mut self, p: DVec3) {
        self.places.entry(self.key(p)).or_default().push(p);
    }
}

/// Lowest and highest point of a body above its origin.
fn extent(spec: &BodySpec, at: Span) -> Read<(f64, f64)> {
    let mut range: Option<(f64, f64)> = None;
    for c in &spec.colliders {
        let (low, high) = collider_extent(c, spec.rotate).ok_or_else(|| {
            Fault::new(at, "a stack needs bodies with a height: no planes, meshes or height fields")
        })?;
        range = Some(range.map_or((low, high), |(l, h): (f64, f64)| (l.min(low), h.max(high))));
    }
    range.ok_or_else(|| Fault::new(at, "a stack needs bodies with a shape"))
}

fn collider_extent(c: &Collider, outer: DQuat) -> Option<(f64, f64)> {
    let rotation = outer * c.rotation;
    let center = (outer * c.position).z;
    let axis = (rotation * DVec3::Y).z;
    let flat = (1.0 - axis * axis).max(0.0).sqrt();
    let half = match c.shape.shape() {
        Shape::Sphere { radius } => *radius,
        Shape::Box { half_extents: e } => {
            let up = rotation.inverse() * DVec3::Z;
            up.abs().dot(*e)
        }
        Shape::Capsule { half_length, radius } => axis.abs() * half_length + radius,
        Shape::Cylinder { half_length, radius } => axis.abs() * half_length + flat * radius,
        Shape::Cone { half_height, radius } => axis.abs() * half_height + flat * radius,
        Shape::ConvexHull { points } => {
            let heights = || points.iter().map(|p| (rotation * *p).z);
            let (low, high) =
                (heights().fold(f64::INFINITY, f64::min), heights().fold(f64::NEG_INFINITY, f64::max));
            return Some((center + low, center + high));
        }
        _ => return None,
    };
    Some((center - half, center + half))
}
