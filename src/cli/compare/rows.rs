//! Rows of a comparison, as text while it goes on and as CSV.

use super::CompareArgs;
use crate::cli::table::meters;
use serde::Serialize;
use std::fmt::Write as _;
use turnbuckle::solver::Method;

/// One row: how one choice did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// What tells it from the others.
    pub label: String,
    /// Solver.
    pub solver: String,
    /// Solver inside its partitions, where one was asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub inside: String,
    /// Partitioning.
    pub partition: String,
    /// Partitions, mean; a group that is not cut is one.
    pub partitions: f64,
    /// Share of steps or problems in which something was cut.
    pub cut: f64,
    /// Threads.
    pub threads: usize,
    /// Warm start?
    pub warm_start: bool,
    /// Value of the parameter that grows, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<f64>,
    /// Steps or problems.
    pub steps: u64,
    /// Rows, mean.
    pub rows: f64,
    /// Solve time (ms).
    pub solve_mean: f64,
    /// Solve time (ms).
    pub solve_median: f64,
    /// Solve time (ms).
    pub solve_p99: f64,
    /// Baseline's mean solve time over this one's.
    pub speed_up: f64,
    /// Whole step (ms).
    pub step_mean: f64,
    /// Coupling iterations, mean.
    pub coupling: f64,
    /// Share of steps at the limit of coupling iterations.
    pub at_limit: f64,
    /// Outer iterations (pivots, interior-point iterations, sweeps), mean.
    pub outer: f64,
    /// Conjugate gradient iterations, mean.
    pub inner: f64,
    /// Share of imaginary columns in the preconditioner, the largest (003 Fig. 6.4).
    pub imaginary: f64,
    /// Friction rows softened, the most in a step (003 Algorithm 9).
    pub softened: u32,
    /// Share of recorded problems reported as converged whose index set is the first solver's wherever that is unique.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agree: Option<f64>,
    /// Share of steps that did not reach the tolerance.
    pub unsettled: f64,
    /// Residual, median.
    pub residual_median: f64,
    /// Residual, largest.
    pub residual_max: f64,
    /// Largest joint error (m).
    pub joint_error: f64,
    /// Deepest penetration (m).
    pub penetration: f64,
    /// Promises of the scene that were broken.
    pub broken: usize,
    /// Time, solve time, residual, joint error and penetration of every step, for the plots.
    #[serde(skip)]
    pub curve: Vec<[f64; 5]>,
}

impl Row {
    /// Is it a method that works on partitions, of which there was none? Then the row is that of another method.
    pub fn is_not_cut(&self) -> bool {
        self.cut == 0.0 && Method::from_name(&self.solver).is_some_and(Method::is_substructured)
    }

    /// The number of partitions as a cell.
    pub fn parts(&self) -> String {
        match self.cut > 0.0 {
            true => format!("{:.1}", self.partitions),
            false if self.is_not_cut() => "not cut".into(),
            false => "-".into(),
        }
    }
}

/// What "not cut" means, if a row says so.
pub fn about_cuts(rows: &[Row]) -> Option<String> {
    let idle: Vec<&Row> = rows.iter().filter(|r| r.is_not_cut()).collect();
    let same = |r: &&Row| Method::from_name(&r.solver).map(Method::of_whole).map(Method::name);
    let mut names: Vec<&str> = idle.iter().filter_map(same).collect();
    names.sort_unstable();
    names.dedup();
    (!idle.is_empty()).then(|| {
        format!(
            "not cut: no group of bodies fell into partitions, so these rows are those of {} under another name; \
             try a larger scene or --partitions min-degree:8",
            names.join(" and ")
        )
    })
}

/// The table on the terminal: a line as soon as a row is done.
pub struct Table {
    partitions: bool,
    threads: bool,
    started: bool,
    recorded: bool,
}

impl Table {
    /// Names only what the comparison varies.
    pub fn new(args: &CompareArgs) -> Table {
        Table {
            partitions: args.partitions.len() > 1,
            threads: args.threads.len() > 1,
            started: false,
            recorded: args.recorded,
        }
    }

    /// What tells a row from the others.
    pub fn label(&self, r: &Row) -> String {
        let mut label = r.solver.clone();
        if !r.inside.is_empty() {
            let _ = write!(label, "/{}", r.inside);
        }
        if self.partitions {
            let _ = write!(label, " {}", r.partition);
        }
        if self.threads {
            let _ = write!(label, " {} thr", r.threads);
        }
        if !r.warm_start {
            label.push_str(" cold");
        }
        if let Some(size) = r.size {
            let _ = write!(label, " @{size}");
        }
        label
    }

    /// Completes a row, prints it and puts it with the others.
    pub fn add(&mut self, mut row: Row, rows: &mut Vec<Row>) {
        row.label = self.label(&row);
        // Speed is told against the first row of the same size.
        let baseline = rows.iter().find(|r| r.size == row.size).unwrap_or(&row).solve_mean;
        row.speed_up = baseline / row.solve_mean.max(1e-12);
        if !std::mem::replace(&mut self.started, true) {
            println!("{}", self.head());
        }
        println!("{}", self.line(&row));
        rows.push(row);
    }

    fn head(&self) -> String {
        let last = if self.recorded {
            format!("{:>7}", "agree")
        } else {
            format!("{:>10} {:>11} {:>6}", "joints", "penetration", "broken")
        };
        format!(
            "\n{:<28} {:>7} {:>7} {:>9} {:>9} {:>8} {:>6} {:>6} {:>7} {:>8} {:>6} {:>4} {:>9} {:>8} {:>8} {last}",
            "solver",
            "parts",
            "rows",
            "solve ms",
            "p99",
            "speed-up",
            "coupl.",
            "limit",
            "outer",
            "inner",
            "imag.",
            "soft",
            "unsettled",
            "residual",
            "largest",
        )
    }

    fn line(&self, r: &Row) -> String {
        let last = if self.recorded {
            r.agree.map_or_else(|| format!("{:>7}", "-"), |a| format!("{:>6.1}%", 100.0 * a))
        } else {
            format!("{:>10} {:>11} {:>6}", meters(r.joint_error), meters(r.penetration), r.broken)
        };
        format!(
            "{:<28} {:>7} {:>7.0} {:>9.3} {:>9.3} {:>7.3}x {:>6.1} {:>5.1}% {:>7.1} {:>8.1} {:>5.1}% {:>4} {:>8.1}% {:>8.1e} {:>8.1e} {last}",
            r.label,
            r.parts(),
            r.rows,
            r.solve_mean,
            r.solve_p99,
            r.speed_up,
            r.coupling,
            100.0 * r.at_limit,
            r.outer,
            r.inner,
            100.0 * r.imaginary,
            r.softened,
            100.0 * r.unsettled,
            r.residual_median,
            r.residual_max,
        )
    }
}

/// Exponent of the mean solve time in the mean number of rows, by a log–log fit, for each solver.
pub fn growth(rows: &[Row]) -> Vec<String> {
    let mut solvers: Vec<&str> = Vec::new();
    for r in rows.iter().filter(|r| r.size.is_some()) {
        if !solvers.contains(&r.solver.as_str()) {
            solvers.push(&r.solver);
        }
    }
    let fit = |solver: &str| {
        let points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|r| r.solver == solver && r.rows > 0.0 && r.solve_mean > 0.0)
            .map(|r| (r.rows.ln(), r.solve_mean.ln()))
            .collect();
        let n = points.len() as f64;
        let (mx, my) =
            (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
        let over: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
        let under: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
        (points.len() > 1 && under > 0.0).then(|| over / under)
    };
    solvers.iter().filter_map(|s| fit(s).map(|e| format!("{s}: solve time grows as rows^{e:.2}"))).collect()
}

/// All rows, one line each.
pub fn csv(rows: &[Row]) -> String {
    let mut out = String::from(
        "solver,inside,partition,threads,warm_start,size,steps,rows,solve_mean,solve_median,solve_p99,speed_up,step_mean,coupling,at_limit,outer,inner,imaginary,softened,agree,unsettled,residual_median,residual_max,joint_error,penetration,broken,partitions,cut\n",
    );
    let optional = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    for r in rows {
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:e},{:e},{:e},{:e},{},{},{}",
            r.solver,
            r.inside,
            r.partition,
            r.threads,
            r.warm_start,
            optional(r.size),
            r.steps,
            r.rows,
            r.solve_mean,
            r.solve_median,
            r.solve_p99,
            r.speed_up,
            r.step_mean,
            r.coupling,
            r.at_limit,
            r.outer,
            r.inner,
            r.imaginary,
            r.softened,
            optional(r.agree),
            r.unsettled,
            r.residual_median,
            r.residual_max,
            r.joint_error,
            r.penetration,
            r.broken,
            r.partitions,
            r.cut
        );
    }
    out
}
