//! Problems made up for tests and benches: the structures of the papers' scenes without a simulation.
//!
//! Everything follows from the arguments and a seed.

pub use super::random::Random;
use super::{Coupling, RowBlock, RowKind, RowProblem};
use crate::math;

type V3 = [f64; 3];

/// Puts bodies and rows together into a [`RowProblem`].
#[derive(Clone, Debug)]
pub struct Maker {
    /// What has been made so far.
    pub problem: RowProblem,
    /// Compliance of rows that do not name their own.
    pub compliance: f64,
    /// Numbers.
    pub random: Random,
    /// Positions of bodies.
    pub at: Vec<V3>,
}

impl Maker {
    /// An empty problem.
    pub fn new(compliance: f64, seed: u64) -> Self {
        Self { problem: RowProblem::default(), compliance, random: Random::new(seed), at: Vec::new() }
    }

    /// Adds a body with a mass and a 3×3 inertia; it falls and drifts a little.
    pub fn body(&mut self, mass: f64, inertia: [V3; 3], at: V3) -> u32 {
        let mut block = [0.0; 36];
        for i in 0..3 {
            block[7 * i] = mass;
            for j in 0..3 {
                block[6 * (3 + i) + 3 + j] = inertia[i][j];
            }
        }
        let v: [f64; 6] = std::array::from_fn(|_| 0.2 * self.random.normal());
        let mut p: [f64; 6] = std::array::from_fn(|i| (0..6).map(|j| block[6 * i + j] * v[j]).sum());
        p[1] -= 9.81 / 60.0 * mass;
        self.problem.mass.push(block);
        self.problem.momentum.push(p);
        self.at.push(at);
        (self.problem.mass.len() - 1) as u32
    }

    /// Adds rows between bodies: linear directions at a point, then angular axes. `bounds` per row.
    pub fn rows(
        &mut self,
        bodies: &[u32],
        point: V3,
        linear: &[V3],
        angular: &[V3],
        fold: bool,
        bounds: &[(f64, f64)],
    ) {
        let problem = &mut self.problem;
        let rows = linear.len() + angular.len();
        problem.blocks.push(RowBlock {
            row: problem.d.len() as u32,
            rows: rows as u32,
            body: problem.block_bodies.len() as u32,
            bodies: bodies.len() as u32,
            entry: problem.jacobian.len() as u32,
            fold,
        });
        problem.block_bodies.extend_from_slice(bodies);
        for r in 0..rows {
            for (k, &body) in bodies.iter().enumerate() {
                let s = if k % 2 == 0 { 1.0 } else { -1.0 };
                let (force, torque) = if r < linear.len() {
                    let lever = sub(point, self.at[body as usize]);
                    (linear[r], cross(lever, linear[r]))
                } else {
                    ([0.0; 3], angular[r - linear.len()])
                };
                problem.jacobian.extend(force.map(|x| s * x));
                problem.jacobian.extend(torque.map(|x| s * x));
            }
            let kind = match (fold, r) {
                (false, _) => RowKind::Joint,
                (true, 0) => RowKind::Normal,
                (true, _) => RowKind::Friction,
            };
            problem.compliance.push(self.compliance);
            problem.d.push(6e-3 * self.random.normal());
            problem.lo.push(bounds[r].0);
            problem.hi.push(bounds[r].1);
            problem.kind.push(kind);
        }
    }

    /// A joint that holds a point and the axes given; the last `n` rows get their own compliance.
    pub fn joint(&mut self, bodies: &[u32], point: V3, angular: &[V3]) {
        let free = [(f64::NEG_INFINITY, f64::INFINITY); 6];
        self.rows(bodies, point, &AXES, angular, false, &free);
    }

    /// Gives the last `n` rows their own compliance.
    pub fn soften(&mut self, n: usize, compliance: f64) {
        let at = self.problem.compliance.len() - n;
        self.problem.compliance[at..].fill(compliance);
    }

    /// One contact point: a normal row that pushes, two friction rows.
    pub fn contact(&mut self, bodies: &[u32], point: V3, normal: V3) {
        let (n, t, u) = frame(normal);
        let bounds = [(0.0, f64::INFINITY), (-0.5, 0.5), (-0.5, 0.5)];
        self.rows(bodies, point, &[n, t, u], &[], true, &bounds);
    }
}

const AXES: [V3; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// A chain of `n` links of 0.25 kg on universal joints from a fixed point, with a load at its end.
pub fn chain(n: usize, load: f64, compliance: f64) -> RowProblem {
    let mut m = Maker::new(compliance, 7);
    let (mut x, mut d) = ([0.0; 3], [0.0, -1.0, 0.0]);
    let mut previous = None;
    for _ in 0..n {
        d = unit(add(d, m.random.vector(0.15)));
        let b = m.body(0.25, rod(0.25, 0.15, 0.03, d), axpy(0.075, d, x));
        link(&mut m, b, previous, x, d);
        x = axpy(0.15, d, x);
        previous = Some(b);
    }
    let b = m.body(load, cuboid(load, [1.0; 3]), sub(x, [0.0, 0.5, 0.0]));
    link(&mut m, b, previous, x, d);
    m.problem
}

fn link(m: &mut Maker, body: u32, previous: Option<u32>, at: V3, axis: V3) {
    let across = [frame(axis).1];
    match previous {
        Some(p) => m.joint(&[body, p], at, &across),
        None => m.joint(&[body], at, &across),
    }
}

/// A chain of `n` links lying on the ground, with two contact points each.
pub fn chain_on_ground(n: usize, compliance: f64) -> RowProblem {
    let mut m = Maker::new(compliance, 7);
    let mut x = [0.0; 3];
    let mut previous = None;
    for i in 0..n {
        let a = 0.05 * i as f64;
        let d = [math::cos(a), 0.0, math::sin(a)];
        let b = m.body(0.25, rod(0.25, 0.15, 0.03, d), axpy(0.075, d, x));
        if previous.is_some() {
            link(&mut m, b, previous, x, d);
        }
        for e in [0.05, 0.95] {
            let p = sub(axpy(0.15 * e, d, x), [0.0, 0.03, 0.0]);
            m.contact(&[b], p, [0.0, 1.0, 0.0]);
        }
        x = axpy(0.15, d, x);
        previous = Some(b);
    }
    m.problem
}

/// Layers of two crossed logs, with 1, 2 or 4 contact points per crossing and a plate on top.
pub fn tower(layers: usize, points: usize, plate: f64, compliance: f64) -> RowProblem {
    let mut m = Maker::new(compliance, 7);
    let (length, r, mass, side) = (4.0, 0.25, 50.0, [-1.5, 1.5]);
    let mut logs: Vec<[u32; 2]> = Vec::new();
    for l in 0..layers {
        let along = l % 2 == 0;
        let axis = if along { AXES[0] } else { AXES[2] };
        logs.push(side.map(|s| {
            let at = if along { [0.0, 0.0, s] } else { [s, 0.0, 0.0] };
            let at = add(at, [0.0, r + 2.0 * r * l as f64, 0.0]);
            let at = add(at, m.random.vector(0.005));
            m.body(mass, rod(mass, length, r, axis), at)
        }));
    }
    let w = 0.08;
    let offsets: &[(f64, f64)] = match points {
        1 => &[(0.0, 0.0)],
        2 => &[(-1.0, -1.0), (1.0, 1.0)],
        _ => &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
    };
    for l in 0..layers - 1 {
        for i in 0..2 {
            for j in 0..2 {
                let (a, b) = if l % 2 == 0 { (j, i) } else { (i, j) };
                for &(u, v) in offsets {
                    let p = [side[a] + w * u, 2.0 * r * (l + 1) as f64, side[b] + w * v];
                    let p = add(p, m.random.vector(0.002));
                    let n = add([0.0, 1.0, 0.0], m.random.vector(0.02));
                    m.contact(&[logs[l + 1][j], logs[l][i]], p, n);
                }
            }
        }
    }
    for &log in &logs[0] {
        for e in [-1.9, 1.9] {
            let p = add(m.at[log as usize], [e, -r, 0.0]);
            m.contact(&[log], p, [0.0, 1.0, 0.0]);
        }
    }
    let top = 2.0 * r * layers as f64;
    let b = m.body(plate, cuboid(plate, [2.0, 1.0, 2.0]), [0.0, top + 0.5, 0.0]);
    for (i, &log) in logs[layers - 1].iter().enumerate() {
        for e in [-1.0, 1.0] {
            m.contact(&[b, log], [side[i], top, e], [0.0, 1.0, 0.0]);
        }
    }
    m.problem
}

/// Two families of `cables` cables of `links` links, joined where they cross; six-row joints, soft in bending.
/// With a truck of `heavy` kilograms standing on it when `heavy` > 0.
pub fn net(cables: usize, links: usize, heavy: f64, compliance: f64) -> RowProblem {
    let mut m = Maker::new(compliance, 7);
    let length = 0.2;
    let width = links as f64 * length;
    let mut family: [Vec<Vec<u32>>; 2] = [Vec::new(), Vec::new()];
    for i in 0..cables {
        let o = width * (i as f64 + 0.5) / cables as f64;
        family[0].push(cable(&mut m, [0.0, 0.0, o], AXES[0], links, length));
        family[1].push(cable(&mut m, [o, 0.04, 0.0], AXES[2], links, length));
    }
    for i in 0..cables {
        for j in 0..cables {
            let at = |k: usize| ((k as f64 + 0.5) / cables as f64 * links as f64) as usize;
            let (a, b) = (family[0][i][at(j)], family[1][j][at(i)]);
            let p = axpy(0.5, sub(m.at[b as usize], m.at[a as usize]), m.at[a as usize]);
            m.joint(&[b, a], p, &AXES);
        }
    }
    if heavy > 0.0 {
        truck(&mut m, &family, [width / 2.0, 1.5, width / 2.0], heavy);
    }
    m.problem
}

fn cable(m: &mut Maker, from: V3, d: V3, n: usize, length: f64) -> Vec<u32> {
    let mut links: Vec<u32> = Vec::new();
    for i in 0..n {
        let wobble = m.random.vector(0.002);
        let at = add(axpy(length * (i as f64 + 0.5), d, from), wobble);
        let b = m.body(0.2, rod(0.2, length, 0.02, d), at);
        let p = axpy(length * i as f64, d, from);
        match links.last() {
            Some(&a) => m.joint(&[b, a], p, &AXES),
            None => m.joint(&[b], p, &AXES),
        }
        m.soften(3, 1e-4);
        links.push(b);
    }
    m.joint(&links[n - 1..], axpy(length * n as f64, d, from), &AXES);
    m.soften(3, 1e-4);
    links
}

fn truck(m: &mut Maker, family: &[Vec<Vec<u32>>; 2], at: V3, heavy: f64) {
    let chassis = m.body(heavy, cuboid(heavy, [2.0, 1.0, 5.0]), at);
    let mut parts = vec![chassis];
    let mut wheels = Vec::new();
    for i in 0..21 {
        let mass = [400.0, 150.0, 60.0, 30.0][(i >= 4) as usize + (i >= 12) as usize + (i >= 17) as usize];
        let parent = if i < 9 { chassis } else { parts[1 + (i - 9) % 8] };
        let x = if i < 4 {
            let side = [-1.0, 1.0];
            add(at, [1.2 * side[i % 2], -1.2, 1.6 * side[i / 2]])
        } else {
            let offset: V3 = std::array::from_fn(|_| m.random.range(-0.9, 0.9));
            add(m.at[parent as usize], offset)
        };
        let b = m.body(mass, cuboid(mass, [0.4; 3]), x);
        parts.push(b);
        if i < 4 {
            wheels.push(b);
        }
        let axis = m.random.vector(1.0);
        let (_, t, u) = frame(axis);
        let middle = axpy(0.5, sub(m.at[parent as usize], x), x);
        m.joint(&[b, parent], middle, &[t, u]);
    }
    for wheel in wheels {
        let mut near: Vec<(f64, u32)> = family
            .iter()
            .flatten()
            .flatten()
            .map(|&b| (norm(sub(m.at[b as usize], m.at[wheel as usize])), b))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        for &(_, b) in near.iter().take(5) {
            let n = add([0.0, 1.0, 0.0], m.random.vector(0.3));
            let p = add(m.at[b as usize], [0.0, 0.02, 0.0]);
            m.contact(&[wheel, b], p, n);
        }
    }
}

/// A pile of boxes, `side` along each edge: every box rests on four others, with its layer half a box aside, and the
/// lowest on the ground; 2.5 kg and four contact points a box, at rest under their weight.
pub fn pile(side: usize, compliance: f64) -> RowProblem {
    let mut m = Maker::new(compliance, 7);
    let (size, mass) = (0.2, 2.5);
    let place = |i: usize, j: usize, k: usize| {
        let aside = 0.5 * size * (k % 2) as f64;
        [size * i as f64 + aside, size * (k as f64 + 0.5), size * j as f64 + aside]
    };
    for k in 0..side {
        for i in 0..side {
            for j in 0..side {
                let wobble = m.random.vector(0.001);
                m.body(mass, cuboid(mass, [size; 3]), add(place(i, j, k), wobble));
            }
        }
    }
    let number = |i: usize, j: usize, k: usize| ((k * side + i) * side + j) as u32;
    for k in 0..side {
        for i in 0..side {
            for j in 0..side {
                // The box below towards each of the four corners, if there is one.
                for (di, dj) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let (u, v) = if k % 2 == 1 {
                        (i + di, j + dj)
                    } else {
                        (i.wrapping_add(di).wrapping_sub(1), j.wrapping_add(dj).wrapping_sub(1))
                    };
                    let corner = [
                        0.25 * size * (2 * di) as f64 - 0.25 * size,
                        -0.5 * size,
                        0.25 * size * (2 * dj) as f64 - 0.25 * size,
                    ];
                    let point = add(add(place(i, j, k), corner), m.random.vector(0.002));
                    let normal = add([0.0, 1.0, 0.0], m.random.vector(0.02));
                    let own = number(i, j, k);
                    if k == 0 {
                        m.contact(&[own], point, normal);
                    } else if u < side && v < side {
                        m.contact(&[own, number(u, v, k - 1)], point, normal);
                    }
                }
            }
        }
    }
    m.problem.momentum.fill([0.0, -9.81 / 60.0 * mass, 0.0, 0.0, 0.0, 0.0]);
    m.problem.d.fill(0.0);
    m.problem
}

/// A pile of `n` rocks with about six neighbours each and one or two contact points per pair.
pub fn rocks(n: usize, compliance: f64) -> RowProblem {
    let mut m = Maker::new(compliance, 7);
    let r = 0.35;
    let side = math::cbrt(n as f64 / 0.9) * 2.0 * r * 0.95;
    let mut at: Vec<V3> = (0..n)
        .map(|_| {
            let s = [1.3 * side, 0.6 * side, 1.3 * side];
            s.map(|s| s * m.random.unit())
        })
        .collect();
    relax(&mut at, r, 1.3 * side);
    for x in &at {
        let mass = m.random.range(80.0, 250.0);
        let size = std::array::from_fn(|_| m.random.range(0.4, 0.9));
        m.body(mass, cuboid(mass, size), *x);
    }
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for i in 0..n {
        for j in 0..i {
            pairs.push((norm(sub(at[i], at[j])), i, j));
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    pairs.truncate(3 * n);
    pairs.sort_by_key(|&(_, i, j)| (i, j));
    for (distance, i, j) in pairs {
        let n = sub(at[i], at[j]).map(|x| x / distance);
        let n = add(n, m.random.vector(0.2));
        for _ in 0..1 + m.random.below(2) {
            let p = axpy(0.5, sub(at[i], at[j]), at[j]);
            let p = add(p, m.random.vector(0.1));
            m.contact(&[i as u32, j as u32], p, n);
        }
    }
    for (i, &x) in at.iter().enumerate() {
        if x[1] < 1.05 * r {
            for _ in 0..2 {
                let (a, b) = (m.random.range(-0.2, 0.2), m.random.range(-0.2, 0.2));
                m.contact(&[i as u32], add(x, [a, -r, b]), [0.0, 1.0, 0.0]);
            }
        }
    }
    m.problem
}

/// Pushes overlapping balls apart on a floor between walls.
fn relax(at: &mut [V3], r: f64, wall: f64) {
    for _ in 0..200 {
        let before = at.to_vec();
        for (i, x) in at.iter_mut().enumerate() {
            let mut push = [0.0; 3];
            for (j, y) in before.iter().enumerate() {
                let d = sub(before[i], *y);
                let distance = norm(d);
                if i != j && distance < 2.0 * r && distance > 0.0 {
                    push = axpy((2.0 * r - distance) / distance, d, push);
                }
            }
            *x = axpy(0.25, push, before[i]);
            x[1] = (x[1] - 0.002).max(r);
            x[0] = x[0].clamp(0.0, wall);
            x[2] = x[2].clamp(0.0, wall);
        }
    }
}

/// Any problem at all: `bodies` bodies, `blocks` blocks of 1–6 rows on one to three bodies, half of them folding.
pub fn any(bodies: usize, blocks: usize, compliance: f64, seed: u64) -> RowProblem {
    let mut m = Maker::new(compliance, seed);
    for _ in 0..bodies {
        let mass = math::pow(10.0, m.random.range(-1.0, 2.0));
        let size = std::array::from_fn(|_| m.random.range(0.3, 1.0));
        let at = m.random.vector(1.0);
        m.body(mass, cuboid(mass, size), at);
    }
    for _ in 0..blocks {
        let mut on: Vec<u32> = Vec::new();
        for _ in 0..1 + m.random.below(3) {
            let b = m.random.below(bodies) as u32;
            if !on.contains(&b) {
                on.push(b);
            }
        }
        let linear: Vec<V3> = (0..1 + m.random.below(3)).map(|_| m.random.vector(1.0)).collect();
        let angular: Vec<V3> = (0..m.random.below(4)).map(|_| m.random.vector(1.0)).collect();
        let fold = m.random.below(2) == 0;
        let kinds = [(0.0, f64::INFINITY), (-1.0, 1.0), (f64::NEG_INFINITY, f64::INFINITY)];
        let bounds = [kinds[m.random.below(3)]; 6];
        let point = m.random.vector(1.0);
        m.rows(&on, point, &linear, &angular, fold, &bounds);
    }
    m.problem
}

/// The same problem on nodes of one to six unknowns, at random: what lies behind a node's width is gone.
pub fn narrowed(mut problem: RowProblem, seed: u64) -> RowProblem {
    let mut random = Random::new(seed);
    problem.width = (0..problem.bodies()).map(|_| 1 + random.below(6) as u8).collect();
    for node in 0..problem.bodies() {
        let width = problem.width_of(node);
        problem.momentum[node][width..].fill(0.0);
        for (i, row) in problem.mass[node].chunks_exact_mut(6).enumerate() {
            row[if i < width { width } else { 0 }..].fill(0.0);
        }
    }
    for c in &mut problem.couplings {
        let (rows, columns) = (problem.width[c.a as usize].into(), problem.width[c.b as usize].into());
        for (i, row) in c.block.chunks_exact_mut(6).enumerate() {
            row[if i < rows { columns } else { 0 }..].fill(0.0);
        }
    }
    for block in &problem.blocks {
        for entry in 0..(block.rows * block.bodies) as usize {
            let node = problem.block_bodies[block.body as usize + entry % block.bodies as usize] as usize;
            let width = problem.width_of(node);
            problem.jacobian[block.entry as usize + 6 * entry + width..][..6 - width].fill(0.0);
        }
    }
    problem
}

/// The same problem with `count` stiff elements of six directions between two nodes each, and the same once more with six soft rows in
/// place of every element: K = Bᵀ B, and rows with J = B, C = 1 and d = 0 act as it does.
pub fn coupled(problem: &RowProblem, count: usize, seed: u64) -> [RowProblem; 2] {
    let mut random = Random::new(seed);
    let [mut elements, mut rows] = [problem.clone(), problem.clone()];
    for _ in 0..if problem.bodies() > 1 { count } else { 0 } {
        let a = random.below(problem.bodies());
        let b = (a + 1 + random.below(problem.bodies() - 1)) % problem.bodies();
        let stiff =
            (problem.mass[a][0].min(problem.mass[b][0]) * math::pow(10.0, random.range(-1.0, 2.0))).sqrt();
        let mut directions = [[[0.0; 6]; 2]; 6];
        for (on, node) in [a, b].into_iter().enumerate() {
            let width = problem.width_of(node);
            directions.iter_mut().for_each(|d| d[on][..width].fill_with(|| stiff * random.range(-1.0, 1.0)));
        }
        let product = |p: usize, q: usize| {
            std::array::from_fn(|k| directions.iter().map(|d| d[p][k / 6] * d[q][k % 6]).sum::<f64>())
        };
        let [own_a, own_b, block]: [[f64; 36]; 3] = [product(0, 0), product(1, 1), product(0, 1)];
        elements.mass[a].iter_mut().zip(own_a).for_each(|(m, k)| *m += k);
        elements.mass[b].iter_mut().zip(own_b).for_each(|(m, k)| *m += k);
        elements.couplings.push(Coupling { a: a as u32, b: b as u32, block });
        rows.blocks.push(RowBlock {
            row: rows.d.len() as u32,
            rows: 6,
            body: rows.block_bodies.len() as u32,
            bodies: 2,
            entry: rows.jacobian.len() as u32,
            fold: random.below(2) == 0,
        });
        rows.block_bodies.extend([a as u32, b as u32]);
        rows.jacobian.extend(directions.as_flattened().as_flattened());
        rows.compliance.extend([1.0; 6]);
        rows.d.extend([0.0; 6]);
        rows.lo.extend([f64::NEG_INFINITY; 6]);
        rows.hi.extend([f64::INFINITY; 6]);
        rows.kind.extend([RowKind::Joint; 6]);
    }
    [elements, rows]
}

/// The same problem with six unknowns a node, of which those behind the node's width have a mass and no row.
pub fn locked(mut problem: RowProblem) -> RowProblem {
    for node in 0..problem.bodies() {
        (problem.width_of(node)..6).for_each(|c| problem.mass[node][7 * c] = 1.0);
    }
    problem.width.clear();
    problem
}

fn add(a: V3, b: V3) -> V3 {
    std::array::from_fn(|i| a[i] + b[i])
}

fn sub(a: V3, b: V3) -> V3 {
    std::array::from_fn(|i| a[i] - b[i])
}

/// s a + b
fn axpy(s: f64, a: V3, b: V3) -> V3 {
    std::array::from_fn(|i| s * a[i] + b[i])
}

fn norm(a: V3) -> f64 {
    (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]).sqrt()
}

fn unit(a: V3) -> V3 {
    a.map(|x| x / norm(a))
}

fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// A unit normal and two tangents.
fn frame(n: V3) -> (V3, V3, V3) {
    let n = unit(n);
    let t = unit(cross(n, if n[0].abs() < 0.7 { AXES[0] } else { AXES[1] }));
    (n, t, cross(n, t))
}

/// Inertia of a cylinder along a unit axis.
fn rod(mass: f64, length: f64, r: f64, axis: V3) -> [V3; 3] {
    let along = 0.5 * mass * r * r;
    let across = mass * (3.0 * r * r + length * length) / 12.0;
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let eye = if i == j { across } else { 0.0 };
            eye + (along - across) * axis[i] * axis[j]
        })
    })
}

/// Inertia of a box.
fn cuboid(mass: f64, s: V3) -> [V3; 3] {
    let q = s.map(|x| mass * x * x / 12.0);
    [[q[1] + q[2], 0.0, 0.0], [0.0, q[0] + q[2], 0.0], [0.0, 0.0, q[0] + q[1]]]
}
