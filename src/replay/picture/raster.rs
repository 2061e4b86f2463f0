//! A depth buffer and the triangles that go into it.

use super::camera::View;
use super::geometry::Triangle;
use glam::Vec3;

/// What is seen through each pixel.
pub(super) struct Buffer {
    pub width: u32,
    pub height: u32,
    /// One over the depth along `forward` (1/m); zero where there is nothing.
    pub nearness: Vec<f32>,
    pub normal: Vec<Vec3>,
    /// Linear.
    pub color: Vec<Vec3>,
    /// Whose surface it is: one more than the body's number, zero for ground and sky.
    pub owner: Vec<u32>,
    /// How much of the sky shows through (the far ground).
    pub fade: Vec<f32>,
}

impl Buffer {
    pub fn new(width: u32, height: u32) -> Buffer {
        let n = (width * height) as usize;
        Buffer {
            width,
            height,
            nearness: vec![0.0; n],
            normal: vec![Vec3::ZERO; n],
            color: vec![Vec3::ZERO; n],
            owner: vec![0; n],
            fade: vec![0.0; n],
        }
    }
}

/// A corner in local coordinates of the camera.
#[derive(Clone, Copy)]
struct Corner {
    local: Vec3,
    normal: Vec3,
}

/// Draws the part of a triangle that is in front of the eye.
pub(super) fn draw(buffer: &mut Buffer, view: &View, triangle: &Triangle) {
    let corners: [Corner; 3] = std::array::from_fn(|i| Corner {
        local: view.local(triangle.points[i]),
        normal: triangle.normals[i],
    });
    let mut clipped = [corners[0]; 4];
    let mut n = 0;
    for i in 0..3 {
        let (a, b) = (corners[i], corners[(i + 1) % 3]);
        let inside = |c: Corner| c.local.z > view.near;
        if inside(a) {
            clipped[n] = a;
            n += 1;
        }
        if inside(a) != inside(b) {
            let s = (view.near - a.local.z) / (b.local.z - a.local.z);
            clipped[n] = Corner { local: a.local.lerp(b.local, s), normal: a.normal.lerp(b.normal, s) };
            n += 1;
        }
    }
    for i in 2..n {
        fill(buffer, view, [clipped[0], clipped[i - 1], clipped[i]], triangle);
    }
}

fn fill(buffer: &mut Buffer, view: &View, corners: [Corner; 3], triangle: &Triangle) {
    let p = corners.map(|c| view.pixel(c.local));
    let w = corners.map(|c| 1.0 / c.local.z);
    let area = edge(p[0], p[1], p[2]);
    if area == 0.0 || !area.is_finite() {
        return;
    }
    let range = |k: usize, most: u32| {
        let low = p.iter().fold(f32::INFINITY, |m, q| m.min(q[k]));
        let high = p.iter().fold(f32::NEG_INFINITY, |m, q| m.max(q[k]));
        // `as` saturates, so corners far outside are fine.
        ((low - 0.5).ceil().max(0.0) as u32, ((high - 0.5).floor() + 1.0).clamp(0.0, most as f32) as u32)
    };
    let (columns, rows) = (range(0, buffer.width), range(1, buffer.height));
    for y in rows.0..rows.1 {
        for x in columns.0..columns.1 {
            let at = [x as f32 + 0.5, y as f32 + 0.5];
            let b = [edge(p[1], p[2], at) / area, edge(p[2], p[0], at) / area, edge(p[0], p[1], at) / area];
            if b.iter().any(|&s| s < 0.0) {
                continue;
            }
            let nearness = b[0] * w[0] + b[1] * w[1] + b[2] * w[2];
            let i = (y * buffer.width + x) as usize;
            if nearness > buffer.nearness[i] {
                let normal = corners[0].normal * (b[0] * w[0])
                    + corners[1].normal * (b[1] * w[1])
                    + corners[2].normal * (b[2] * w[2]);
                buffer.nearness[i] = nearness;
                buffer.normal[i] = normal.normalize_or(Vec3::Z);
                buffer.color[i] = triangle.color;
                buffer.owner[i] = triangle.owner;
            }
        }
    }
}

/// Twice the signed area of a triangle.
pub(super) fn edge(a: [f32; 2], b: [f32; 2], c: [f32; 2]) -> f32 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}
