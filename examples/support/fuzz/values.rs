//! Worlds made by calls with random numbers: bodies, shapes, joints, settings, and changes while they run.

use super::{Patience, Random, Verdict};
use hecs::{Entity, World};
use std::collections::BTreeMap;
use turnbuckle::constraint::{GearWheel, Rod, RopePoint, Winch};
use turnbuckle::prelude::*;
use turnbuckle::settings::{Integrator, Partitioning};
use turnbuckle::solver::Method;

/// A world that is being built and stepped.
#[derive(Default)]
struct Stage {
    bodies: Vec<Entity>,
    joints: Vec<Entity>,
}

type Apply = Box<dyn FnOnce(&mut Stage, &mut World, &mut Physics)>;

/// One call, said in words.
struct Call {
    words: String,
    apply: Apply,
}

/// Calls by the step before which they are made.
pub struct Script {
    calls: BTreeMap<u64, Vec<Call>>,
    dt: f64,
}

/// Random numbers, some of which are meant to hurt.
struct Numbers<'a> {
    random: &'a mut Random,
    /// Share of numbers that hurt.
    harm: f64,
}

const HARMFUL: [f64; 18] = [
    0.0,
    -0.0,
    -1.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    5e-324,
    f64::MIN_POSITIVE,
    1e-300,
    1e300,
    f64::MAX,
    -1e300,
    1e30,
    1e18,
    1e-18,
    1e9,
    1e-9,
    f64::EPSILON,
];

impl Numbers<'_> {
    /// Ten to a power, or harm.
    fn size(&mut self, low: f64, high: f64) -> f64 {
        if self.random.chance(self.harm) { self.random.pick(&HARMFUL) } else { self.random.power(low, high) }
    }

    /// Within a range, or harm.
    fn within(&mut self, low: f64, high: f64) -> f64 {
        if self.random.chance(self.harm) { self.random.pick(&HARMFUL) } else { self.random.range(low, high) }
    }

    fn count(&mut self, most: u32) -> u32 {
        if self.random.chance(self.harm) {
            self.random.pick(&[0, 1, 1_000, u32::MAX])
        } else {
            self.random.below(most as usize + 1) as u32
        }
    }

    fn vector(&mut self, size: f64) -> DVec3 {
        DVec3::new(self.within(-size, size), self.within(-size, size), self.within(-size, size))
    }

    fn rotation(&mut self) -> DQuat {
        if self.random.chance(0.3) {
            return DQuat::IDENTITY;
        }
        let q = DQuat::from_xyzw(
            self.within(-1.0, 1.0),
            self.within(-1.0, 1.0),
            self.within(-1.0, 1.0),
            self.within(-1.0, 1.0),
        );
        if self.random.chance(self.harm) { q } else { q.normalize() }
    }

    fn softness(&mut self) -> Softness {
        match self.random.below(4) {
            0 => Softness::Spring { stiffness: self.size(0.0, 6.0), damping: self.size(0.0, 4.0) },
            1 => Softness::Compliant {
                compliance: self.size(-9.0, -3.0),
                correction: self.within(0.0, 1.0),
                max_speed: self.size(-1.0, 1.0),
            },
            2 => Softness::Velocity { compliance: self.size(-9.0, -3.0) },
            _ => Softness::Rigid,
        }
    }

    fn limits(&mut self) -> Limits {
        let (a, b) = (self.within(-2.0, 2.0), self.within(-2.0, 2.0));
        let softness = self.softness();
        if self.random.chance(self.harm) {
            Limits { lower: a, upper: b, softness }
        } else {
            Limits { lower: a.min(b), upper: a.max(b), softness }
        }
    }

    fn motor(&mut self) -> Motor {
        match self.random.below(4) {
            0 => Motor::Velocity { target: self.within(-5.0, 5.0), max_force: self.size(0.0, 5.0) },
            1 => Motor::Position {
                target: self.within(-3.0, 3.0),
                stiffness: self.size(0.0, 6.0),
                damping: self.size(0.0, 4.0),
                max_force: self.size(0.0, 5.0),
            },
            2 => Motor::Servo {
                target: self.within(-3.0, 3.0),
                max_speed: self.size(-1.0, 1.0),
                max_force: self.size(0.0, 5.0),
            },
            _ => Motor::Off,
        }
    }

    fn axis(&mut self) -> Axis {
        let mut axis = Axis::FREE;
        if self.random.chance(0.5) {
            axis.motor = self.motor();
        }
        if self.random.chance(0.3) {
            axis.limits = Some(self.limits());
        }
        if self.random.chance(0.3) {
            axis.friction = self.size(-1.0, 3.0);
        }
        axis
    }

    fn frame(&mut self) -> Frame {
        Frame { anchor: self.vector(1.0), rotation: self.rotation() }
    }

    fn frames(&mut self) -> Frames {
        Frames { a: self.frame(), b: self.frame() }
    }

    fn wheel(&mut self) -> GearWheel {
        let teeth = self.random.pick(&[1, 2, 17, -3, 40, 0, i32::MIN, i32::MAX]);
        GearWheel { frame: self.frame(), carrier: self.frame(), teeth }
    }

    fn shape(&mut self) -> Shape {
        match self.random.below(10) {
            0 => Shape::Capsule { half_length: self.size(-1.5, 0.5), radius: self.size(-1.5, 0.0) },
            1 => Shape::Cylinder { half_length: self.size(-1.5, 0.5), radius: self.size(-1.5, 0.0) },
            2 => Shape::Cone { half_height: self.size(-1.5, 0.5), radius: self.size(-1.5, 0.0) },
            3 => {
                let n = self.random.below(12);
                Shape::ConvexHull { points: (0..n).map(|_| self.vector(0.5)).collect() }
            }
            4 => Shape::HalfSpace { normal: self.vector(1.0) },
            5 => Shape::TriMesh {
                vertices: (0..4).map(|_| self.vector(2.0)).collect(),
                indices: (0..2).map(|_| [0; 3].map(|_: u32| self.random.below(5) as u32)).collect(),
            },
            6 => Shape::HeightField {
                size: [3, 3],
                heights: (0..9).map(|_| self.within(0.0, 0.5)).collect(),
                scale: DVec3::new(self.size(0.0, 1.0), self.size(-1.0, 0.5), self.size(0.0, 1.0)),
            },
            7 | 8 => {
                let mut edge = || self.size(-1.5, 0.0);
                Shape::Box { half_extents: DVec3::new(edge(), edge(), edge()) }
            }
            _ => Shape::Sphere { radius: self.size(-1.5, 0.0) },
        }
    }

    fn material(&mut self) -> Material {
        Material {
            friction: self.within(0.0, 1.5),
            restitution: self.within(0.0, 1.0),
            density: self.size(2.0, 4.0),
            torsion_radius: self.within(0.0, 0.05),
            rolling_radius: self.within(0.0, 0.05),
        }
    }

    fn colliders(&mut self) -> Vec<Collider> {
        let mut all = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let Ok(shape) = ShapeHandle::new(self.shape()) else { continue };
            let mut collider = Collider::new(shape);
            if self.random.chance(0.3) {
                (collider.position, collider.rotation) = (self.vector(0.3), self.rotation());
            }
            collider.material = self.material();
            collider.sensor = self.random.chance(0.05);
            all.push(collider);
        }
        all
    }

    fn body(&mut self) -> RigidBody {
        let mut body = match self.random.below(8) {
            0 => RigidBody::fixed(),
            1 => RigidBody::kinematic(),
            _ => {
                let mass = self.size(-2.0, 4.0);
                let radius = self.size(-1.0, 0.0);
                let mut inertia = DMat3::from_diagonal(DVec3::splat(0.4 * mass * radius * radius));
                if self.random.chance(self.harm) {
                    inertia.x_axis.y = self.within(-1.0, 1.0);
                    inertia.z_axis.z = self.size(-3.0, 3.0);
                }
                RigidBody::dynamic(mass, inertia)
            }
        };
        body = body.at(self.vector(3.0)).turned(self.rotation());
        if self.random.chance(0.4) {
            body = body.moving(self.vector(5.0), self.vector(5.0));
        }
        if self.random.chance(0.1) {
            (body.force.0, body.torque.0) = (self.vector(100.0), self.vector(10.0));
        }
        body
    }
}

/// A joint's making: words, and what spawns it between bodies of the stage.
fn spawn<T: hecs::Component>(name: &str, words: String, make: impl FnOnce(&Stage) -> T + 'static) -> Call {
    let apply = move |stage: &mut Stage, world: &mut World, _: &mut Physics| {
        let joint = make(stage);
        let entity = world.spawn((joint, JointForce::default()));
        stage.joints.push(entity);
    };
    Call { words: format!("{name} {words}"), apply: Box::new(apply) }
}

impl Stage {
    fn body(&self, k: usize) -> Entity {
        self.bodies.get(k).copied().unwrap_or(Entity::DANGLING)
    }
}

fn joint(n: &mut Numbers<'_>, bodies: usize) -> Call {
    // One more than there are: a joint to nothing.
    let mut end = || n.random.below(bodies + usize::from(n.harm > 0.0));
    let ends: [usize; 4] = std::array::from_fn(|_| end());
    let [i, j, k, l] = ends;
    macro_rules! framed {
        ($type:ident { $($field:ident: $value:expr),* }) => {{
            let frames = n.frames();
            $(let $field = $value;)*
            let words = format!("{i} {j} {frames:?} {:?}", ($($field,)*));
            spawn(stringify!($type), words, move |s| {
                #[allow(unused_mut)]
                let mut joint = $type::new(s.body(i), s.body(j), frames);
                $(joint.$field = $field;)*
                joint
            })
        }};
    }
    macro_rules! spanned {
        ($type:ident { $($field:ident: $value:expr),* }) => {{
            let (p, q, length) = (n.vector(1.0), n.vector(1.0), n.size(-2.0, 1.0));
            $(let $field = $value;)*
            let words = format!("{i} {j} {p} {q} {length} {:?}", ($($field,)*));
            spawn(stringify!($type), words, move |s| {
                $type { a: s.body(i), b: s.body(j), anchor_a: p, anchor_b: q, length $(, $field)* }
            })
        }};
    }
    match n.random.below(17) {
        0 => framed!(Fixed {}),
        1 => framed!(Revolute { axis: n.axis() }),
        2 => framed!(Prismatic { axis: n.axis() }),
        3 => framed!(Cylindrical { slide: n.axis(), turn: n.axis() }),
        4 => framed!(Ball {}),
        5 => framed!(Universal { first: n.axis(), second: n.axis() }),
        6 => framed!(Planar { slide_y: n.axis(), slide_z: n.axis(), turn: n.axis() }),
        7 => framed!(PointOnLine { slide: n.axis() }),
        8 => spanned!(Distance {}),
        9 => spanned!(Rope {}),
        10 => spanned!(SpringDamper {
            stiffness: n.size(0.0, 6.0),
            damping: n.size(0.0, 4.0),
            pull_only: n.random.chance(0.5)
        }),
        11 => {
            let wheels = [n.wheel(), n.wheel()];
            spawn("Gear", format!("{i} {j} {wheels:?}"), move |s| Gear { a: s.body(i), b: s.body(j), wheels })
        }
        12 => {
            let (frames, stiffness, damping) = (n.frames(), n.size(2.0, 6.0), n.size(1.0, 4.0));
            let (steering, brake, drive, rest) =
                (n.within(-0.5, 0.5), n.size(0.0, 3.0), n.motor(), n.within(-0.1, 0.1));
            let words = format!(
                "{i} {j} {frames:?} {stiffness} {damping} steering {steering} brake {brake} {drive:?} rest {rest}"
            );
            spawn("Wheel", words, move |s| {
                let wheel = Wheel::new(s.body(i), s.body(j), frames, stiffness, damping);
                Wheel { steering, brake, drive, suspension_rest: rest, ..wheel }
            })
        }
        13 => {
            let rod = Rod {
                youngs_modulus: n.size(6.0, 11.0),
                shear_modulus: n.size(6.0, 11.0),
                radius: n.size(-3.0, -1.0),
                length: n.size(-1.5, 0.0),
                damping_time: n.size(-4.0, -1.0),
            };
            let frames = n.frames();
            spawn("Cable", format!("{i} {j} {frames:?} {rod:?}"), move |s| {
                Cable::new(s.body(i), s.body(j), frames, &rod).elastic(&rod)
            })
        }
        14 => {
            let (anchors, friction) = ([n.vector(1.0), n.vector(1.0), n.vector(1.0)], n.within(0.0, 0.5));
            let length = n.size(-1.0, 1.0);
            let winch = match n.random.below(3) {
                0 => Winch::Rate { speed: n.within(-2.0, 2.0), max_force: n.size(1.0, 5.0) },
                1 => {
                    Winch::Drum { axis: n.vector(1.0), radius: n.size(-2.0, 0.0), wound: n.within(-9.0, 9.0) }
                }
                _ => Winch::None,
            };
            spawn("PulleyRope", format!("{i} {j} {k} {anchors:?} {friction} {length} {winch:?}"), move |s| {
                let points = [
                    RopePoint::new(s.body(i), anchors[0]),
                    RopePoint::rubbing(s.body(j), anchors[1], friction),
                    RopePoint::new(s.body(k), anchors[2]),
                ];
                PulleyRope::new(points, length).with_winch(winch)
            })
        }
        15 => {
            let (pinion, rail, rack, radius) = (n.wheel(), n.frame(), n.vector(1.0), n.size(-2.0, 0.0));
            spawn("RackPinion", format!("{i} {j} {k} {pinion:?} {rail:?} {rack} {radius}"), move |s| {
                RackPinion { bodies: [s.body(i), s.body(j), s.body(k)], pinion, rail, rack, radius }
            })
        }
        _ => {
            let wheels = [n.wheel(), n.wheel(), n.wheel(), n.wheel()];
            spawn("Differential", format!("{i} {j} {k} {l} {wheels:?}"), move |s| Differential {
                bodies: [s.body(i), s.body(j), s.body(k), s.body(l)],
                wheels,
            })
        }
    }
}

fn setting(n: &mut Numbers<'_>) -> Call {
    macro_rules! set {
        ($($($field:ident).+: $value:expr),* $(,)?) => {{
            let names = [$(concat!($(".", stringify!($field)),+)),*];
            let which = names[n.random.below(names.len())];
            match which {
                $(concat!($(".", stringify!($field)),+) => {
                    let value = $value;
                    Call {
                        words: format!("settings{which} = {value:?}"),
                        apply: Box::new(move |_, _, physics| physics.settings.$($field).+ = value),
                    }
                })*
                _ => unreachable!("the word is one of the list"),
            }
        }};
    }
    set! {
        gravity: n.vector(20.0),
        substeps: n.count(3),
        method: n.random.pick(&Method::ALL),
        partitioning: {
            let size = n.count(20);
            n.random.pick(&[Partitioning::None, Partitioning::Semantic, Partitioning::MinDegree(size), Partitioning::Auto])
        },
        coupling.parallelism: n.count(8),
        coupling.as_published: n.random.chance(0.5),
        coupling.partition_solver: n.random.chance(0.8).then(|| n.random.pick(&Method::ALL)),
        coupling.partition_solver_rows: n.count(50),
        coupling.interface_solver: n.random.chance(0.8).then(|| n.random.pick(&Method::ALL)),
        tuning.warm_start: n.random.chance(0.5),
        plain_kernels: n.random.chance(0.5),
        coupling.max_iterations: n.count(20),
        joint_compliance: n.size(-10.0, -4.0),
        tuning.joint_correction: n.within(0.0, 1.0),
        tuning.stop_correction: n.within(0.0, 1.0),
        tuning.max_correction_speed: n.size(-1.0, 2.0),
        tuning.contact_compliance: n.size(-8.0, -4.0),
        tuning.friction_compliance: n.size(-8.0, -4.0),
        tuning.contact_correction: n.within(0.0, 1.0),
        tuning.max_recovery_speed: n.size(-2.0, 1.0),
        tuning.contact_passes: n.count(16),
        tuning.contact_tolerance: n.size(-5.0, -1.0),
        contact_margin: n.size(-4.0, -1.0),
        bounce_threshold: n.size(-2.0, 0.0),
        tuning.friction_passes: n.count(3),
        tuning.friction_tolerance: n.size(-4.0, 0.0),
        tuning.friction_follow: n.within(0.0, 1.0),
        sleep: n.random.chance(0.5),
        sleep_speed: n.size(-5.0, 0.0),
        sleep_time: n.size(-2.0, 1.0),
        impulse_event_threshold: n.size(-2.0, 3.0),
        integrator: n.random.pick(&[Integrator::Midpoint, Integrator::SemiImplicit]),
        tuning.geometric_stiffness: n.within(0.0, 1.0),
        tuning.stiffness_damping: n.within(0.0, 1.0),
        tuning.refine: n.count(3),
        tuning.refine_tolerance: n.size(-5.0, -1.0),
        tuning.newton: n.count(16),
        tuning.projection: n.count(3),
        measure: n.random.chance(0.5),
        tuning.max_speed: n.size(2.0, 7.0),
        tuning.max_position: n.size(3.0, 9.0),
    }
}

/// A change of something that is there.
fn change(n: &mut Numbers<'_>, bodies: usize) -> Call {
    let which = n.random.below(bodies);
    macro_rules! put {
        ($component:expr) => {{
            let component = $component;
            let words = format!("body {which} gets {component:?}");
            let apply = move |s: &mut Stage, world: &mut World, _: &mut Physics| {
                // A body that is gone gets nothing.
                let _ = world.insert_one(s.body(which), component);
            };
            Call { words, apply: Box::new(apply) }
        }};
    }
    match n.random.below(20) {
        0 => put!(Position(n.vector(5.0))),
        1 => put!(Rotation(n.rotation())),
        2 => put!(LinearVelocity(n.vector(20.0))),
        3 => put!(AngularVelocity(n.vector(20.0))),
        4 => put!(Mass(n.size(-3.0, 5.0))),
        5 => put!(Inertia(DMat3::from_diagonal(DVec3::splat(n.size(-3.0, 4.0))))),
        6 => put!(Force(n.vector(1e3))),
        7 => put!(Torque(n.vector(1e2))),
        8 => put!(GravityScale(n.within(-1.0, 2.0))),
        9 => put!(Damping { linear: n.within(0.0, 2.0), angular: n.within(0.0, 2.0) }),
        10 => put!(KinematicTarget { position: n.vector(5.0), rotation: n.rotation() }),
        11 => put!(n.random.pick(&[BodyKind::Dynamic, BodyKind::Kinematic, BodyKind::Fixed])),
        12 => put!(Colliders(n.colliders())),
        13 => put!(PartitionHint(n.random.pick(&[0, 1, u32::MAX]))),
        14 => put!(PartitionPin(n.random.pick(&[0, 1, u32::MAX]))),
        15 => put!(BodyIndex(n.random.pick(&[0, 1, u32::MAX]))),
        16 => Call {
            words: format!("body {which} is despawned"),
            apply: Box::new(move |s, world, _| drop(world.despawn(s.body(which)))),
        },
        17 => {
            let limit = Breakable { force: n.size(0.0, 5.0), torque: n.size(0.0, 5.0) };
            Call {
                words: format!("joint {which} gets {limit:?}"),
                apply: Box::new(move |s, world, _| {
                    let joint = s.joints.get(which).copied().unwrap_or(Entity::DANGLING);
                    let _ = world.insert_one(joint, limit);
                }),
            }
        }
        18 => {
            let (friction, restitution, compliance, velocity) =
                (n.within(0.0, 1.0), n.within(0.0, 1.0), n.size(-8.0, -4.0), n.vector(2.0));
            Call {
                words: format!("surfaces get {friction} {restitution} {compliance} {velocity}"),
                apply: Box::new(move |_, world, _| {
                    for surface in world.query_mut::<&mut Surface>() {
                        (surface.friction, surface.restitution) = (friction, restitution);
                        (surface.compliance, surface.velocity) = (compliance, velocity);
                    }
                }),
            }
        }
        _ => {
            let (origin, direction, most) = (n.vector(5.0), n.vector(1.0), n.size(-1.0, 2.0));
            Call {
                words: format!("cast_ray {origin} {direction} {most}"),
                apply: Box::new(move |_, world, physics| {
                    let _ = physics.cast_ray(world, origin, direction, most, CollisionFilter::default());
                }),
            }
        }
    }
}

impl Script {
    /// A random one.
    pub fn new(random: &mut Random) -> Script {
        let harm = random.pick(&[0.0, 0.002, 0.01, 0.05, 0.3]);
        let mut n = Numbers { random, harm };
        let bodies = 1 + n.random.below(10);
        let mut calls: BTreeMap<u64, Vec<Call>> = BTreeMap::new();
        let first = calls.entry(0).or_default();
        for k in 0..bodies {
            let (body, colliders) = (n.body(), n.colliders());
            let words = format!("body {k}: {body:?} {colliders:?}");
            let apply = move |s: &mut Stage, world: &mut World, _: &mut Physics| {
                let entity = world.spawn(body);
                // The entity was spawned a line ago.
                let _ = world.insert_one(entity, Colliders(colliders));
                s.bodies.push(entity);
            };
            first.push(Call { words, apply: Box::new(apply) });
        }
        for _ in 0..n.random.below(bodies + 2) {
            first.push(joint(&mut n, bodies));
        }
        for _ in 0..n.random.below(4) {
            first.push(setting(&mut n));
        }
        for _ in 0..n.random.below(6) {
            let when = n.random.below(20) as u64;
            let call = match n.random.below(5) {
                0 => setting(&mut n),
                1 => joint(&mut n, bodies),
                _ => change(&mut n, bodies),
            };
            calls.entry(when).or_default().push(call);
        }
        let dt = n.random.pick(&[1.0 / 60.0, 1.0 / 60.0, 1.0 / 240.0, 1.0 / 30.0]);
        Script { calls, dt }
    }

    /// Makes the calls and steps.
    pub fn run(mut self, patience: &Patience) -> Verdict {
        let (mut world, mut physics, mut stage) = (World::new(), Physics::new(), Stage::default());
        patience.watch(&mut world, &mut physics, self.dt, |step, world, physics| {
            for call in self.calls.remove(&step).unwrap_or_default() {
                (call.apply)(&mut stage, world, physics);
            }
        })
    }

    /// The calls in words.
    pub fn files(&self) -> (Vec<(String, Vec<u8>)>, String) {
        let mut text = format!("dt {}\n", self.dt);
        for (step, calls) in &self.calls {
            for call in calls {
                text += &format!("before step {}: {}\n", step + 1, call.words);
            }
        }
        (vec![("calls.txt".into(), text.into_bytes())], String::new())
    }
}
