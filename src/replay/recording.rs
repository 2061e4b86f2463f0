//! A recorded run: what there was, and where it was after each step.
//!
//! Poses are kept small: position as three `f32`, orientation as a quaternion of four `i16`, at most
//! [`ROTATION_ERROR`] radians off. Files round positions once more, to [`Recording::quantum`].

use glam::{DQuat, DVec3};
use serde::{Deserialize, Serialize};

/// Largest angle (rad) between a recorded orientation and the true one: each of four components is rounded by
/// at most half of 1/32767, and a rotation turns by twice the quaternion's error: 2 · √4 · 0.5/32767.
pub const ROTATION_ERROR: f64 = 2.0 / 32767.0;

/// The numbers kept per frame, in order; see [`Frame::stats`].
pub const STATS: [&str; 12] = [
    "time",
    "residual",
    "coupling",
    "pivots",
    "rows",
    "contacts",
    "kinetic",
    "potential",
    "joint_error",
    "penetration",
    "step_ms",
    "solve_ms",
];

/// A place in [`Frame::stats`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Stat {
    /// Simulated time after the step (s).
    Time,
    /// Natural residual of the step's MLCP.
    Residual,
    /// Coupling iterations.
    Coupling,
    /// Pivots.
    Pivots,
    /// Constraint rows.
    Rows,
    /// Contact points.
    Contacts,
    /// Kinetic energy (J).
    Kinetic,
    /// Potential energy (J).
    Potential,
    /// Largest joint separation (m).
    JointError,
    /// Largest penetration (m).
    Penetration,
    /// Wall time of the step (ms).
    StepMs,
    /// Wall time of the solve (ms).
    SolveMs,
}

/// What was run, for the page's heading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Name of the scene.
    pub scene: String,
    /// Name of the solver.
    pub solver: String,
    /// How bodies were partitioned.
    pub partition: String,
    /// Time step (s).
    pub dt: f64,
    /// Threads used.
    pub threads: usize,
    /// One sentence on what there is to see.
    #[serde(default)]
    pub about: String,
    /// Where to look from, if the scene says.
    #[serde(default)]
    pub camera: Option<View>,
}

/// A viewpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Where the eye is (m).
    pub eye: [f32; 3],
    /// What it looks at (m).
    pub target: [f32; 3],
    /// Vertical field of view (degrees).
    pub fov: f32,
}

/// The form of one [`Part`]; its `size` is read accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Size = half edges.
    Box,
    /// Size = radius, three times.
    Sphere,
    /// Along local y; size = radius, half length, radius.
    Cylinder,
    /// Along local y, tip up; size = radius, half height, radius.
    Cone,
    /// The plane z = 0 of the part's frame, without end.
    Plane,
    /// A mesh of the recording; size = factor on its coordinates.
    Mesh,
}

/// A piece of a body to draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What it is.
    pub form: Form,
    /// Its measures (m), see [`Form`].
    pub size: [f32; 3],
    /// Where it sits in the body frame.
    pub position: [f32; 3],
    /// How it is turned in the body frame (x, y, z, w).
    pub rotation: [f32; 4],
    /// Which mesh, if [`Form::Mesh`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<u32>,
}

/// Triangles shared by parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mesh {
    /// Corners, x y z.
    pub vertices: Vec<[f32; 3]>,
    /// Corner numbers, three a triangle, counter-clockwise from outside.
    pub triangles: Vec<[u32; 3]>,
}

/// How a body took part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Moved by forces.
    Dynamic,
    /// Moved by its velocity.
    Kinematic,
    /// Did not move.
    Fixed,
}

/// Where in a cable a body is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CableTag {
    /// Which cable.
    pub cable: u32,
    /// Rank along it.
    pub order: u32,
    /// Radius (m).
    pub radius: f32,
}

/// A body as it is drawn and named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodyInfo {
    /// Its name.
    pub name: String,
    /// How it took part.
    pub kind: Kind,
    /// Its mass (kg).
    pub mass: f32,
    /// Its colour (sRGB).
    pub color: [u8; 3],
    /// What it is made of.
    pub parts: Vec<Part>,
    /// Its place in a cable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cable: Option<CableTag>,
}

/// A joint as it is drawn and named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JointInfo {
    /// Its name.
    pub name: String,
    /// Its type (`ball`, `hinge`, …).
    pub kind: String,
    /// The bodies it joins, as numbers into [`Recording::bodies`]; `None` is the world.
    pub bodies: [Option<u32>; 2],
    /// Where it sits, in the frame of the first body that is there.
    pub anchor: [f32; 3],
}

/// Where a body was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Centre of mass (m); NaN while the body is not in the world.
    pub position: [f32; 3],
    /// Unit quaternion (x, y, z, w) × 32767.
    pub rotation: [i16; 4],
}

impl Pose {
    /// The pose of a body that is not in the world.
    pub const ABSENT: Pose = Pose { position: [f32::NAN; 3], rotation: [0, 0, 0, 32767] };

    /// Rounds a pose. The sign of the quaternion follows `previous`, so that neighbouring frames stay close.
    pub fn new(position: DVec3, rotation: DQuat, previous: Option<&Pose>) -> Pose {
        let square = rotation.length_squared();
        let q = match (square - 1.0).abs() {
            // Less than a hundredth of what rounding takes; the engine's rotations are like that.
            off if off < 1e-7 => rotation,
            off if off.is_finite() && square > 0.0 => rotation * (1.0 / square.sqrt()),
            _ => DQuat::IDENTITY,
        }
        .to_array();
        let near = previous.map_or(1.0, |p| (0..4).map(|i| f64::from(p.rotation[i]) * q[i]).sum());
        let scale: f64 = if near < 0.0 { -32767.0 } else { 32767.0 };
        // Rounds to the nearest: `as` cuts off and saturates, and the components are at most 1 in size.
        let rotation = q.map(|c| (c * scale + 0.5f64.copysign(c * scale)) as i16);
        Pose { position: position.as_vec3().to_array(), rotation }
    }

    /// Is the body in the world?
    pub fn is_present(&self) -> bool {
        self.position.iter().all(|c| c.is_finite())
    }

    /// Position (m).
    pub fn position(&self) -> DVec3 {
        DVec3::from_array(self.position.map(f64::from))
    }

    /// Orientation.
    pub fn rotation(&self) -> DQuat {
        let q = DQuat::from_array(self.rotation.map(f64::from));
        if q.length_squared() > 0.0 { q.normalize() } else { DQuat::IDENTITY }
    }
}

/// What a joint carried: kept as the upper half of each `f32`, 0.4 % exact.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Force on the second body (N, world frame).
    pub force: [f32; 3],
    /// Size of the torque (N·m).
    pub torque: f32,
}

/// A contact point and what it carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactSample {
    /// Where (m).
    pub point: [f32; 3],
    /// Force on the second body (N, world frame).
    pub force: [f32; 3],
}

/// One moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// The numbers named by [`STATS`]; NaN where there is none.
    pub stats: [f32; STATS.len()],
    /// Wall time per system (ms), in the order of [`Recording::systems`].
    pub timings: Vec<f32>,
    /// One per body; shorter than [`Recording::bodies`] if later bodies were not there yet.
    pub poses: Vec<Pose>,
    /// Partition of each body, [`NO_PARTITION`] for none; empty if not recorded.
    pub partitions: Vec<u16>,
    /// One per joint; empty if not recorded.
    pub loads: Vec<Load>,
    /// Empty if not recorded.
    pub contacts: Vec<ContactSample>,
}

/// In [`Frame::partitions`]: in no partition.
pub const NO_PARTITION: u16 = u16::MAX;

impl Frame {
    /// One of the numbers.
    pub fn stat(&self, stat: Stat) -> f32 {
        self.stats[stat as usize]
    }

    /// Memory it takes (bytes).
    pub fn bytes(&self) -> usize {
        size_of::<Frame>()
            + size_of_val(&self.timings[..])
            + size_of_val(&self.poses[..])
            + size_of_val(&self.partitions[..])
            + size_of_val(&self.loads[..])
            + size_of_val(&self.contacts[..])
    }
}

/// A run: everything the replay page and the pictures are made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// What was run.
    pub info: RunInfo,
    /// Steps from one frame to the next: 1, or a power of two if frames were thinned to stay within memory.
    pub stride: u32,
    /// Meshes that parts share.
    pub meshes: Vec<Mesh>,
    /// The bodies.
    pub bodies: Vec<BodyInfo>,
    /// The joints.
    pub joints: Vec<JointInfo>,
    /// Names of the systems that were timed.
    pub systems: Vec<String>,
    /// The moments, in order of time.
    pub frames: Vec<Frame>,
}

impl Recording {
    /// Where a body was in a frame; `None` if it was not in the world.
    pub fn pose(&self, frame: usize, body: usize) -> Option<Pose> {
        self.frames.get(frame)?.poses.get(body).copied().filter(Pose::is_present)
    }

    /// The frame nearest to a time (s): the last one for all times after it, whatever their size.
    pub fn frame_at(&self, time: f64) -> usize {
        let at = |f: &Frame| f64::from(f.stat(Stat::Time));
        // Beside a time like f64::MAX all frames are equally far away.
        let time = time.min(self.frames.last().map_or(0.0, at));
        let off = |f: &Frame| (at(f) - time).abs();
        let nearest = self.frames.iter().enumerate().min_by(|a, b| off(a.1).total_cmp(&off(b.1)));
        nearest.map_or(0, |(i, _)| i)
    }

    /// The distance (m) to which positions are rounded in a file: a power of two near a millionth of the
    /// largest coordinate of a moving body, from 2⁻²⁰ m to 2⁻¹³ m (0.12 mm). Positions beyond 2³⁰ of them
    /// are held there.
    pub fn quantum(&self) -> f64 {
        let mut extent: f32 = 0.0;
        for frame in &self.frames {
            for pose in frame.poses.iter().filter(|p| p.is_present()) {
                extent = pose.position.iter().fold(extent, |m, c| m.max(c.abs()));
            }
        }
        let exponent = f64::from(extent.max(1e-6)).log2().floor() as i32 - 19;
        f64::from(exponent.clamp(-20, -13)).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poses_stay_within_their_stated_error() {
        let mut previous = None;
        for i in 0..2000 {
            let t = f64::from(i) * 0.37;
            let q = DQuat::from_euler(glam::EulerRot::XYZ, t, 1.3 * t, -0.7 * t);
            let pose = Pose::new(DVec3::new(t, -t, 0.5), q, previous.as_ref());
            // ROTATION_ERROR is the bound derived at its definition.
            assert!(pose.rotation().angle_between(q) <= ROTATION_ERROR, "{i}");
            if let Some(p) = previous {
                assert!(p.rotation().dot(pose.rotation()) >= 0.0);
            }
            previous = Some(pose);
        }
    }

    #[test]
    fn a_pose_that_is_not_finite_is_absent_not_a_panic() {
        let pose = Pose::new(DVec3::NAN, DQuat::from_xyzw(f64::NAN, 0.0, 0.0, 0.0), None);
        assert!(!pose.is_present());
        assert_eq!(pose.rotation(), DQuat::IDENTITY);
    }
}
