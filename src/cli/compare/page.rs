//! A page with the table and two plots, in one file that asks the network for nothing.

use super::Row;
use std::fmt::Write as _;

const COLORS: [&str; 10] = [
    "#2b6cb0", "#c05621", "#2f855a", "#97266d", "#6b46c1", "#b7791f", "#285e61", "#9b2c2c", "#4a5568",
    "#000000",
];

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn label(r: &Row) -> String {
    let size = r.size.map_or(String::new(), |v| format!(", {v}"));
    let warm = if r.warm_start { "" } else { ", cold" };
    format!("{} ({}, {} thr{size}{warm})", r.solver, r.partition, r.threads)
}

/// The whole page.
pub fn page(scene: &str, rows: &[Row], growth: &[String]) -> String {
    let mut out = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{0}</title><style>\
         body{{font:15px system-ui,sans-serif;margin:2em;max-width:80em;color:#222}}table{{border-collapse:collapse}}\
         td,th{{padding:.25em .7em;text-align:right;border-bottom:1px solid #ddd}}td:first-child,th:first-child{{text-align:left}}\
         svg{{width:100%;height:auto;margin:1em 0}}</style><h1>{0}</h1>",
        escape(scene)
    );
    out.push_str(
        "<table><tr><th>solver<th>rows<th>solve ms<th>median<th>p99<th>speed-up<th>coupling<th>at limit<th>pivots<th>unsettled\
         <th>residual<th>max<th>joint error mm<th>penetration mm<th>broken promises",
    );
    for r in rows {
        let _ = write!(
            out,
            "<tr><td>{}<td>{:.0}<td>{:.3}<td>{:.3}<td>{:.3}<td>{:.2}×<td>{:.1}<td>{:.1} %<td>{:.1}<td>{:.1} %<td>{:.1e}<td>{:.1e}<td>{:.4}<td>{:.3}<td>{}",
            escape(&label(r)),
            r.rows,
            r.solve_mean,
            r.solve_median,
            r.solve_p99,
            r.speed_up,
            r.coupling,
            100.0 * r.at_limit,
            r.pivots,
            100.0 * r.unsettled,
            r.residual_median,
            r.residual_max,
            1e3 * r.joint_error,
            1e3 * r.penetration,
            r.broken
        );
    }
    out.push_str("</table>");
    for line in growth {
        let _ = write!(out, "<p>{}</p>", escape(line));
    }
    out.push_str(&plot("Solve time (ms)", rows, 1));
    out.push_str(&plot("Residual", rows, 2));
    out.push_str("</html>\n");
    out
}

/// Curves over time with a logarithmic axis.
fn plot(title: &str, rows: &[Row], column: usize) -> String {
    let points = || rows.iter().flat_map(|r| r.curve.iter());
    let end = points().map(|p| p[0]).fold(1e-9, f64::max);
    let positive = || points().map(|p| p[column]).filter(|v| *v > 0.0 && v.is_finite());
    let low = positive().fold(f64::INFINITY, f64::min).clamp(1e-18, 1e12).log10().floor();
    let high = positive().fold(0.0, f64::max).clamp(1e-17, 1e12).log10().ceil().max(low + 1.0);
    let (w, h) = (1000.0, 320.0);
    let x = |t: f64| 60.0 + t / end * (w - 80.0);
    let y = |v: f64| 20.0 + (high - v.max(1e-18).log10().clamp(low, high)) / (high - low) * (h - 50.0);
    let mut out = format!("<h2>{title}</h2><svg viewBox='0 0 {w} {}'>", h + 18.0 * rows.len() as f64);
    let decades = (high - low) as i32;
    for d in (0..=decades).step_by((decades as usize / 8).max(1)) {
        let at = y(10f64.powf(low + f64::from(d)));
        let _ = write!(
            out,
            "<line x1=60 x2={} y1={at:.1} y2={at:.1} stroke=#ddd /><text x=52 y={:.1} text-anchor=end font-size=11>1e{}</text>",
            w - 20.0,
            at + 4.0,
            low as i32 + d
        );
    }
    let _ = write!(out, "<text x={} y={} text-anchor=end font-size=11>{end:.2}</text>", w - 20.0, h - 12.0);
    for (i, r) in rows.iter().enumerate() {
        let color = COLORS[i % COLORS.len()];
        // At most 1,000 points a curve: more cannot be seen.
        let stride = r.curve.len().div_ceil(1000).max(1);
        let line: String = r.curve.iter().step_by(stride).fold(String::new(), |mut s, p| {
            let _ = write!(s, "{:.1},{:.1} ", x(p[0]), y(p[column]));
            s
        });
        let _ = write!(out, "<polyline fill=none stroke='{color}' stroke-width=1.2 points='{line}'/>");
        let at = h + 18.0 * i as f64;
        let _ = write!(
            out,
            "<rect x=60 y={at} width=24 height=4 fill='{color}'/><text x=92 y={} font-size=13>{}</text>",
            at + 7.0,
            escape(&label(r))
        );
    }
    out.push_str("</svg>");
    out
}
