//! The things of a scene by their names.

use super::instantiate::Scene;
use super::joints;
use super::plan::JointPlan;
use crate::components::{JointForce, RowImpulses};
use crate::constraint::Motor;
use hecs::Entity;

/// A joint of a scene: what drives it, where it is, what it carries. Coordinates and motors count from 0 in the order in which the
/// scene gives them (`motor`, `motor2`); lengths in m, angles in rad.
#[derive(Clone, Copy)]
pub struct SceneJoint<'a> {
    scene: &'a Scene,
    number: usize,
}

/// A free coordinate of a joint after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// The coordinate (m or rad).
    pub value: f64,
    /// Its rate (m/s or rad/s).
    pub rate: f64,
    /// The force along it (N or N·m) of motor, stops, springs and friction in the last step.
    pub force: f64,
}

impl Scene {
    /// The body of this name, with the names of the parts it is in: `"crane/hook"`.
    pub fn body(&self, name: &str) -> Option<Entity> {
        self.plan.body(name).filter(|_| !name.is_empty()).map(|i| self.bodies[i as usize])
    }

    /// The joint of this name, with the names of the parts it is in: `"crane/slew"`.
    pub fn joint(&self, name: &str) -> Option<SceneJoint<'_>> {
        let number = self.plan.joints.iter().position(|j| !name.is_empty() && j.name == name)?;
        Some(self.joint_at(number))
    }

    /// The joint at this place in the plan.
    pub(super) fn joint_at(&self, number: usize) -> SceneJoint<'_> {
        SceneJoint { scene: self, number }
    }
}

impl SceneJoint<'_> {
    /// Its entity, which carries the constraint as a component.
    pub fn entity(&self) -> Entity {
        self.scene.joints[self.number]
    }

    /// What the scene says of it.
    pub fn plan(&self) -> &JointPlan {
        &self.scene.plan.joints[self.number]
    }

    /// Its free coordinates, from the first on: a hinge has one, a fixed joint none. Those of ropes and springs are their lengths, those of a
    /// wheel its travel and its turn, those of a ball its swing and its twist.
    pub fn readings(&self) -> Vec<Reading> {
        let (world, entity) = (&self.scene.world, self.entity());
        let impulses = world.get::<&RowImpulses>(entity).ok();
        let dt = self.scene.physics.report().dt;
        let force = |[first, other]: [u32; 2]| {
            let along = |key: u32| (first..first.saturating_add(4)).contains(&key) || key == other;
            let rows = impulses.iter().flat_map(|i| &i.0).filter(|row| along(row.key));
            // Before the first step there is neither a length nor an impulse.
            rows.map(|row| row.lambda / dt).sum()
        };
        let mut readings = Vec::new();
        joints::coordinates(world, entity, &self.plan().kind, &mut |value, rate, keys| {
            readings.push(Reading { value, rate, force: force(keys) });
        });
        readings
    }

    /// Its first free coordinate (m or rad), if it has one.
    pub fn coordinate(&self) -> Option<f64> {
        self.readings().first().map(|r| r.value)
    }

    /// What it put on its second body in the last step, about its anchor.
    pub fn force(&self) -> JointForce {
        self.scene.world.get::<&JointForce>(self.entity()).map_or(JointForce::default(), |f| *f)
    }

    /// Motor `number`.
    pub fn motor(&self, number: usize) -> Option<Motor> {
        joints::motor_of(&self.scene.world, self.entity(), &self.plan().kind, number)
    }

    /// Puts another motor in the place of motor `number`; false if the joint has no such place.
    pub fn set_motor(&self, number: usize, motor: Motor) -> bool {
        joints::replace_motor(&self.scene.world, self.entity(), &self.plan().kind, number, motor)
    }

    /// The target of motor `number`: also the speed of a winch, and as number 1 the steering angle of a wheel.
    pub fn target(&self, number: usize) -> Option<f64> {
        joints::target(&self.scene.world, self.entity(), &self.plan().kind, number)
    }

    /// Gives motor `number` another target; false if there is none.
    pub fn set_target(&self, number: usize, target: f64) -> bool {
        joints::set_motor(&self.scene.world, self.entity(), &self.plan().kind, number, target)
    }
}
