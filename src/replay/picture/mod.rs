//! Pictures without a browser or a graphics card: a small rasteriser with shadows.
//!
//! Triangles go into a depth buffer (`raster`), the endless ground is cast per pixel, and every pixel is then lit by
//! a sun with a shadow map, a sky, and the nearness of its surroundings (`shade`). Everything is drawn finer than
//! asked for and averaged.

mod camera;
mod geometry;
pub mod png;
mod raster;
mod shade;
#[cfg(test)]
mod tests;

pub use camera::Camera;
pub use geometry::ColorBy;

use super::recording::Recording;
use geometry::Bounds;
use glam::Vec3;

/// How a picture is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PictureOptions {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// Samples per pixel along each side, 1 to 4.
    pub fineness: u32,
    /// Where to look from; `None`: where the scene says, or everything.
    pub camera: Option<Camera>,
    /// Dark surroundings.
    pub dark: bool,
    /// What colours stand for.
    pub color_by: ColorBy,
}

impl Default for PictureOptions {
    fn default() -> Self {
        PictureOptions {
            width: 960,
            height: 540,
            fineness: 2,
            camera: None,
            dark: false,
            color_by: ColorBy::Material,
        }
    }
}

/// Largest picture side (pixels): larger ones are made smaller rather than asking for all the memory there is.
pub const MOST_PIXELS: u32 = 8192;

/// Rows of red, green and blue bytes (sRGB), from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// `3 × width × height` bytes.
    pub rgb: Vec<u8>,
}

/// Draws a frame of a recording. A frame beyond the end shows the last one; an empty recording shows an empty stage.
pub fn render(recording: &Recording, frame: usize, options: &PictureOptions) -> Image {
    let frame = frame.min(recording.frames.len().saturating_sub(1));
    let fine = options.fineness.clamp(1, 4);
    let width = options.width.clamp(1, MOST_PIXELS);
    let height = options.height.clamp(1, MOST_PIXELS);
    let bounds = Bounds::of(recording);
    let camera = options.camera.unwrap_or_else(|| default_camera(recording, &bounds, width, height));
    let mut scene = geometry::gather(recording, frame, options.color_by);
    if scene.grounds.is_empty() && bounds.floor.is_finite() {
        scene.grounds.push(geometry::Ground::grid(&bounds));
    }
    let view = camera.view(width * fine, height * fine, bounds.radius);
    let mut buffer = raster::Buffer::new(width * fine, height * fine);
    for triangle in &scene.triangles {
        raster::draw(&mut buffer, &view, triangle);
    }
    let style = shade::Style::new(options.dark, bounds);
    shade::cast_ground(&mut buffer, &view, &scene.grounds, &style);
    let shadows = shade::ShadowMap::new(&scene.triangles, &style);
    let light = shade::shade(&buffer, &view, &shadows, &style);
    average(&light, width, height, fine)
}

fn default_camera(recording: &Recording, bounds: &Bounds, width: u32, height: u32) -> Camera {
    match recording.info.camera {
        Some(v) => Camera { eye: Vec3::from(v.eye), target: Vec3::from(v.target), fov: v.fov },
        None => Camera::around(bounds.centre, bounds.radius, width as f32 / height as f32),
    }
}

/// From fine linear light to sRGB bytes.
fn average(light: &[Vec3], width: u32, height: u32, fine: u32) -> Image {
    let mut rgb = Vec::with_capacity(3 * (width * height) as usize);
    let across = (width * fine) as usize;
    for y in 0..height {
        for x in 0..width {
            let mut sum = Vec3::ZERO;
            for dy in 0..fine {
                let row = (y * fine + dy) as usize * across + (x * fine) as usize;
                sum += light[row..row + fine as usize].iter().copied().sum::<Vec3>();
            }
            let mean = sum / (fine * fine) as f32;
            rgb.extend(mean.to_array().map(shade::to_srgb));
        }
    }
    Image { width, height, rgb }
}
