//! From a frame to coloured triangles.

use crate::replay::recording::*;
use glam::{Quat, Vec3};
use std::f32::consts::TAU;

/// A triangle with the normals of its corners.
pub(super) struct Triangle {
    pub points: [Vec3; 3],
    pub normals: [Vec3; 3],
    /// Linear.
    pub color: Vec3,
    /// One more than the number of its body.
    pub owner: u32,
}

/// An endless plane.
pub(super) struct Ground {
    pub point: Vec3,
    pub normal: Vec3,
    pub along: Vec3,
}

impl Ground {
    /// Something for shadows to fall on where the scene has no floor, so that depth can be read.
    pub fn grid(bounds: &Bounds) -> Ground {
        Ground { point: bounds.centre.with_z(bounds.floor), normal: Vec3::Z, along: Vec3::X }
    }
}

pub(super) struct Gathered {
    pub triangles: Vec<Triangle>,
    pub grounds: Vec<Ground>,
}

/// What colours stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ColorBy {
    /// What bodies are made of.
    #[default]
    Material,
    /// The partition they are in.
    Partition,
    /// How fast they move.
    Speed,
}

/// Where things happen: the moving bodies over the whole run, strays left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub centre: Vec3,
    pub radius: f32,
    /// The lowest that anything reaches: a scene without a floor gets a grid there.
    pub floor: f32,
}

impl Bounds {
    pub fn of(recording: &Recording) -> Bounds {
        let mut axes: [Vec<f32>; 3] = Default::default();
        let mut size = 0.1f32;
        for (b, body) in recording.bodies.iter().enumerate().filter(|(_, b)| b.kind != Kind::Fixed) {
            for part in body.parts.iter().filter(|p| !matches!(p.form, Form::Mesh | Form::Plane)) {
                size = part.size.iter().fold(size, |m, &s| m.max(s));
            }
            for frame in recording.frames.iter().step_by((recording.frames.len() / 30).max(1)) {
                let Some(pose) = frame.poses.get(b).filter(|p| p.is_present()) else { continue };
                for (axis, value) in axes.iter_mut().zip(pose.position) {
                    axis.push(value);
                }
            }
        }
        let range = axes.map(|mut axis| {
            axis.sort_by(f32::total_cmp);
            let at = |q: f32| axis.get((q * axis.len().saturating_sub(1) as f32) as usize).copied();
            (at(0.01).unwrap_or(0.0), at(0.99).unwrap_or(0.0))
        });
        let low = Vec3::from(range.map(|r| r.0));
        let high = Vec3::from(range.map(|r| r.1));
        let half = 0.5 * (high - low) + size;
        let (mut centre, mut radius) = (0.5 * (low + high), half.length().max(0.3));
        if let Some(view) = recording.info.camera {
            // Where the scene says what to look at, things that flew far beyond it do not set the scale.
            let (eye, target) = (Vec3::from(view.eye), Vec3::from(view.target));
            if radius > 1.5 * eye.distance(target) {
                (centre, radius) = (target, eye.distance(target));
            }
        }
        Bounds { centre, radius, floor: floor(recording, centre.z - 1.5 * radius) }
    }
}

/// The lowest that anything reaches, strays below `least` left out.
fn floor(recording: &Recording, least: f32) -> f32 {
    let mesh_radius = |part: &Part| {
        let mesh = part.mesh.and_then(|m| recording.meshes.get(m as usize));
        mesh.map_or(0.0, |m| m.vertices.iter().fold(0.0, |far: f32, &v| Vec3::from(v).length().max(far)))
    };
    let mut lowest = f32::INFINITY;
    let every = (recording.frames.len() / 30).max(1);
    for (b, body) in recording.bodies.iter().enumerate() {
        let frames = if body.kind == Kind::Fixed { 1 } else { recording.frames.len() };
        for part in &body.parts {
            let far = if part.form == Form::Mesh { mesh_radius(part) } else { 0.0 };
            for frame in (0..frames).step_by(every) {
                let Some(pose) = recording.pose(frame, b) else { continue };
                let up = pose.rotation().as_quat().conjugate() * Vec3::Z;
                let local = Quat::from_array(part.rotation).conjugate() * up;
                let down = match part.form {
                    Form::Plane => 0.0,
                    Form::Mesh => far,
                    _ => local.abs().dot(Vec3::from(part.size)),
                };
                let height = pose.position[2] + up.dot(Vec3::from(part.position)) - down;
                if height > least {
                    lowest = lowest.min(height);
                }
            }
        }
    }
    lowest
}

/// The triangles and grounds of a frame.
pub(super) fn gather(recording: &Recording, frame: usize, by: ColorBy) -> Gathered {
    let mut out = Gathered { triangles: Vec::new(), grounds: Vec::new() };
    let cables = cables(recording);
    let linked: Vec<usize> = cables.iter().flatten().map(|l| l.body).collect();
    let fast = top_speed(recording);
    for (b, body) in recording.bodies.iter().enumerate() {
        let Some(pose) = recording.pose(frame, b) else { continue };
        if linked.contains(&b) {
            continue;
        }
        let (position, turn) = (pose.position().as_vec3(), pose.rotation().as_quat());
        let color = color_of(recording, frame, b, by, fast);
        for part in &body.parts {
            let place = Place {
                position: position + turn * Vec3::from(part.position),
                turn: turn * Quat::from_array(part.rotation).normalize(),
                size: Vec3::from(part.size),
                owner: b as u32 + 1,
            };
            add_part(&mut out, recording, part, &place, color);
        }
    }
    for links in &cables {
        add_cable(&mut out, recording, frame, links, by, fast);
    }
    out
}

fn color_of(recording: &Recording, frame: usize, body: usize, by: ColorBy, fast: f32) -> Vec3 {
    let info = &recording.bodies[body];
    let srgb = match by {
        ColorBy::Material => info.color,
        ColorBy::Partition => {
            let partition = recording.frames[frame].partitions.get(body).copied().unwrap_or(NO_PARTITION);
            partition_color(partition)
        }
        ColorBy::Speed if info.kind == Kind::Fixed => [168, 168, 164],
        ColorBy::Speed => ramp(speed(recording, frame, body) / fast),
    };
    Vec3::from(srgb.map(super::shade::from_srgb))
}

/// Numbers that follow each other get colours far apart (golden angle); the page does the same.
fn partition_color(index: u16) -> [u8; 3] {
    if index == NO_PARTITION {
        return [168, 168, 164];
    }
    let hue = (f32::from(index) * 137.508 + 14.0) % 360.0;
    let light = [0.52, 0.62, 0.44][usize::from(index % 3)];
    let a = 0.58 * f32::min(light, 1.0 - light);
    [0.0, 8.0, 4.0].map(|n| {
        let k = (n + hue / 30.0) % 12.0;
        (255.0 * (light - a * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0))) as u8
    })
}

const RAMP: [[f32; 3]; 5] = [
    [38.0, 70.0, 133.0],
    [46.0, 134.0, 171.0],
    [94.0, 190.0, 160.0],
    [235.0, 200.0, 92.0],
    [226.0, 90.0, 60.0],
];

fn ramp(s: f32) -> [u8; 3] {
    let x = s.clamp(0.0, 1.0) * 4.0;
    let i = (x as usize).min(3);
    let t = x - i as f32;
    std::array::from_fn(|k| (RAMP[i][k] + t * (RAMP[i + 1][k] - RAMP[i][k])) as u8)
}

fn speed(recording: &Recording, frame: usize, body: usize) -> f32 {
    let (a, b) = (frame.saturating_sub(1), (frame + 1).min(recording.frames.len() - 1));
    let dt = recording.frames[b].stat(Stat::Time) - recording.frames[a].stat(Stat::Time);
    match (recording.pose(a, body), recording.pose(b, body)) {
        (Some(p), Some(q)) if dt > 0.0 => (p.position().distance(q.position())) as f32 / dt,
        _ => 0.0,
    }
}

fn top_speed(recording: &Recording) -> f32 {
    let mut all: Vec<f32> = (0..recording.frames.len())
        .step_by((recording.frames.len() / 20).max(1))
        .flat_map(|f| (0..recording.bodies.len()).map(move |b| speed(recording, f, b)))
        .collect();
    all.sort_by(f32::total_cmp);
    let at = (0.99 * all.len().saturating_sub(1) as f32) as usize;
    all.get(at).copied().unwrap_or(1.0).max(1e-3)
}

/// Where a part is in the world.
struct Place {
    position: Vec3,
    turn: Quat,
    size: Vec3,
    owner: u32,
}

impl Place {
    fn point(&self, p: Vec3) -> Vec3 {
        self.position + self.turn * (p * self.size)
    }

    fn normal(&self, n: Vec3) -> Vec3 {
        (self.turn * (n / self.size)).normalize_or(Vec3::Z)
    }
}

fn add_part(out: &mut Gathered, recording: &Recording, part: &Part, place: &Place, color: Vec3) {
    let mut quad = |corners: [Vec3; 4], normals: [Vec3; 4]| {
        for [a, b, c] in [[0, 1, 2], [0, 2, 3]] {
            out.triangles.push(Triangle {
                points: [corners[a], corners[b], corners[c]].map(|p| place.point(p)),
                normals: [normals[a], normals[b], normals[c]].map(|n| place.normal(n)),
                color,
                owner: place.owner,
            });
        }
    };
    match part.form {
        Form::Plane => {
            let (normal, along) = (place.turn * Vec3::Z, place.turn * Vec3::X);
            out.grounds.push(Ground { point: place.position, normal, along });
        }
        Form::Box => {
            for axis in 0..3 {
                for sign in [1.0, -1.0] {
                    let n = Vec3::AXES[axis] * sign;
                    let (u, v) = (Vec3::AXES[(axis + 1) % 3] * sign, Vec3::AXES[(axis + 2) % 3]);
                    quad([n - u - v, n + u - v, n + u + v, n - u + v], [n; 4]);
                }
            }
        }
        Form::Sphere => {
            let at = |i: u32, j: u32| {
                let (a, b) = (TAU * i as f32 / 32.0, 0.5 * TAU * j as f32 / 20.0);
                Vec3::new(b.sin() * a.cos(), b.cos(), b.sin() * a.sin())
            };
            for (i, j) in (0..32).flat_map(|i| (0..20).map(move |j| (i, j))) {
                let corners = [at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)];
                quad(corners, corners);
            }
        }
        Form::Cylinder | Form::Cone => {
            let top = if part.form == Form::Cone { 0.0 } else { 1.0 };
            let rise = if part.form == Form::Cone { 0.5 } else { 0.0 };
            let at = |i: u32, r: f32, y: f32| {
                let a = TAU * i as f32 / 40.0;
                Vec3::new(r * a.cos(), y, r * a.sin())
            };
            for i in 0..40 {
                let (n, m) = (at(i, 1.0, rise), at(i + 1, 1.0, rise));
                quad(
                    [at(i, 1.0, -1.0), at(i, top, 1.0), at(i + 1, top, 1.0), at(i + 1, 1.0, -1.0)],
                    [n, n, m, m],
                );
                for (y, r) in [(1.0, top), (-1.0, 1.0)] {
                    let middle = Vec3::Y * y;
                    quad([middle, at(i, r, y), at(i + 1, r, y), middle], [middle; 4]);
                }
            }
        }
        Form::Mesh => {
            let Some(mesh) = part.mesh.and_then(|m| recording.meshes.get(m as usize)) else { return };
            for t in &mesh.triangles {
                let corner = |i: u32| mesh.vertices.get(i as usize).map(|v| place.point(Vec3::from(*v)));
                let [Some(a), Some(b), Some(c)] = t.map(corner) else { continue };
                let n = (b - a).cross(c - a).normalize_or(Vec3::Z);
                out.triangles.push(Triangle {
                    points: [a, b, c],
                    normals: [n; 3],
                    color,
                    owner: place.owner,
                });
            }
        }
    }
}

/// One link of a cable.
struct Link {
    body: usize,
    order: u32,
    radius: f32,
}

/// The cables of at least two links, each in order.
fn cables(recording: &Recording) -> Vec<Vec<Link>> {
    let mut cables = std::collections::BTreeMap::<u32, Vec<Link>>::new();
    for (body, info) in recording.bodies.iter().enumerate() {
        if let Some(tag) = info.cable {
            cables.entry(tag.cable).or_default().push(Link { body, order: tag.order, radius: tag.radius });
        }
    }
    let mut cables: Vec<Vec<Link>> = cables.into_values().filter(|c| c.len() > 1).collect();
    for links in &mut cables {
        links.sort_by_key(|l| l.order);
    }
    cables
}

/// How far a link reaches along its y axis.
fn reach(body: &BodyInfo) -> f32 {
    let along = |p: &Part| if matches!(p.form, Form::Cylinder | Form::Box) { p.size[1] } else { 0.0 };
    body.parts.iter().map(|p| p.position[1].abs() + along(p)).fold(0.0, f32::max)
}

const SIDES: usize = 10;
const STEPS: usize = 4;

/// A tube along a Catmull–Rom curve through the links.
fn add_cable(
    out: &mut Gathered,
    recording: &Recording,
    frame: usize,
    links: &[Link],
    by: ColorBy,
    fast: f32,
) {
    let poses: Vec<(Vec3, Quat)> = links
        .iter()
        .filter_map(|l| recording.pose(frame, l.body))
        .map(|p| (p.position().as_vec3(), p.rotation().as_quat()))
        .collect();
    if poses.len() != links.len() {
        return;
    }
    let end = |i: usize, neighbour: usize| {
        let (p, q) = poses[i];
        let axis = q * Vec3::Y;
        let away = if axis.dot(p - poses[neighbour].0) < 0.0 { -1.0 } else { 1.0 };
        p + axis * away * reach(&recording.bodies[links[i].body])
    };
    let last = links.len() - 1;
    let mut points = vec![end(0, 1)];
    points.extend(poses.iter().map(|p| p.0));
    points.push(end(last, last - 1));
    let at = |i: isize| points[i.clamp(0, points.len() as isize - 1) as usize];
    let mut rings: Vec<([Vec3; SIDES], [Vec3; SIDES])> = Vec::new();
    let mut u = Vec3::ZERO;
    for step in 0..=(points.len() - 1) * STEPS {
        let i = (step / STEPS).min(points.len() - 2) as isize;
        let s = step as f32 / STEPS as f32 - i as f32;
        let [a, b, c, d] = [at(i - 1), at(i), at(i + 1), at(i + 2)];
        let (k2, k3) = (2.0 * a - 5.0 * b + 4.0 * c - d, 3.0 * (b - c) + d - a);
        let point = b + 0.5 * s * (c - a + s * (k2 + s * k3));
        let tangent = (0.5 * (c - a) + s * k2 + 1.5 * s * s * k3).normalize_or(Vec3::Z);
        if step == 0 {
            u = tangent.any_orthonormal_vector();
        }
        u = (u - tangent * u.dot(tangent)).normalize_or(tangent.any_orthonormal_vector());
        let v = tangent.cross(u);
        let normals = std::array::from_fn(|k| {
            let angle = TAU * k as f32 / SIDES as f32;
            u * angle.cos() + v * angle.sin()
        });
        rings.push((normals.map(|n| point + n * links[0].radius), normals));
    }
    for (ring, pair) in rings.windows(2).enumerate() {
        let link = (ring / STEPS).clamp(1, links.len()) - 1;
        let color = color_of(recording, frame, links[link].body, by, fast);
        for k in 0..SIDES {
            let m = (k + 1) % SIDES;
            // Two strands, so that a turning cable is seen to turn.
            let strand = if by == ColorBy::Material && ((k + ring) / 2) % 2 == 1 { 0.86 } else { 1.0 };
            for [a, b, c] in [[(0, k), (1, m), (1, k)], [(0, k), (0, m), (1, m)]] {
                let [a, b, c] = [a, b, c].map(|(r, i): (usize, usize)| (pair[r].0[i], pair[r].1[i]));
                out.triangles.push(Triangle {
                    points: [a.0, b.0, c.0],
                    normals: [a.1, b.1, c.1],
                    color: color * strand,
                    owner: links[0].body as u32 + 1,
                });
            }
        }
    }
}
