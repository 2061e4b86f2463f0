//! A page with all runs side by side, the table and plots, in one file that asks the network for nothing.

use super::Row;
use crate::cli::table::meters;
use std::fmt::Write as _;
use turnbuckle::replay::{Recording, page};

/// The colours of the replay page's curves, in the same order.
const COLORS: [&str; 10] = [
    "#d2552c", "#3b82b0", "#4c9f70", "#a06cb4", "#c99a2e", "#6b7c93", "#c2587f", "#4aa5a0", "#8a7a5c",
    "#7d8f3f",
];

const STYLE: &str = "<style>\
.report{max-width:1360px;margin:0 auto;padding:28px 20px 48px;font:14px/1.45 system-ui,sans-serif;color:var(--ink,#23272e)}\
.report h2{font-size:17px;font-weight:650;margin:28px 0 8px}.report .scroll{overflow-x:auto}\
.report table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap;font-size:13px}\
.report td,.report th{padding:5px 8px;text-align:right;border-bottom:1px solid var(--line,#d9d6cf)}\
.report th{font-weight:600;color:var(--soft,#6b7280)}.report td:first-child,.report th:first-child{text-align:left}\
.report i{display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:7px}\
.report .bad{color:var(--accent,#d2552c);font-weight:600}\
.report .plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:8px 28px}\
.report svg{width:100%;height:auto;display:block}.report svg text{font-size:11px;fill:var(--soft,#6b7280)}\
.report svg .rule{stroke:var(--line,#d9d6cf)}</style>";

/// Around the report where there is nothing to replay.
const PLAIN: &str = "<style>:root{color-scheme:light dark;--paper:#f4f2ee;--ink:#23272e;--soft:#6b7280;--line:#d9d6cf;--accent:#d2552c}\
@media(prefers-color-scheme:dark){:root{--paper:#15181d;--ink:#e8e6e1;--soft:#98a0ab;--line:#30363f;--accent:#ff8a5c}}\
body{margin:0;background:var(--paper)}</style>";

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The whole page.
pub fn page(scene: &str, rows: &[Row], notes: &[String], films: &[Recording]) -> String {
    let report = report(scene, rows, notes);
    if films.iter().any(|f| !f.frames.is_empty()) {
        return page::comparison_page_with(films, &report);
    }
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <link rel=icon href='data:,'><title>{0} · Turnbuckle</title>{PLAIN}{report}</html>\n",
        escape(scene)
    )
}

fn report(scene: &str, rows: &[Row], notes: &[String]) -> String {
    let mut out = format!("{STYLE}<section class=report id=report><h2>{}, compared</h2>", escape(scene));
    table(&mut out, rows);
    for line in notes {
        let _ = write!(out, "<p>{}</p>", escape(line));
    }
    out.push_str("<div class=plots>");
    let names = ["Solve time, ms", "Residual", "Joint error, m", "Penetration, m"];
    for (k, name) in names.into_iter().enumerate() {
        out.push_str(&curves(name, rows, k + 1));
    }
    let sizes = |r: &Row| r.size.map(|_| r.rows);
    out.push_str(&sweep("Solve time against rows, ms", rows, &sizes));
    out.push_str(&sweep("Solve time against threads, ms", rows, &|r| Some(r.threads as f64)));
    let cut = |r: &Row| r.partition.strip_prefix("min-degree:").and_then(|n| n.parse().ok());
    out.push_str(&sweep("Solve time against bodies a partition, ms", rows, &cut));
    out.push_str("</div></section>");
    out
}

fn table(out: &mut String, rows: &[Row]) {
    let inner = rows.iter().any(|r| r.inner > 0.0);
    out.push_str("<div class=scroll><table><tr><th>solver<th>partitions<th>rows<th>solve ms<th>median<th>p99<th>speed-up");
    out.push_str("<th>coupling<th>at limit<th>outer");
    out.push_str(if inner { "<th>inner<th>imaginary<th>softened" } else { "" });
    let agree = rows.iter().any(|r| r.agree.is_some());
    out.push_str("<th>unsettled<th>residual<th>largest<th>joints open<th>penetration<th>broken");
    out.push_str(if agree { "<th>same index set" } else { "" });
    let bad = |is: bool| if is { " class=bad" } else { "" };
    for (i, r) in rows.iter().enumerate() {
        let _ = write!(
            out,
            "<tr><td><i style='background:{}'></i>{}<td>{}<td>{:.0}<td>{:.3}<td>{:.3}<td>{:.3}<td>{:.3}×<td>{:.1}<td>{:.1} %<td>{:.1}",
            COLORS[i % COLORS.len()],
            escape(&r.label),
            r.parts(),
            r.rows,
            r.solve_mean,
            r.solve_median,
            r.solve_p99,
            r.speed_up,
            r.coupling,
            100.0 * r.at_limit,
            r.outer,
        );
        if inner {
            let _ = write!(out, "<td>{:.1}<td>{:.1} %<td>{}", r.inner, 100.0 * r.imaginary, r.softened);
        }
        let _ = write!(
            out,
            "<td{}>{:.1} %<td>{:.1e}<td{}>{:.1e}<td>{}<td>{}<td{}>{}",
            bad(r.unsettled > 0.0),
            100.0 * r.unsettled,
            r.residual_median,
            bad(r.residual_max > 1e-6),
            r.residual_max,
            meters(r.joint_error),
            meters(r.penetration),
            bad(r.broken > 0),
            r.broken
        );
        if agree {
            out.push_str(&r.agree.map_or("<td>–".into(), |a| format!("<td>{:.1} %", 100.0 * a)));
        }
    }
    out.push_str("</table></div>");
}

/// One line of a plot: number of its colour, points.
type Line = (usize, Vec<(f64, f64)>);

/// A column of the curves over time.
fn curves(title: &str, rows: &[Row], column: usize) -> String {
    // At most 1,000 points a curve: more cannot be seen. Of those left out the largest stays.
    let thin = |r: &Row| {
        let every = r.curve.len().div_ceil(1000).max(1);
        let most = |c: &[[f64; 5]]| c.iter().map(|p| p[column]).fold(0.0, f64::max);
        r.curve.chunks(every).map(|c| (c[0][0], most(c))).collect()
    };
    let lines: Vec<Line> = rows.iter().map(thin).enumerate().collect();
    plot(title, &lines, false)
}

/// Mean solve times over something that was varied; nothing if it was not.
fn sweep(title: &str, rows: &[Row], over: &dyn Fn(&Row) -> Option<f64>) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for r in rows {
        let Some(x) = over(r) else { continue };
        let name = format!("{} {} {}", r.solver, r.inside, r.warm_start);
        let k = names.iter().position(|n| *n == name).unwrap_or_else(|| {
            lines.push((names.len(), Vec::new()));
            names.push(name);
            names.len() - 1
        });
        lines[k].1.push((x, r.solve_mean));
    }
    let varied = lines.iter().any(|(_, l)| l.iter().any(|p| p.0 != l[0].0));
    if !varied {
        return String::new();
    }
    let solver = |name: &str| name.split(' ').next().unwrap_or_default().to_string();
    let legend: String = names
        .iter()
        .enumerate()
        .map(|(k, n)| format!("<i style='background:{}'></i>{} ", COLORS[k % COLORS.len()], solver(n)))
        .collect();
    format!("{}<p>{legend}</p>", plot(title, &lines, true))
}

/// Lines with a logarithmic axis upwards; nothing if there is nothing positive.
fn plot(title: &str, lines: &[Line], dots: bool) -> String {
    let points = || lines.iter().flat_map(|(_, l)| l.iter());
    let positive = || points().map(|p| p.1).filter(|v| *v > 0.0 && v.is_finite());
    if positive().next().is_none() {
        return String::new();
    }
    let (start, end) = points().fold((f64::INFINITY, 0.0f64), |(a, b), p| (a.min(p.0), b.max(p.0)));
    let start = if dots { start } else { 0.0 };
    let low = positive().fold(f64::INFINITY, f64::min).clamp(1e-16, 1e12).log10().floor();
    let high = positive().fold(0.0, f64::max).clamp(1e-15, 1e12).log10().ceil().max(low + 1.0);
    let (w, h) = (560.0, 230.0);
    let x = |t: f64| 44.0 + (t - start) / (end - start).max(1e-12) * (w - 60.0);
    let y = |v: f64| 10.0 + (high - v.max(1e-18).log10().clamp(low, high)) / (high - low) * (h - 36.0);
    let mut out = format!("<div><h2>{title}</h2><svg viewBox='0 0 {w} {h}'>");
    let decades = (high - low) as i32;
    for d in (0..=decades).step_by(decades as usize / 6 + 1) {
        let at = y(10f64.powf(low + f64::from(d)));
        let _ = write!(
            out,
            "<line class=rule x1=44 x2={} y1={at:.1} y2={at:.1} /><text x=38 y={:.1} text-anchor=end>1e{}</text>",
            w - 16.0,
            at + 4.0,
            low as i32 + d
        );
    }
    for (t, anchor) in [(start, "start"), (end, "end")] {
        let text = if dots { format!("{t:.0}") } else { format!("{t:.2} s") };
        let _ = write!(out, "<text x={:.1} y={} text-anchor={anchor}>{text}</text>", x(t), h - 6.0);
    }
    for (k, line) in lines {
        let color = COLORS[k % COLORS.len()];
        let path: String = line.iter().fold(String::new(), |mut s, p| {
            let _ = write!(s, "{:.1},{:.1} ", x(p.0), y(p.1));
            s
        });
        let _ = write!(out, "<polyline fill=none stroke='{color}' stroke-width=1.4 points='{path}'/>");
        for p in line.iter().filter(|_| dots) {
            let _ = write!(out, "<circle cx={:.1} cy={:.1} r=3 fill='{color}'/>", x(p.0), y(p.1));
        }
    }
    out.push_str("</svg></div>");
    out
}
