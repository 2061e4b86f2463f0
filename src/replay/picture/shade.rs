//! Light: a sun with shadows, a sky, and darker places where things are close together.

use super::camera::View;
use super::geometry::{Bounds, Ground, Triangle};
use super::raster::{Buffer, edge};
use glam::Vec3;

/// Colours (linear) and directions of the light.
pub(super) struct Style {
    sun_direction: Vec3,
    sun: Vec3,
    sky: Vec3,
    bounce: Vec3,
    ground: Vec3,
    grid: Vec3,
    top: Vec3,
    low: Vec3,
    bounds: Bounds,
}

fn rgb(hex: u32) -> Vec3 {
    let [_, r, g, b] = hex.to_be_bytes();
    Vec3::new(from_srgb(r), from_srgb(g), from_srgb(b))
}

impl Style {
    pub fn new(dark: bool, bounds: Bounds) -> Style {
        let sun_direction = Vec3::new(-0.5, -0.62, 1.15).normalize();
        if dark {
            Style {
                sun_direction,
                sun: Vec3::new(0.86, 0.80, 0.72),
                sky: Vec3::new(0.42, 0.48, 0.58),
                bounce: Vec3::new(0.20, 0.18, 0.16),
                ground: rgb(0x39414c),
                grid: rgb(0x566170),
                top: rgb(0x10141a),
                low: rgb(0x262d37),
                bounds,
            }
        } else {
            Style {
                sun_direction,
                sun: Vec3::new(0.80, 0.74, 0.66),
                sky: Vec3::new(0.58, 0.62, 0.68),
                bounce: Vec3::new(0.40, 0.36, 0.31),
                ground: rgb(0xd6d5d1),
                grid: rgb(0xa8a294),
                top: rgb(0xdfe8f0),
                low: rgb(0xfaf8f4),
                bounds,
            }
        }
    }

    /// The sky behind a pixel.
    fn background(&self, y: u32, height: u32) -> Vec3 {
        self.top.lerp(self.low, (y as f32 / height as f32).powf(0.8))
    }
}

/// Puts the grounds behind what is drawn, with a grid that fades into the distance.
pub(super) fn cast_ground(buffer: &mut Buffer, view: &View, grounds: &[Ground], style: &Style) {
    let radius = style.bounds.radius;
    let spacing = 10f32.powf((radius / 4.0).log10().round());
    for ground in grounds {
        let height = (view.eye - ground.point).dot(ground.normal);
        if height <= 0.0 {
            continue;
        }
        let across = ground.normal.cross(ground.along);
        let middle = style.bounds.centre - ground.point;
        for y in 0..buffer.height {
            for x in 0..buffer.width {
                let ray = view.ray(x, y);
                let falling = -ray.dot(ground.normal);
                let nearness = falling / height;
                let i = (y * buffer.width + x) as usize;
                if falling <= 0.0 || nearness <= buffer.nearness[i] || 1.0 / nearness < view.near {
                    continue;
                }
                let hit = view.eye + ray / nearness - ground.point;
                let (u, v) = (hit.dot(ground.along), hit.dot(across));
                // A pixel covers more ground the flatter it is looked at.
                let blur = view.pixel_size() / nearness / (falling / ray.length()).max(0.05);
                let width = 0.008 * spacing;
                let lines =
                    (0.7 * grid(u, v, spacing, width, blur)).max(grid(u, v, 10.0 * spacing, width, blur));
                let far = (hit - middle).length() / (8.0 * radius);
                buffer.nearness[i] = nearness;
                buffer.normal[i] = ground.normal;
                buffer.owner[i] = 0;
                buffer.color[i] = style.ground.lerp(style.grid, lines);
                buffer.fade[i] = smooth((far - 0.1) / 0.9);
            }
        }
    }
}

fn smooth(s: f32) -> f32 {
    let s = s.clamp(0.0, 1.0);
    s * s * (3.0 - 2.0 * s)
}

/// How much of a grid line is in a spot of this size.
fn grid(u: f32, v: f32, spacing: f32, width: f32, blur: f32) -> f32 {
    let line = |c: f32| {
        let off = (c / spacing - (c / spacing).round()).abs() * spacing;
        (1.0 - (off - width).max(0.0) / (blur + 1e-6)).max(0.0)
            * (2.0 * width / (2.0 * width + blur)).max(0.25)
    };
    let dense = (1.0 - blur / (0.35 * spacing)).clamp(0.0, 1.0);
    line(u).max(line(v)) * dense
}

/// Depth as the sun sees it.
pub(super) struct ShadowMap {
    size: u32,
    depth: Vec<f32>,
    right: Vec3,
    up: Vec3,
    toward: Vec3,
    centre: Vec3,
    /// Texels a metre.
    scale: f32,
}

impl ShadowMap {
    pub fn new(triangles: &[Triangle], style: &Style) -> ShadowMap {
        let size = 2048;
        let toward = style.sun_direction;
        let right = toward.cross(Vec3::Z).normalize_or(Vec3::X);
        let reach = 1.4 * style.bounds.radius;
        let mut map = ShadowMap {
            size,
            depth: vec![f32::NEG_INFINITY; (size * size) as usize],
            right,
            up: right.cross(toward),
            toward,
            centre: style.bounds.centre,
            scale: size as f32 / (2.0 * reach),
        };
        for triangle in triangles {
            map.draw(triangle);
        }
        map
    }

    /// Texel coordinates and height towards the sun.
    fn place(&self, p: Vec3) -> ([f32; 2], f32) {
        let d = p - self.centre;
        let half = 0.5 * self.size as f32;
        ([half + d.dot(self.right) * self.scale, half + d.dot(self.up) * self.scale], d.dot(self.toward))
    }

    fn draw(&mut self, triangle: &Triangle) {
        let corners = triangle.points.map(|p| self.place(p));
        let p = corners.map(|c| c.0);
        let area = edge(p[0], p[1], p[2]);
        if area == 0.0 || !area.is_finite() {
            return;
        }
        let range = |k: usize| {
            let low = p.iter().fold(f32::INFINITY, |m, q| m.min(q[k]));
            let high = p.iter().fold(f32::NEG_INFINITY, |m, q| m.max(q[k]));
            (low.floor().max(0.0) as u32, (high.ceil()).clamp(0.0, self.size as f32) as u32)
        };
        let (columns, rows) = (range(0), range(1));
        for y in rows.0..rows.1 {
            for x in columns.0..columns.1 {
                let at = [x as f32 + 0.5, y as f32 + 0.5];
                let b = [edge(p[1], p[2], at), edge(p[2], p[0], at), edge(p[0], p[1], at)].map(|e| e / area);
                if b.iter().any(|&s| s < 0.0) {
                    continue;
                }
                let height = b[0] * corners[0].1 + b[1] * corners[1].1 + b[2] * corners[2].1;
                let texel = &mut self.depth[(y * self.size + x) as usize];
                *texel = texel.max(height);
            }
        }
    }

    /// Share of the sun that reaches a point, from several spots around it.
    fn lit(&self, p: Vec3, normal: Vec3, seed: u32) -> f32 {
        let texel = 1.0 / self.scale;
        let slope = normal.dot(self.toward).clamp(0.05, 1.0);
        let p = p + normal * (1.5 * texel);
        let (at, height) = self.place(p);
        let bias = 1.2 * texel / slope;
        let turn = noise(seed) * std::f32::consts::TAU;
        let mut sum = 0.0;
        for k in 0..8 {
            let angle = turn + k as f32 * 2.4;
            let r = 1.8 * ((k as f32 + 0.5) / 8.0).sqrt();
            let (x, y) = (at[0] + r * angle.cos(), at[1] + r * angle.sin());
            let inside = x >= 0.0 && y >= 0.0 && x < self.size as f32 && y < self.size as f32;
            let hidden = inside && self.depth[(y as u32 * self.size + x as u32) as usize] > height + bias;
            sum += if hidden { 0.0 } else { 0.125 };
        }
        sum
    }
}

/// Linear light of every pixel.
pub(super) fn shade(buffer: &Buffer, view: &View, shadows: &ShadowMap, style: &Style) -> Vec<Vec3> {
    let mut out = Vec::with_capacity(buffer.nearness.len());
    for y in 0..buffer.height {
        let sky = style.background(y, buffer.height);
        for x in 0..buffer.width {
            let i = (y * buffer.width + x) as usize;
            if buffer.nearness[i] == 0.0 {
                out.push(sky);
                continue;
            }
            let ray = view.ray(x, y);
            let point = view.eye + ray / buffer.nearness[i];
            let seed = y.wrapping_mul(7919).wrapping_add(x);
            let looking = -ray.normalize();
            let mut normal = buffer.normal[i];
            if normal.dot(looking) < 0.0 && buffer.fade[i] == 0.0 {
                normal = -normal;
            }
            let facing = normal.dot(style.sun_direction).max(0.0);
            let sun = if facing > 0.0 { facing * shadows.lit(point, normal, seed) } else { 0.0 };
            let open = openness(buffer, view, style, point, normal, seed);
            let around = style.bounce.lerp(style.sky, 0.5 + 0.5 * normal.z) * open;
            let half = (style.sun_direction + looking).normalize_or(normal);
            let gloss = if buffer.fade[i] > 0.0 { 0.0 } else { 0.10 * normal.dot(half).max(0.0).powi(40) };
            let lit =
                buffer.color[i] * line(buffer, x, y) * (style.sun * sun + around) + Vec3::splat(gloss * sun);
            out.push(lit.lerp(sky, buffer.fade[i]));
        }
    }
    out
}

/// A thin dark line where one body meets another and along sharp edges, so that a wall shows its bricks.
fn line(buffer: &Buffer, x: u32, y: u32) -> f32 {
    let i = (y * buffer.width + x) as usize;
    let owner = buffer.owner[i];
    let apart = |j: usize| {
        let sharp = buffer.normal[i].dot(buffer.normal[j]) < 0.75;
        buffer.owner[j] != 0 && (buffer.owner[j] != owner || sharp)
    };
    let right = x + 1 < buffer.width && apart(i + 1);
    let below = y + 1 < buffer.height && apart(i + buffer.width as usize);
    if owner != 0 && (right || below) { 0.62 } else { 1.0 }
}

/// One in the open, less where other surfaces are near: asks the depth buffer at points around.
fn openness(buffer: &Buffer, view: &View, style: &Style, point: Vec3, normal: Vec3, seed: u32) -> f32 {
    const SPOTS: u32 = 10;
    let reach = 0.09 * style.bounds.radius;
    let side = normal.any_orthonormal_vector();
    let other = normal.cross(side);
    let turn = noise(seed ^ 0x5bd1) * std::f32::consts::TAU;
    let mut closed = 0.0;
    for k in 0..SPOTS {
        let s = (k as f32 + 0.5) / SPOTS as f32;
        let angle = turn + k as f32 * 2.399;
        let (flat, tall) = ((1.0 - s * s).sqrt(), s);
        let direction = (side * angle.cos() + other * angle.sin()) * flat + normal * (tall + 0.08);
        let local =
            view.local(point + direction * reach * (0.15 + 0.85 * ((k * 7) % SPOTS) as f32 / SPOTS as f32));
        if local.z <= view.near {
            continue;
        }
        let [x, y] = view.pixel(local);
        if x < 0.0 || y < 0.0 || x >= buffer.width as f32 || y >= buffer.height as f32 {
            continue;
        }
        let seen = buffer.nearness[(y as u32 * buffer.width + x as u32) as usize];
        let before = if seen > 0.0 { local.z - 1.0 / seen } else { 0.0 };
        // What is far in front hides the view, not the light.
        if before > 0.01 * reach && before < 1.5 * reach {
            closed += 1.0;
        }
    }
    1.0 - 0.75 * closed / SPOTS as f32
}

/// A number in 0..1 that looks random and depends on the pixel only, so that what stands still looks still.
fn noise(seed: u32) -> f32 {
    let mut h = seed.wrapping_mul(0x9e37_79b1) ^ 0x85eb_ca6b;
    h = (h ^ (h >> 15)).wrapping_mul(0x2c1b_3c6d);
    h = (h ^ (h >> 12)).wrapping_mul(0x297a_2d39);
    (h >> 8) as f32 / (1 << 24) as f32
}

/// Linear value of an sRGB byte.
pub(super) fn from_srgb(byte: u8) -> f32 {
    let c = f32::from(byte) / 255.0;
    if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

/// sRGB byte of a linear value; highlights are rolled off rather than cut.
pub(super) fn to_srgb(linear: f32) -> u8 {
    let c = if linear > 0.8 { 0.8 + 0.2 * (1.0 - (-(linear - 0.8) / 0.2).exp()) } else { linear.max(0.0) };
    let s = if c <= 0.003_130_8 { 12.92 * c } else { 1.055 * c.powf(1.0 / 2.4) - 0.055 };
    (255.0 * s + 0.5) as u8
}
