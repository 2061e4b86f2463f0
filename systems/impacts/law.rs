//! The law of an impact: compression, reflection, friction.
//!
//! N are the normals of the points that touch and approach, B the rows of rigid joints, u = Nᵀ v:
//!
//! ```text
//!     compression   M (v_c − v) = N λ + B μ      0 ≤ λ ⟂ Nᵀ v_c ≥ 0 ,   Bᵀ v_c = Bᵀ v
//!     reflection    M v_e = N E λ + B μ_e        Bᵀ v_e = 0
//!                   v⁺ = v_c + k v_e             k = min(1, |v_c − v|_M / |v_e|_M)
//!     friction      least kinetic energy over |p_t| ≤ μ (1 + k e) λ
//! ```
//!
//! v_c − v is orthogonal to v_c in the kinetic metric, so that the kinetic energy changes by −½ (|v_c − v|² − k² |v_e|²) ≤ 0; k is
//! less than one only where unequal e would gain. Friction is a minimization of its own and cannot gain either. All three are problems
//! in the row form, with the engine's own solver.

use super::flight::Flyer;
use crate::components::ManifoldPoint;
use crate::constraint::Twist;
use crate::solver::mixed::MixedOptions;
use crate::solver::{RowBlock, RowKind, RowProblem, RowSolver, Solution};
use crate::state::NO_ROW;
use crate::systems::assemble::{mass_block, times};
use glam::DVec3;

/// Share of J M⁻¹ Jᵀ that tells redundant rows apart.
const COMPLIANCE: f64 = 1e-10;

/// A point that is struck.
pub(super) struct Hit {
    /// Its pair among those that are watched.
    pub pair: u32,
    /// Its bodies among the flyers.
    pub flyers: [u32; 2],
    pub point: ManifoldPoint,
    pub restitution: f64,
    pub friction: f64,
    /// See [`super::watch::Watched::belt`].
    pub belt: DVec3,
    /// Speed of approach (m/s).
    pub speed: f64,
    /// What it took (N·s).
    pub impulse: f64,
}

/// One row of a rigid joint that stays as it is in an impact.
pub(super) struct JointRow {
    /// Its bodies among the flyers, and what it does to them.
    pub on: Vec<(u32, [f64; 6])>,
}

/// The solver and its buffers.
#[derive(Default)]
pub(super) struct Law {
    solver: RowSolver,
    problem: RowProblem,
    solution: Solution,
    /// Flyers that move, by number in the problem, and the other way round.
    members: Vec<u32>,
    number: Vec<u32>,
    /// Factorizations so far.
    pub factorizations: u32,
}

impl Law {
    /// Choices of the factorizations.
    pub fn set_options(&mut self, options: MixedOptions) {
        self.solver.set_options(options);
        self.factorizations = 0;
    }

    /// Changes the velocities of the flyers by one impact.
    pub fn strike(&mut self, flyers: &mut [Flyer], hits: &mut [Hit], joints: &[JointRow]) {
        self.count(flyers, hits, joints);
        // Compression.
        self.begin(flyers, |view| [view.linear_velocity, view.angular_velocity]);
        for hit in hits.iter() {
            let d = self.push_block(flyers, hit, &[hit.point.normal]);
            self.bound(d[0], 0.0, f64::INFINITY);
        }
        self.keep_joints(flyers, joints, true);
        self.solve();
        let squeezed: Vec<f64> = self.solution.v.clone();
        let lambda: Vec<f64> = self.solution.lambda.iter().take(hits.len()).map(|l| l.max(0.0)).collect();
        if !squeezed.iter().chain(&lambda).all(|x| x.is_finite()) {
            return;
        }
        let before = self.velocities(flyers);
        let taken: Vec<f64> = squeezed.iter().zip(&before).map(|(after, before)| after - before).collect();
        // Reflection.
        let mut shares = hits.iter().zip(&lambda).filter(|(_, l)| **l > 0.0).map(|(hit, _)| hit.restitution);
        let first = shares.next().unwrap_or(0.0);
        let back = if shares.all(|e| e == first) {
            taken.iter().map(|v| first * v).collect()
        } else {
            self.reflect(flyers, hits, &lambda, joints)
        };
        let (paid, gained) = (self.square(flyers, &taken), self.square(flyers, &back));
        let k = if gained <= paid { 1.0 } else { (paid / gained).sqrt() };
        let after: Vec<f64> = squeezed.iter().zip(&back).map(|(v, back)| v + k * back).collect();
        self.set_velocities(flyers, &after);
        for (hit, l) in hits.iter_mut().zip(&lambda) {
            hit.impulse = (1.0 + k * hit.restitution) * l;
        }
        self.rub(flyers, hits, joints);
    }

    /// M⁻¹ N E λ with what joints answer.
    fn reflect(&mut self, flyers: &[Flyer], hits: &[Hit], lambda: &[f64], joints: &[JointRow]) -> Vec<f64> {
        self.begin(flyers, |_| [DVec3::ZERO; 2]);
        for (hit, l) in hits.iter().zip(lambda) {
            for (side, twist) in twists(&hit.point, hit.point.normal).into_iter().enumerate() {
                let number = self.number[hit.flyers[side] as usize];
                if number == NO_ROW {
                    continue;
                }
                let j = flyers[hit.flyers[side] as usize].view.acting(twist).to_array();
                let p = &mut self.problem.momentum[number as usize];
                p.iter_mut().zip(j).for_each(|(p, j)| *p += j * hit.restitution * l);
            }
        }
        self.keep_joints(flyers, joints, false);
        self.solve();
        self.solution.v.clone()
    }

    /// Takes the least kinetic energy that friction allows.
    fn rub(&mut self, flyers: &mut [Flyer], hits: &[Hit], joints: &[JointRow]) {
        let rubs = |hit: &&Hit| hit.friction > 0.0 && hit.impulse > 0.0;
        if !hits.iter().any(|hit| rubs(&hit)) {
            return;
        }
        self.begin(flyers, |view| [view.linear_velocity, view.angular_velocity]);
        for hit in hits.iter().filter(rubs) {
            let n = hit.point.normal;
            let views = hit.flyers.map(|k| &flyers[k as usize].view);
            let over = crate::constraint::contact_rows::relative_velocity(&hit.point, views) - hit.belt;
            let slip = over - n * n.dot(over);
            let t = slip.try_normalize().unwrap_or_else(|| n.any_orthonormal_vector());
            let tangents = [t, n.cross(t)];
            let d = self.push_block(flyers, hit, &tangents);
            let most = hit.friction * hit.impulse;
            (0..2).for_each(|k| self.bound(d[k] - hit.belt.dot(tangents[k]), -most, most));
        }
        self.keep_joints(flyers, joints, true);
        self.solve();
        let after = self.solution.v.clone();
        if after.iter().all(|x| x.is_finite()) {
            self.set_velocities(flyers, &after);
        }
    }

    /// Numbers the bodies that take part, in order of appearance.
    fn count(&mut self, flyers: &[Flyer], hits: &[Hit], joints: &[JointRow]) {
        self.members.clear();
        self.number.clear();
        self.number.resize(flyers.len(), NO_ROW);
        let of_joints = joints.iter().flat_map(|row| row.on.iter().map(|on| on.0));
        for k in hits.iter().flat_map(|hit| hit.flyers).chain(of_joints) {
            if flyers[k as usize].moves && self.number[k as usize] == NO_ROW {
                self.number[k as usize] = self.members.len() as u32;
                self.members.push(k);
            }
        }
    }

    fn begin(&mut self, flyers: &[Flyer], velocity: impl Fn(&crate::constraint::BodyView) -> [DVec3; 2]) {
        let problem = &mut self.problem;
        problem.clear();
        let views = || self.members.iter().map(|&k| &flyers[k as usize].view);
        if views().any(|view| !view.rotates()) {
            problem.width.extend(views().map(|view| if view.rotates() { 6 } else { 3 }));
        }
        for view in views() {
            let mass = mass_block(view);
            problem.momentum.push(times(&mass, velocity(view)));
            problem.mass.push(mass);
        }
    }

    /// Appends the rows of a point along some directions, without their bounds. Returns d of each.
    fn push_block<const N: usize>(&mut self, flyers: &[Flyer], hit: &Hit, along: &[DVec3; N]) -> [f64; N] {
        let problem = &mut self.problem;
        let (body, entry) = (problem.block_bodies.len() as u32, problem.jacobian.len() as u32);
        let mut d = [0.0; N];
        problem
            .block_bodies
            .extend(hit.flyers.map(|k| self.number[k as usize]).iter().filter(|k| **k != NO_ROW));
        for (k, &direction) in along.iter().enumerate() {
            let mut give = 0.0;
            for (side, twist) in twists(&hit.point, direction).into_iter().enumerate() {
                let flyer = &flyers[hit.flyers[side] as usize];
                let view = &flyer.view;
                let twist = view.acting(twist);
                if flyer.moves {
                    problem.jacobian.extend(twist.to_array());
                    let turned = view.inverse_inertia() * twist.angular;
                    give += 1.0 / view.mass + twist.angular.dot(turned);
                } else {
                    d[k] += twist.linear.dot(view.linear_velocity) + twist.angular.dot(view.angular_velocity);
                }
            }
            problem.compliance.push(COMPLIANCE * give);
        }
        let bodies = problem.block_bodies.len() as u32 - body;
        let row = problem.d.len() as u32;
        problem.blocks.push(RowBlock { row, rows: N as u32, body, bodies, entry, fold: false });
        d
    }

    fn bound(&mut self, d: f64, lo: f64, hi: f64) {
        self.problem.d.push(d);
        self.problem.lo.push(lo);
        self.problem.hi.push(hi);
        self.problem.kind.push(RowKind::Joint);
    }

    /// Appends the rows of joints, which leave their velocity as it is, or at zero.
    fn keep_joints(&mut self, flyers: &[Flyer], joints: &[JointRow], as_it_is: bool) {
        for joint in joints {
            let problem = &mut self.problem;
            let (body, entry) = (problem.block_bodies.len() as u32, problem.jacobian.len() as u32);
            let (mut speed, mut give) = (0.0, 0.0);
            for (k, j) in &joint.on {
                let view = &flyers[*k as usize].view;
                let (along, about) = (DVec3::new(j[0], j[1], j[2]), DVec3::new(j[3], j[4], j[5]));
                problem.block_bodies.push(self.number[*k as usize]);
                problem.jacobian.extend(j);
                speed += along.dot(view.linear_velocity) + about.dot(view.angular_velocity);
                give += along.length_squared() / view.mass + about.dot(view.inverse_inertia() * about);
            }
            let row = problem.d.len() as u32;
            problem.compliance.push((COMPLIANCE * give).max(f64::MIN_POSITIVE));
            problem.blocks.push(RowBlock {
                row,
                rows: 1,
                body,
                bodies: joint.on.len() as u32,
                entry,
                fold: false,
            });
            self.bound(if as_it_is { -speed } else { 0.0 }, f64::NEG_INFINITY, f64::INFINITY);
        }
    }

    fn solve(&mut self) {
        self.solution.lambda.clear();
        self.solution.labels.clear();
        let stats = self.solver.solve(&self.problem, &mut self.solution);
        self.factorizations += stats.factorizations;
    }

    /// |x|² in the kinetic metric.
    fn square(&self, flyers: &[Flyer], x: &[f64]) -> f64 {
        let of = |(k, x): (&u32, &[f64])| {
            let (v, w) = (DVec3::new(x[0], x[1], x[2]), DVec3::new(x[3], x[4], x[5]));
            let p = times(&mass_block(&flyers[*k as usize].view), [v, w]);
            x.iter().zip(p).map(|(x, p)| x * p).sum::<f64>()
        };
        self.members.iter().zip(x.chunks_exact(6)).map(of).sum()
    }

    fn velocities(&self, flyers: &[Flyer]) -> Vec<f64> {
        let of = |k: &u32| {
            let view = &flyers[*k as usize].view;
            let (v, w) = (view.linear_velocity, view.angular_velocity);
            [v.x, v.y, v.z, w.x, w.y, w.z]
        };
        self.members.iter().flat_map(of).collect()
    }

    fn set_velocities(&self, flyers: &mut [Flyer], x: &[f64]) {
        for (k, x) in self.members.iter().zip(x.chunks_exact(6)) {
            let view = &mut flyers[*k as usize].view;
            view.linear_velocity = DVec3::new(x[0], x[1], x[2]);
            if view.rotates() {
                view.angular_velocity = DVec3::new(x[3], x[4], x[5]);
            }
        }
    }
}

/// What an impulse along a direction at a point does to a and b.
fn twists(point: &ManifoldPoint, along: DVec3) -> [Twist; 2] {
    [-Twist::at(point.arm_a, along), Twist::at(point.arm_b, along)]
}
