//! What a scene does by itself, for rapier's copy: motors that follow the time, joints that are released.

use crate::convert::Twin;
use crate::links::motor_axis;
use rapier3d_f64::prelude as r;
use turnbuckle::scene::Scene;
use turnbuckle::scene::expr::{Expr, Variables};
use turnbuckle::scene::plan::{Action, ScriptPlan};

enum Act {
    /// A motor's target over time.
    Drive { joint: usize, axis: r::JointAxis, target: Expr },
    /// A joint is released at this time (s).
    Release { joint: usize, time: f64 },
}

/// The script of a scene up to a time.
pub struct Script(Vec<Act>);

impl Script {
    /// Reads what happens before `seconds`; says what of it is not converted.
    pub fn of(scene: &Scene, seconds: f64) -> Result<Script, String> {
        let mut acts = Vec::new();
        for script in &scene.plan.scripts {
            match script {
                ScriptPlan::Event { time, .. } if *time >= seconds => {}
                ScriptPlan::Event { time, action: Action::Release(joint) } => {
                    acts.push(Act::Release { joint: *joint as usize, time: *time });
                }
                ScriptPlan::Drive { joint, motor, target } => {
                    let joint = *joint as usize;
                    let axis = motor_axis(&scene.plan.joints[joint].kind, *motor)
                        .ok_or("a motor that rapier's joint does not have is driven")?;
                    acts.push(Act::Drive { joint, axis, target: target.clone() });
                }
                _ => return Err("scripted motion of bodies is not converted".into()),
            }
        }
        Ok(Script(acts))
    }

    /// Before a step that ends at `end`: targets are those of its end, joints go that are due at its start, as in our engine.
    pub fn play(&self, twin: &mut Twin, dt: f64, end: f64) {
        for act in &self.0 {
            match act {
                Act::Release { joint, time } if end - dt + 5e-7 * dt >= *time => {
                    if let Some(handle) = twin.joints[*joint].take() {
                        twin.world.remove_impulse_joint(handle);
                    }
                }
                Act::Release { .. } => {}
                Act::Drive { joint, axis, target } => {
                    let mut variables = Variables::new(0);
                    variables.push("t", end);
                    let value = target.value(&variables).unwrap_or(0.0);
                    let joints = &mut twin.world.impulse_joints;
                    if let Some(j) = twin.joints[*joint].and_then(|h| joints.get_mut(h, true)) {
                        // Of a velocity motor the speed is driven, of a spring its rest.
                        let motor = &mut j.data.motors[*axis as usize];
                        match motor.stiffness {
                            0.0 => motor.target_vel = value,
                            _ => motor.target_pos = value,
                        }
                    }
                }
            }
        }
    }

    /// When a joint is released (s), for the ruler.
    pub fn released(&self, joint: usize) -> Option<f64> {
        self.0.iter().find_map(|a| match a {
            Act::Release { joint: j, time } if *j == joint => Some(*time),
            _ => None,
        })
    }
}
