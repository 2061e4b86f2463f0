//! Where a joint sits on its bodies, and the geometry every joint is made of.
//!
//! A joint has one [`Frame`] on each body. Their **x axis** is the joint's axis: what a hinge turns about,
//! what a slider slides along. All derivatives are exact for any pose, not only where the joint is closed,
//! so that `check_jacobian` holds everywhere and a joint pulled far open comes back straight.

use crate::components::RigidBody;
use crate::constraint::{BodyView, Twist};
use crate::math;
use glam::{DMat3, DQuat, DVec3};

/// Position of a centre of mass and orientation, in the world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// World position of the centre of mass (m).
    pub position: DVec3,
    /// World orientation.
    pub rotation: DQuat,
}

impl Pose {
    /// The world itself: the pose of a fixed body at the origin.
    pub const WORLD: Pose = Pose { position: DVec3::ZERO, rotation: DQuat::IDENTITY };

    /// A pose without rotation.
    pub fn at(position: DVec3) -> Pose {
        Pose { position, rotation: DQuat::IDENTITY }
    }

    /// A world point, in the body frame.
    pub fn local_point(&self, world: DVec3) -> DVec3 {
        self.rotation.inverse() * (world - self.position)
    }
}

impl From<&BodyView> for Pose {
    fn from(view: &BodyView) -> Pose {
        Pose { position: view.position, rotation: view.rotation }
    }
}

impl From<&RigidBody> for Pose {
    fn from(body: &RigidBody) -> Pose {
        Pose { position: body.position.0, rotation: body.rotation.0 }
    }
}

impl From<(DVec3, DQuat)> for Pose {
    fn from((position, rotation): (DVec3, DQuat)) -> Pose {
        Pose { position, rotation }
    }
}

/// A frame fixed to a body, in the body's own frame (origin: centre of mass).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// The anchor (m).
    pub anchor: DVec3,
    /// Turns the joint's axes into the body frame; x is the joint's axis.
    pub rotation: DQuat,
}

impl Frame {
    /// The body frame itself.
    pub const IDENTITY: Frame = Frame { anchor: DVec3::ZERO, rotation: DQuat::IDENTITY };

    /// A frame with the axes of the body.
    pub fn at(anchor: DVec3) -> Frame {
        Frame { anchor, rotation: DQuat::IDENTITY }
    }

    /// A frame whose x axis is `axis`, both in the body frame.
    pub fn along(anchor: DVec3, axis: DVec3) -> Frame {
        Frame { anchor, rotation: rotation_with_x(axis) }
    }

    /// The frame that lies at a world point with a world orientation.
    pub fn from_world(pose: &Pose, anchor: DVec3, rotation: DQuat) -> Frame {
        Frame { anchor: pose.local_point(anchor), rotation: (pose.rotation.inverse() * rotation).normalize() }
    }
}

/// The two frames of a joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frames {
    /// On the first body.
    pub a: Frame,
    /// On the second body.
    pub b: Frame,
}

impl Frames {
    /// Frames that coincide now at world point `anchor` with their x axes along world direction `axis`.
    ///
    /// The pose at hand becomes the zero of every angle and slide of the joint.
    pub fn in_world(pose_a: &Pose, pose_b: &Pose, anchor: DVec3, axis: DVec3) -> Frames {
        Frames::oriented(pose_a, pose_b, anchor, rotation_with_x(axis))
    }

    /// Frames that coincide now, with x along `axis` and y as near to `second` as it can be: universal joints
    /// (second axis), wheels (second = direction of travel).
    pub fn with_second_axis(
        pose_a: &Pose,
        pose_b: &Pose,
        anchor: DVec3,
        axis: DVec3,
        second: DVec3,
    ) -> Frames {
        Frames::oriented(pose_a, pose_b, anchor, rotation_with_xy(axis, second))
    }

    /// Frames that coincide now at a world point with a world orientation.
    pub fn oriented(pose_a: &Pose, pose_b: &Pose, anchor: DVec3, rotation: DQuat) -> Frames {
        Frames {
            a: Frame::from_world(pose_a, anchor, rotation),
            b: Frame::from_world(pose_b, anchor, rotation),
        }
    }
}

/// A rotation that takes x to `axis`; x itself where `axis` has no direction.
pub fn rotation_with_x(axis: DVec3) -> DQuat {
    DQuat::from_rotation_arc(DVec3::X, axis.normalize_or(DVec3::X))
}

/// A rotation that takes x to `axis` and y as near to `second` as it can be.
pub fn rotation_with_xy(axis: DVec3, second: DVec3) -> DQuat {
    let x = axis.normalize_or(DVec3::X);
    let y = (second - x * x.dot(second)).try_normalize().unwrap_or_else(|| x.any_orthonormal_vector());
    DQuat::from_mat3(&DMat3::from_cols(x, y, x.cross(y)))
}

/// One scalar coordinate of a joint: its value and its derivative.
#[derive(Clone, Copy, Debug)]
pub struct Coordinate {
    /// Value (m or rad).
    pub value: f64,
    /// Derivative with respect to the two bodies' motions.
    pub jacobian: [Twist; 2],
}

impl Coordinate {
    /// How fast it changes now.
    pub fn speed(&self, a: &BodyView, b: &BodyView) -> f64 {
        let part =
            |t: &Twist, v: &BodyView| t.linear.dot(v.linear_velocity) + t.angular.dot(v.angular_velocity);
        part(&self.jacobian[0], a) + part(&self.jacobian[1], b)
    }
}

/// A joint's two frames in the world, and everything rows are made of.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// From the centre of mass of the first body to its anchor.
    pub arm_a: DVec3,
    /// From the centre of mass of the second body to its anchor.
    pub arm_b: DVec3,
    /// From the first anchor to the second.
    pub span: DVec3,
    /// World axes of the first frame, as columns.
    pub axes_a: DMat3,
    /// World axes of the second frame, as columns.
    pub axes_b: DMat3,
    rotation_a: DQuat,
    /// Rotation from the first frame to the second, seen from the first, with w ≥ 0.
    pub relative: DQuat,
}

impl Placed {
    /// The frames where the bodies are now.
    pub fn new(frames: &Frames, a: &BodyView, b: &BodyView) -> Placed {
        let rotation_a = a.rotation * frames.a.rotation;
        let rotation_b = b.rotation * frames.b.rotation;
        let arm_a = a.rotation * frames.a.anchor;
        let arm_b = b.rotation * frames.b.anchor;
        let relative = rotation_a.inverse() * rotation_b;
        Placed {
            arm_a,
            arm_b,
            span: b.position + arm_b - a.position - arm_a,
            axes_a: DMat3::from_quat(rotation_a),
            axes_b: DMat3::from_quat(rotation_b),
            rotation_a,
            relative: if relative.w < 0.0 { -relative } else { relative },
        }
    }

    /// The gap between the anchors along a direction fixed in the **world**.
    pub fn gap(&self, n: DVec3) -> Coordinate {
        Coordinate {
            value: n.dot(self.span),
            jacobian: [Twist::at(self.arm_a, -n), Twist::at(self.arm_b, n)],
        }
    }

    /// The gap between the anchors along a world direction that turns with the **first** body:
    /// d(n·s) has the further term (ω_a × n)·s, which moves the arm of the first body to the second anchor.
    pub fn slide(&self, n: DVec3) -> Coordinate {
        Coordinate {
            value: n.dot(self.span),
            jacobian: [Twist::at(self.arm_a + self.span, -n), Twist::at(self.arm_b, n)],
        }
    }

    /// By what angle a direction u of the first body and w of the second miss being perpendicular. Unlike u·w, whose
    /// slope vanishes as they become parallel, it pulls back from anywhere with the same lever.
    pub fn perpendicular(&self, u: DVec3, w: DVec3) -> Coordinate {
        let cross = w.cross(u);
        let sine = cross.length();
        relative_angular(math::atan2(u.dot(w), sine), cross / sine.max(1e-6))
    }

    /// The angle of direction u of the second body in the plane spanned by p and q of the first
    /// (perpendicular unit vectors), from p towards q.
    pub fn angle(&self, u: DVec3, p: DVec3, q: DVec3) -> Coordinate {
        let (c, s) = (u.dot(p), u.dot(q));
        let square = (c * c + s * s).max(1e-12);
        relative_angular(math::atan2(s, c), (u.cross(q) * c - u.cross(p) * s) / square)
    }

    /// The angle about the common x axis.
    pub fn twist(&self) -> Coordinate {
        self.angle(self.axes_b.y_axis, self.axes_a.y_axis, self.axes_a.z_axis)
    }

    /// The angle between the x axes, 0..=π.
    pub fn swing(&self) -> Coordinate {
        let cross = self.axes_a.x_axis.cross(self.axes_b.x_axis);
        let sine = cross.length();
        let axis = if sine > 1e-12 { cross / sine } else { self.axes_a.y_axis };
        relative_angular(math::atan2(sine, self.axes_a.x_axis.dot(self.axes_b.x_axis)), axis)
    }

    /// Component i of twice the vector part of the relative quaternion: the small-angle rotation vector,
    /// regular up to half a turn. From q̇ = ½ ω q: d(2v)_i = ω·(w e_i + v × e_i), ω seen from the first frame.
    pub fn misalignment(&self, i: usize) -> Coordinate {
        let (v, w) = (self.relative.xyz(), self.relative.w);
        let e = DVec3::AXES[i];
        relative_angular(2.0 * v[i], self.rotation_a * (e * w + v.cross(e)))
    }

    /// Component i of the relative rotation vector θ (angle times axis, seen from the first frame), for
    /// springs whose torque is to be proportional to the angle. θ̇ = J_l⁻¹(θ) ω with the left Jacobian of SO(3).
    pub fn rotation_vector(&self, i: usize) -> Coordinate {
        rotation_vector_coordinate(self.relative, self.rotation_a, i)
    }

    /// The rotation vector from `target` (an orientation of the second frame seen from the first) to now.
    pub fn rotation_error(&self, target: DQuat, i: usize) -> Coordinate {
        let error = self.relative * target.inverse();
        let error = if error.w < 0.0 { -error } else { error };
        rotation_vector_coordinate(error, self.rotation_a, i)
    }

    /// The relative angular velocity along an axis fixed to the first body: a velocity, not a coordinate.
    pub fn spin(&self, axis: DVec3) -> Coordinate {
        relative_angular(0.0, axis)
    }
}

fn rotation_vector_coordinate(error: DQuat, rotation_a: DQuat, i: usize) -> Coordinate {
    let theta = math::rotation_vector(error);
    let angle2 = theta.length_squared();
    // (1 − (θ/2) cot(θ/2)) / θ², with its series where the quotient loses digits.
    let k = if angle2 < 1e-4 {
        1.0 / 12.0 + angle2 / 720.0
    } else {
        let half = 0.5 * angle2.sqrt();
        (1.0 - half / math::tan(half)) / angle2
    };
    // Row i of J_l⁻¹ = I − ½[θ]× + k [θ]×²; transposed onto e_i the signs of the odd term flip.
    let e = DVec3::AXES[i];
    let row = e + 0.5 * theta.cross(e) + k * theta.cross(theta.cross(e));
    relative_angular(theta[i], rotation_a * row)
}

fn relative_angular(value: f64, axis: DVec3) -> Coordinate {
    Coordinate { value, jacobian: [Twist::angular(-axis), Twist::angular(axis)] }
}

/// The angle brought to within half a turn of zero.
pub fn wrap_angle(angle: f64) -> f64 {
    let turn = std::f64::consts::TAU;
    angle - turn * (angle / turn).round()
}
