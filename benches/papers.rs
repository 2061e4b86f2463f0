//! The tables and figures of 000 §7 on our scenes, for its loop as it is published and for ours beside it, and Tables 6.2 to 6.4 of 003.
//!
//! `cargo bench --bench papers [-- table3 table4 fig9 fig12 fig13 table62 table63 table64] [SCENE…] [--limit S] [--frames N]`, a few minutes
//! each; scenes narrow Table 3 and those of 003. A frame of these is ended after `--limit` seconds (20 in Table 3, 5 in those of 003), and
//! that is told. Times are of one solve, in 000's tables on a core (other programs hardly disturb them); those of more threads than one are
//! estimated from the critical path.

#[path = "support/child.rs"]
mod child;
#[path = "support/critical.rs"]
mod critical;
#[path = "support/frames.rs"]
mod frames;
#[path = "support/gradients.rs"]
mod gradients;
#[path = "support/spool.rs"]
mod spool;

use critical::{Timed, Trace, fastest};
use frames::{Frame, capture};
use spool::{Spool, Spooled};
use std::time::Duration;
use turnbuckle::coupling::body_graph;
use turnbuckle::coupling::coupling_loop::{self, CouplingLoop};
use turnbuckle::coupling::cut::Seam;
use turnbuckle::coupling::executor::Serial;
use turnbuckle::coupling::schur::CouplingSettings;
use turnbuckle::coupling::substructured::Substructured;
use turnbuckle::graph::{Grouping, bisection, min_degree, semantic};
use turnbuckle::solver::row_solver::Solver;
use turnbuckle::solver::{Method, RowSolver, Solution};

/// Scene, steps between captures, captures, and the paper's mean k and share at the limit (%). Fifty frames over the length of the
/// scene where that is affordable; where thousands of contacts lie between partitions a frame takes minutes.
const TABLE3: [(&str, u64, u64, f64, f64); 7] = [
    ("log_tower", 12, 50, 5.8, 39.2),
    ("chain_wrap", 12, 50, 4.4, 1.9),
    ("chain_drop", 60, 10, 3.2, 2.1),
    ("rock_pile", 12, 50, 6.3, 10.2),
    ("net_truck", 12, 50, 2.6, 0.0),
    ("tandem_cranes", 24, 50, 2.4, 0.2),
    ("cable_spinner", 24, 10, 2.1, 0.0),
];

fn published(interface: Method) -> CouplingSettings {
    CouplingSettings { interface, max_iterations: 10, as_published: true }
}

/// The cut of 000 Table 2: semantic where bodies have names, else minimum degree, 16 bodies each.
fn published_cut(frame: &Frame) -> Grouping {
    let graph = body_graph(&frame.problem);
    if frame.hints.iter().any(Option::is_some) {
        semantic::partition(&graph, &frame.hints)
    } else {
        min_degree::partition(&graph, 16)
    }
}

fn warm(frame: &Frame) -> Solution {
    Solution { labels: frame.labels.clone(), ..Solution::default() }
}

/// What the frames of a scene came to: means of those that ended in time.
#[derive(Default)]
struct Row {
    k: f64,
    at_limit: f64,
    solved: f64,
    settled_wrongly: f64,
    /// Pivots a pass.
    between: f64,
    within: f64,
    /// Frames that were ended.
    stopped: usize,
}

/// The process of one frame by the loop as published: prints k, whether it settled, whether that is a solution (relative
/// residual at most 1e-9), and pivots a pass of the interface and of the busiest partition.
fn one_nested(interface: &str, file: &str) {
    let interface = Method::from_name(interface).expect("a solver of ours");
    let frame = spool::read(file).remove(0);
    let hints = frame.hints.iter().map(|h| u32::try_from(*h).ok()).collect();
    let frame = Frame { problem: frame.problem, labels: frame.start.labels, hints };
    let (mut solution, mut nested) = (warm(&frame), CouplingLoop::default());
    let settings = published(interface);
    let stats = coupling_loop::solve(
        &mut nested,
        &frame.problem,
        &published_cut(&frame),
        &mut solution,
        &settings,
        &Serial,
    );
    let (k, settled) = nested.outcome();
    let coupling = nested.coupling();
    let busiest = coupling.partitions.iter().map(|seat| seat.partition.pivots).max().unwrap_or(0);
    let a_pass = |pivots: u32| f64::from(pivots) / f64::from(k.max(1));
    let (between, within) = (a_pass(coupling.pivots), a_pass(busiest));
    println!("{k} {} {} {between} {within}", u8::from(settled), u8::from(stats.converged));
}

/// The loop as published: k, share at the limit, share truly solved and share settled on something that is no solution.
fn convergence(frames: &[Frame], interface: Method, limit: Duration) -> Row {
    let mut row = Row::default();
    for frame in frames {
        let hints = frame.hints.iter().map(|h| h.map_or(-1, |h| h as i32)).collect();
        let file = Spool::new(&[Spooled { problem: frame.problem.clone(), start: warm(frame), hints }]);
        match file.solve(&["nested", interface.name()], limit).as_deref() {
            Some(&[k, settled, solved, between, within]) => {
                row.k += k;
                row.at_limit += 1.0 - settled;
                row.solved += solved;
                row.settled_wrongly += settled * (1.0 - solved);
                row.between += between;
                row.within += within;
            }
            _ => row.stopped += 1,
        }
    }
    let n = (frames.len() - row.stopped).max(1) as f64;
    let Row { k, at_limit, solved, settled_wrongly, between, within, .. } = &mut row;
    for sum in [k, at_limit, solved, settled_wrongly, between, within] {
        *sum /= n;
    }
    row
}

/// Share of frames that our default solves, whole.
fn ours(frames: &[Frame]) -> f64 {
    let solved = |frame: &&Frame| {
        RowSolver::new(Method::Auto).solve(&frame.problem, &mut warm(frame)).residual_relative <= 1e-9
    };
    frames.iter().filter(solved).count() as f64 / frames.len().max(1) as f64
}

fn table3() {
    let limit = option("--limit", 20.0);
    println!(
        "Table 3, fifty frames over the length of each scene (chain_drop ten; spinner ten of its first 4 s), warm, k at most 10; the paper's figures in brackets"
    );
    println!(
        "| scene | interface | rows, most | mean k | at limit | truly solved | settled, but wrong | pivots a pass: interface, busiest partition | > {limit} s | auto solves |"
    );
    let asked: Vec<String> = std::env::args().collect();
    let narrowed = TABLE3.iter().any(|row| asked.iter().any(|a| a == row.0));
    for (name, every, count, k, at_limit) in TABLE3 {
        if narrowed && !asked.iter().any(|a| a == name) {
            continue;
        }
        let frames = capture(name, &[], every, every, count);
        let rows = frames.iter().map(|f| f.problem.rows()).max().unwrap_or(0);
        let auto = ours(&frames);
        for method in [Method::Bpp, Method::PgsSm] {
            let row = convergence(&frames, method, Duration::from_secs_f64(limit));
            println!(
                "| {name} | {} | {rows} | {:.1} ({k}) | {:.0} % ({at_limit:.0} %) | {:.0} % | {:.0} % | {:.0}, {:.0} | {} of {} | {:.0} % |",
                method.name(),
                row.k,
                100.0 * row.at_limit,
                100.0 * row.solved,
                100.0 * row.settled_wrongly,
                row.between,
                row.within,
                row.stopped,
                frames.len(),
                100.0 * auto,
            );
        }
    }
}

/// Least times of the published loop on a frame.
fn time_published(frame: &Frame, cut: &Grouping, from: &Solution) -> Trace {
    let mut nested = CouplingLoop::default();
    fastest(2, || {
        let mut solution = from.clone();
        coupling_loop::solve(
            &mut nested,
            &frame.problem,
            cut,
            &mut solution,
            &published(Method::PgsSm),
            &Timed,
        );
    })
}

/// Least times of `auto` on a frame that is cut.
fn time_flat(frame: &Frame, cut: &Grouping, from: &Solution) -> Trace {
    let mut flat = Solver::<Substructured<Timed>>::new(Method::Auto);
    flat.linear_mut().set_grouping(cut, Seam::Bodies);
    fastest(2, || {
        flat.set_pivoting_failed(false);
        let mut solution = from.clone();
        flat.solve(&frame.problem, &mut solution);
    })
}

fn time_whole(frame: &Frame, from: &Solution) -> f64 {
    let mut whole = RowSolver::new(Method::Auto);
    let trace = fastest(2, || {
        whole.set_pivoting_failed(false);
        let mut solution = from.clone();
        whole.solve(&frame.problem, &mut solution);
    });
    trace.elapsed
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    values.for_each(|v| {
        sum += v;
        count += 1;
    });
    sum / f64::from(count.max(1))
}

/// The paper's milliseconds (six cores) and partitions in brackets.
fn table4() {
    println!(
        "\nTable 4, minimum degree, ten frames over the length of each scene; ms on one thread / on two"
    );
    println!("| scene | bodies a partition | partitions | schur-pgs-sm | auto, cut | auto, whole |");
    let paper = [
        ("log_tower", [(53.4, 30.4), (51.4, 19.1), (63.3, 14.3), (88.8, 12.8)]),
        ("rock_pile", [(169.1, 21.2), (98.6, 12.1), (129.7, 6.8), (142.7, 4.9)]),
    ];
    for (name, figures) in paper {
        let frames = capture(name, &[], 30, 60, 10);
        let whole = mean(frames.iter().map(|f| time_whole(f, &warm(f))));
        for (size, (ms, parts)) in [8, 16, 32, 64].into_iter().zip(figures) {
            let cuts: Vec<Grouping> =
                frames.iter().map(|f| min_degree::partition(&body_graph(&f.problem), size)).collect();
            let pairs = || frames.iter().zip(&cuts);
            let loops: Vec<Trace> = pairs().map(|(f, cut)| time_published(f, cut, &warm(f))).collect();
            let flats: Vec<Trace> = pairs().map(|(f, cut)| time_flat(f, cut, &warm(f))).collect();
            let on = |traces: &[Trace], p: usize| mean(traces.iter().map(|t| t.on(p)));
            println!(
                "| {name} | {size} | {:.1} ({parts}) | {:.1} / {:.1} ({ms}) | {:.1} / {:.1} | {whole:.1} |",
                mean(cuts.iter().map(|c| f64::from(c.count))),
                on(&loops, 1),
                on(&loops, 2),
                on(&flats, 1),
                on(&flats, 2),
            );
        }
    }
}

/// Bisected into so many parts.
fn bisected(frame: &Frame, parts: u32) -> Grouping {
    let mut graph = body_graph(&frame.problem);
    graph.cap_weights(6);
    bisection::partition(&graph, parts)
}

fn fig9() {
    println!("\nFig. 9, log_tower, ms a solve: warm start and threads");
    println!("| solver | cold, 1 thread | warm, 1 thread | cold, 2 threads | warm, 2 threads |");
    let frames = capture("log_tower", &[], 30, 60, 10);
    let cold = Solution::default();
    type Time = fn(&Frame, &Grouping, &Solution) -> Trace;
    type Cut = fn(&Frame) -> Grouping;
    let solvers: [(&str, Time, Cut); 2] = [
        ("schur-pgs-sm, min-degree:16", time_published, published_cut),
        ("auto, two halves", time_flat, |frame| bisected(frame, 2)),
    ];
    for (name, time, cut) in solvers {
        let without: Vec<Trace> = frames.iter().map(|f| time(f, &cut(f), &cold)).collect();
        let with: Vec<Trace> = frames.iter().map(|f| time(f, &cut(f), &warm(f))).collect();
        let on = |traces: &[Trace], p: usize| mean(traces.iter().map(|t| t.on(p)));
        println!(
            "| {name} | {:.1} | {:.1} | {:.1} | {:.1} |",
            on(&without, 1),
            on(&with, 1),
            on(&without, 2),
            on(&with, 2)
        );
    }
    println!(
        "| auto, whole | {:.1} | {:.1} | | |",
        mean(frames.iter().map(|f| time_whole(f, &cold))),
        mean(frames.iter().map(|f| time_whole(f, &warm(f))))
    );
}

/// The fastest of a frame cut in two to 32 parts, for so many threads.
fn best_cut(frame: &Frame, traces: &[Trace], threads: usize) -> f64 {
    let whole = time_whole(frame, &warm(frame));
    traces.iter().map(|t| t.on(threads)).fold(whole, f64::min)
}

fn fig12() {
    println!(
        "\nFig. 12, strong scaling: against one thread, by critical path (paper, 16 threads: bridge nearly 5×)"
    );
    println!("| scene | solver | ms, 1 thread | 2 | 4 | 8 | 16 | serial share |");
    for (name, first, every) in [("log_tower", 30, 120), ("chain_wrap", 300, 60), ("bridge", 5, 40)] {
        let frames = capture(name, &[], first, every, 5);
        let loops: Vec<Trace> =
            frames.iter().map(|f| time_published(f, &published_cut(f), &warm(f))).collect();
        let line = |solver: &str, ms: &[f64], serial: f64| {
            let gains: Vec<String> = ms[1..].iter().map(|t| format!("{:.2}×", ms[0] / t)).collect();
            println!(
                "| {name} | {solver} | {:.2} | {} | {:.0} % |",
                ms[0],
                gains.join(" | "),
                100.0 * serial
            );
        };
        let threads = [1, 2, 4, 8, 16];
        let serial = 1.0 - mean(loops.iter().map(Trace::parallel)) / mean(loops.iter().map(|t| t.elapsed));
        line("schur-pgs-sm", &threads.map(|p| mean(loops.iter().map(|t| t.on(p)))), serial);
        let flats: Vec<Vec<Trace>> = frames
            .iter()
            .map(|f| [2, 4, 8, 16, 32].map(|parts| time_flat(f, &bisected(f, parts), &warm(f))).into())
            .collect();
        let best = |p| mean(frames.iter().zip(&flats).map(|(f, traces)| best_cut(f, traces, p)));
        let sixteen: Vec<&Trace> = flats.iter().map(|traces| &traces[3]).collect();
        let serial =
            1.0 - mean(sixteen.iter().map(|t| t.parallel())) / mean(sixteen.iter().map(|t| t.elapsed));
        line("auto, best cut (against the whole; serial share of 16 parts)", &threads.map(best), serial);
    }
}

fn fig13() {
    println!(
        "\nFig. 13, weak scaling: ms a solve, size and threads growing together (both curves of the paper rise)"
    );
    println!("| scene | threads | rows | schur-pgs-sm | auto, best cut | auto, whole |");
    for (name, parameter, unit, first) in [("log_tower", "logs", 16.0, 30), ("bridge", "planks", 32.0, 5)] {
        for threads in [1usize, 2, 4, 8, 16] {
            let frames = capture(name, &[(parameter, unit * threads as f64)], first, 20, 3);
            let loops = frames.iter().map(|f| time_published(f, &published_cut(f), &warm(f)).on(threads));
            let best = frames.iter().map(|f| {
                let traces = [2, 4, 8, 16, 32].map(|parts| time_flat(f, &bisected(f, parts), &warm(f)));
                best_cut(f, &traces, threads)
            });
            println!(
                "| {name}, {parameter} {} | {threads} | {} | {:.2} | {:.2} | {:.2} |",
                unit * threads as f64,
                frames.last().map_or(0, |f| f.problem.rows()),
                mean(loops),
                mean(best),
                mean(frames.iter().map(|f| time_whole(f, &warm(f)))),
            );
        }
    }
}

/// The number that follows `name` on the command line.
fn option(name: &str, or: f64) -> f64 {
    std::env::args().skip_while(|a| a != name).nth(1).and_then(|n| n.parse().ok()).unwrap_or(or)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["--one", "islands", method, limit, file] => {
            return gradients::one(method, limit.parse().expect("seconds"), file);
        }
        ["--one", "nested", interface, file] => return one_nested(interface, file),
        _ => {}
    }
    let tables: [(&str, fn()); 5] =
        [("table3", table3), ("table4", table4), ("fig9", fig9), ("fig12", fig12), ("fig13", fig13)];
    let of_003 = ["table62", "table63", "table64"];
    let named = |name: &str| args.iter().any(|a| a == name);
    let all = !tables.iter().any(|t| named(t.0)) && !of_003.into_iter().any(named);
    for (name, print) in tables {
        if all || named(name) {
            print();
        }
    }
    if all || of_003.into_iter().any(named) {
        let wanted = |name: &str| all || named(name);
        gradients::tables(&wanted, &args, option("--frames", 12.0) as u64, option("--limit", 5.0));
    }
}
