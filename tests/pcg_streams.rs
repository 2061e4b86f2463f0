//! `bpp-pcg` and `pgcg` on problems of the scenes: the direct solver's index set and a residual of 1e-6 wherever they report
//! convergence. A few frames of each scene here; a scene's whole stream by
//! `turnbuckle compare SCENE --recorded --solvers auto,bpp-pcg,pgcg` (column `agree`).

use std::sync::{Arc, Mutex};
use turnbuckle::scene::{self, LoadOptions};
use turnbuckle::schedule::Stage;
use turnbuckle::solver::{Label, Method, RowProblem, RowSolver, Solution};

/// Scene, parameters that make it smaller, and the steps whose largest island is kept.
const STREAMS: [(&str, &[&str], [u64; 2]); 7] = [
    ("log_tower", &["logs=40"], [6, 20]),
    ("cable_spinner", &[], [2, 6]),
    ("chain_load", &[], [10, 40]),
    ("trucks", &[], [2, 4]),
    ("rock_pile", &[], [20, 40]),
    ("wall", &[], [10, 30]),
    ("boxes", &[], [2, 4]),
];

/// Rows up to which a problem is solved here: the whole suite has minutes.
const MOST_ROWS: usize = 3000;

fn frames(name: &str, set: &[&str], steps: [u64; 2]) -> Vec<RowProblem> {
    let mut options = LoadOptions::default();
    for assignment in set {
        // Scenes may call their sizes differently; the size is only there to save time.
        let _ = options.set(assignment);
    }
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    let mut scene = scene::load_with(&path, &options)
        .or_else(|_| scene::load_with(&path, &LoadOptions::default()))
        .expect("a scene of ours");
    let kept: Arc<Mutex<Vec<RowProblem>>> = Arc::default();
    let sink = Arc::clone(&kept);
    scene.physics.add_system(Stage::Assemble, "keep", move |step| {
        if steps.contains(&step.report.step) && step.work.substep.0 == 0 {
            let fits = step.work.islands.iter().filter(|i| i.problem.rows() <= MOST_ROWS);
            let largest = fits.max_by_key(|i| i.problem.rows());
            sink.lock().expect("no holder of the lock panicked").extend(largest.map(|i| i.problem.clone()));
        }
    });
    let dt = scene.dt();
    for _ in 0..steps[1] {
        scene.physics.step(&mut scene.world, dt);
    }
    drop(scene);
    Arc::into_inner(kept).expect("the scene is gone").into_inner().expect("no holder of the lock panicked")
}

fn solve(problem: &RowProblem, method: Method) -> (Solution, turnbuckle::solver::SolveStats) {
    let mut solver = RowSolver::new(method);
    // Enough to arrive where they do arrive; the rest of the time would only be spent on saying no later.
    solver.settings.max_outer = 60;
    solver.settings.inner.max_iterations = 2000;
    let mut solution = Solution::default();
    let stats = solver.solve(problem, &mut solution);
    (solution, stats)
}

#[test]
fn problems_of_the_scenes_are_solved_as_by_the_direct_solver_or_refused() {
    let mut arrived = [0; 2];
    let mut seen = 0;
    for (name, set, steps) in STREAMS {
        for problem in frames(name, set, steps).iter().filter(|p| p.rows() > 0) {
            seen += 1;
            let (exact, direct) = solve(problem, Method::Auto);
            let mut w = vec![0.0; problem.rows()];
            problem.slack(&exact.v, &exact.lambda, &mut w);
            for (k, method) in [Method::BppPcg, Method::Pgcg].into_iter().enumerate() {
                let (found, stats) = solve(problem, method);
                println!(
                    "{name}, {} rows, {}: converged {}, residual {:.1e}, {} outer, {} inner, {:.0} % imaginary",
                    problem.rows(),
                    method.name(),
                    stats.converged,
                    stats.residual_relative,
                    stats.pivots,
                    stats.inner_iterations,
                    100.0 * stats.imaginary_share
                );
                if !stats.converged || !direct.converged {
                    continue;
                }
                arrived[k] += 1;
                // The bound of issue 8; they ask themselves for 1e-9.
                assert!(stats.residual_relative <= 1e-6, "{name}: {stats:?}");
                for (i, w) in w.iter().enumerate() {
                    // A row at a bound with a slack of 0.1 mm/s is there in every solution.
                    if exact.labels[i] != Label::Free && w.abs() > 1e-4 {
                        assert_eq!(exact.labels[i], found.labels[i], "{name}, {}, row {i}", method.name());
                    }
                }
            }
        }
    }
    println!("of {seen}: bpp-pcg {} and pgcg {} converged", arrived[0], arrived[1]);
    // Of every stream there must be something to look at.
    assert!(seen >= 2 * STREAMS.len() - 2, "only {seen} problems");
}

mod partitions {
    //! Inside partitions and at the interface, alone and beside direct solvers.

    use turnbuckle::coupling::body_graph;
    use turnbuckle::coupling::coupling_loop::{self, CouplingLoop};
    use turnbuckle::coupling::executor::Serial;
    use turnbuckle::coupling::schur::CouplingSettings;
    use turnbuckle::graph::min_degree;
    use turnbuckle::solver::{Method, RowSolver, Solution, generate};

    #[test]
    fn coupled_partitions_by_conjugate_gradients_have_the_velocities_of_the_whole() {
        let problems = [
            ("chain on ground", generate::chain_on_ground(60, 1e-6)),
            ("net", generate::net(4, 16, 0.0, 1e-6)),
            ("rocks", generate::rocks(30, 1e-6)),
        ];
        let mut arrived = 0;
        for (name, problem) in problems {
            let mut whole = Solution::default();
            assert!(RowSolver::new(Method::Auto).solve(&problem, &mut whole).converged, "{name}");
            let grouping = min_degree::partition(&body_graph(&problem), 16);
            // Inside, from how many rows on (so that small partitions stay direct), at the interface.
            for (inside, rows, interface) in [
                (Some(Method::BppPcg), 0, Method::BppPcg),
                (Some(Method::Pgcg), 0, Method::Pgcg),
                (Some(Method::Pgcg), 60, Method::Bpp),
                (None, 0, Method::BppPcg),
            ] {
                let (mut nested, mut solution) = (CouplingLoop::default(), Solution::default());
                nested.set_inside(inside, rows);
                let settings = CouplingSettings { interface, max_iterations: 10, as_published: false };
                let stats =
                    coupling_loop::solve(&mut nested, &problem, &grouping, &mut solution, &settings, &Serial);
                println!("{name}, {inside:?} from {rows} rows, interface {interface:?}: {stats:?}");
                assert!(rows > 0 || stats.inner_iterations > 0, "{name}: no gradients were asked for");
                if stats.residual_relative > 1e-9 {
                    assert!(!stats.converged, "{name}: {stats:?}");
                    continue;
                }
                arrived += 1;
                let size = whole.v.iter().fold(1e-300f64, |m, x| m.max(x.abs()));
                let off = whole.v.iter().zip(&solution.v).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
                // v is unique where λ is not; the bound of `tests/equivalence.rs`.
                assert!(off <= 1e-8 * size, "{name}: {off:e} of {size:e}, {stats:?}");
            }
        }
        // On the chain, cold, ten coupling iterations are not enough with any solver inside; the others arrive with all.
        assert!(arrived >= 8, "only {arrived} of 12 arrived");
    }
}
