//! The direction of least depth of two cores that touch, or overlap a little.
//!
//! Where shapes touch, GJK loses the direction to rounding and EPA, whose polytope must hold the origin, may take any: side faces
//! that stand a metre deep in each other among them. So neither is asked there. The gap along a unit vector n,
//!
//! ```text
//!     g(n) = min over b of n·x  −  max over a of n·x ,
//! ```
//!
//! is known exactly by support points, and its maximum is wanted: the distance, or minus the least depth. GJK on cores that have been
//! moved apart along n_k by δ finds the maximum of g(n) + δ n_k·n, that is a step of the proximal point method,
//!
//! ```text
//!     n_{k+1} = argmax g(n) + δ n_k·n ,        g(n_{k+1}) ≥ g(n_k) ,
//! ```
//!
//! always at a distance at which GJK is exact. It ends in one step where a face lies on something, and gains a factor of the radius of
//! curvature over δ in each step where round surfaces meet. The first direction is that of cores that have been shrunk a
//! little towards their middles: what only touches is apart then.

use super::clip::Touch;
use super::direction::Nearest;
use super::feature::feature_towards;
use super::part::Part;
use glam::DVec3;
use parry3d_f64::math::Pose;
use parry3d_f64::query::gjk::{CsoPoint, GJKResult, VoronoiSimplex, closest_points};
use parry3d_f64::shape::SupportMap;

/// Share by which cores are shrunk: what overlaps by more is left to EPA.
const SHRUNK: f64 = 0.05;
/// How far cores are moved apart beyond what they overlap, as a share of the smaller one.
const APART: f64 = 1e-3;
/// A gain in the gap below this share of the smaller core is rounding.
const GAIN: f64 = 1e-12;
/// Size of the smaller core in the lengths in which GJK measures.
const UNITS: f64 = 1e4;
/// Steps at most. Faces need one, crossing edges two, round surfaces three to six.
const STEPS: usize = 40;
/// Round cores are given up after so many steps without a gain, each from so many times further apart.
const TRIES: usize = 3;
const FURTHER: f64 = 7.0;

/// Two cores, the second placed in the frame of the first.
pub(super) struct Cores<'a> {
    pub a: &'a dyn SupportMap,
    pub b: &'a dyn SupportMap,
    pub b_in_a: &'a Pose,
    /// How large the smaller one is about (m).
    pub size: f64,
}

/// What GJK finds.
pub(super) struct Apart {
    pub normal: DVec3,
    pub distance: f64,
    pub on_a: DVec3,
    pub on_b: DVec3,
}

impl Cores<'_> {
    /// The width of the gap along a unit vector; minus the depth where they overlap.
    pub(super) fn gap(&self, n: DVec3) -> f64 {
        let on_a = self.a.local_support_point(n);
        let on_b = self.b.local_support_point(self.b_in_a.rotation.inverse() * -n);
        n.dot(self.b_in_a.transform_point(on_b) - on_a)
    }

    /// Nearest points once the second core has been moved. Without any: the direction in which the cores are further apart
    /// than `reach`, if there is one.
    pub(super) fn nearest(&self, moved: DVec3, reach: f64) -> Result<Apart, Option<DVec3>> {
        // In lengths of which the smaller core has many: what is small to parry is absolute.
        let (up, down) = (UNITS / self.size, self.size / UNITS);
        let large = |core| Scaled { core, middle: DVec3::ZERO, scale: up };
        let pose = Pose::from_parts((self.b_in_a.translation + moved) * up, self.b_in_a.rotation);
        let found = nearest(&large(self.a), &large(self.b), &pose, reach * up)?;
        Ok(Apart {
            normal: found.normal,
            distance: found.distance * down,
            on_a: found.on_a * down,
            on_b: found.on_b * down,
        })
    }
}

fn nearest(
    a: &dyn SupportMap,
    b: &dyn SupportMap,
    b_in_a: &Pose,
    reach: f64,
) -> Result<Apart, Option<DVec3>> {
    let mut simplex = VoronoiSimplex::new();
    let start = b_in_a.translation.try_normalize().unwrap_or(DVec3::X);
    simplex.reset(CsoPoint::from_shapes(b_in_a, a, b, start));
    match closest_points(b_in_a, a, b, reach, true, &mut simplex) {
        GJKResult::ClosestPoints(on_a, on_b, normal) => {
            let normal = normal.try_normalize().ok_or(None)?;
            Ok(Apart { normal, distance: normal.dot(on_b - on_a), on_a, on_b })
        }
        GJKResult::NoIntersection(away) => Err(away.try_normalize()),
        _ => Err(None),
    }
}

/// A core drawn together towards a point, or away from it.
struct Scaled<'a> {
    core: &'a dyn SupportMap,
    middle: DVec3,
    scale: f64,
}

impl SupportMap for Scaled<'_> {
    fn local_support_point(&self, dir: DVec3) -> DVec3 {
        self.middle + (self.core.local_support_point(dir) - self.middle) * self.scale
    }
}

/// The direction of least depth; `None` for cores that overlap by more than a little.
pub(super) fn least_depth(a: &Part, b: &Part, cores: &Cores) -> Option<Nearest> {
    let size = cores.size;
    let small_a = Scaled { core: cores.a, middle: a.middle(), scale: 1.0 - SHRUNK };
    let small_b = Scaled { core: cores.b, middle: b.middle(), scale: 1.0 - SHRUNK };
    let start =
        nearest(&small_a, &small_b, cores.b_in_a, f64::MAX).ok().filter(|n| n.distance > GAIN * size)?;
    let (mut normal, mut gap) = (start.normal, cores.gap(start.normal));
    let mut middle = None;
    // GJK may stop short of the distance of round cores; at another distance it goes on.
    let tries = if a.is_round() || b.is_round() { TRIES } else { 1 };
    let (mut failed, mut apart) = (0, APART * size);
    for _ in 0..STEPS {
        (normal, gap) = best_face(a, b, cores, (normal, gap));
        let moved = normal * ((-gap).max(0.0) + apart);
        let Ok(found) = cores.nearest(moved, f64::MAX) else { break };
        let width = cores.gap(found.normal);
        let gains = width > gap + GAIN * size;
        if gains || middle.is_none() {
            middle = Some(0.5 * (found.on_a + found.on_b - moved));
        }
        if gains {
            (normal, gap, failed) = (found.normal, width, 0);
            continue;
        }
        failed += 1;
        if failed == tries {
            break;
        }
        apart *= FURTHER;
    }
    let half = normal * (0.5 * gap);
    Some(Nearest { normal, touch: middle.map(|m| Touch::between(m - half, m + half)) })
}

/// The normal of a facing face, where the gap along it is as wide: it is exact where a direction that was found is not.
fn best_face(a: &Part, b: &Part, cores: &Cores, best: (DVec3, f64)) -> (DVec3, f64) {
    let back = cores.b_in_a.rotation.inverse();
    let face_a = feature_towards(a, best.0).normal;
    let face_b = cores.b_in_a.rotation * -feature_towards(b, back * -best.0).normal;
    let faces = [face_a, face_b].into_iter().filter(|n| *n != DVec3::ZERO).map(|n| (n, cores.gap(n)));
    faces.fold(best, |best, face| if face.1 > best.1 - GAIN * cores.size { face } else { best })
}
