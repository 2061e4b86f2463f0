//! Random and structured row problems, the same on every machine: tests, soak and benches share them.

use turnbuckle::solver::{RowBlock, RowKind, RowProblem};

/// A small deterministic generator (xorshift64*); no dependency, same numbers everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream per seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d | 1);
        random.bits();
        random.bits();
        random
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [a, b).
    pub fn range(&mut self, a: f64, b: f64) -> f64 {
        a + (b - a) * self.unit()
    }

    /// 10 to a uniform power.
    pub fn power(&mut self, low: f64, high: f64) -> f64 {
        10f64.powf(self.range(low, high))
    }

    /// Uniform in 0..n (n > 0).
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// True with a probability.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

/// One row to be added: J per body, C, d, bounds, kind.
pub struct NewRow {
    /// Six numbers per body of the block.
    pub jacobian: Vec<[f64; 6]>,
    /// C.
    pub compliance: f64,
    /// d.
    pub d: f64,
    /// Bounds.
    pub bounds: (f64, f64),
    /// Kind.
    pub kind: RowKind,
}

/// Adds a block of rows on the given bodies.
pub fn add_block(problem: &mut RowProblem, bodies: &[u32], rows: &[NewRow], fold: bool) {
    problem.blocks.push(RowBlock {
        row: problem.rows() as u32,
        rows: rows.len() as u32,
        body: problem.block_bodies.len() as u32,
        bodies: bodies.len() as u32,
        entry: problem.jacobian.len() as u32,
        fold,
    });
    problem.block_bodies.extend_from_slice(bodies);
    for row in rows {
        for j in &row.jacobian {
            problem.jacobian.extend_from_slice(j);
        }
        problem.compliance.push(row.compliance);
        problem.d.push(row.d);
        problem.lo.push(row.bounds.0);
        problem.hi.push(row.bounds.1);
        problem.kind.push(row.kind);
    }
}

/// Adds a body with a diagonal inertia turned by a random reflection, so that blocks are full.
pub fn add_body(problem: &mut RowProblem, mass: f64, random: &mut Random, speed: f64) -> u32 {
    let mut m = [0.0; 36];
    let n: [f64; 3] = std::array::from_fn(|_| random.range(-1.0, 1.0));
    let nn = n.iter().map(|x| x * x).sum::<f64>().max(1e-3);
    let inertia: [f64; 3] = std::array::from_fn(|_| mass * random.range(0.05, 0.3));
    let h = |i: usize, j: usize| f64::from(u8::from(i == j)) - 2.0 * n[i] * n[j] / nn;
    for i in 0..3 {
        m[7 * i] = mass;
        for j in 0..3 {
            m[6 * (i + 3) + j + 3] = (0..3).map(|k| h(i, k) * inertia[k] * h(j, k)).sum();
        }
    }
    for i in 3..6 {
        for j in 3..i {
            m[6 * i + j] = m[6 * j + i];
        }
    }
    problem.mass.push(m);
    let v: [f64; 6] = std::array::from_fn(|_| random.range(-speed, speed));
    problem.momentum.push(std::array::from_fn(|i| (0..6).map(|j| m[6 * i + j] * v[j]).sum()));
    (problem.mass.len() - 1) as u32
}

fn random_row(random: &mut Random, bodies: usize, compliance: f64, typical: f64) -> NewRow {
    let jacobian: Vec<[f64; 6]> = (0..bodies)
        .map(|_| std::array::from_fn(|_| if random.chance(0.2) { 0.0 } else { random.range(-1.0, 1.0) }))
        .collect();
    let inf = f64::INFINITY;
    let (bounds, kind) = match random.below(9) {
        0 | 1 => ((-inf, inf), RowKind::Joint),
        2 | 3 => ((0.0, inf), RowKind::Normal),
        4 => ((-inf, 0.0), RowKind::Normal),
        5 => {
            let f = typical * random.power(-3.0, 1.0);
            ((-f, f), RowKind::Friction)
        }
        6 => {
            let a = typical * random.range(-1.0, 1.0);
            ((a, a + typical * random.power(-6.0, 0.5)), RowKind::Joint)
        }
        7 => {
            let held = if random.chance(0.5) { 0.0 } else { typical * random.range(-1.0, 1.0) };
            ((held, held), RowKind::Friction)
        }
        _ => ((typical * random.range(-0.5, 0.5), inf), RowKind::Joint),
    };
    let d = if random.chance(0.3) { 0.0 } else { random.range(-1.0, 1.0) };
    NewRow { jacobian, compliance, d, bounds, kind }
}

/// Any graph, any bounds, repeated and empty rows, mass ratios to 1e6, C from 1e-4 to 1e-10.
pub fn random_problem(random: &mut Random, rows: usize, conflicting: bool) -> RowProblem {
    let mut problem = RowProblem::default();
    let share = random.pick(&[1, 2, 4, 8, 16]);
    let bodies = 1 + random.below(1 + rows / share);
    let decades = random.range(0.0, 6.0);
    let compliance = random.power(-10.0, -4.0);
    for _ in 0..bodies {
        let mass = random.power(-0.5 * decades, 0.5 * decades);
        add_body(&mut problem, mass, random, 2.0);
    }
    let redundant = random.chance(0.4);
    // Rows agree on a motion v0 up to their slack. Rows that contradict each other are answered with
    // λ = Δd / C, up to 1e10 N s, where double precision has no 1e-9 to give; they have a test of
    // their own.
    let v0: Vec<f64> = (0..6 * bodies).map(|_| random.range(-1.0, 1.0)).collect();
    while problem.rows() < rows {
        let a = random.below(bodies) as u32;
        let b = random.below(bodies) as u32;
        let on = if a == b || random.chance(0.2) { vec![a] } else { vec![a, b] };
        let count = (1 + random.below(6)).min(rows - problem.rows());
        let typical = problem.mass[a as usize][0].min(problem.mass[*on.last().unwrap() as usize][0]);
        let mut new: Vec<NewRow> = Vec::new();
        for _ in 0..count {
            let mut row = random_row(random, on.len(), compliance, typical);
            if redundant && !new.is_empty() && random.chance(0.4) {
                row.jacobian.clone_from(&new[0].jacobian);
            }
            if random.chance(0.01) {
                row.jacobian.iter_mut().for_each(|j| *j = [0.0; 6]);
            }
            if !conflicting {
                let mut w0 = 0.0;
                for (j, &body) in row.jacobian.iter().zip(&on) {
                    w0 += (0..6).map(|c| j[c] * v0[6 * body as usize + c]).sum::<f64>();
                }
                let room = match row.bounds {
                    (lo, hi) if lo == f64::NEG_INFINITY && hi == f64::INFINITY => 0.0,
                    (_, f64::INFINITY) => 1.0,
                    (f64::NEG_INFINITY, _) => -1.0,
                    _ => random.range(-1.0, 1.0),
                };
                row.d = -w0 + if random.chance(0.3) { 0.0 } else { room * random.unit() };
            }
            new.push(row);
        }
        let fold = random.chance(0.6);
        add_block(&mut problem, &on, &new, fold);
    }
    problem
}

impl Random {
    /// One of a list.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// The normal and two friction rows of a point at levers `ra`, `rb`; bodies are one (floor) or two.
pub fn contact_rows(levers: &[[f64; 3]], normal_axis: usize, friction: f64, c: f64, gap: f64) -> Vec<NewRow> {
    let axes = [normal_axis, (normal_axis + 1) % 3, (normal_axis + 2) % 3];
    axes.iter()
        .enumerate()
        .map(|(k, &axis)| {
            let jacobian = levers
                .iter()
                .enumerate()
                .map(|(side, r)| {
                    // The last body is the upper one: it moves along +axis away from the first.
                    let sign = if side + 1 == levers.len() { 1.0 } else { -1.0 };
                    let mut j = [0.0; 6];
                    j[axis] = sign;
                    let cross = match axis {
                        0 => [0.0, r[2], -r[1]],
                        1 => [-r[2], 0.0, r[0]],
                        _ => [r[1], -r[0], 0.0],
                    };
                    for i in 0..3 {
                        j[3 + i] = sign * cross[i];
                    }
                    j
                })
                .collect();
            let normal = k == 0;
            NewRow {
                jacobian,
                compliance: c,
                d: if normal { gap } else { 0.0 },
                bounds: if normal { (0.0, f64::INFINITY) } else { (-friction, friction) },
                kind: if normal { RowKind::Normal } else { RowKind::Friction },
            }
        })
        .collect()
}

fn box_body(problem: &mut RowProblem, mass: f64, half: [f64; 3], push: [f64; 3]) -> u32 {
    let mut m = [0.0; 36];
    for i in 0..3 {
        m[7 * i] = mass;
        let (a, b) = (half[(i + 1) % 3], half[(i + 2) % 3]);
        m[7 * (i + 3)] = mass / 3.0 * (a * a + b * b);
    }
    problem.mass.push(m);
    let g = -9.81 / 60.0;
    problem.momentum.push([mass * push[0], mass * (push[1]), mass * (push[2] + g), 0.0, 0.0, 0.0]);
    (problem.mass.len() - 1) as u32
}

/// Boxes in `columns` stacks of `layers`, four points per face, heavier towards the top by `ratio`.
pub fn wall(random: &mut Random, columns: usize, layers: usize, ratio: f64, c: f64) -> RowProblem {
    let mut problem = RowProblem::default();
    let half = [0.5, 0.25, 0.25];
    let mut ids = vec![vec![0u32; columns]; layers];
    for (layer, ids) in ids.iter_mut().enumerate() {
        for id in ids {
            let mass = ratio.powf(layer as f64 / layers.max(2) as f64);
            let push = [random.range(-0.3, 0.3), random.range(-0.3, 0.3), 0.0];
            *id = box_body(&mut problem, mass, half, push);
        }
    }
    for layer in 0..layers {
        for column in 0..columns {
            let upper = ids[layer][column];
            // Odd layers rest on two boxes, as bricks do.
            let below: Vec<Option<u32>> = if layer == 0 {
                vec![None]
            } else if layer % 2 == 1 && column + 1 < columns {
                vec![Some(ids[layer - 1][column]), Some(ids[layer - 1][column + 1])]
            } else {
                vec![Some(ids[layer - 1][column])]
            };
            for lower in below {
                for (x, y) in [(-0.4, -0.2), (0.4, -0.2), (0.4, 0.2), (-0.4, 0.2)] {
                    let f = 0.5 * problem.mass[upper as usize][0] * 9.81 / 60.0 * random.range(0.1, 2.0);
                    let gap = if random.chance(0.2) { 0.01 } else { 0.0 };
                    let rows = match lower {
                        None => contact_rows(&[[x, y, -0.25]], 2, f, c, gap),
                        Some(_) => contact_rows(&[[x, y, 0.25], [x, y, -0.25]], 2, f, c, gap),
                    };
                    let bodies: Vec<u32> = lower.into_iter().chain([upper]).collect();
                    add_block(&mut problem, &bodies, &rows, true);
                }
            }
        }
    }
    problem
}

/// A hanging chain of ball joints (or hinges) with a load at its end; some links touch the floor.
pub fn chain(random: &mut Random, links: usize, load: f64, c: f64, contacts: bool) -> RowProblem {
    let mut problem = RowProblem::default();
    let rows_per_joint = 3 + random.below(3);
    let mut previous = None;
    for link in 0..links {
        let mass = if link + 1 == links { load } else { 0.25 };
        let push = [random.range(-1.0, 1.0), random.range(-1.0, 1.0), random.range(-1.0, 1.0)];
        let body = box_body(&mut problem, mass, [0.02, 0.02, 0.1], push);
        let mut rows = Vec::new();
        for k in 0..rows_per_joint {
            let mut upper = [0.0; 6];
            let mut own = [0.0; 6];
            if k < 3 {
                own[k] = 1.0;
                upper[k] = -1.0;
                // r × e_k at the ends (0, 0, ±0.1).
                match k {
                    0 => (own[4], upper[4]) = (0.1, 0.1),
                    1 => (own[3], upper[3]) = (-0.1, -0.1),
                    _ => {}
                }
            } else {
                own[k] = 1.0;
                upper[k] = -1.0;
            }
            rows.push(NewRow {
                jacobian: if previous.is_some() { vec![upper, own] } else { vec![own] },
                compliance: c,
                d: random.range(-0.01, 0.01),
                bounds: (f64::NEG_INFINITY, f64::INFINITY),
                kind: RowKind::Joint,
            });
        }
        let bodies: Vec<u32> = previous.into_iter().chain([body]).collect();
        add_block(&mut problem, &bodies, &rows, false);
        if contacts && random.chance(0.5) {
            for x in [-0.1, 0.1] {
                let rows = contact_rows(&[[0.0, 0.02, x]], 1, 0.1 * mass, c, 0.0);
                add_block(&mut problem, &[body], &rows, true);
            }
        }
        previous = Some(body);
    }
    problem
}

/// A heap: random contact planes along the axes between random neighbours, 1–4 points a pair.
pub fn heap(random: &mut Random, bodies: usize, ratio: f64, c: f64) -> RowProblem {
    let mut problem = RowProblem::default();
    for _ in 0..bodies {
        let mass = ratio.powf(random.range(-0.5, 0.5));
        let push = [random.range(-0.5, 0.5), random.range(-0.5, 0.5), random.range(-0.5, 0.0)];
        box_body(&mut problem, mass, [0.2, 0.2, 0.2], push);
    }
    for body in 0..bodies as u32 {
        for _ in 0..1 + random.below(3) {
            let other =
                if body == 0 || random.chance(0.2) { None } else { Some(random.below(body as usize) as u32) };
            let axis = random.below(3);
            let points = 1 + random.below(4);
            for _ in 0..points {
                let ra: [f64; 3] = std::array::from_fn(|_| random.range(-0.2, 0.2));
                let rb: [f64; 3] = std::array::from_fn(|_| random.range(-0.2, 0.2));
                let f = problem.mass[body as usize][0] * random.power(-2.0, 0.3) * 0.16;
                let rows = match other {
                    None => contact_rows(&[rb], axis, f, c, random.range(-0.02, 0.02)),
                    Some(_) => contact_rows(&[ra, rb], axis, f, c, random.range(-0.02, 0.02)),
                };
                let on: Vec<u32> = other.into_iter().chain([body]).collect();
                add_block(&mut problem, &on, &rows, true);
            }
        }
    }
    problem
}

/// A problem of any of the families, of at most about `rows` rows.
pub fn any_problem(seed: u64, rows: usize) -> RowProblem {
    let mut random = Random::new(seed);
    let c = random.power(-10.0, -4.0);
    let ratio = random.power(0.0, 6.0);
    match random.below(6) {
        0 => {
            let columns = 1 + random.below(4);
            let layers = 1 + random.below((rows / 24 / columns).max(1));
            wall(&mut random, columns, layers, ratio.sqrt(), c)
        }
        1 => {
            let links = 1 + random.below((rows / 8).max(1));
            let contacts = random.chance(0.5);
            chain(&mut random, links, 0.25 * ratio, c, contacts)
        }
        2 => {
            let bodies = 1 + random.below((rows / 15).max(1));
            heap(&mut random, bodies, ratio, c)
        }
        _ => {
            let n = 1 + random.below(rows.max(1));
            random_problem(&mut random, n, false)
        }
    }
}
