//! Where a picture is taken from.

use glam::Vec3;

/// A viewpoint. The world is z up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    /// Where the eye is (m).
    pub eye: Vec3,
    /// What is in the middle of the picture (m).
    pub target: Vec3,
    /// Vertical field of view (degrees).
    pub fov: f32,
}

/// Field of view of cameras that say nothing else (degrees).
pub const DEFAULT_FOV: f32 = 36.0;

impl Camera {
    /// Sees a ball of this centre and radius, from the front, right and above.
    pub fn around(centre: Vec3, radius: f32, aspect: f32) -> Camera {
        let half = (0.5 * DEFAULT_FOV).to_radians();
        let distance = 0.92 * radius / half.tan() / aspect.min(1.0);
        let direction = Vec3::new(0.62, -1.0, 0.46).normalize();
        Camera { eye: centre + direction * distance, target: centre, fov: DEFAULT_FOV }
    }

    /// Reads `ex,ey,ez:tx,ty,tz[:fov]`.
    ///
    /// # Errors
    /// A sentence that says what was expected.
    pub fn parse(text: &str) -> Result<Camera, String> {
        let wrong = || {
            format!(
                "camera \"{text}\" should be ex,ey,ez:tx,ty,tz or ex,ey,ez:tx,ty,tz:fov, in metres and degrees"
            )
        };
        let point = |s: &str| -> Option<Vec3> {
            let c: Vec<f32> = s.split(',').map(|c| c.trim().parse().ok()).collect::<Option<_>>()?;
            let p = Vec3::from(<[f32; 3]>::try_from(c).ok()?);
            p.is_finite().then_some(p)
        };
        let parts: Vec<&str> = text.split(':').collect();
        let (eye, target, fov) = match parts[..] {
            [e, t] => (point(e), point(t), Some(DEFAULT_FOV)),
            [e, t, f] => (point(e), point(t), f.trim().parse().ok().filter(|f| (1.0..=150.0).contains(f))),
            _ => return Err(wrong()),
        };
        let (Some(eye), Some(target), Some(fov)) = (eye, target, fov) else { return Err(wrong()) };
        if eye.distance(target) < 1e-6 {
            return Err(format!("camera \"{text}\": eye and target are the same point"));
        }
        Ok(Camera { eye, target, fov })
    }

    /// The camera for a picture of this many pixels.
    pub(super) fn view(&self, width: u32, height: u32, radius: f32) -> View {
        let forward = (self.target - self.eye).normalize_or(Vec3::Y);
        let side = forward.cross(Vec3::Z).normalize_or(Vec3::X);
        let up = side.cross(forward);
        let tall = (0.5 * self.fov.clamp(1.0, 150.0)).to_radians().tan();
        let wide = tall * width as f32 / height as f32;
        View {
            eye: self.eye,
            forward,
            right: side * wide,
            up: up * tall,
            scale: [0.5 * width as f32 / wide, 0.5 * height as f32 / tall],
            size: [width as f32, height as f32],
            near: 1e-3 * radius.max(1e-3),
        }
    }
}

/// A camera ready to project.
pub(super) struct View {
    pub eye: Vec3,
    pub forward: Vec3,
    /// Half the picture across, one metre away.
    pub right: Vec3,
    /// Half the picture up, one metre away.
    pub up: Vec3,
    scale: [f32; 2],
    size: [f32; 2],
    pub near: f32,
}

impl View {
    /// Right, up and forward coordinates of a point.
    pub fn local(&self, p: Vec3) -> Vec3 {
        let d = p - self.eye;
        Vec3::new(d.dot(self.right.normalize()), d.dot(self.up.normalize()), d.dot(self.forward))
    }

    /// Pixel coordinates of a point in front of the eye, given in local coordinates.
    pub fn pixel(&self, local: Vec3) -> [f32; 2] {
        [
            0.5 * self.size[0] + self.scale[0] * local.x / local.z,
            0.5 * self.size[1] - self.scale[1] * local.y / local.z,
        ]
    }

    /// From the eye through the middle of a pixel; its part along `forward` is one.
    pub fn ray(&self, x: u32, y: u32) -> Vec3 {
        let across = 2.0 * (x as f32 + 0.5) / self.size[0] - 1.0;
        let down = 2.0 * (y as f32 + 0.5) / self.size[1] - 1.0;
        self.forward + self.right * across - self.up * down
    }

    /// Metres across a pixel at one metre.
    pub fn pixel_size(&self) -> f32 {
        1.0 / self.scale[1]
    }
}
