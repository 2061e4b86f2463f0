//! Mechanisms whose motion is known: in the engine, and in coordinates of their own, integrated finely.

#![allow(dead_code)] // each program uses its own part

use glam::{DMat3, DQuat, DVec3};
use hecs::{Entity, World};
use std::collections::BTreeMap;
use turnbuckle::components::*;
use turnbuckle::constraint::*;
use turnbuckle::report::Cause;
use turnbuckle::{Physics, Settings};

pub const G: f64 = 9.81;

/// A mechanism in the engine.
pub struct Mechanism {
    pub world: World,
    pub physics: Physics,
    pub bodies: Vec<Entity>,
    pub ground: Entity,
    pub joints: Vec<Entity>,
}

impl Mechanism {
    pub fn new() -> Mechanism {
        let mut world = World::new();
        let ground = world.spawn(RigidBody::fixed());
        let physics = Physics::with_settings(Settings { sleep: false, ..Settings::default() });
        Mechanism { world, physics, bodies: Vec::new(), ground, joints: Vec::new() }
    }

    /// A body with these principal moments, position, orientation and velocities.
    pub fn body(&mut self, mass: f64, moments: DVec3, at: DVec3, turn: DQuat, v: DVec3, w: DVec3) -> Entity {
        let body = RigidBody::dynamic(mass, DMat3::from_diagonal(moments)).at(at).turned(turn);
        let body = self.world.spawn(body);
        self.world.insert(body, (LinearVelocity(v), AngularVelocity(w))).expect("just spawned");
        self.bodies.push(body);
        body
    }

    pub fn pose(&self, body: Entity) -> Pose {
        let rotation = self.world.get::<&Rotation>(body).map_or(DQuat::IDENTITY, |r| r.0);
        Pose { position: self.place(body), rotation }
    }

    pub fn place(&self, body: Entity) -> DVec3 {
        self.world.get::<&Position>(body).map_or(DVec3::NAN, |p| p.0)
    }

    pub fn spin(&self, body: Entity) -> DVec3 {
        self.world.get::<&AngularVelocity>(body).map_or(DVec3::NAN, |w| w.0)
    }

    pub fn hinge(&mut self, a: Entity, b: Entity, at: DVec3, axis: DVec3) {
        let frames = Frames::in_world(&self.pose(a), &self.pose(b), at, axis);
        let joint = self.world.spawn((Revolute::new(a, b, frames), JointForce::default()));
        self.joints.push(joint);
    }

    pub fn energy(&self) -> f64 {
        let gravity = self.physics.settings.gravity;
        let mut sum = 0.0;
        for &body in &self.bodies {
            let get = |e| (self.place(e), self.world.get::<&LinearVelocity>(e).map_or(DVec3::NAN, |v| v.0));
            let ((x, v), w) = (get(body), self.spin(body));
            let mass = self.world.get::<&Mass>(body).map_or(f64::NAN, |m| m.0);
            let inertia = self.world.get::<&Inertia>(body).map_or(DMat3::ZERO, |i| i.0);
            let r = DMat3::from_quat(self.pose(body).rotation);
            sum += 0.5 * mass * v.length_squared() + 0.5 * w.dot(r * inertia * r.transpose() * w)
                - mass * gravity.dot(x);
        }
        sum
    }
}

/// A planar chain in the x–z plane: lengths, masses, moments, angles from +x towards −z, and how far along each the centre of mass is.
#[derive(Clone)]
pub struct Planar {
    pub length: Vec<f64>,
    pub mass: Vec<f64>,
    pub inertia: Vec<f64>,
    pub angle: Vec<f64>,
    pub com: Vec<f64>,
}

pub fn rod(mass: f64, length: f64) -> f64 {
    mass * length * length / 12.0
}

impl Planar {
    pub fn new(length: &[f64], mass: &[f64], angle: &[f64]) -> Planar {
        Planar {
            length: length.to_vec(),
            mass: mass.to_vec(),
            inertia: mass.iter().zip(length).map(|(m, l)| rod(*m, *l)).collect(),
            angle: angle.to_vec(),
            com: length.iter().map(|l| 0.5 * l).collect(),
        }
    }

    /// A double pendulum, from the vertical.
    pub fn double(first: f64, second: f64) -> Planar {
        let down = std::f64::consts::FRAC_PI_2;
        Planar::new(&[1.0, 0.8], &[1.0, 1.5], &[down - first, down - first - second])
    }

    /// A chain let go horizontally.
    pub fn chain(n: usize) -> Planar {
        Planar::new(&vec![0.2; n], &vec![0.1; n], &vec![0.0; n])
    }

    /// A small arm, nearly folded.
    pub fn arm() -> Planar {
        Planar::new(&[0.1; 3], &[0.05, 0.04, 0.03], &[0.0, 0.3, -0.2])
    }

    /// In the engine, on hinges.
    pub fn build(&self) -> Mechanism {
        let mut m = Mechanism::new();
        let (mut p, mut above) = (DVec3::ZERO, m.ground);
        for i in 0..self.length.len() {
            let turn = DQuat::from_rotation_y(self.angle[i]);
            let along = turn * DVec3::X;
            let moments = DVec3::splat(self.inertia[i]);
            let at = p + along * self.com[i];
            let body = m.body(self.mass[i], moments, at, turn, DVec3::ZERO, DVec3::ZERO);
            m.hinge(above, body, p, DVec3::Y);
            p += along * self.length[i];
            above = body;
        }
        m
    }

    /// Centres of mass and the kinetic energy, every `dt` up to `time`, from absolute angles: M_ij = A_ij cos(a_i − a_j).
    pub fn reference(&self, time: f64, dt: f64, fine: usize) -> (Vec<Vec<DVec3>>, f64) {
        let n = self.length.len();
        let c = |i: usize, j: usize| {
            if j < i {
                self.length[j]
            } else if j == i {
                self.com[i]
            } else {
                0.0
            }
        };
        let a: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..n).map(|j| (0..n).map(|k| self.mass[k] * c(k, i) * c(k, j)).sum()).collect())
            .collect();
        let g: Vec<f64> = (0..n).map(|j| G * (0..n).map(|k| self.mass[k] * c(k, j)).sum::<f64>()).collect();
        let slope = |y: &[f64]| -> Vec<f64> {
            let mut m = vec![vec![0.0; n + 1]; n];
            for i in 0..n {
                m[i][n] = g[i] * y[i].cos();
                for j in 0..n {
                    let d = y[i] - y[j];
                    m[i][j] = a[i][j] * d.cos() + if i == j { self.inertia[i] } else { 0.0 };
                    m[i][n] -= a[i][j] * d.sin() * y[n + j] * y[n + j];
                }
            }
            let x = eliminate(&mut m);
            y[n..].iter().copied().chain(x).collect()
        };
        let mut y = self.angle.clone();
        y.resize(2 * n, 0.0);
        let (mut places, mut most) = (Vec::new(), 0.0f64);
        for _ in 0..(time / dt).round() as usize {
            for _ in 0..fine {
                y = runge_kutta(&slope, &y, dt / fine as f64);
            }
            let at = |i: usize| {
                let sum = |f: &dyn Fn(f64) -> f64| (0..=i).map(|j| c(i, j) * f(y[j])).sum::<f64>();
                DVec3::new(sum(&|a| a.cos()), 0.0, -sum(&|a| a.sin()))
            };
            places.push((0..n).map(at).collect());
            let mut kinetic = 0.0;
            for i in 0..n {
                for j in 0..n {
                    let own = if i == j { self.inertia[i] } else { 0.0 };
                    kinetic += 0.5 * (a[i][j] * (y[i] - y[j]).cos() + own) * y[n + i] * y[n + j];
                }
            }
            most = most.max(kinetic);
        }
        (places, most)
    }
}

fn eliminate(m: &mut [Vec<f64>]) -> Vec<f64> {
    let n = m.len();
    for i in 0..n {
        for k in i + 1..n {
            let f = m[k][i] / m[i][i];
            let (above, below) = m.split_at_mut(k);
            below[0].iter_mut().zip(&above[i]).skip(i).for_each(|(x, pivot)| *x -= f * pivot);
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        x[i] = (m[i][n] - (i + 1..n).map(|j| m[i][j] * x[j]).sum::<f64>()) / m[i][i];
    }
    x
}

pub fn runge_kutta(slope: &dyn Fn(&[f64]) -> Vec<f64>, y: &[f64], h: f64) -> Vec<f64> {
    let ahead = |k: &[f64], s: f64| -> Vec<f64> { y.iter().zip(k).map(|(y, k)| y + s * k).collect() };
    let a = slope(y);
    let b = slope(&ahead(&a, 0.5 * h));
    let c = slope(&ahead(&b, 0.5 * h));
    let d = slope(&ahead(&c, h));
    (0..y.len()).map(|i| y[i] + h / 6.0 * (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i])).collect()
}

/// Ten links whose hinges stand along y and z in turn.
pub fn twisting_chain() -> Mechanism {
    let (n, l, mass) = (10, 0.2, 0.1);
    let mut m = Mechanism::new();
    let moments = DVec3::new(2.0 * 0.0004, l * l + 0.0004, l * l + 0.0004) * (mass / 12.0);
    let (mut p, mut turn, mut above) = (DVec3::ZERO, DQuat::IDENTITY, m.ground);
    for i in 0..n {
        let (axis, angle) = if i % 2 == 0 { (DVec3::Y, 0.0) } else { (DVec3::Z, 0.1) };
        turn *= DQuat::from_axis_angle(axis, angle);
        let body = m.body(mass, moments, p + turn * DVec3::X * (0.5 * l), turn, DVec3::ZERO, DVec3::ZERO);
        m.hinge(above, body, p, turn * axis);
        p += turn * DVec3::X * l;
        above = body;
    }
    m
}

/// Crank, rod and slider in the x–z plane: length of crank and rod, masses, start angle.
pub const CRANK: (f64, f64, [f64; 3]) = (0.25, 0.9, [1.2, 1.8, 2.5]);

pub fn slider_crank(spin: f64) -> Mechanism {
    let (r, l, mass) = CRANK;
    let start = std::f64::consts::FRAC_PI_3;
    let fall = (r / l * start.sin()).asin();
    let rate = r * start.cos() * spin / (l * fall.cos());
    let mut m = Mechanism::new();
    let (a, b) = (DQuat::from_rotation_y(-start), DQuat::from_rotation_y(fall));
    let (wa, wb) = (DVec3::Y * -spin, DVec3::Y * rate);
    let p = a * DVec3::X * r;
    let c = b * DVec3::X * l;
    let (vp, i) = (wa.cross(p), DVec3::new(0.02, 1.0, 1.0));
    let crank = m.body(mass[0], i * rod(mass[0], r), 0.5 * p, a, 0.5 * vp, wa);
    let bar = m.body(mass[1], i * rod(mass[1], l), p + 0.5 * c, b, vp + wb.cross(0.5 * c), wb);
    let slider = m.body(mass[2], DVec3::splat(0.01), p + c, DQuat::IDENTITY, vp + wb.cross(c), DVec3::ZERO);
    m.hinge(m.ground, crank, DVec3::ZERO, DVec3::Y);
    m.hinge(crank, bar, p, DVec3::Y);
    m.hinge(bar, slider, p + c, DVec3::Y);
    let frames = Frames::in_world(&m.pose(m.ground), &m.pose(slider), p + c, DVec3::X);
    let rail = m.world.spawn((Prismatic::new(m.ground, slider, frames), JointForce::default()));
    m.joints.push(rail);
    m
}

/// Centres of mass of crank, rod and slider.
pub fn slider_reference(spin: f64, time: f64, dt: f64, fine: usize) -> (Vec<Vec<DVec3>>, f64) {
    let (r, l, mass) = CRANK;
    let parts = |t: f64| {
        let (s, c) = (t.sin(), t.cos());
        let sp = r / l * s;
        let cp = (1.0 - sp * sp).sqrt();
        (s, c, sp, cp, r / l * c / cp)
    };
    let kinetic = move |t: f64| {
        let (s, c, sp, _, dp) = parts(t);
        let (vx, vz) = (-r * s - 0.5 * l * sp * dp, 0.5 * r * c);
        let slide = r * s + l * sp * dp;
        mass[0] * r * r / 3.0
            + mass[1] * (vx * vx + vz * vz)
            + rod(mass[1], l) * dp * dp
            + mass[2] * slide * slide
    };
    let slope = |y: &[f64]| {
        let e = 1e-4;
        let slope = (8.0 * (kinetic(y[0] + e) - kinetic(y[0] - e))
            - (kinetic(y[0] + 2.0 * e) - kinetic(y[0] - 2.0 * e)))
            / (12.0 * e);
        let fall = G * y[0].cos() * (mass[0] + mass[1]) * 0.5 * r;
        vec![y[1], (-0.5 * slope * y[1] * y[1] - fall) / kinetic(y[0])]
    };
    let mut y = vec![std::f64::consts::FRAC_PI_3, spin];
    let (mut places, mut most) = (Vec::new(), 0.0f64);
    for _ in 0..(time / dt).round() as usize {
        for _ in 0..fine {
            y = runge_kutta(&slope, &y, dt / fine as f64);
        }
        let (s, c, _, cp, _) = parts(y[0]);
        places.push(vec![
            DVec3::new(0.5 * r * c, 0.0, 0.5 * r * s),
            DVec3::new(r * c + 0.5 * l * cp, 0.0, 0.5 * r * s),
            DVec3::new(r * c + l * cp, 0.0, 0.0),
        ]);
        most = most.max(0.5 * kinetic(y[0]) * y[1] * y[1]);
    }
    (places, most)
}

/// A rotor on a hinge along y, overhung by 0.3 m and out of balance by `off`.
pub fn rotor(spin: f64, off: f64) -> Mechanism {
    let mut m = Mechanism::new();
    let v = DVec3::new(0.0, 0.0, -spin * off);
    let at = DVec3::new(off, 0.3, 0.0);
    let body = m.body(2.0, DVec3::new(0.01, 0.02, 0.01), at, DQuat::IDENTITY, v, DVec3::Y * spin);
    m.hinge(m.ground, body, DVec3::ZERO, DVec3::Y);
    m
}

/// A disc on a hinge through its centre, its axis level.
pub fn disc(spin: f64) -> Mechanism {
    let mut m = Mechanism::new();
    let moments = DVec3::new(0.04, 0.02, 0.02);
    let body = m.body(2.0, moments, DVec3::ZERO, DQuat::IDENTITY, DVec3::ZERO, DVec3::X * spin);
    m.hinge(m.ground, body, DVec3::ZERO, DVec3::X);
    m
}

pub const TOP: (f64, f64, f64, f64) = (0.4, 0.09, 5e-4, 7e-4);

/// A top on a ball joint, leaning by half a radian.
pub fn top(spin: f64) -> Mechanism {
    let (mass, d, across, along) = TOP;
    let mut m = Mechanism::new();
    let turn = DQuat::from_rotation_x(0.5);
    let (up, w) = (turn * DVec3::Z, turn * DVec3::Z * spin);
    let moments = DVec3::new(across, across, along);
    let body = m.body(mass, moments, up * d, turn, DVec3::ZERO, w);
    let joint = Ball::between(m.ground, DVec3::ZERO, body, DVec3::Z * -d);
    m.world.spawn((joint,));
    m
}

/// Where a top's centre of mass is.
pub fn top_reference(spin: f64, time: f64, dt: f64, fine: usize) -> Vec<DVec3> {
    let (mass, d, across, along) = TOP;
    let inertia = across + mass * d * d;
    let slope = |y: &[f64]| {
        let (u, l) = (DVec3::from_slice(&y[..3]), DVec3::from_slice(&y[3..]));
        let w = (l - u * u.dot(l)) / inertia;
        let (du, dl) = (w.cross(u), (u * d).cross(DVec3::Z * (-mass * G)));
        vec![du.x, du.y, du.z, dl.x, dl.y, dl.z]
    };
    let up = DQuat::from_rotation_x(0.5) * DVec3::Z;
    let l = up * (along * spin);
    let mut y = vec![up.x, up.y, up.z, l.x, l.y, l.z];
    let mut places = Vec::new();
    for _ in 0..(time / dt).round() as usize {
        for _ in 0..fine {
            y = runge_kutta(&slope, &y, dt / fine as f64);
        }
        places.push(DVec3::from_slice(&y[..3]) * d);
    }
    places
}

/// What a run was like; energies are shares of the largest kinetic energy.
pub struct Outcome {
    pub low: f64,
    pub high: f64,
    /// Greatest distance of a centre of mass from where it truly is (m).
    pub error: f64,
    /// Greatest opening of a joint (m or rad).
    pub open: f64,
    /// Factorizations a step, and the most in one.
    pub factors: f64,
    pub most: u32,
    pub held: u32,
    pub converged: bool,
    pub causes: BTreeMap<Cause, u32>,
    pub kinetic: f64,
}

/// Runs a mechanism; `truth` has its true places after each step, as far as they are to be compared.
pub fn follow(m: &mut Mechanism, h: f64, time: f64, truth: Option<&[Vec<DVec3>]>) -> Outcome {
    let start = m.energy();
    let (mut low, mut high, mut kinetic, mut open, mut error) = (0.0f64, 0.0f64, 0.0f64, 0.0f64, 0.0f64);
    let (mut factors, mut most, mut held, mut converged) = (0, 0, 0, true);
    let mut causes = BTreeMap::new();
    let steps = (time / h).round() as usize;
    for k in 0..steps {
        let report = m.physics.step(&mut m.world, h);
        kinetic = kinetic.max(report.kinetic);
        open = open.max(report.joint_error_max);
        factors += report.factorizations;
        most = most.max(report.factorizations);
        held += report.held;
        converged &= report.converged;
        for resolve in &report.resolves {
            *causes.entry(resolve.cause).or_insert(0u32) += 1;
        }
        let now = m.energy() - start;
        (low, high) = (low.min(now), high.max(now));
        if let Some(places) = truth.and_then(|places| places.get(k)) {
            for (&body, x) in m.bodies.iter().zip(places) {
                error = error.max(m.place(body).distance(*x));
            }
        }
    }
    let factors = f64::from(factors) / steps as f64;
    let (low, high) = (low / kinetic, high / kinetic);
    Outcome { low, high, error, open, factors, most, held, converged, causes, kinetic }
}

/// Two bodies of 2 kg on a spring of this frequency (Hz) and damping ratio, drawn apart by 5 cm.
pub fn spring(frequency: f64, ratio: f64) -> Mechanism {
    let mut m = Mechanism::new();
    m.physics.settings.gravity = DVec3::ZERO;
    let w = std::f64::consts::TAU * frequency;
    let body = |m: &mut Mechanism, z: f64| {
        m.body(2.0, DVec3::ONE, DVec3::Z * z, DQuat::IDENTITY, DVec3::ZERO, DVec3::ZERO)
    };
    let (a, b) = (body(&mut m, -1.05), body(&mut m, 1.0));
    let spring = SpringDamper::between(a, DVec3::Z * 0.5, b, DVec3::Z * -0.5, 1.0, w * w);
    m.world.spawn((spring.damped(2.0 * ratio * w),));
    m
}

/// Ten balls on `Distance` rods, let go level.
pub fn distance_chain(n: usize) -> Mechanism {
    let mut m = Mechanism::new();
    let (mut above, mut anchor) = (m.ground, DVec3::ZERO);
    for i in 0..n {
        let at = DVec3::X * (0.3 * (i + 1) as f64);
        let body = m.body(0.5, DVec3::splat(2e-4), at, DQuat::IDENTITY, DVec3::ZERO, DVec3::ZERO);
        let joint = m.world.spawn((Distance::between(above, anchor, body, DVec3::ZERO, 0.3),));
        m.joints.push(joint);
        (above, anchor) = (body, DVec3::ZERO);
    }
    m
}
