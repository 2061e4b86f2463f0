use super::*;
use crate::solver::generate::{self, Random};

/// The KKT matrix of the free rows, dense: bodies, then rows; its solution by Gaussian elimination with
/// full row pivoting.
fn dense_solve(problem: &RowProblem, regular: &[f64], r_v: &[f64], r_lambda: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let nv = 6 * problem.bodies();
    let n = nv + problem.rows();
    let mut a = vec![vec![0.0; n + 1]; n];
    for (body, m) in problem.mass.iter().enumerate() {
        for i in 0..6 {
            for j in 0..6 {
                a[6 * body + i][6 * body + j] = m[6 * i + j];
            }
        }
        // What is no unknown of a narrow node is zero.
        (problem.width_of(body)..6).for_each(|i| a[6 * body + i][6 * body + i] = 1.0);
    }
    for c in &problem.couplings {
        for (i, j) in (0..36).map(|k| (k / 6, k % 6)) {
            a[6 * c.a as usize + i][6 * c.b as usize + j] += c.block[6 * i + j];
            a[6 * c.b as usize + j][6 * c.a as usize + i] += c.block[6 * i + j];
        }
    }
    for block in &problem.blocks {
        for r in 0..block.rows {
            let row = (block.row + r) as usize;
            if !regular[row].is_finite() {
                a[nv + row][nv + row] = 1.0;
                continue;
            }
            a[nv + row][nv + row] = regular[row];
            a[nv + row][n] = r_lambda[row];
            for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                let j = problem.jacobian_of(block, r, k as u32);
                for c in 0..6 {
                    a[nv + row][6 * body as usize + c] = j[c];
                    a[6 * body as usize + c][nv + row] = -j[c];
                }
            }
        }
    }
    for i in 0..nv {
        a[i][n] = r_v[i];
    }
    for k in 0..n {
        let p = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, p);
        let pivot = a[k].clone();
        for row in a.iter_mut().skip(k + 1) {
            let f = row[k] / pivot[k];
            if f != 0.0 {
                for j in k..=n {
                    row[j] -= f * pivot[j];
                }
            }
        }
    }
    for k in (0..n).rev() {
        let mut s = a[k][n];
        for j in k + 1..n {
            s -= a[k][j] * a[j][n];
        }
        a[k][n] = s / a[k][k];
    }
    let x: Vec<f64> = a.iter().map(|row| row[n]).collect();
    (x[..nv].to_vec(), x[nv..].to_vec())
}

fn random_labels(problem: &RowProblem, random: &mut Random) -> Vec<Label> {
    (0..problem.rows())
        .map(|_| match random.below(4) {
            0 => Label::Lower,
            1 => Label::Upper,
            _ => Label::Free,
        })
        .collect()
}

fn vector(n: usize, random: &mut Random) -> Vec<f64> {
    (0..n).map(|_| random.normal()).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let d = a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>();
    let n = b.iter().map(|x| x * x).sum::<f64>();
    (d / n.max(1e-300)).sqrt()
}

fn every_option() -> Vec<MixedOptions> {
    let mut all = Vec::new();
    for kernels in [Kernels::Auto, Kernels::Plain] {
        for ordering in [OrderingKind::MinDegree, OrderingKind::NestedDissection] {
            all.push(MixedOptions { kernels, ordering });
        }
    }
    all
}

#[test]
fn random_systems_agree_with_a_dense_solve() {
    let mut random = Random::new(1);
    for seed in 0..150 {
        let bodies = 1 + random.below(14);
        let blocks = random.below(22);
        let mut problem = generate::any(bodies, blocks, 1e-3, seed);
        if seed % 2 == 1 {
            problem = generate::narrowed(problem, seed);
        }
        if seed % 3 == 1 {
            [problem, _] = generate::coupled(&problem, random.below(8), seed);
        }
        let labels = random_labels(&problem, &mut random);
        let diagonal: Vec<f64> = (0..problem.rows()).map(|_| random.unit()).collect();
        let mut r_v = vector(6 * bodies, &mut random);
        (0..bodies).for_each(|body| r_v[6 * body + problem.width_of(body)..6 * body + 6].fill(0.0));
        let r_lambda = vector(problem.rows(), &mut random);
        for options in every_option() {
            let mut system = MixedSystem::new(options);
            system.load(&problem);
            let stats = system.factor(&problem, &labels, Some(&diagonal));
            assert_eq!(stats.regularised, 0);
            let mut v = vec![0.0; 6 * bodies];
            let mut lambda = vec![0.0; problem.rows()];
            system.solve(&problem, &r_v, &r_lambda, &mut v, &mut lambda, 1);
            let (v0, lambda0) = dense_solve(&problem, &system.regular, &r_v, &r_lambda);
            // Condition numbers stay below 1e6 here (C = 1e-3): ten digits are left.
            assert!(distance(&v, &v0) < 1e-10, "seed {seed} {options:?}");
            assert!(distance(&lambda, &lambda0) < 1e-10, "seed {seed} {options:?}");
        }
    }
}

#[test]
fn partial_refactorization_is_the_full_one_bit_by_bit() {
    let problem = generate::tower(12, 2, 2500.0, 1e-8);
    let mut random = Random::new(3);
    let mut labels = vec![Label::Free; problem.rows()];
    let mut partial = MixedSystem::default();
    partial.load(&problem);
    partial.factor(&problem, &labels, None);
    let fronts = partial.symbolic().fronts.len();
    let mut fewer = false;
    for _ in 0..20 {
        let row = random.below(problem.rows());
        labels[row] = if labels[row] == Label::Free { Label::Lower } else { Label::Free };
        fewer |= partial.factor(&problem, &labels, None).refactored < fronts;
        let mut full = MixedSystem::default();
        full.load(&problem);
        full.factor(&problem, &labels, None);
        let mut a = (vec![0.0; 6 * problem.bodies()], vec![0.0; problem.rows()]);
        let mut b = a.clone();
        partial.solve_pivot(&problem, &mut a.0, &mut a.1, 0);
        full.solve_pivot(&problem, &mut b.0, &mut b.1, 0);
        assert_eq!(a, b);
    }
    assert!(fewer, "some change must have left a front alone");
    assert_eq!(partial.factor(&problem, &labels, None).refactored, 0);
}

#[test]
fn the_interface_front_is_the_schur_complement() {
    let mut random = Random::new(5);
    for seed in 0..40 {
        let bodies = 2 + random.below(10);
        let whole = generate::any(bodies, 16, 1e-3, seed + 1000);
        let labels = random_labels(&whole, &mut random);
        let mut interface = InterfaceRows::default();
        for k in 0..3u32 {
            let rows = 1 + k;
            interface.blocks.push(crate::solver::RowBlock {
                row: interface.rows() as u32,
                rows,
                body: interface.block_bodies.len() as u32,
                bodies: 1,
                entry: interface.jacobian.len() as u32,
                fold: false,
            });
            interface.block_bodies.push(random.below(bodies) as u32);
            interface.jacobian.extend(vector(6 * rows as usize, &mut random));
        }
        for options in every_option() {
            let mut system = MixedSystem::new(options);
            system.load_with_interface(&whole, &interface);
            system.factor(&whole, &labels, None);
            let m = interface.rows();
            let mut s = vec![0.0; m * m];
            system.full_schur(&mut s);
            for k in 0..m {
                let mut unit = vec![0.0; m];
                unit[k] = 1.0;
                let mut r_v = vec![0.0; 6 * bodies];
                interface.add_impulse(&unit, &mut r_v);
                let zero = vec![0.0; whole.rows()];
                let (mut v, mut lambda) = (vec![0.0; 6 * bodies], zero.clone());
                system.solve(&whole, &r_v, &zero, &mut v, &mut lambda, 1);
                let (v0, _) = dense_solve(&whole, &system.regular, &r_v, &zero);
                let mut column = vec![0.0; m];
                interface.velocity(&v0, &mut column);
                // As in the dense comparison above.
                assert!(distance(&v, &v0) < 1e-10);
                assert!(distance(&s[k * m..(k + 1) * m], &column) < 1e-9);
            }
        }
    }
}

#[test]
fn an_empty_problem_and_lonely_bodies_are_fine() {
    let empty = RowProblem::default();
    let mut system = MixedSystem::default();
    system.load(&empty);
    system.factor(&empty, &[], None);
    system.solve_pivot(&empty, &mut [], &mut [], 1);
    let lonely = generate::any(3, 0, 1e-3, 2);
    system.load(&lonely);
    system.factor(&lonely, &[], None);
    let mut v = vec![0.0; 18];
    system.solve_pivot(&lonely, &mut v, &mut [], 0);
    for (body, m) in lonely.mass.iter().enumerate() {
        for i in 0..6 {
            let p: f64 = (0..6).map(|j| m[6 * i + j] * v[6 * body + j]).sum();
            // A 6×6 solve with condition below 1e2.
            assert!((p - lonely.momentum[body][i]).abs() < 1e-12 * p.abs().max(1.0));
        }
    }
}

#[test]
fn solves_in_focus_are_those_of_the_whole() {
    let mut random = Random::new(3);
    for seed in 0..40 {
        let problem = generate::any(3 + seed as usize % 9, 4 + seed as usize % 13, 1e-3, seed);
        let n = problem.rows();
        // Some of the rows with bounds, single rows of blocks among them.
        let mask: Vec<bool> =
            (0..n).map(|i| problem.lo[i].is_finite() && (seed % 2 == 0 || random.below(2) == 0)).collect();
        let (mut whole, mut focused) = (MixedSystem::default(), MixedSystem::default());
        whole.load(&problem);
        focused.load(&problem);
        focused.factor(&problem, &vec![Label::Free; n], None);
        focused.focus_on(&problem, &mask);
        focused.settle_the_rest(&problem);
        for _ in 0..4 {
            let tight = |i: usize, r: &mut Random| mask[i] && r.below(2) == 0;
            let labels: Vec<Label> =
                (0..n).map(|i| if tight(i, &mut random) { Label::Lower } else { Label::Free }).collect();
            let shift: Vec<f64> =
                mask.iter().map(|&m| if m { random.range(0.0, 0.1) } else { 0.0 }).collect();
            let given: Vec<f64> = labels
                .iter()
                .map(|l| if *l == Label::Lower { random.range(-1.0, 1.0) } else { 0.0 })
                .collect();
            let (mut v, mut lambda) = (vec![0.0; 6 * problem.bodies()], given.clone());
            whole.factor(&problem, &labels, Some(&shift));
            whole.solve_pivot(&problem, &mut v, &mut lambda, 1);
            let only = |x: &[f64]| (0..n).filter(|&i| mask[i]).map(|i| x[i]).collect::<Vec<f64>>();
            let own: Vec<Label> = (0..n).filter(|&i| mask[i]).map(|i| labels[i]).collect();
            let r: Vec<f64> = problem.d.iter().map(|d| -d).collect();
            let mut near = only(&given);
            focused.factor_in_focus(&problem, &own, &only(&shift));
            focused.solve_in_focus(&problem, true, &only(&r), &mut near);
            // C = 1e-3 and masses from 0.1 to 100 kg: condition 1e6 at most, without refinement.
            assert!(distance(&near, &only(&lambda)) < 1e-9, "seed {seed}");
            let (mut jv, mut near_jv) = (vec![0.0; n], vec![0.0; near.len()]);
            for block in &problem.blocks {
                (0..block.rows)
                    .for_each(|k| jv[(block.row + k) as usize] = problem.velocity_of(block, k, &v));
            }
            focused.velocity_in_focus(&problem, &mut near_jv);
            assert!(distance(&near_jv, &only(&jv)) < 1e-9, "seed {seed}");
        }
    }
}

#[test]
fn a_chain_that_outgrows_the_caches_is_solved_as_a_short_one_is() {
    // More than 32 megabytes of panels: stored past the caches, and right-hand sides filled and read along the way.
    let problem = generate::chain(34_000, 500.0, 1e-8);
    let mut system = MixedSystem::default();
    system.load(&problem);
    assert!(system.symbolic().panels > 1 << 22);
    let n = problem.rows();
    let (mut v, mut lambda) = (vec![0.0; 6 * problem.bodies()], vec![0.0; n]);
    let labels = vec![Label::Free; n];
    system.factor(&problem, &labels, None);
    system.solve_pivot(&problem, &mut v, &mut lambda, 1);
    // The two halves of a substitution go the usual way, all at once.
    let r: Vec<f64> = problem.d.iter().map(|d| -d).collect();
    let (mut whole_v, mut whole) = (vec![0.0; v.len()], vec![0.0; n]);
    system.condense(&problem, problem.momentum.as_flattened(), &r, &mut []);
    system.expand(&problem, &r, &[], &mut whole_v, &mut whole);
    let (mut once_v, mut once) = (vec![0.0; v.len()], vec![0.0; n]);
    system.solve_pivot(&problem, &mut once_v, &mut once, 0);
    assert!(once_v == whole_v && once == whole, "the same numbers in another order of steps");
    let mut w = vec![0.0; n];
    problem.slack(&v, &lambda, &mut w);
    // Refined once: rows of half a kilometre per second of free fall are closed to round-off.
    let largest = w.iter().fold(0.0f64, |m, w| m.max(w.abs()));
    assert!(largest < 1e-9, "{largest:e}");
}

#[test]
fn eight_lanes_have_the_bits_of_four_in_whole_problems() {
    let Some(narrow) = MixedSystem::default().isa().narrower() else {
        return println!("skipped: this machine has no AVX-512, there is nothing to compare");
    };
    let mut random = Random::new(12);
    // Folded rows on one body, on two, with border and without, and none.
    for problem in [
        generate::chain_on_ground(40, 1e-8),
        generate::tower(20, 2, 2500.0, 1e-8),
        generate::tower(12, 4, 2500.0, 1e-8),
        generate::net(5, 12, 3000.0, 1e-8),
        generate::rocks(90, 1e-8),
        generate::chain(60, 500.0, 1e-8),
    ] {
        let n = problem.rows();
        let bounded = |row: usize| problem.lo[row].is_finite() || problem.hi[row].is_finite();
        let mut four = MixedSystem { factor: Multifrontal::with(narrow), ..MixedSystem::default() };
        let mut eight = MixedSystem::default();
        let mut labels = vec![Label::Free; n];
        for _ in 0..4 {
            let answers = [&mut four, &mut eight].map(|system| {
                let (mut v, mut lambda) = (vec![0.0; 6 * problem.bodies()], vec![0.0; n]);
                system.load(&problem);
                system.factor(&problem, &labels, None);
                system.solve_pivot(&problem, &mut v, &mut lambda, 1);
                (v, lambda)
            });
            assert!(answers[0] == answers[1]);
            for row in (0..n).filter(|&row| bounded(row)) {
                labels[row] = if random.below(3) == 0 { Label::Lower } else { Label::Free };
            }
        }
    }
}
