//! Substructuring against one factorization of the whole.

use super::*;
use crate::coupling::body_graph;
use crate::coupling::executor::Serial;
use crate::graph::{bisection, min_degree};
use crate::solver::residual::Sums;
use crate::solver::row_solver::Solver;
use crate::solver::{Method, RowSolver, Solution, generate};

fn problems() -> Vec<(&'static str, RowProblem)> {
    vec![
        ("chain", generate::chain(60, 500.0, 1e-9)),
        ("chain on ground", generate::chain_on_ground(50, 1e-8)),
        ("tower", generate::tower(12, 4, 2500.0, 1e-8)),
        ("net", generate::net(4, 16, 8000.0, 1e-9)),
        ("rocks", generate::rocks(40, 1e-8)),
        ("any", generate::any(30, 60, 1e-6, 5)),
        ("any, narrowed", generate::narrowed(generate::any(30, 60, 1e-6, 6), 6)),
        ("any, coupled", {
            let [coupled, _] = generate::coupled(&generate::any(60, 90, 1e-6, 8), 12, 9);
            generate::narrowed(coupled, 10)
        }),
        ("rocks, narrowed", generate::narrowed(generate::rocks(40, 1e-8), 7)),
    ]
}

#[test]
fn every_cut_gives_the_velocities_of_the_whole() {
    for (name, problem) in problems() {
        let graph = body_graph(&problem);
        let labels: Vec<Label> = (0..problem.rows())
            .map(|i| match (problem.lo[i].is_finite(), i % 5) {
                (true, 0) => Label::Lower,
                _ => Label::Free,
            })
            .collect();
        let diagonal: Vec<f64> = (0..problem.rows()).map(|i| 1e-4 * (i % 7) as f64).collect();
        let r_v: Vec<f64> = problem.momentum.iter().flatten().copied().collect();
        let r_lambda: Vec<f64> = problem.d.iter().map(|d| -d).collect();
        let (mut v, mut lambda) = (vec![0.0; r_v.len()], vec![0.0; problem.rows()]);
        let mut whole = MixedSystem::default();
        MixedSystem::load(&mut whole, &problem);
        MixedSystem::factor(&mut whole, &problem, &labels, Some(&diagonal));
        MixedSystem::solve(&mut whole, &problem, &r_v, &r_lambda, &mut v, &mut lambda, 2);
        let mut groupings: Vec<Grouping> = [4, 8, 16].map(|n| min_degree::partition(&graph, n)).into();
        groupings.extend([2, 3, 5].map(|n| bisection::partition(&graph, n)));
        for grouping in groupings {
            for seam in [Seam::Rows, Seam::Bodies] {
                let mut cut = Substructured::<Serial>::default();
                cut.set_grouping(&grouping, seam);
                cut.load(&problem);
                cut.factor(&problem, &labels, Some(&diagonal));
                let (mut w, mut mu) = (vec![0.0; r_v.len()], vec![0.0; problem.rows()]);
                cut.solve(&problem, &r_v, &r_lambda, &mut w, &mut mu, 2);
                let size = v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
                let error = v.iter().zip(&w).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size;
                // Both are refined twice; what is left is round-off times the conditioning of v, which the mixed
                // form keeps near 1e-11.
                assert!(error < 1e-10, "{name}, {seam:?}, {} parts: {error:e}", grouping.count);
            }
        }
    }
}

#[test]
fn a_wide_interface_is_a_tree_and_gives_the_velocities_of_the_whole() {
    // Chains and nets in many parts: every part ties a few of the seams only.
    let problems = [
        ("chain", generate::chain(400, 500.0, 1e-9)),
        ("chain on ground", generate::chain_on_ground(300, 1e-8)),
        ("net", generate::net(6, 40, 8000.0, 1e-9)),
    ];
    for (name, problem) in problems {
        let mut whole = RowSolver::new(Method::Auto);
        let mut cut = Solver::<Substructured<Serial>>::new(Method::Auto);
        let grouping = min_degree::partition(&body_graph(&problem), 8);
        cut.linear_mut().set_grouping(&grouping, Seam::Bodies);
        let (mut a, mut b) = (Solution::default(), Solution::default());
        assert!(whole.solve(&problem, &mut a).converged && cut.solve(&problem, &mut b).converged, "{name}");
        let stats = cut.linear().stats();
        let m = u64::from(stats.interface_rows);
        assert!(m >= 96 && stats.flops_interface < m * m * m / 6, "{name}: {stats:?}");
        let size = a.v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let error = a.v.iter().zip(&b.v).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size;
        // Both are refined; the mixed form keeps v near 1e-11.
        assert!(error < 1e-10, "{name}: {error:e}");
    }
}

#[test]
fn glue_narrows_the_interface_of_contacts() {
    let problem = generate::tower(20, 4, 2500.0, 1e-8);
    let grouping = bisection::partition(&body_graph(&problem), 4);
    let rows = Cut::new(&problem, &grouping, Seam::Rows).interface_rows();
    let bodies = Cut::new(&problem, &grouping, Seam::Bodies).interface_rows();
    assert!(2 * bodies <= rows, "{bodies} of {rows}");
}

#[test]
fn unchanged_partitions_are_not_factored_again() {
    let problem = generate::tower(12, 4, 2500.0, 1e-8);
    let mut cut = Substructured::<Serial>::default();
    cut.set_grouping(&bisection::partition(&body_graph(&problem), 4), Seam::Bodies);
    cut.load(&problem);
    let mut labels = vec![Label::Free; problem.rows()];
    cut.factor(&problem, &labels, None);
    assert!(cut.members.iter().all(|m| m.changed));
    cut.factor(&problem, &labels, None);
    assert!(cut.members.iter().all(|m| !m.changed));
    let inside = cut.members[2].part.rows[0];
    labels[inside as usize] = Label::Lower;
    cut.factor(&problem, &labels, None);
    let changed: Vec<bool> = cut.members.iter().map(|m| m.changed).collect();
    assert_eq!(changed, [false, false, true, false]);
}

#[test]
fn solves_near_some_rows_are_those_of_the_whole() {
    let mut random = generate::Random::new(17);
    let mut between = 0;
    for (name, problem) in problems() {
        let n = problem.rows();
        let bounded = |i: usize| problem.lo[i].is_finite() || problem.hi[i].is_finite();
        // All rows with bounds, or some of them.
        for every in [1, 3] {
            let mask: Vec<bool> = (0..n).map(|i| bounded(i) && i % every == 0).collect();
            let rows: Vec<usize> = (0..n).filter(|&i| mask[i]).collect();
            let free = vec![Label::Free; n];
            let mut whole = MixedSystem::default();
            LinearSystem::load(&mut whole, &problem);
            LinearSystem::focus_on(&mut whole, &problem, &mask, (&free, None));
            for (parts, seam) in [(2, Seam::Rows), (2, Seam::Bodies), (5, Seam::Rows), (5, Seam::Bodies)] {
                let mut cut = Substructured::<Serial>::default();
                cut.set_grouping(&bisection::partition(&body_graph(&problem), parts), seam);
                cut.load(&problem);
                cut.focus_on(&problem, &mask, (&free, None));
                between += cut.cut().interface.iter().filter(|&&r| r != GLUE && mask[r as usize]).count();
                for moving in [true, true, false] {
                    let labels: Vec<Label> = rows
                        .iter()
                        .map(|_| if random.below(3) == 0 { Label::Lower } else { Label::Free })
                        .collect();
                    let shift: Vec<f64> = rows.iter().map(|_| random.range(0.0, 0.01)).collect();
                    let r: Vec<f64> = rows.iter().map(|&i| random.range(0.5, 2.0) * -problem.d[i]).collect();
                    let given: Vec<f64> = rows.iter().map(|_| random.range(-1.0, 1.0)).collect();
                    let [a, b] = [&mut whole as &mut dyn Nearby, &mut cut].map(|system| {
                        let (mut lambda, mut jv) = (given.clone(), vec![0.0; rows.len()]);
                        let (labels, shift, r) = (&labels[..], &shift[..], &r[..]);
                        let near = Near { labels, shift, moving, r, lambda: &mut lambda, jv: &mut jv };
                        system.solve_near(&problem, near);
                        jv
                    });
                    let size = a.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
                    let error = a.iter().zip(&b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size;
                    // Neither is refined. Folding loses up to seven digits of λ on C = 1e-9, and v of a chain under 500 kg as many.
                    assert!(error < 1e-6, "{name}, {parts} parts, {seam:?}, moving {moving}: {error:e}");
                }
            }
        }
    }
    assert!(between > 100, "rows between partitions are in focus too: {between}");
}

/// Either system, whatever runs it.
trait Nearby {
    fn solve_near(&mut self, problem: &RowProblem, near: Near<'_>);
}

impl<L: LinearSystem> Nearby for L {
    fn solve_near(&mut self, problem: &RowProblem, near: Near<'_>) {
        LinearSystem::solve_near(self, problem, near);
    }
}

#[test]
fn few_rows_are_decided_with_all_others_eliminated_in_every_partition() {
    for (cables, links) in [(6, 20), (8, 30)] {
        let problem = generate::net(cables, links, 8000.0, 1e-8);
        let mut whole = Solution::default();
        assert!(RowSolver::new(Method::Auto).solve(&problem, &mut whole).converged);
        let size = whole.v.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for parts in [2, 3, 8] {
            let mut solver = Solver::<Substructured<Serial>>::new(Method::Auto);
            let graph = body_graph(&problem);
            solver.linear_mut().set_grouping(&bisection::partition(&graph, parts), Seam::Bodies);
            let mut solution = Solution::default();
            let stats = solver.solve(&problem, &mut solution);
            assert!(solver.condenses() && stats.converged, "{parts} parts: {stats:?}");
            let apart = whole.v.iter().zip(&solution.v).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            // Both are exact points of index sets that solve the problem to 1e-9; v is unique.
            assert!(apart <= 1e-8 * size, "{parts} parts: {apart:e} of {size}");
        }
    }
}

/// What `confirm` says of some labels, with its velocities, and the residual and energy that these and its impulses have.
fn confirmed<L: LinearSystem>(
    system: &mut L,
    problem: &RowProblem,
    labels: &[Label],
    near: bool,
) -> (Confirmed, Vec<f64>, Sums) {
    let (n, matrix) = (problem.rows(), problem.to_matrix());
    let diagonal: Vec<f64> = (0..n).map(|i| *matrix.a.get(i, i).expect("a diagonal")).collect();
    system.form(problem, Isa::detect(crate::linalg::Kernels::Auto));
    system.load(problem);
    if near {
        let mask: Vec<bool> =
            (0..n).map(|i| problem.lo[i].is_finite() || problem.hi[i].is_finite()).collect();
        let rows: Vec<usize> = (0..n).filter(|&i| mask[i]).collect();
        system.focus_on(problem, &mask, (&vec![Label::Free; n], None));
        let own: Vec<Label> = rows.iter().map(|&i| labels[i]).collect();
        let r: Vec<f64> = rows.iter().map(|&i| -problem.d[i]).collect();
        let (mut lambda, mut jv, shift) = (vec![0.0; n], vec![0.0; rows.len()], vec![0.0; rows.len()]);
        crate::solver::index_sets::begin(labels, &problem.lo, &problem.hi, &mut lambda);
        let mut lambda: Vec<f64> = rows.iter().map(|&i| lambda[i]).collect();
        let (lambda, jv) = (&mut lambda[..], &mut jv[..]);
        system.solve_near(problem, Near { labels: &own, shift: &shift, moving: true, r: &r, lambda, jv });
    }
    let (mut v, mut lambda, mut w) = (vec![0.0; 6 * problem.bodies()], vec![0.0; n], vec![0.0; n]);
    crate::solver::index_sets::begin(labels, &problem.lo, &problem.hi, &mut lambda);
    let mut scratch = Scratch::default();
    scratch.fit(problem);
    let point = Point { v: &mut v, lambda: &mut lambda, w: &mut w };
    let found = system.confirm(problem, (labels, near), point, 1e-13, &diagonal, &mut scratch);
    problem.slack(&v, &lambda, &mut w);
    (found, v, Sums::of(&lambda, &w, (&problem.lo, &problem.hi), &diagonal))
}

#[test]
fn what_is_confirmed_is_what_all_rows_say_whoever_judges_them() {
    let (mut on_copies, mut between) = (0, 0);
    for (cables, links) in [(4, 16), (6, 20)] {
        let problem = generate::net(cables, links, 8000.0, 1e-8);
        let mut solution = Solution::default();
        assert!(RowSolver::new(Method::Auto).solve(&problem, &mut solution).converged);
        let mut wrong = solution.labels.clone();
        let bounded = (0..problem.rows()).filter(|&i| problem.lo[i].is_finite());
        bounded.step_by(5).for_each(|i| {
            wrong[i] = if wrong[i] == Label::Free { Label::Lower } else { Label::Free };
        });
        for (labels, right) in [(&solution.labels, true), (&wrong, false)] {
            let reference = confirmed(&mut MixedSystem::default(), &problem, labels, false);
            assert_eq!(reference.0.sums.inside && reference.0.sums.natural.sqrt() < 1e-9, right);
            let check = |(found, v, sums): (Confirmed, Vec<f64>, Sums), who: &str| {
                assert!(found.balanced, "{who}");
                assert_eq!(found.sums.inside, sums.inside, "{who}");
                for (a, b) in [(found.sums.natural, sums.natural), (found.sums.energy, sums.energy)] {
                    // Sums in another order; of right labels nothing but round-off is left of either.
                    assert!((a - b).abs() <= 1e-9 * b + 1e-20, "{who}: {a:e} {b:e}");
                }
                let size = v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
                let apart = v.iter().zip(&reference.1).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
                // Both are refined; the mixed form keeps v near 1e-11.
                assert!(apart <= 1e-10 * size, "{who}: {apart:e}");
            };
            check(confirmed(&mut MixedSystem::default(), &problem, labels, true), "whole, from near");
            for (parts, seam) in [(2, Seam::Rows), (2, Seam::Bodies), (3, Seam::Bodies), (8, Seam::Bodies)] {
                for near in [false, true] {
                    let mut cut = Substructured::<Serial>::default();
                    cut.set_grouping(&bisection::partition(&body_graph(&problem), parts), seam);
                    check(confirmed(&mut cut, &problem, labels, near), &format!("{parts} {seam:?} {near}"));
                    on_copies += cut.on_copies.len();
                    between += cut.cut().between.len();
                }
            }
        }
    }
    assert!(on_copies > 0 && between > 0, "rows that no partition judges alone: {on_copies}, {between}");
}
