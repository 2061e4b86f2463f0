//! Substructuring against one factorization of the whole, on generated problems.

use std::time::Instant;
use turnbuckle::coupling::cut::Seam;
use turnbuckle::coupling::flat::Substructured;
use turnbuckle::graph::{BodyGraph, bisection};
use turnbuckle::solver::linear::LinearSystem;
use turnbuckle::solver::mixed::MixedSystem;
use turnbuckle::solver::{Label, RowProblem, generate};
use turnbuckle::systems::parallel::Parallel;

fn graph_of(problem: &RowProblem) -> BodyGraph {
    let mut graph = BodyGraph::default();
    graph.reset(problem.bodies());
    for block in &problem.blocks {
        let bodies = problem.bodies_of(block);
        for (k, &a) in bodies.iter().enumerate() {
            bodies[..k].iter().for_each(|&b| graph.tie(a, b, block.rows));
        }
    }
    graph.finish();
    graph.cap_weights(6);
    graph
}

fn median(mut f: impl FnMut()) -> f64 {
    f();
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            let t = Instant::now();
            f();
            1e3 * t.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[7]
}

fn time<L: LinearSystem>(system: &mut L, problem: &RowProblem) -> (f64, f64) {
    let labels = vec![Label::Free; problem.rows()];
    let r_v: Vec<f64> = problem.momentum.iter().flatten().copied().collect();
    let r_lambda: Vec<f64> = problem.d.iter().map(|d| -d).collect();
    let (mut v, mut lambda) = (vec![0.0; r_v.len()], vec![0.0; problem.rows()]);
    system.load(problem);
    let mut k = 0;
    let factor = median(|| {
        k += 1;
        let diagonal = vec![1e-9 * k as f64; problem.rows()];
        system.factor(problem, &labels, Some(&diagonal));
    });
    let solve = median(|| system.solve(problem, &r_v, &r_lambda, &mut v, &mut lambda, 1));
    (factor, solve)
}

fn main() {
    let problems = [
        ("chain 250", generate::chain(250, 500.0, 1e-9)),
        ("chain ground 250", generate::chain_on_ground(250, 1e-8)),
        ("tower 80", generate::tower(80, 4, 2500.0, 1e-8)),
        ("net 12x50", generate::net(12, 50, 8000.0, 1e-9)),
        ("net 24x100", generate::net(24, 100, 8000.0, 1e-9)),
        ("rocks 150", generate::rocks(150, 1e-8)),
        ("rocks 300", generate::rocks(300, 1e-8)),
    ];
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            for (name, problem) in &problems {
                let (wf, ws) = time(&mut MixedSystem::default(), problem);
                let t = Instant::now();
                let graph = graph_of(problem);
                let tg = 1e3 * t.elapsed().as_secs_f64();
                print!(
                    "{threads} {name:18} bodies {:5} rows {:5} whole {wf:7.3} {ws:7.3}",
                    problem.bodies(),
                    problem.rows()
                );
                for parts in [2, 4, 8] {
                    let t = Instant::now();
                    let grouping = bisection::partition(&graph, parts);
                    let tp = 1e3 * t.elapsed().as_secs_f64();
                    let mut cut = Substructured::<Parallel>::default();
                    cut.set_grouping(&grouping, Seam::Bodies);
                    let (f, s) = time(&mut cut, problem);
                    let st = cut.stats();
                    print!(
                        " | {parts}: {f:6.3} {s:6.3} m {:3} ({:.2} {:.2}) cut {:.2}",
                        st.interface_rows,
                        wf / f,
                        ws / s,
                        tp + tg
                    );
                }
                println!();
            }
        });
    }
}
