//! What the engine knows after a step, put into a frame: numbers, times, forces of joints and contacts.
//!
//! Forces are read off the rows: row i pushes body b with λᵢ Jᵢᵦ. Where a joint or contact acts follows from the same
//! rows, since a row at arm r along d has J = (d, r × d): so anything that comes through the door of
//! [`crate::constraint`] gets its arrows, users' constraints included.

use super::recorder::{RecordOptions, Recorder};
use super::recording::*;
use crate::Physics;
use crate::components::{Name, Position};
use crate::scene::Scene;
use crate::solver::RowKind;
use crate::state::{ConstraintBlock, Rows, Work};
use glam::{DMat3, DVec3, Vec3};
use hecs::{Entity, World};

impl Recorder {
    /// Starts a recording of a scene, with a first frame before its first step.
    pub fn of_scene(scene: &Scene, dt: f64, threads: usize, options: RecordOptions) -> Recorder {
        let settings = &scene.physics.settings;
        let camera = scene.plan.cameras.first().map(|c| View {
            eye: c.eye.as_vec3().to_array(),
            target: c.target.as_vec3().to_array(),
            fov: c.fov as f32,
        });
        let info = RunInfo {
            scene: scene.plan.name.clone(),
            solver: settings.method.name().into(),
            partition: settings.partitioning.to_string(),
            dt,
            threads,
            about: scene.plan.about.clone(),
            camera,
        };
        let mut recorder = Recorder::new(info, options);
        recorder.begin(&scene.world);
        recorder
    }

    /// Records the state after [`Physics::step`]. Call it after each step.
    pub fn observe(&mut self, world: &World, physics: &mut Physics) {
        if !self.wants_next() {
            self.skip();
            return;
        }
        let times = physics.last_step_milliseconds();
        if self.recording().systems.len() != times.len() {
            self.name_systems(physics.systems().into_iter().map(String::from).collect());
        }
        let options = *self.options();
        self.record(world);
        if options.loads {
            self.meet_joints(world, &physics.work);
        }
        let dt = self.recording().info.dt / f64::from(physics.work.substep.1.max(1));
        let loads = if options.loads { self.loads(&physics.work, dt) } else { Vec::new() };
        let contacts = if options.contacts { contacts(&physics.work, world, dt) } else { Vec::new() };
        let Some(frame) = self.last_frame() else { return };
        frame.stats = stats(physics);
        frame.timings = times.iter().map(|&ms| ms as f32).collect();
        frame.loads = loads;
        frame.contacts = contacts;
    }

    fn meet_joints(&mut self, world: &World, work: &Work) {
        for block in work.rows.blocks.iter().filter(|b| is_joint(&work.rows, b)) {
            if self.joint_of(block.entity).is_none()
                && let Some(info) = self.joint_info(world, work, block)
            {
                self.add_joint(block.entity, info);
            }
        }
    }

    fn joint_info(&self, world: &World, work: &Work, block: &ConstraintBlock) -> Option<JointInfo> {
        let slots = slots(&work.rows, block);
        let (first, last) = (*slots.first()?, *slots.last()?);
        let place = |slot: u32| self.slot_of(work.bodies.entity[slot as usize]);
        let arm = arm(&work.rows, block, block.row..block.row + block.rows, slots.len() - 1);
        let view = |slot: u32| &work.bodies.view[slot as usize];
        let point = view(last).position + arm;
        let local = view(first).rotation.conjugate() * (point - view(first).position);
        let kind = kind_of(world, block.entity);
        let name = world.get::<&Name>(block.entity).map(|n| n.0.clone());
        Some(JointInfo {
            name: name.unwrap_or_else(|_| format!("{kind} {}", self.recording().joints.len())),
            kind,
            bodies: [place(first), place(last)],
            anchor: local.as_vec3().to_array(),
        })
    }

    fn loads(&self, work: &Work, dt: f64) -> Vec<Load> {
        let mut loads = vec![Load::default(); self.recording().joints.len()];
        for block in work.rows.blocks.iter().filter(|b| is_joint(&work.rows, b)) {
            let Some(place) = self.joint_of(block.entity) else { continue };
            let rows = block.row..block.row + block.rows;
            let last = block.bodies as usize - 1;
            let (force, torque) = push(&work.rows, block, rows, last, dt);
            // The turning part is what is left at the point where the joint acts.
            let slots = slots(&work.rows, block);
            let [from, to] = [slots[0], slots[last]].map(|s| &work.bodies.view[s as usize]);
            let anchor = Vec3::from(self.recording().joints[place as usize].anchor).as_dvec3();
            let torque = torque - (from.point(anchor) - to.position).cross(force);
            loads[place as usize] =
                Load { force: force.as_vec3().to_array(), torque: torque.length() as f32 };
        }
        loads
    }
}

fn stats(physics: &Physics) -> [f32; STATS.len()] {
    let r = physics.report();
    // In the order of `STATS`.
    [
        r.time,
        r.residual,
        f64::from(r.coupling_iterations),
        f64::from(r.pivots),
        f64::from(r.rows),
        f64::from(r.contacts),
        r.kinetic,
        r.potential,
        r.joint_error_max,
        r.penetration_max,
        r.step_ms,
        r.solve_ms,
    ]
    .map(|x| x as f32)
}

fn is_joint(rows: &Rows, block: &ConstraintBlock) -> bool {
    rows.kind.get(block.row as usize) == Some(&RowKind::Joint)
}

fn slots<'a>(rows: &'a Rows, block: &ConstraintBlock) -> &'a [u32] {
    &rows.body[block.body as usize..][..block.bodies as usize]
}

/// J of a row on the `body`-th body of its block: linear and angular part.
fn twist(rows: &Rows, block: &ConstraintBlock, row: u32, body: usize) -> (DVec3, DVec3) {
    let at = block.entry as usize + (row - block.row) as usize * block.bodies as usize + body;
    let [a, b, c, d, e, f] = rows.jacobian[at];
    (DVec3::new(a, b, c), DVec3::new(d, e, f))
}

/// Force and torque (about its centre of mass) on a body of the block.
fn push(
    rows: &Rows,
    block: &ConstraintBlock,
    range: std::ops::Range<u32>,
    body: usize,
    dt: f64,
) -> (DVec3, DVec3) {
    range.fold((DVec3::ZERO, DVec3::ZERO), |(force, torque), row| {
        let (linear, angular) = twist(rows, block, row, body);
        let size = rows.lambda[row as usize] / dt;
        (force + linear * size, torque + angular * size)
    })
}

/// The arm r for which rows (d, r × d) come closest to the given ones: Σ (d²I − ddᵀ) r = Σ d × (r × d).
fn arm(rows: &Rows, block: &ConstraintBlock, range: std::ops::Range<u32>, body: usize) -> DVec3 {
    let (mut matrix, mut right) = (DMat3::ZERO, DVec3::ZERO);
    for row in range {
        let (d, angular) = twist(rows, block, row, body);
        let square = DMat3::from_cols(d * d.x, d * d.y, d * d.z);
        matrix += DMat3::from_diagonal(DVec3::splat(d.length_squared())) - square;
        right += d.cross(angular);
    }
    let size = matrix.col(0).x + matrix.col(1).y + matrix.col(2).z;
    if size <= 0.0 {
        return DVec3::ZERO;
    }
    // One row says nothing about the arm along itself; the small diagonal makes that part zero.
    (matrix + DMat3::from_diagonal(DVec3::splat(1e-9 * size))).inverse() * right
}

/// Contact points that carry something: a normal row and the friction rows after it.
fn contacts(work: &Work, world: &World, dt: f64) -> Vec<ContactSample> {
    let rows = &work.rows;
    let mut out = Vec::new();
    for block in &rows.blocks {
        if rows.kind.get(block.row as usize) != Some(&RowKind::Normal) {
            continue;
        }
        let slots = slots(rows, block);
        let last = slots.len() - 1;
        let Some(&slot) = slots.last() else { continue };
        let centre = world.get::<&Position>(work.bodies.entity[slot as usize]).map(|p| p.0);
        let end = block.row + block.rows;
        let mut row = block.row;
        while row < end {
            let friction = (row + 1..end).take_while(|&r| rows.kind[r as usize] == RowKind::Friction);
            let next = row + 1 + friction.count() as u32;
            let (force, _) = push(rows, block, row..next, last, dt);
            if let (true, Ok(centre)) = (force != DVec3::ZERO && force.is_finite(), &centre) {
                let point = *centre + arm(rows, block, row..next, last);
                out.push(ContactSample {
                    point: point.as_vec3().to_array(),
                    force: force.as_vec3().to_array(),
                });
            }
            row = next;
        }
    }
    out
}

/// The type of a joint, by the component it has.
fn kind_of(world: &World, entity: Entity) -> String {
    use crate::constraint as c;
    let Ok(entity) = world.entity(entity) else { return "joint".into() };
    macro_rules! first {
        ($($kind:ident),*) => { $(if entity.has::<c::$kind>() { return stringify!($kind).to_lowercase(); })* };
    }
    first!(Ball, Cable, Rod, Cylindrical, Distance, Rope, SpringDamper, Fixed, Gear, Differential);
    first!(RackPinion, Planar, PointOnLine, Prismatic, Winch, Revolute, Universal, Wheel);
    if entity.has::<c::PulleyRope<2>>()
        || entity.has::<c::PulleyRope<3>>()
        || entity.has::<c::PulleyRope<4>>()
    {
        return "pulley".into();
    }
    "joint".into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::RigidBody;
    use crate::constraint::{BodyView, Constraint, Row, RowWriter, Twist};

    /// Holds the second body's point `arm` where the first body is.
    struct Pin {
        bodies: [Entity; 2],
        arm: DVec3,
    }

    impl Constraint for Pin {
        fn bodies(&self) -> [Entity; 2] {
            self.bodies
        }

        fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter<'_>) {
            let arm = b.direction(self.arm);
            let open = b.position + arm - a.position;
            for axis in DVec3::AXES {
                let jacobian = [-Twist::linear(axis), Twist::at(arm, axis)];
                out.push(Row { jacobian, violation: open.dot(axis), ..Row::default() });
            }
        }
    }

    #[test]
    fn forces_and_places_are_read_off_the_rows() {
        let mut world = World::new();
        let mut physics = Physics::new();
        physics.add_constraint::<Pin>();
        let nail = world.spawn(RigidBody::fixed().at(DVec3::new(1.0, 2.0, 5.0)));
        let body = RigidBody::dynamic(3.0, DMat3::IDENTITY).at(DVec3::new(1.0, 2.0, 4.5));
        let body = world.spawn(body);
        world.spawn((Pin { bodies: [nail, body], arm: DVec3::new(0.0, 0.0, 0.5) },));
        let dt = 1.0 / 60.0;
        let info = RunInfo { dt, ..RunInfo::default() };
        let mut recorder = Recorder::new(info, RecordOptions::default());
        for _ in 0..30 {
            physics.step(&mut world, dt);
            recorder.observe(&world, &mut physics);
        }
        let r = recorder.finish();
        assert_eq!(r.frames.len(), 30);
        assert_eq!((r.joints.len(), r.joints[0].bodies), (1, [Some(0), Some(1)]));
        let frame = &r.frames[29];
        // Weight of 3 kg. The body hangs at rest from the start; f32 and the compliance of the joint leave 1e-4.
        let [x, y, z] = frame.loads[0].force;
        assert!((z - 3.0 * 9.81).abs() < 1e-3 && x.abs() < 1e-3 && y.abs() < 1e-3, "{:?}", frame.loads);
        assert!(frame.loads[0].torque < 1e-3);
        // The joint sits where the nail is: the origin of the first body's frame, up to rounding to f32.
        assert!(r.joints[0].anchor.iter().all(|c| c.abs() < 1e-5), "{:?}", r.joints[0].anchor);
        assert!((frame.stat(Stat::Time) - 0.5).abs() < 1e-6);
        assert_eq!(frame.timings.len(), r.systems.len());
    }
}
