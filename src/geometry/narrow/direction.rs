//! Along which direction two convex parts are nearest, or least deep in each other.

use super::clip::Touch;
use super::part::Part;
use super::parting::{self, Cores};
use glam::DVec3;
use parry3d_f64::math::Pose;
use parry3d_f64::query::details::{
    contact_support_map_support_map_with_params, distance_support_map_support_map,
};
use parry3d_f64::query::gjk::{GJKResult, VoronoiSimplex};
use parry3d_f64::shape::Triangle;

/// Cores that are further apart than this share of the smaller one are left to GJK: the direction of its distance d is known to
/// rounding over d, 1e-11 here, and of no use where shapes touch. Of round ones GJK knows less.
const CLEAR: [f64; 2] = [1e-5, 1e-3];
/// GJK ends when the distance is known to this share; a direction that parts the cores by less is not the one it was to find.
const SURE: f64 = 1e-6;

/// The nearest points of two cores and the direction from the first to the second.
pub(super) struct Nearest {
    /// Unit, from a to b, in the frame of a.
    pub normal: DVec3,
    /// Points on the cores, in the frame of a; `None` where only the direction is known.
    pub touch: Option<Touch>,
}

/// Nearest points of `a` and `b` (placed by `b_in_a`); `None` if their surfaces are further apart than `reach`.
pub(super) fn nearest(a: &Part, b: &Part, b_in_a: &Pose, reach: f64) -> Option<Nearest> {
    match (a, b) {
        (Part::Ball(_), Part::Ball(_)) => {
            let t = b_in_a.translation;
            let normal = t.try_normalize().unwrap_or(DVec3::Z);
            Some(Nearest { normal, touch: Some(Touch::between(DVec3::ZERO, t)) })
        }
        (_, Part::Ball(_)) => point_against(a, b_in_a.translation),
        (Part::Ball(_), _) => {
            let a_in_b = b_in_a.inverse();
            let back = point_against(b, a_in_b.translation)?;
            let touch = back
                .touch
                .map(|t| Touch::between(b_in_a.transform_point(t.on_b), b_in_a.transform_point(t.on_a)));
            Some(Nearest { normal: -(b_in_a.rotation * back.normal), touch })
        }
        (Part::Capsule { core: x, .. }, Part::Capsule { core: y, .. }) => {
            Some(segments(x.a, x.b, b_in_a.transform_point(y.a), b_in_a.transform_point(y.b)))
        }
        (Part::Cylinder(x), Part::Cylinder(y)) => {
            crossing_cylinders(x, y, b_in_a).or_else(|| by_support(a, b, b_in_a, reach))
        }
        (Part::Capsule { core, .. }, Part::Cylinder(_) | Part::Cone(_)) => {
            let a_in_b = b_in_a.inverse();
            let ends = [core.a, core.b].map(|p| a_in_b.transform_point(p));
            let back = segment_against(b, ends).map(|found| {
                let touch = found
                    .touch
                    .map(|t| Touch::between(b_in_a.transform_point(t.on_b), b_in_a.transform_point(t.on_a)));
                Nearest { normal: -(b_in_a.rotation * found.normal), touch }
            });
            back.or_else(|| by_support(a, b, b_in_a, reach))
        }
        (Part::Cylinder(_) | Part::Cone(_), Part::Capsule { core, .. }) => {
            let ends = [core.a, core.b].map(|p| b_in_a.transform_point(p));
            segment_against(a, ends).or_else(|| by_support(a, b, b_in_a, reach))
        }
        (Part::Triangle { triangle: x, .. }, Part::Triangle { triangle: y, .. }) => {
            triangles(x, y, b_in_a, reach).map(|normal| Nearest { normal, touch: None })
        }
        _ => by_support(a, b, b_in_a, reach),
    }
}

/// Two triangles of surfaces: the axis of widest gap among the two outward normals and the nine pairs of edges.
///
/// Triangles have no inside by which to tell depth from distance, and lie exactly upon each other where flat things rest. Their
/// outward normals tell: what is behind a face is in it, as long as the triangles still touch.
fn triangles(x: &Triangle, y: &Triangle, b_in_a: &Pose, reach: f64) -> Option<DVec3> {
    let far = distance_support_map_support_map(b_in_a, x, y);
    let a = [x.a, x.b, x.c];
    let b = [y.a, y.b, y.c].map(|p| b_in_a.transform_point(p));
    let edges = |t: &[DVec3; 3]| [t[1] - t[0], t[2] - t[1], t[0] - t[2]];
    let (ea, eb) = (edges(&a), edges(&b));
    let longest = |e: &[DVec3; 3]| e.iter().map(|e| e.length()).fold(0.0, f64::max);
    let size = longest(&ea).min(longest(&eb));
    // Flat bodies sink by the compliance of their contacts, far less than a hundredth of a triangle.
    if far > reach.max(0.01 * size) {
        return None;
    }
    let gap = |n: DVec3| {
        let most = a.iter().map(|p| n.dot(*p)).fold(f64::NEG_INFINITY, f64::max);
        b.iter().map(|p| n.dot(*p)).fold(f64::INFINITY, f64::min) - most
    };
    let (na, nb) = (ea[0].cross(ea[1]).try_normalize()?, eb[0].cross(eb[1]).try_normalize()?);
    let mut best = (gap(na), na);
    let clearly = 1e-6 * size;
    if gap(-nb) > best.0 + clearly {
        best = (gap(-nb), -nb);
    }
    for axis in edge_axes(&ea, &eb, na, nb) {
        for n in [axis, -axis] {
            let found = gap(n);
            // Against both normals the surfaces would part through their backs. Beside both there is no depth by more than
            // what flat bodies sink: the rims of two sides meet there.
            let outward = n.dot(na - nb);
            let sided = outward > 1e-9 || (outward > -1e-9 && found > -0.01 * size);
            if sided && found > best.0 + 1e3 * clearly {
                best = (found, n);
            }
        }
    }
    (best.0 <= reach).then_some(best.1)
}

/// The common perpendiculars of the edges, and the perpendiculars of each edge in its own triangle; nearly parallel edges have
/// nothing to add.
fn edge_axes<'a>(
    ea: &'a [DVec3; 3],
    eb: &'a [DVec3; 3],
    na: DVec3,
    nb: DVec3,
) -> impl Iterator<Item = DVec3> + 'a {
    let crossed = ea.iter().flat_map(move |e| {
        eb.iter().filter_map(move |f| {
            let cross = e.cross(*f);
            (cross.length() > 1e-3 * e.length() * f.length()).then(|| cross.normalize())
        })
    });
    let beside = ea.iter().map(move |e| e.cross(na)).chain(eb.iter().map(move |f| f.cross(nb)));
    crossed.chain(beside.filter_map(DVec3::try_normalize))
}

/// A point (the core of a ball) at `p` against a part.
fn point_against(a: &Part, p: DVec3) -> Option<Nearest> {
    let projection = a.as_point_query()?.project_local_point(p, false);
    let away = p - projection.point;
    // On the surface itself the direction is lost; the one from the middle of the part will do.
    let outward = away.try_normalize().or_else(|| p.try_normalize()).unwrap_or(DVec3::Z);
    let normal = if projection.is_inside && away.length_squared() > 0.0 { -outward } else { outward };
    Some(Nearest { normal, touch: Some(Touch::between(projection.point, p)) })
}

/// A segment outside of a round part. The distance of its points is convex along it and has the slope n·d, whose sign is
/// bisected: GJK knows the distance of round cores to 1e-8 only. `None` where they touch.
fn segment_against(a: &Part, [start, end]: [DVec3; 2]) -> Option<Nearest> {
    let d = end - start;
    let at = |s: f64| {
        let found = point_against(a, start + d * s)?;
        let outside = found.touch.is_some_and(|t| found.normal.dot(t.on_b - t.on_a) > 1e-6 * d.length());
        outside.then_some(found)
    };
    let (mut low, mut high) = (0.0, 1.0);
    let (first, last) = (at(low)?, at(high)?);
    if first.normal.dot(d) >= 0.0 {
        return Some(first);
    }
    if last.normal.dot(d) <= 0.0 {
        return Some(last);
    }
    loop {
        let s = 0.5 * (low + high);
        let found = at(s)?;
        if s <= low || s >= high || high - low < 1e-13 {
            return Some(found);
        }
        let slope = found.normal.dot(d);
        if slope == 0.0 {
            return Some(found);
        }
        *(if slope < 0.0 { &mut low } else { &mut high }) = s;
    }
}

/// Nearest points of two segments; parallel ones meet in the middle of their common stretch.
fn segments(a0: DVec3, a1: DVec3, b0: DVec3, b1: DVec3) -> Nearest {
    let (d, e) = (a1 - a0, b1 - b0);
    let (s, t) = nearest_parameters(a0, d, b0, e);
    let touch = Touch::between(a0 + d * s, b0 + e * t);
    let normal = (touch.on_b - touch.on_a)
        .try_normalize()
        .or_else(|| d.cross(e).try_normalize())
        .unwrap_or_else(|| d.any_orthonormal_vector());
    Nearest { normal, touch: Some(touch) }
}

fn nearest_parameters(a0: DVec3, d: DVec3, b0: DVec3, e: DVec3) -> (f64, f64) {
    let r = a0 - b0;
    let (dd, ee, de) = (d.length_squared(), e.length_squared(), d.dot(e));
    let (dr, er) = (d.dot(r), e.dot(r));
    let det = dd * ee - de * de;
    let mut s = 0.5;
    if det > 1e-12 * dd * ee {
        s = ((de * er - ee * dr) / det).clamp(0.0, 1.0);
    }
    let t = ((de * s + er) / ee).clamp(0.0, 1.0);
    let s = ((de * t - dr) / dd).clamp(0.0, 1.0);
    (s, t)
}

/// Two cylinders that cross side on side: the common perpendicular of their axes. `None` for other meetings.
fn crossing_cylinders(
    x: &parry3d_f64::shape::Cylinder,
    y: &parry3d_f64::shape::Cylinder,
    b_in_a: &Pose,
) -> Option<Nearest> {
    let d = DVec3::Y * (2.0 * x.half_height);
    let e = b_in_a.rotation * (DVec3::Y * (2.0 * y.half_height));
    let (a0, b0) = (-0.5 * d, b_in_a.translation - 0.5 * e);
    let perpendicular = d.cross(e).try_normalize()?;
    // Below about 0.6° the place of the crossing is ill-conditioned; the general way finds the line of contact.
    if d.cross(e).length() < 1e-2 * d.length() * e.length() {
        return None;
    }
    let (s, t) = nearest_parameters(a0, d, b0, e);
    let inside = |s: f64| s > 0.0 && s < 1.0;
    let between = (b0 + e * t) - (a0 + d * s);
    let height = between.dot(perpendicular);
    // Axes that pass closer than the smaller radius are too deep for this shortcut.
    if !inside(s) || !inside(t) || height.abs() < x.radius.min(y.radius) {
        return None;
    }
    let normal = perpendicular * height.signum();
    let on_a = a0 + d * s + normal * x.radius;
    Some(Nearest { normal, touch: Some(Touch::between(on_a, b0 + e * t - normal * y.radius)) })
}

/// GJK where the cores are clearly apart, [`parting`] where they touch, EPA where they overlap deeply.
fn by_support(a: &Part, b: &Part, b_in_a: &Pose, reach: f64) -> Option<Nearest> {
    let (g, h) = (a.core()?, b.core()?);
    let reach = reach + a.radius() + b.radius();
    let size = a.size().min(b.size());
    let cores = Cores { a: g, b: h, b_in_a, size };
    match cores.nearest(DVec3::ZERO, reach) {
        Ok(found)
            if found.distance > CLEAR[usize::from(a.is_round() || b.is_round())] * size
                && cores.gap(found.normal) > (1.0 - SURE) * found.distance =>
        {
            return Some(Nearest {
                normal: found.normal,
                touch: Some(Touch::between(found.on_a, found.on_b)),
            });
        }
        Err(Some(away)) if cores.gap(away) > reach => return None,
        _ => {}
    }
    if let Some(nearest) = parting::least_depth(a, b, &cores) {
        return Some(nearest);
    }
    let mut simplex = VoronoiSimplex::new();
    match contact_support_map_support_map_with_params(b_in_a, g, h, reach, &mut simplex, None) {
        GJKResult::ClosestPoints(on_a, on_b, normal) if normal.is_finite() && normal != DVec3::ZERO => {
            Some(Nearest { normal: normal.normalize(), touch: Some(Touch::between(on_a, on_b)) })
        }
        _ => None,
    }
}
