//! Where two features lie over each other, seen along the contact normal.

use super::Rides;
use super::feature::Feature;
use glam::{DVec2, DVec3};

/// A point on each of two surfaces, one over the other along the normal.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub on_a: DVec3,
    pub on_b: DVec3,
    /// Whose corner it is.
    pub rides: Rides,
}

impl Touch {
    /// Two places of which neither is a corner.
    pub(super) fn between(on_a: DVec3, on_b: DVec3) -> Touch {
        Touch { on_a, on_b, rides: Rides::Between }
    }
}

/// A feature seen along the normal.
struct Shadow<'a> {
    feature: &'a Feature,
    flat: [DVec2; 16],
    /// +1 counter-clockwise, −1 clockwise, 0 not a polygon.
    turn: f64,
}

impl<'a> Shadow<'a> {
    fn new(feature: &'a Feature, u: DVec3, w: DVec3) -> Shadow<'a> {
        let mut flat = [DVec2::ZERO; 16];
        for (f, c) in flat.iter_mut().zip(feature.corners()) {
            *f = DVec2::new(u.dot(*c), w.dot(*c));
        }
        let n = feature.corners().len();
        let mut turn = 0.0;
        if n > 2 {
            let area: f64 = (1..n - 1).map(|i| (flat[i] - flat[0]).perp_dot(flat[i + 1] - flat[0])).sum();
            turn = if area == 0.0 { 0.0 } else { area.signum() };
        }
        Shadow { feature, flat, turn }
    }

    fn flat(&self) -> &[DVec2] {
        &self.flat[..self.feature.corners().len()]
    }

    fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        let n = self.feature.corners().len();
        let count = match n {
            0 | 1 => 0,
            2 => 1,
            n => n,
        };
        (0..count).map(move |i| (i, (i + 1) % n))
    }

    fn covers(&self, p: DVec2, slack: f64) -> bool {
        if self.turn == 0.0 {
            return false;
        }
        let flat = self.flat();
        self.edges().all(|(i, j)| {
            let edge = flat[j] - flat[i];
            self.turn * edge.perp_dot(p - flat[i]) >= -slack * edge.length()
        })
    }

    /// The point of the polygon's plane over `x` along `n`.
    fn lift(&self, x: DVec3, n: DVec3) -> Option<DVec3> {
        let m = self.feature.normal;
        let tilt = m.dot(n);
        // A face seen nearly edge-on says nothing about separation along n.
        (tilt.abs() > 0.1).then(|| x + n * (m.dot(self.feature.corners()[0] - x) / tilt))
    }
}

/// All corners of the overlap of `a` and `b` along `n`. `slack`: how far outside an edge a corner may lie and
/// still count (rounding); `parallel`: how far apart two edges may run side by side and still touch along their length.
pub(super) fn overlap(a: &Feature, b: &Feature, n: DVec3, slack: f64, parallel: f64, out: &mut Vec<Touch>) {
    let (u, w) = n.any_orthonormal_pair();
    let (sa, sb) = (Shadow::new(a, u, w), Shadow::new(b, u, w));
    for (x, p) in a.corners().iter().zip(sa.flat()) {
        if sb.covers(*p, slack)
            && let Some(y) = sb.lift(*x, n)
        {
            out.push(Touch { on_a: *x, on_b: y, rides: Rides::A });
        }
    }
    for (y, p) in b.corners().iter().zip(sb.flat()) {
        if sa.covers(*p, slack)
            && let Some(x) = sa.lift(*y, n)
        {
            out.push(Touch { on_a: x, on_b: *y, rides: Rides::B });
        }
    }
    if a.corners().len() == 2 && b.corners().len() == 2 {
        let before = out.len();
        side_by_side(&sa, &sb, parallel, out);
        if out.len() >= before + 2 {
            return;
        }
        out.truncate(before);
    }
    for (i, j) in sa.edges() {
        for (k, l) in sb.edges() {
            cross_edges(&sa, (i, j), &sb, (k, l), out);
        }
    }
}

fn cross_edges(
    sa: &Shadow,
    (i, j): (usize, usize),
    sb: &Shadow,
    (k, l): (usize, usize),
    out: &mut Vec<Touch>,
) {
    let (p, q) = (sa.flat[i], sb.flat[k]);
    let (d, e) = (sa.flat[j] - p, sb.flat[l] - q);
    let det = d.perp_dot(e);
    // 1e-4 rad: edges closer to parallel cross at a place that rounding decides; their ends say it better.
    if det.abs() <= 1e-4 * d.length() * e.length() {
        return;
    }
    let s = (q - p).perp_dot(e) / det;
    let t = (q - p).perp_dot(d) / det;
    if (0.0..=1.0).contains(&s) && (0.0..=1.0).contains(&t) {
        let (ca, cb) = (sa.feature.corners(), sb.feature.corners());
        out.push(Touch::between(ca[i].lerp(ca[j], s), cb[k].lerp(cb[l], t)));
    }
}

/// Two edges that run along each other: the ends of their common stretch.
fn side_by_side(sa: &Shadow, sb: &Shadow, parallel: f64, out: &mut Vec<Touch>) {
    let on_edge = |shadow: &Shadow, p: DVec2| -> Option<f64> {
        let edge = shadow.flat[1] - shadow.flat[0];
        let t = (p - shadow.flat[0]).dot(edge) / edge.length_squared();
        let off = (p - shadow.flat[0] - edge * t).length();
        ((0.0..=1.0).contains(&t) && off <= parallel).then_some(t)
    };
    let (ca, cb) = (sa.feature.corners(), sb.feature.corners());
    for i in 0..2 {
        if let Some(t) = on_edge(sb, sa.flat[i]) {
            out.push(Touch { on_a: ca[i], on_b: cb[0].lerp(cb[1], t), rides: Rides::A });
        }
        if let Some(t) = on_edge(sa, sb.flat[i]) {
            out.push(Touch { on_a: ca[0].lerp(ca[1], t), on_b: cb[i], rides: Rides::B });
        }
    }
}
