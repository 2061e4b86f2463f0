//! The table at the end of a run: what was simulated, where the time went, whether the result is good.

use std::fmt::Write as _;
use turnbuckle::scene::summary::Summary;

/// A length with the unit a person would use.
pub fn meters(v: f64) -> String {
    match v.abs() {
        0.0 => "0".into(),
        a if a < 1e-6 => format!("{:.1} nm", v * 1e9),
        a if a < 1e-3 => format!("{:.2} µm", v * 1e6),
        a if a < 1.0 => format!("{:.3} mm", v * 1e3),
        _ => format!("{v:.3} m"),
    }
}

fn mark(good: bool) -> &'static str {
    if good { "good" } else { "BAD" }
}

/// The whole table.
pub fn of_run(s: &Summary, about: &str) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "\n{}: {about}", s.scene);
    let seconds = s.steps as f64 * s.dt;
    let _ = writeln!(
        out,
        "  {seconds:.2} s in {} steps of {:.2} ms; {} bodies, {} joints, up to {} contacts and {} rows",
        s.steps,
        1e3 * s.dt,
        s.size.moving,
        s.size.joints,
        s.size.contacts_max,
        s.size.rows_max
    );
    let _ = writeln!(out, "  solver {}, partitioning {}, {} thread(s)", s.solver, s.partition, s.threads);
    let _ = writeln!(
        out,
        "  {:.3} ms a step (median {:.3}, p99 {:.3})\n",
        s.step.mean, s.step.median, s.step.p99
    );
    systems(&mut out, s);
    quality(&mut out, s);
    promises(&mut out, s);
    watched(&mut out, s);
    for line in s.troubles.iter().take(5) {
        let _ = writeln!(out, "  trouble: {line}");
    }
    if s.troubles.len() > 5 {
        let _ = writeln!(out, "  trouble: … and more; --report lists them");
    }
    out
}

fn systems(out: &mut String, s: &Summary) {
    let total: f64 = s.systems.iter().map(|t| t.total).sum();
    let width = s.systems.iter().map(|t| t.name.chars().count()).max().unwrap_or(6).max(6);
    let _ = writeln!(out, "  {:width$}  {:>9}  {:>9}  {:>6}", "system", "ms a step", "p99", "share");
    for t in &s.systems {
        let share = 100.0 * t.total / total.max(1e-12);
        // Systems that take no time worth a look stay out of the way; the report has them all.
        if share >= 0.5 {
            let _ = writeln!(
                out,
                "  {:width$}  {:>9.3}  {:>9.3}  {share:>5.1}%",
                t.name,
                t.total / s.steps.max(1) as f64,
                t.p99
            );
        }
    }
    out.push('\n');
}

fn quality(out: &mut String, s: &Summary) {
    let mut bad = 0;
    let mut line = |what: &str, value: String, wanted: &str, good: bool| {
        bad += u32::from(!good);
        let _ = writeln!(out, "  {what:<26}  {value:>15}  {wanted:<26}  {}", mark(good));
    };
    let rate = 1e3 * s.dt / s.step.mean.max(1e-9);
    line("speed", format!("{rate:.1} × real time"), "good above 1", rate >= 1.0);
    // Thresholds a newcomer can rely on: a millimetre is not seen, a residual of 1e-6 is not felt.
    if s.size.joints > 0 {
        line(
            "joints open by at most",
            meters(s.joint_error.gap_max),
            "good below 1 mm",
            s.joint_error.gap_max < 1e-3,
        );
    }
    if s.size.contacts_max > 0 {
        line(
            "contacts are deep at most",
            meters(s.penetration.max),
            "good below 5 mm",
            s.penetration.max < 5e-3,
        );
    }
    if s.size.rows_max > 0 {
        line(
            "MLCP residual at most",
            format!("{:.1e}", s.residual.max),
            "good below 1e-6",
            s.residual.max < 1e-6,
        );
        line("steps left unsettled", s.unconverged_steps.to_string(), "good if 0", s.unconverged_steps == 0);
    }
    if s.held_steps > 0 {
        line("steps with joints held", s.held_steps.to_string(), "good if 0", false);
    }
    // Motors and the like may put in what they want; what comes from nowhere is an error.
    let scale = s.energy.start.abs().max(s.energy.end.abs()).max(s.energy.work.abs()).max(1.0);
    let (gain, put_in) = (s.energy.max_unexplained, s.energy.work);
    line("energy from nowhere", format!("{gain:.3} J"), "good below 1 % of all", gain <= 1e-2 * scale);
    line("bodies in quarantine", s.quarantined.to_string(), "good if 0", s.quarantined == 0);
    if put_in != 0.0 {
        let _ = writeln!(
            out,
            "  {:<26}  {:>15}  by motors, springs and the like",
            "work put in",
            format!("{put_in:.3} J")
        );
    }
    let verdict = match bad {
        0 => "all good: nothing opens, sinks in or gains energy that an eye could see".to_string(),
        1 => "one line is BAD: look there first".to_string(),
        n => format!("{n} lines are BAD: look there first"),
    };
    let _ = writeln!(out, "  {verdict}\n");
}

fn promises(out: &mut String, s: &Summary) {
    if s.expectations.is_empty() {
        return;
    }
    let _ = writeln!(out, "  the scene promises:");
    for p in &s.expectations {
        let word = match (p.tested, p.kept) {
            (false, _) => "  not reached",
            (_, true) => "  kept       ",
            (_, false) => "  BROKEN     ",
        };
        let body = if p.body.is_empty() { String::new() } else { format!(", {}", p.body) };
        let when = if p.tested { format!(" at {:.2} s{body}", p.time) } else { String::new() };
        let _ = writeln!(out, "  {word} {}{}", p.promise, if p.kept { String::new() } else { when });
    }
}

/// What was watched; a terminal has room for some of it.
fn watched(out: &mut String, s: &Summary) {
    const MOST: usize = 40;
    let width = s.watch.keys().take(MOST).map(|k| k.chars().count()).max().unwrap_or(0);
    for (name, w) in s.watch.iter().take(MOST) {
        let _ = writeln!(out, "  {name:width$}  {:>13.6}  from {:.6} to {:.6}", w.end, w.min, w.max);
    }
    if s.watch.len() > MOST {
        let _ = writeln!(out, "  … and {} more in --trace and --report", s.watch.len() - MOST);
    }
}
