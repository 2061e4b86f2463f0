//! Physics of your own behind ports: a net of zero-length springs that the engine knows nothing of. It hangs on `Ball` joints, carries a
//! load on another, catches a stone that falls on its ports, and is saved and restored with the rest of the world.
//!
//! `cargo run --release --example custom_matter`

use turnbuckle::prelude::*;
use turnbuckle::testing::state_hash;

/// N × N nodes; every `at[k]`-th is port k. Implicit: (M + h² K) v⁺ = M v + h f.
#[rustfmt::skip]
struct Net { ports: Vec<Entity>, at: Vec<usize>, x: Vec<DVec3>, v: Vec<DVec3>, dt: f64 }

const N: usize = 7;
const MASS: f64 = 0.05;
const STIFFNESS: f64 = 400.0;

#[rustfmt::skip]
impl Net {
    /// K x: what the springs do not want.
    fn pull(x: &[DVec3]) -> Vec<DVec3> {
        let mut f = vec![DVec3::ZERO; N * N];
        for (k, other) in (0..N * N).flat_map(|k| [(k, k + 1), (k, k + N)]) {
            if other >= N * N || other == k + 1 && other % N == 0 { continue; }
            let pull = (x[k] - x[other]) * STIFFNESS;
            (f[k], f[other]) = (f[k] + pull, f[other] - pull);
        }
        f
    }
    /// (M + h² K)⁻¹ b by conjugate gradients.
    fn solve(&self, b: &[DVec3]) -> Vec<DVec3> {
        let dot = |a: &[DVec3], b: &[DVec3]| a.iter().zip(b).map(|(a, b)| a.dot(*b)).sum::<f64>();
        let (mut x, mut r, mut p) = (vec![DVec3::ZERO; N * N], b.to_vec(), b.to_vec());
        let (mut rr, end) = (dot(b, b), 1e-26 * dot(b, b));
        for _ in 0..9 * N * N {
            if rr <= end { break; }
            let ap: Vec<DVec3> = Self::pull(&p).iter().zip(&p).map(|(k, p)| *p * MASS + *k * self.dt * self.dt).collect();
            let step = rr / dot(&p, &ap);
            for i in 0..N * N { x[i] += p[i] * step; r[i] -= ap[i] * step; }
            let new = dot(&r, &r);
            for i in 0..N * N { p[i] = r[i] + p[i] * (new / rr); }
            rr = new;
        }
        x
    }
    fn told(&self, v: &[DVec3], out: &mut [f64]) { self.at.iter().zip(out.chunks_mut(6)).for_each(|(&node, out)| out[..3].copy_from_slice(&v[node].to_array())); }
    fn pushed(&self, impulse: &[f64]) -> Vec<DVec3> {
        let mut b = vec![DVec3::ZERO; N * N];
        for (k, &node) in self.at.iter().enumerate() { b[node] = DVec3::from_slice(&impulse[6 * k..]); }
        self.solve(&b)
    }
}

#[rustfmt::skip]
impl Subsystem for Net {
    fn ports(&self) -> &[Entity] { &self.ports }
    fn predict(&mut self, ports: &[BodyView], dt: f64, velocity: &mut [f64]) {
        self.dt = dt;
        for (x, v) in self.x.iter_mut().zip(&self.v) { *x += *v * (0.5 * dt); } // to the middle, where the ports are
        for (port, &node) in ports.iter().zip(&self.at) { (self.x[node], self.v[node]) = (port.position, port.linear_velocity); }
        let mut b: Vec<DVec3> = Self::pull(&self.x).iter().zip(&self.v).map(|(k, v)| (*v + DVec3::NEG_Z * 9.81 * dt) * MASS - *k * dt).collect();
        for &node in &self.at { b[node] += DVec3::Z * 9.81 * dt * MASS; } // the weight of ports comes from outside
        self.v = self.solve(&b);
        self.told(&self.v, velocity);
    }
    fn respond(&mut self, impulse: &[f64], change: &mut [f64]) -> bool { self.told(&self.pushed(impulse), change); true }
    fn commit(&mut self, impulse: &[f64]) -> bool {
        let change = self.pushed(impulse);
        for ((x, v), dv) in self.x.iter_mut().zip(&mut self.v).zip(change) { *v += dv; *x += *v * (0.5 * self.dt); }
        false // it responds as before
    }
    fn save(&self, state: &mut Vec<f64>) { state.extend(self.x.iter().chain(&self.v).flat_map(|x| x.to_array())); }
    fn load(&mut self, state: &[f64]) { self.x.iter_mut().chain(&mut self.v).zip(state.chunks(3)).for_each(|(x, s)| *x = DVec3::from_slice(s)); }
}

/// Hangs the net up, loads it, saves it, restores it, and spoils it in the end.
pub fn main() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    physics.add_subsystem::<Net>();
    let place = |k: usize| DVec3::new((k % N) as f64 * 0.2, (k / N) as f64 * 0.2, 0.0);
    // Ports: the corners, and the nine nodes in the middle.
    let inner = |k: usize| (k % N).abs_diff(N / 2) < 2 && (k / N).abs_diff(N / 2) < 2;
    let corner = |k: usize| [0, N - 1].contains(&(k % N)) && [0, N - 1].contains(&(k / N));
    let at: Vec<usize> = (0..N * N).filter(|&k| inner(k) || corner(k)).collect();
    let ports: Vec<Entity> = at.iter().map(|&k| world.spawn(PointBody::new(MASS).at(place(k)))).collect();
    for (&node, &port) in at.iter().zip(&ports) {
        if corner(node) {
            let post = world.spawn(RigidBody::fixed().at(place(node)));
            world.spawn((Ball::between(post, DVec3::ZERO, port, DVec3::ZERO),));
        } else {
            let bead = Collider::new(ShapeHandle::sphere(0.1));
            world.insert_one(port, Colliders::one(bead)).expect("the port is there");
        }
    }
    let middle = ports[at.iter().position(|&k| k == N * N / 2).expect("a port")];
    let load = world
        .spawn(RigidBody::dynamic(0.5, DMat3::IDENTITY * 0.002).at(place(N * N / 2) + DVec3::NEG_Z * 0.5));
    world.spawn((Ball::between(middle, DVec3::ZERO, load, DVec3::Z * 0.5),));
    let stone = world.spawn(Solid::sphere(0.15, 100.0).at(place(N * N / 2) + DVec3::new(0.05, 0.02, 1.0)));
    let net = world.spawn((Net {
        ports,
        at,
        x: (0..N * N).map(place).collect(),
        v: vec![DVec3::ZERO; N * N],
        dt: 0.0,
    },));
    let run = |world: &mut World, physics: &mut Physics, steps: u32| {
        for _ in 0..steps {
            let report = physics.step(world, 1.0 / 60.0);
            assert!(
                report.converged && report.troubles.is_empty(),
                "step {}: {:?}",
                report.step,
                report.troubles
            );
        }
        state_hash(world)
    };
    run(&mut world, &mut physics, 60);
    let height = |world: &World, body| world.get::<&Position>(body).expect("it exists").0.z;
    println!(
        "after 1 s the stone lies {:.3} m, the load hangs {:.3} m above the posts",
        height(&world, stone),
        height(&world, load)
    );
    assert!(height(&world, stone) > height(&world, load), "caught by the net");
    let saved = physics.snapshot(&world);
    let there = run(&mut world, &mut physics, 60);
    physics.restore(&mut world, &saved).expect("a snapshot of this world");
    assert_eq!(there, run(&mut world, &mut physics, 60), "restored to the bit");
    world.get::<&mut Net>(net).expect("the net").v[8] = DVec3::NAN;
    let report = physics.step(&mut world, 1.0 / 60.0);
    println!("{}", report.troubles[0]);
    assert!(report.quarantined == 13 && height(&world, stone).is_finite());
}
