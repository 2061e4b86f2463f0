//! Records the row problems of scenes and solves them again, whole, one thread:
//!
//! `cargo run --release --example row_frames -- record FILE SCENE STEPS [EVERY]`
//! `cargo run --release --example row_frames -- solve auto FILE…`
//!
//! Frames are kept as they were solved last in a step (after friction passes and refinement), with the labels the
//! step started from, so that a change of the solver can be measured on what the engine really meets.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::sync::{Arc, Mutex};
use turnbuckle::Stage;
use turnbuckle::scene::{self, LoadOptions};
use turnbuckle::solver::{Label, Method, RowBlock, RowKind, RowProblem, RowSolver, Solution};

/// A problem and the labels its step started from.
struct Frame {
    step: u64,
    island: u64,
    problem: RowProblem,
    labels: Vec<Label>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match text[..] {
        ["record", file, scene, steps, ref rest @ ..] => record(
            file,
            scene,
            steps.parse().unwrap_or(60),
            rest.first().and_then(|e| e.parse().ok()).unwrap_or(1),
        ),
        ["solve", method, ref files @ ..] => files.iter().try_for_each(|file| solve(file, method)),
        _ => Err("say `record FILE SCENE STEPS [EVERY]` or `solve METHOD FILE…`".into()),
    };
    if let Err(e) = done {
        eprintln!("{e}");
        std::process::exit(2);
    }
}

fn record(file: &str, name: &str, steps: u64, every: u64) -> Result<(), String> {
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    let mut scene = scene::load_with(path, &LoadOptions::default()).map_err(|e| e.to_string())?;
    let labels = Arc::new(Mutex::new(Vec::<Vec<Label>>::new()));
    let before = labels.clone();
    scene.physics.add_system(Stage::Assemble, "start labels", move |step| {
        if let Ok(mut labels) = before.lock() {
            *labels = step.work.islands.iter().map(|i| i.solution.labels.clone()).collect();
        }
    });
    let output = Arc::new(Mutex::new(BufWriter::new(File::create(file).map_err(|e| e.to_string())?)));
    let sink = output.clone();
    scene.physics.add_system(Stage::Finish, "record", move |step| {
        let (Ok(mut out), Ok(labels)) = (sink.lock(), labels.lock()) else { return };
        if !step.report.step.is_multiple_of(every) {
            return;
        }
        for (k, island) in step.work.islands.iter().enumerate() {
            if island.problem.rows() > 0 {
                let start = labels.get(k).cloned().unwrap_or_default();
                let _ = write(&mut *out, step.report.step, k as u64, &island.problem, &start);
            }
        }
    });
    let dt = scene.dt();
    for _ in 0..steps {
        scene.physics.step(&mut scene.world, dt);
    }
    let mut out = output.lock().map_err(|e| e.to_string())?;
    out.flush().map_err(|e| e.to_string())
}

/// Seconds this thread has had a core, where the system tells (Linux); then other programs hardly disturb.
fn seconds_on_core() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) * 1e-9
}

fn solve(file: &str, method: &str) -> Result<(), String> {
    let method = Method::from_name(method).ok_or_else(|| format!("there is no solver called {method}"))?;
    let mut input = BufReader::new(File::open(file).map_err(|e| format!("{file}: {e}"))?);
    let show = std::env::var_os("FRAMES").is_some();
    let mut solvers: Vec<RowSolver> = Vec::new();
    let (mut frames, mut failed, mut worst, mut seconds) = (0u32, 0u32, 0.0f64, 0.0);
    let (mut interior, mut pivots, mut factors) = (Vec::new(), 0u64, 0u64);
    let (mut per_step, mut last) = (Vec::<f64>::new(), u64::MAX);
    while let Ok(frame) = read(&mut input) {
        let k = frame.island as usize;
        while solvers.len() <= k {
            solvers.push(RowSolver::new(method));
        }
        let mut solution = Solution { labels: frame.labels, ..Solution::default() };
        let start = seconds_on_core();
        let stats = solvers[k].solve(&frame.problem, &mut solution);
        let time = seconds_on_core() - start;
        if frame.step != last {
            per_step.push(0.0);
            last = frame.step;
        }
        if let Some(sum) = per_step.last_mut() {
            *sum += 1e3 * time;
        }
        frames += 1;
        seconds += time;
        failed += u32::from(!stats.converged);
        worst = worst.max(stats.residual_relative);
        factors += u64::from(stats.factorizations);
        pivots += u64::from(stats.pivots);
        if stats.ipm_iterations > 0 {
            interior.push(stats.ipm_iterations);
        }
        if show || !stats.converged {
            println!(
                "  step {} island {k}: {} rows, {} pivots, {} interior, {} factors, {:.1e}, {:.2} ms",
                frame.step,
                frame.problem.rows(),
                stats.pivots,
                stats.ipm_iterations,
                stats.factorizations,
                stats.residual_relative,
                1e3 * time
            );
        }
    }
    per_step.sort_by(f64::total_cmp);
    let at = |share: f64| per_step.get((share * per_step.len() as f64) as usize).copied().unwrap_or(0.0);
    let n = f64::from(frames.max(1));
    let ran = interior.len().max(1) as f64;
    println!(
        "{file}: {frames} frames, {failed} not solved, worst {worst:.1e}; interior point on {:.0} %, {:.1} iterations on \
         average, {} at most; {:.1} pivots, {:.1} factorizations a frame; a step {:.2} ms at the median, {:.2} at p99; {:.3} s",
        100.0 * interior.len() as f64 / n,
        interior.iter().sum::<u32>() as f64 / ran,
        interior.iter().max().copied().unwrap_or(0),
        pivots as f64 / n,
        factors as f64 / n,
        at(0.5),
        at(0.99),
        seconds
    );
    Ok(())
}

fn write(
    out: &mut impl Write,
    step: u64,
    island: u64,
    p: &RowProblem,
    labels: &[Label],
) -> std::io::Result<()> {
    let mut numbers = |list: &mut dyn Iterator<Item = f64>, n: usize| -> std::io::Result<()> {
        out.write_all(&(n as u64).to_le_bytes())?;
        for x in list {
            out.write_all(&x.to_le_bytes())?;
        }
        Ok(())
    };
    numbers(&mut [step as f64, island as f64].into_iter(), 2)?;
    numbers(&mut p.mass.iter().flatten().copied(), 36 * p.mass.len())?;
    numbers(&mut p.momentum.iter().flatten().copied(), 6 * p.momentum.len())?;
    let block = |b: &RowBlock| [b.row, b.rows, b.body, b.bodies, b.entry, u32::from(b.fold)].map(f64::from);
    numbers(&mut p.blocks.iter().flat_map(block), 6 * p.blocks.len())?;
    numbers(&mut p.block_bodies.iter().map(|&b| f64::from(b)), p.block_bodies.len())?;
    for list in [&p.jacobian, &p.compliance, &p.d, &p.lo, &p.hi] {
        numbers(&mut list.iter().copied(), list.len())?;
    }
    numbers(&mut p.kind.iter().map(|&k| f64::from(k as u8)), p.kind.len())?;
    numbers(&mut labels.iter().map(|&l| f64::from(l as u8)), labels.len())
}

fn read(input: &mut impl Read) -> std::io::Result<Frame> {
    let mut numbers = || -> std::io::Result<Vec<f64>> {
        let mut eight = [0; 8];
        input.read_exact(&mut eight)?;
        let mut bytes = vec![0; 8 * u64::from_le_bytes(eight) as usize];
        input.read_exact(&mut bytes)?;
        let number = |c: &[u8]| f64::from_le_bytes(c.try_into().unwrap_or_default());
        Ok(bytes.chunks_exact(8).map(number).collect())
    };
    let head = numbers()?;
    let mass = numbers()?.chunks_exact(36).map(|c| std::array::from_fn(|i| c[i])).collect();
    let momentum = numbers()?.chunks_exact(6).map(|c| std::array::from_fn(|i| c[i])).collect();
    let block = |c: &[f64]| RowBlock {
        row: c[0] as u32,
        rows: c[1] as u32,
        body: c[2] as u32,
        bodies: c[3] as u32,
        entry: c[4] as u32,
        fold: c[5] != 0.0,
    };
    let blocks = numbers()?.chunks_exact(6).map(block).collect();
    let block_bodies = numbers()?.iter().map(|&b| b as u32).collect();
    let [jacobian, compliance, d, lo, hi] = [numbers()?, numbers()?, numbers()?, numbers()?, numbers()?];
    let kind = |&k: &f64| {
        [RowKind::Joint, RowKind::Normal, RowKind::Friction].into_iter().find(|&x| f64::from(x as u8) == k)
    };
    let kind = numbers()?.iter().map(|k| kind(k).unwrap_or_default()).collect();
    let label =
        |&l: &f64| [Label::Free, Label::Lower, Label::Upper].into_iter().find(|&x| f64::from(x as u8) == l);
    let labels = numbers()?.iter().map(|l| label(l).unwrap_or(Label::Free)).collect();
    let problem = RowProblem {
        width: Vec::new(),
        couplings: Vec::new(),
        mass,
        momentum,
        blocks,
        block_bodies,
        jacobian,
        compliance,
        d,
        lo,
        hi,
        kind,
        cones: Vec::new(),
    };
    Ok(Frame { step: head[0] as u64, island: head[1] as u64, problem, labels })
}
