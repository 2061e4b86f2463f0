//! Crowds: more bodies in one place than there is room for, and which others each of them is looked at with.
//!
//! Solid bodies that do not overlap keep the balls inside of them apart. Where the balls of more than [`MOST`] others overlap a
//! body's own, bodies were put into each other, n of them with n²/2 pairs. Of these pairs as many are listed as help to part the
//! bodies: members are sorted along a curve that fills space, and each is paired with the `WINDOW` that follow. That takes
//! n log n time and n memory, depends on where the members are and on nothing else, and gives a graph that is nearly a chain, which
//! the solver factors in linear time. As the members part, the curve changes, and all get their turn.

use super::shape::{Shape, ShapeHandle};
use glam::DVec3;

/// A ball inside a solid body that moves by forces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Core {
    /// Its centre (m, world).
    pub center: DVec3,
    /// Its radius (m); zero for what has no such ball, or does not move by forces.
    pub radius: f64,
    /// Number of the body: its own colliders may overlap.
    pub body: u32,
    /// Groups it is in.
    pub groups: u32,
    /// Groups that it meets.
    pub mask: u32,
}

impl Core {
    /// That of a collider which is in no crowd.
    pub const NONE: Core = Core { center: DVec3::ZERO, radius: 0.0, body: 0, groups: 0, mask: 0 };

    /// Is this one so deep in the other that both cannot have come there by contact?
    #[inline]
    pub fn overlaps(&self, other: &Core) -> bool {
        let room = DEEP * (self.radius + other.radius);
        self.radius > 0.0
            && other.radius > 0.0
            && (self.center - other.center).length_squared() < room * room
            && self.meets(other)
    }

    /// May the two meet at all?
    fn meets(&self, other: &Core) -> bool {
        self.body != other.body && self.groups & other.mask != 0 && other.groups & self.mask != 0
    }
}

/// A ball inside a solid shape, large where that is cheap to know: its centre and radius. Shapes that are only surfaces have none.
pub fn inner_ball(shape: &ShapeHandle) -> (DVec3, f64) {
    match shape.shape() {
        Shape::ConvexHull { .. } => {
            let Some(center) = shape.mass_properties(1.0).map(|m| m.center) else {
                return (DVec3::ZERO, 0.0);
            };
            (center, shape.parry().distance_to_local_point(center, false).abs())
        }
        shape => ball_in(shape),
    }
}

fn ball_in(shape: &Shape) -> (DVec3, f64) {
    let radius = match shape {
        Shape::Sphere { radius } | Shape::Capsule { radius, .. } => *radius,
        Shape::Box { half_extents } => half_extents.min_element(),
        Shape::Cylinder { half_length, radius } => half_length.min(*radius),
        // Half way up, a cone is half as wide, and its side leans.
        Shape::Cone { half_height, radius } => {
            half_height.min(radius * half_height / (4.0 * half_height * half_height + radius * radius).sqrt())
        }
        Shape::Compound { parts } => {
            let balls = parts.iter().map(|(at, turn, part)| (ball_in(part), *at, *turn));
            return balls.fold((DVec3::ZERO, 0.0), |best, ((center, radius), at, turn)| {
                if radius > best.1 { (at + turn * center, radius) } else { best }
            });
        }
        Shape::ConvexHull { .. }
        | Shape::HalfSpace { .. }
        | Shape::TriMesh { .. }
        | Shape::HeightField { .. } => 0.0,
    };
    (DVec3::ZERO, radius)
}

/// A body whose core overlaps those of more others than this is in a crowd. Fewer are listed pair by pair.
pub const MOST: usize = 12;

/// Cores this share of their radii apart overlap: contacts are never that deep.
const DEEP: f64 = 0.9;

/// With how many of those that follow it along the curve a member is paired.
const WINDOW: usize = 8;

/// Writes the pairs to look at among the members of crowds, the member of lower rank first. `members` comes back sorted along the
/// curve.
pub fn pair_members(
    members: &mut [u32],
    core: impl Fn(u32) -> Core,
    order: impl Fn(u32) -> u64,
    near: impl Fn(u32, u32) -> bool,
    found: &mut Vec<(u32, u32)>,
) {
    let (mut low, mut high) = (DVec3::INFINITY, DVec3::NEG_INFINITY);
    for &id in &*members {
        low = low.min(core(id).center);
        high = high.max(core(id).center);
    }
    let size = (high - low).max_element();
    let scale = if size > 0.0 { f64::from(CELLS) / size } else { 0.0 };
    members.sort_by_cached_key(|&id| (place_on_curve((core(id).center - low) * scale), order(id)));
    for (i, &a) in members.iter().enumerate() {
        for &b in members[i + 1..].iter().take(WINDOW) {
            if core(a).meets(&core(b)) && near(a, b) {
                found.push(if order(a) < order(b) { (a, b) } else { (b, a) });
            }
        }
    }
}

/// Cells of the curve along an edge.
const CELLS: u32 = (1 << 20) - 1;

/// Where a cell is on Morton's curve: the bits of its three numbers, one after another.
fn place_on_curve(cell: DVec3) -> u64 {
    let spread = |x: f64| (0..20).fold(0u64, |sum, bit| sum | ((((x as u64) >> bit) & 1) << (3 * bit)));
    spread(cell.x) | (spread(cell.y) << 1) | (spread(cell.z) << 2)
}

/// A point in the unit ball for each number, spread evenly: where bodies that stand in exactly the same place are to go, so that
/// all of their pairs agree.
pub fn own_direction(number: u64) -> DVec3 {
    // SplitMix64; points of the cube outside the ball are passed over.
    let mut state = number.wrapping_add(1).wrapping_mul(0xD1B5_4A32_D192_ED03);
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    for _ in 0..64 {
        let point = DVec3::new(next(), next(), next());
        if point.length_squared() <= 1.0 {
            return point;
        }
    }
    DVec3::Z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_differ_and_fill_the_ball() {
        let points: Vec<DVec3> = (0..2000).map(own_direction).collect();
        let mean = points.iter().sum::<DVec3>() / 2000.0;
        // The mean of 2,000 points of variance 1/5 along each axis is within four deviations of 0.01.
        assert!(mean.abs().max_element() < 0.04, "{mean}");
        let far = points.iter().filter(|p| p.length() > 0.5).count();
        // Seven eighths of the volume, within four deviations of 15.
        assert!((1690..=1810).contains(&far), "{far}");
        for (i, p) in points.iter().enumerate() {
            assert!(p.length() <= 1.0 && points[..i].iter().all(|q| q != p));
        }
    }

    #[test]
    fn a_million_members_have_a_few_million_pairs() {
        let core = |body: u32| Core { center: DVec3::ONE, radius: 0.1, body, groups: 1, mask: 1 };
        let mut members: Vec<u32> = (0..1_000_000).collect();
        let mut found = Vec::new();
        pair_members(&mut members, core, u64::from, |_, _| true, &mut found);
        assert_eq!(found.len(), WINDOW * 1_000_000 - WINDOW * (WINDOW + 1) / 2);
        assert!(found.iter().all(|(a, b)| a < b));
    }
}
