//! Kernels against plain arithmetic, orders against their rules, fronts against a dense factor.

use super::dissection;
use super::graph::{BlockGraph, NodeKind};
use super::kernels::{self, Isa, Kernels, Numbers, Shape, Six, Varying};
use super::multifrontal::{Assemble, FrontMut, Multifrontal};
use super::ordering::{MinDegree, OrderingKind};
use super::symbolic::{Layout, Symbolic};
use crate::solver::generate::Random;

fn vector(n: usize, random: &mut Random) -> Vec<f64> {
    (0..n).map(|_| random.normal()).collect()
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{x} {y}");
    }
}

/// A front with a strong diagonal of the given signs.
fn front(shape: Shape, sign: &[f64], random: &mut Random) -> (Vec<f64>, Vec<f64>) {
    let mut panel = vec![0.0; shape.front_len()];
    for c in 0..shape.pivots {
        for r in c..shape.pivots {
            panel[c * shape.ld() + r] = 0.1 * random.normal();
        }
        panel[c * (shape.ld() + 1)] =
            (3.0 + 0.1 * shape.pivots as f64) * if sign[c] == 0.0 { 1.0 } else { sign[c] };
        for r in 0..shape.border {
            panel[c * shape.ld() + shape.border_at() + r] = random.normal();
        }
    }
    let mut update = vec![0.0; shape.update_len()];
    for c in 0..shape.border {
        for r in c..shape.border {
            update[c * shape.ldu() + r] = random.normal();
        }
    }
    (panel, update)
}

#[test]
fn simd_and_plain_kernels_agree() {
    let mut random = Random::new(1);
    let (simd, plain) = (Isa::detect(Kernels::Auto), Isa::detect(Kernels::Plain));
    for round in 0..300 {
        // Now and then a large front, which takes another way.
        let (most, wide) = if round % 30 == 0 { (130, 150) } else { (19, 30) };
        let shape = Shape { pivots: 1 + random.below(most), border: random.below(wide) };
        let sign: Vec<f64> = (0..shape.pivots).map(|_| [1.0, -1.0, 0.0][random.below(3)]).collect();
        let (panel, update) = front(shape, &sign, &mut random);
        let rhs = {
            let mut x = vector(shape.ld(), &mut random);
            x[shape.pivots..shape.border_at()].fill(0.0);
            x[shape.border_at() + shape.border..].fill(0.0);
            x
        };
        let run = |isa: Isa| {
            let (mut l, mut u, mut x) = (panel.clone(), update.clone(), rhs.clone());
            let mut w = vec![0.0; shape.scratch_len()];
            let wrong = kernels::factor_front(isa, shape, &mut l, &mut u, &mut w, &sign);
            kernels::forward(isa, shape, &l, &mut x);
            kernels::backward(isa, shape, &l, &mut x);
            let lower: Vec<f64> = (0..shape.border)
                .flat_map(|c| u[c * shape.ldu() + c..c * shape.ldu() + shape.border].to_vec())
                .collect();
            (wrong, lower, l[..shape.panel_len()].to_vec(), x)
        };
        let (a, b) = (run(simd), run(plain));
        assert_eq!(a.0, b.0, "round {round}");
        // The same sums in the same order; only fused multiply–add differs, and the pivots are well scaled.
        close(&a.1, &b.1, 1e-10);
        close(&a.2, &b.2, 1e-10);
        close(&a.3, &b.3, 1e-10);
    }
}

/// The instruction set of this machine with AVX-512 and without; or a sentence, and nothing.
fn wide_and_narrow() -> Option<(Isa, Isa)> {
    let wide = Isa::detect(Kernels::Auto);
    let narrow = wide.narrower();
    if narrow.is_none() {
        println!("skipped: this machine has no AVX-512, there is nothing to compare");
    }
    narrow.map(|narrow| (wide, narrow))
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn eight_lanes_have_the_bits_of_four() {
    let Some((wide, narrow)) = wide_and_narrow() else { return };
    let mut random = Random::new(7);
    for round in 0..400 {
        // Small, those of the first cache, those beyond it.
        let (most, broad) = [(19, 30), (40, 70), (19, 120), (150, 150)][round % 4];
        let shape = Shape { pivots: 1 + random.below(most), border: random.below(broad) };
        let signs: &[f64] = if round % 3 == 0 { &[1.0, -1.0, 0.0] } else { &[1.0, -1.0] };
        let sign: Vec<f64> = (0..shape.pivots).map(|_| signs[random.below(signs.len())]).collect();
        let (panel, update) = front(shape, &sign, &mut random);
        let run = |isa: Isa| {
            let (mut l, mut u) = (panel.clone(), update.clone());
            let mut w = vec![0.0; shape.scratch_len()];
            let wrong = kernels::factor_front(isa, shape, &mut l, &mut u, &mut w, &sign);
            let lower: Vec<f64> = (0..shape.border)
                .flat_map(|c| u[c * shape.ldu() + c..c * shape.ldu() + shape.border].to_vec())
                .collect();
            let mut x = vec![1.0; shape.ld()];
            x[shape.pivots..shape.border_at()].fill(0.0);
            x[shape.border_at() + shape.border..].fill(0.0);
            // Reads every number of the panel that anyone reads.
            kernels::forward(isa, shape, &l, &mut x);
            kernels::backward(isa, shape, &l, &mut x);
            (wrong, bits(&lower), bits(&x))
        };
        assert_eq!(run(wide), run(narrow), "round {round}: {shape:?}");
    }
}

#[test]
fn eight_lanes_multiply_as_four() {
    let Some((wide, narrow)) = wide_and_narrow() else { return };
    let mut random = Random::new(8);
    for rows in 1..20 {
        let (m, n, k) = (4 * rows, 4 * (1 + random.below(5)), random.below(60));
        let (a, b, c) = (vector(m * k, &mut random), vector(n * k, &mut random), vector(m * n, &mut random));
        let run = |isa: Isa| {
            let mut c = c.clone();
            kernels::multiply_subtract(isa, (m, n, k), &a, &b, &mut c);
            bits(&c)
        };
        assert_eq!(run(wide), run(narrow), "{m} {n} {k}");
    }
}

#[test]
fn six_number_kernels_agree_with_loops() {
    let mut random = Random::new(2);
    for isa in [Isa::detect(Kernels::Auto), Isa::detect(Kernels::Plain)] {
        for rows in 0..11 {
            let stride = 6 * (1 + random.below(3));
            let numbers = vector(stride * rows + 6, &mut random);
            let six = Six { numbers: &numbers, stride };
            let j = |r: usize, c: usize| numbers[r * stride + c];
            let weight = vector(rows, &mut random);
            let x = vector(6, &mut random);
            let mut block = vec![0.0; 42];
            kernels::fold_six(isa, six, six, &weight, &mut block, 7);
            let other = vector(stride * rows + 6, &mut random);
            let mut full = vec![0.0; 42];
            let across = Six { numbers: &other, stride };
            kernels::fold_six(isa, six, across, &weight, &mut full, 7);
            let mut out = weight.clone();
            kernels::subtract_six_times(isa, six, &x, &mut out);
            let mut q = x.clone();
            kernels::add_six_transposed(isa, six, &weight, &mut q);
            for c in 0..6 {
                let expected: f64 = x[c] + (0..rows).map(|r| j(r, c) * weight[r]).sum::<f64>();
                close(&[q[c]], &[expected], 1e-13);
                for r in 0..6 {
                    let sum: f64 = (0..rows).map(|k| weight[k] * j(k, r) * j(k, c)).sum();
                    let beside: f64 = (0..rows).map(|k| weight[k] * j(k, r) * other[k * stride + c]).sum();
                    // Eleven products of numbers below 4: round-off far below 1e-13.
                    close(&[full[7 * c + r]], &[beside], 1e-13);
                    if r >= c {
                        close(&[block[7 * c + r]], &[sum], 1e-13);
                    }
                }
            }
            for r in 0..rows {
                let expected = weight[r] - (0..6).map(|c| j(r, c) * x[c]).sum::<f64>();
                close(&[out[r]], &[expected], 1e-13);
            }
        }
    }
}

/// Bodies and multipliers at random; now and then an interface.
fn random_graph(random: &mut Random, nodes: usize) -> BlockGraph {
    let mut graph = BlockGraph::default();
    for k in 0..nodes {
        let kind = match random.below(8) {
            0 if k > 2 => NodeKind::Interface,
            1..4 if k > 2 => NodeKind::Multiplier,
            _ => NodeKind::Body,
        };
        let size = if kind == NodeKind::Body { 6 } else { 1 + random.below(6) as u32 };
        graph.node(size, kind, random.below(2) == 0);
    }
    for _ in 0..2 * nodes {
        let (a, b) = (random.below(nodes) as u32, random.below(nodes) as u32);
        let body = |n: u32| graph.kind[n as usize] == NodeKind::Body;
        if body(a) || body(b) {
            graph.edge(a, b);
        }
    }
    graph.finish();
    graph
}

#[test]
fn orders_are_permutations_that_keep_the_rules() {
    let mut random = Random::new(3);
    let mut work = MinDegree::default();
    for _ in 0..300 {
        let nodes = 1 + random.below(60);
        let graph = random_graph(&mut random, nodes);
        for kind in [OrderingKind::MinDegree, OrderingKind::NestedDissection] {
            let order = dissection::order(&graph, kind, &mut work);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            let expected: Vec<u32> =
                (0..nodes as u32).filter(|&n| graph.kind[n as usize] != NodeKind::Interface).collect();
            assert_eq!(sorted, expected);
            for (k, &node) in order.iter().enumerate() {
                let bodies = || graph.of(node).iter().filter(|&&o| graph.kind[o as usize] == NodeKind::Body);
                if graph.kind[node as usize] == NodeKind::Multiplier && bodies().count() > 0 {
                    assert!(bodies().any(|o| order[..k].contains(o)), "a multiplier before its bodies");
                }
            }
        }
    }
}

/// A symmetric quasi-definite matrix on a graph, dense.
struct Dense<'a> {
    graph: &'a BlockGraph,
    plan: Symbolic,
    start: Vec<usize>,
    a: Vec<Vec<f64>>,
}

impl<'a> Dense<'a> {
    fn new(graph: &'a BlockGraph, plan: &Symbolic, random: &mut Random) -> Self {
        let mut start = vec![0];
        for &size in &graph.size {
            start.push(start[start.len() - 1] + size as usize);
        }
        let n = start[graph.nodes()];
        let mut a = vec![vec![0.0; n]; n];
        for node in 0..graph.nodes() {
            for i in start[node]..start[node + 1] {
                a[i][i] = match graph.kind[node] {
                    NodeKind::Body => 20.0,
                    NodeKind::Multiplier => -1.0,
                    NodeKind::Interface => 0.0,
                };
                for &other in graph.of(node as u32) {
                    for j in start[other as usize]..start[other as usize + 1] {
                        if j < i {
                            a[i][j] = 0.3 * random.normal();
                            a[j][i] = a[i][j];
                        }
                    }
                }
            }
        }
        Self { graph, plan: plan.clone(), start, a }
    }
}

impl Assemble for Dense<'_> {
    fn assemble(&self, front: usize, into: &mut FrontMut<'_>) {
        let f = &self.plan.fronts[front];
        for &node in self.plan.pivot_nodes(f) {
            let local = self.plan.node_local[node as usize] as usize;
            let kind = self.graph.kind[node as usize];
            for c in 0..self.graph.size[node as usize] as usize {
                into.sign[local + c] = if kind == NodeKind::Body { 1.0 } else { -1.0 };
                let column = self.start[node as usize] + c;
                into.block(local + c, local + c).0[0] = self.a[column][column];
                for &other in self.graph.of(node) {
                    if !self.plan.before(node, other) {
                        continue;
                    }
                    let row = self.plan.local_of(front as u32, other).unwrap() as usize;
                    for r in 0..self.graph.size[other as usize] as usize {
                        into.block(row + r, local + c).0[0] = self.a[self.start[other as usize] + r][column];
                    }
                }
            }
        }
    }
}

#[test]
fn fronts_give_the_dense_solution() {
    let mut random = Random::new(4);
    let mut work = MinDegree::default();
    for _ in 0..100 {
        let nodes = 2 + random.below(30);
        let graph = random_graph(&mut random, nodes);
        for kind in [OrderingKind::MinDegree, OrderingKind::NestedDissection] {
            let order = dissection::order(&graph, kind, &mut work);
            let layout = [Layout::Sequence, Layout::Subtrees][random.below(2)];
            let plan = Symbolic::build(&graph, &order, layout);
            let dense = Dense::new(&graph, &plan, &mut random);
            let mut factor = Multifrontal::new(Kernels::Auto);
            factor.plan(plan.clone(), Varying::none(&plan));
            assert_eq!(factor.factor(&dense, Numbers::default()).2, 0);
            let mut x = vec![0.0; plan.locals];
            let mut exact = vec![0.0; dense.start[nodes]];
            let at = |node: usize| {
                let front = &plan.fronts[plan.node_front[node] as usize];
                front.local + plan.node_local[node] as usize
            };
            let inside = |node: usize| graph.kind[node] != NodeKind::Interface;
            for node in (0..nodes).filter(|&n| inside(n)) {
                for i in dense.start[node]..dense.start[node + 1] {
                    exact[i] = random.normal();
                }
            }
            for node in (0..nodes).filter(|&n| inside(n)) {
                for i in 0..graph.size[node] as usize {
                    let row = &dense.a[dense.start[node] + i];
                    x[at(node) + i] = row.iter().zip(&exact).map(|(a, b)| a * b).sum();
                }
            }
            factor.solve(&mut x);
            for node in (0..nodes).filter(|&n| inside(n)) {
                let n = graph.size[node] as usize;
                // Diagonally strong matrices of at most 180 rows: ten digits are safe.
                close(&x[at(node)..at(node) + n], &exact[dense.start[node]..dense.start[node] + n], 1e-10);
            }
        }
    }
}

#[test]
fn factors_in_eight_lanes_have_the_bits_of_four() {
    let Some((wide, narrow)) = wide_and_narrow() else { return };
    let mut random = Random::new(9);
    let mut work = MinDegree::default();
    for round in 0..40 {
        let nodes = 2 + random.below(if round % 8 == 0 { 150 } else { 40 });
        let graph = random_graph(&mut random, nodes);
        let order = dissection::order(&graph, OrderingKind::NestedDissection, &mut work);
        let plan = Symbolic::build(&graph, &order, Layout::Sequence);
        let dense = Dense::new(&graph, &plan, &mut random);
        let rhs = vector(nodes, &mut random);
        let run = |isa: Isa| {
            let mut factor = Multifrontal::with(isa);
            factor.plan(plan.clone(), Varying::none(&plan));
            // Twice: the second time update matrices hold old numbers, which must not matter.
            factor.factor(&dense, Numbers::default());
            factor.touch_all();
            factor.factor(&dense, Numbers::default());
            let mut x = vec![0.0; plan.locals];
            for node in (0..nodes).filter(|&node| graph.kind[node] != NodeKind::Interface) {
                let front = &plan.fronts[plan.node_front[node] as usize];
                x[front.local + plan.node_local[node] as usize] = rhs[node];
            }
            factor.solve(&mut x);
            bits(&x)
        };
        assert_eq!(run(wide), run(narrow), "round {round}");
    }
}

/// The oracle that is not ours: faer's dense LU with partial pivoting.
#[test]
fn fronts_agree_with_faers_dense_solution() {
    use faer::linalg::solvers::Solve;
    let mut random = Random::new(6);
    let mut work = MinDegree::default();
    for _ in 0..60 {
        let nodes = 2 + random.below(24);
        let graph = random_graph(&mut random, nodes);
        let order = dissection::order(&graph, OrderingKind::MinDegree, &mut work);
        let plan = Symbolic::build(&graph, &order, Layout::Sequence);
        let dense = Dense::new(&graph, &plan, &mut random);
        let mut factor = Multifrontal::new(Kernels::Auto);
        factor.plan(plan.clone(), Varying::none(&plan));
        assert_eq!(factor.factor(&dense, Numbers::default()).2, 0);
        let inside = |node: usize| graph.kind[node] != NodeKind::Interface;
        let rows: Vec<usize> = (0..nodes)
            .filter(|&node| inside(node))
            .flat_map(|node| dense.start[node]..dense.start[node + 1])
            .collect();
        let m = rows.len();
        if m == 0 {
            continue;
        }
        let rhs = vector(m, &mut random);
        let matrix = faer::Mat::from_fn(m, m, |i, j| dense.a[rows[i]][rows[j]]);
        let right = faer::Mat::from_fn(m, 1, |i, _| rhs[i]);
        let expected = matrix.partial_piv_lu().solve(&right);
        let mut x = vec![0.0; plan.locals];
        let (mut k, mut places) = (0, Vec::new());
        for node in (0..nodes).filter(|&node| inside(node)) {
            let front = &plan.fronts[plan.node_front[node] as usize];
            for i in 0..graph.size[node] as usize {
                let at = front.local + plan.node_local[node] as usize + i;
                x[at] = rhs[k];
                places.push(at);
                k += 1;
            }
        }
        factor.solve(&mut x);
        for (k, &at) in places.iter().enumerate() {
            // Diagonally strong matrices of at most 150 rows: ten digits are safe for both.
            close(&[x[at]], &[expected[(k, 0)]], 1e-10);
        }
    }
}
