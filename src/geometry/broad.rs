//! Broad phase: which colliders are near enough to be looked at.
//!
//! A tree over fattened boxes. A collider that stays inside its fat box costs one comparison; only those that leave
//! theirs are looked up again, and only their pairs change. Half-spaces have no box and are held beside the tree.
//! New pairs are sorted by the order in which their colliders were created, so nothing downstream sees the tree's shape. The
//! lists of pairs belong to the caller: what a pair carries along moves with it, once.

use super::crowd::{Core, MOST, pair_members};
use super::narrow::{Placed, Posed};
use super::shape::{Form, ShapeHandle};
use glam::{DMat3, DVec3};
use parry3d_f64::bounding_volume::Aabb;
use parry3d_f64::math::Pose;
use parry3d_f64::partitioning::{Bvh, BvhWorkspace};

/// An axis-aligned box (m).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Box3 {
    /// Least corner.
    pub low: DVec3,
    /// Greatest corner.
    pub high: DVec3,
}

impl Box3 {
    /// The box around a placed shape; not finite for half-spaces and for bad poses.
    pub fn around(placed: &Placed) -> Box3 {
        let aabb = placed.shape.parry().compute_aabb(&Pose::from_parts(placed.position, placed.rotation));
        Box3 { low: aabb.mins, high: aabb.maxs }
    }

    /// The same for a shape whose form is known already, and its orientation as a matrix.
    #[inline]
    pub fn of(form: Form, shape: &ShapeHandle, at: &Posed, turn: &DMat3) -> Box3 {
        let half = match form {
            Form::Ball(radius) => DVec3::splat(radius),
            Form::Box(half) => {
                turn.x_axis.abs() * half.x + turn.y_axis.abs() * half.y + turn.z_axis.abs() * half.z
            }
            Form::Other => {
                return Box3::around(&Placed { shape, position: at.position, rotation: at.rotation });
            }
        };
        Box3 { low: at.position - half, high: at.position + half }
    }

    /// The box that also covers itself moved by `motion`, and `margin` all around.
    pub fn swept(self, motion: DVec3, margin: f64) -> Box3 {
        Box3 {
            low: self.low + motion.min(DVec3::ZERO) - margin,
            high: self.high + motion.max(DVec3::ZERO) + margin,
        }
    }

    /// The box around both.
    pub fn union(self, other: Box3) -> Box3 {
        Box3 { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Is all of `other` in it?
    pub fn contains(&self, other: &Box3) -> bool {
        self.low.cmple(other.low).all() && self.high.cmpge(other.high).all()
    }

    #[inline]
    fn meets(&self, other: &Box3) -> bool {
        self.low.cmple(other.high).all() && self.high.cmpge(other.low).all()
    }

    fn aabb(&self) -> Aabb {
        Aabb::new(self.low, self.high)
    }
}

/// What the broad phase is told about a collider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    /// A box that covers it for the coming step.
    Finite(Box3),
    /// A half-space: everything with `normal · x ≤ offset`.
    Below {
        /// Outward unit normal.
        normal: DVec3,
        /// Height of the plane along the normal (m).
        offset: f64,
    },
}

impl Bounds {
    /// May things within these bounds touch?
    #[inline]
    pub fn meets(&self, other: &Bounds) -> bool {
        near(self, other)
    }

    /// How far apart they are at least, as far as axes tell (m); negative where they meet.
    pub fn gap(&self, other: &Bounds) -> f64 {
        gap(self, other)
    }
}

#[derive(Clone, Copy, Debug)]
struct Leaf {
    order: u64,
    fat: Bounds,
    movable: bool,
    alive: bool,
}

/// The tree, and what changed since the last [`BroadPhase::settle`].
#[derive(Default)]
pub struct BroadPhase {
    tree: Bvh,
    workspace: BvhWorkspace,
    leaves: Vec<Leaf>,
    /// By collider: what `fat` was at the last refresh; `None` for a collider that is new.
    before: Vec<Option<Bounds>>,
    free: Vec<u32>,
    unbounded: Vec<u32>,
    changed: Vec<u32>,
    /// By collider: is it in `changed`? Apart from the leaves, because every pair asks.
    is_changed: Vec<bool>,
    /// By collider: the ball inside of it.
    cores: Vec<Core>,
    /// Members of crowds, and by collider: is it one? Their pairs are listed anew in every refresh.
    crowd: Vec<u32>,
    is_crowded: Vec<bool>,
    /// By collider: was it one at the last refresh?
    was_crowded: Vec<bool>,
    found: Vec<(u32, u32)>,
    removed: Vec<u32>,
    /// Leaves that have moved since the tree was last refitted as a whole.
    loose: usize,
    refits: u32,
}

impl BroadPhase {
    /// Adds a collider and returns its number. `order` ranks colliders for ever; give later ones larger ranks.
    /// Two colliders that are not `movable` never form a pair.
    pub fn insert(&mut self, order: u64, bounds: Bounds, movable: bool) -> u32 {
        let leaf = Leaf { order, fat: fatten(bounds), movable, alive: true };
        let id = match self.free.pop() {
            Some(id) => {
                self.leaves[id as usize] = leaf;
                self.before[id as usize] = None;
                self.cores[id as usize] = Core::NONE;
                id
            }
            None => {
                self.leaves.push(leaf);
                self.before.push(None);
                self.is_changed.push(false);
                self.cores.push(Core::NONE);
                self.is_crowded.push(false);
                self.was_crowded.push(false);
                self.leaves.len() as u32 - 1
            }
        };
        self.place(id);
        id
    }

    /// Takes a collider out.
    pub fn remove(&mut self, id: u32) {
        if !self.leaves[id as usize].alive {
            return;
        }
        match self.leaves[id as usize].fat {
            Bounds::Finite(_) => self.tree.remove(id),
            Bounds::Below { .. } => self.unbounded.retain(|u| *u != id),
        }
        self.leaves[id as usize].alive = false;
        self.cores[id as usize] = Core::NONE;
        self.free.push(id);
        self.removed.push(id);
    }

    /// Tells where a collider may be during the coming step.
    #[inline]
    pub fn update(&mut self, id: u32, bounds: Bounds) {
        match (&self.leaves[id as usize].fat, &bounds) {
            (Bounds::Finite(fat), Bounds::Finite(tight)) if fat.contains(tight) => {}
            _ => self.update_leaf(id, bounds),
        }
    }

    /// Tells where the ball inside a collider is.
    #[inline]
    pub fn set_core(&mut self, id: u32, core: Core) {
        self.cores[id as usize] = core;
    }

    fn update_leaf(&mut self, id: u32, bounds: Bounds) {
        let leaf = &mut self.leaves[id as usize];
        match (leaf.fat, bounds) {
            (Bounds::Finite(_), Bounds::Finite(_)) => {
                leaf.fat = fatten(bounds);
                self.mark(id);
            }
            (Bounds::Below { .. }, Bounds::Below { .. }) => {
                if leaf.fat != bounds {
                    leaf.fat = bounds;
                    self.mark(id);
                }
            }
            (before, _) => {
                if let Bounds::Finite(_) = before {
                    self.tree.remove(id);
                } else {
                    self.unbounded.retain(|u| *u != id);
                }
                self.leaves[id as usize].fat = fatten(bounds);
                self.place(id);
            }
        }
    }

    fn place(&mut self, id: u32) {
        match self.leaves[id as usize].fat {
            Bounds::Finite(fat) => {
                self.tree.insert_or_update_partially(fat.aabb(), id, 0.0);
            }
            Bounds::Below { .. } => {
                self.unbounded.push(id);
                self.unbounded.sort_unstable_by_key(|u| self.leaves[*u as usize].order);
            }
        }
        self.mark(id);
    }

    fn mark(&mut self, id: u32) {
        if !std::mem::replace(&mut self.is_changed[id as usize], true) {
            self.changed.push(id);
        }
    }

    /// Finds what has come near since the last [`BroadPhase::settle`]; nothing may have changed. Until then, [`BroadPhase::found`]
    /// and [`BroadPhase::parted`] tell what the lists of pairs need.
    pub fn refresh(&mut self) -> bool {
        self.found.clear();
        self.leave_crowds();
        if self.changed.is_empty() {
            return false;
        }
        self.move_leaves();
        self.find_crowds();
        let mut found = std::mem::take(&mut self.found);
        for &id in &self.changed {
            if self.leaves[id as usize].alive && !self.is_crowded[id as usize] {
                self.look_up(id, &mut found);
            }
        }
        if !self.crowd.is_empty() {
            let mut members = std::mem::take(&mut self.crowd);
            let meets = |a: u32, b: u32| near(&self.leaves[a as usize].fat, &self.leaves[b as usize].fat);
            pair_members(&mut members, |id| self.cores[id as usize], |id| self.order(id), meets, &mut found);
            self.crowd = members;
        }
        found.sort_unstable_by_key(|ids| self.rank(*ids));
        self.found = found;
        true
    }

    /// Members of crowds start anew: whether they still are in one is seen afterwards.
    fn leave_crowds(&mut self) {
        self.was_crowded.fill(false);
        let mut crowd = std::mem::take(&mut self.crowd);
        for id in crowd.drain(..) {
            self.was_crowded[id as usize] = true;
            self.is_crowded[id as usize] = false;
            self.mark(id);
        }
        self.crowd = crowd;
    }

    /// Finds the crowds. All that is near one is looked up anew, because members do not look others up.
    fn find_crowds(&mut self) {
        let mut seen = 0;
        while seen < self.changed.len() {
            let (first, mut around) = (self.crowd.len(), None::<Box3>);
            for k in seen..self.changed.len() {
                let id = self.changed[k];
                if let Bounds::Finite(fat) = self.leaves[id as usize].fat
                    && self.is_in_crowd(id)
                {
                    self.is_crowded[id as usize] = true;
                    self.crowd.push(id);
                    around = Some(around.map_or(fat, |a| a.union(fat)));
                }
            }
            seen = self.changed.len();
            let Some(around) = around.filter(|_| self.crowd.len() > first) else { continue };
            for id in 0..self.leaves.len() as u32 {
                let leaf = &self.leaves[id as usize];
                if leaf.alive && near(&leaf.fat, &Bounds::Finite(around)) {
                    self.mark(id);
                }
            }
        }
    }

    /// Do the cores of more than [`MOST`] others overlap its own? The answer does not depend on the tree: it ends early, but only
    /// once it is known.
    fn is_in_crowd(&self, id: u32) -> bool {
        let core = &self.cores[id as usize];
        if core.radius <= 0.0 || !self.leaves[id as usize].alive {
            return false;
        }
        let room = Aabb::new(core.center - core.radius, core.center + core.radius);
        let others = self.tree.intersect_aabb(&room).filter(|&o| core.overlaps(&self.cores[o as usize]));
        others.take(MOST + 1).count() > MOST
    }

    /// Must the pairs of either be listed anew, because it is in a crowd or was in one?
    #[inline]
    pub fn is_fresh(&self, (a, b): (u32, u32)) -> bool {
        let fresh = |id: u32| self.is_crowded[id as usize] || self.was_crowded[id as usize];
        fresh(a) || fresh(b)
    }

    /// Are both in a crowd, and not among the pairs to look at?
    pub fn is_left_out(&self, ids: (u32, u32)) -> bool {
        let both = self.is_crowded[ids.0 as usize] && self.is_crowded[ids.1 as usize];
        both && self.found.binary_search_by_key(&self.rank(ids), |f| self.rank(*f)).is_err()
    }

    /// How many colliders are in crowds.
    pub fn crowded(&self) -> usize {
        self.crowd.len()
    }

    /// Takes the boxes of what moved into the tree. Few are passed on to the boxes around them, which only grow by that; many,
    /// or few for a while, are worth a look at the whole tree.
    fn move_leaves(&mut self) {
        self.loose += self.changed.len();
        let many = 8 * self.loose > self.leaves.len();
        for &id in &self.changed {
            let leaf = &self.leaves[id as usize];
            let (true, Bounds::Finite(fat)) = (leaf.alive, leaf.fat) else { continue };
            if many {
                self.tree.insert_or_update_partially(fat.aabb(), id, 0.0);
            } else {
                self.tree.insert(fat.aabb(), id);
            }
        }
        if many {
            self.loose = 0;
            self.tree.refit(&mut self.workspace);
            // A better tree is searched faster, but it need not be the best in every step.
            self.refits = self.refits.wrapping_add(1);
            if self.refits.is_multiple_of(8) {
                self.tree.optimize_incremental(&mut self.workspace);
            }
        }
    }

    /// The pairs that have come near, sorted by rank.
    pub fn found(&self) -> &[(u32, u32)] {
        &self.found
    }

    /// Is a pair that was near not so any more?
    #[inline(always)]
    pub fn parted(&self, (a, b): (u32, u32)) -> bool {
        (self.is_changed[a as usize] || self.is_changed[b as usize])
            && !near(&self.leaves[a as usize].fat, &self.leaves[b as usize].fat)
    }

    /// The lists of pairs are up to date.
    pub fn settle(&mut self) {
        self.found.clear();
        for id in self.changed.drain(..) {
            self.is_changed[id as usize] = false;
            self.before[id as usize] = Some(self.leaves[id as usize].fat);
        }
    }

    /// By what pairs are sorted: the earlier collider first, in order of creation.
    pub fn rank(&self, (a, b): (u32, u32)) -> (u64, u64) {
        (self.order(a), self.order(b))
    }

    /// Everything that has come near collider `id` since the last refresh, as pairs ranked by creation.
    fn look_up(&self, id: u32, found: &mut Vec<(u32, u32)>) {
        let leaf = &self.leaves[id as usize];
        let mut push = |other: u32| {
            let o = &self.leaves[other as usize];
            // Two that changed find each other twice; once is enough.
            let twice = self.is_changed[other as usize] && other < id && !self.is_crowded[other as usize];
            // All that was near at the last refresh is a pair already.
            let known = !self.is_fresh((id, other))
                && matches!((&self.before[id as usize], &self.before[other as usize]), (Some(x), Some(y)) if near(x, y));
            if other != id && !twice && !known && (leaf.movable || o.movable) {
                found.push(if leaf.order < o.order { (id, other) } else { (other, id) });
            }
        };
        match leaf.fat {
            Bounds::Finite(fat) => {
                self.tree.intersect_aabb(&fat.aabb()).for_each(&mut push);
                for &other in &self.unbounded {
                    if near(&leaf.fat, &self.leaves[other as usize].fat) {
                        push(other);
                    }
                }
            }
            Bounds::Below { .. } => {
                for (other, o) in self.leaves.iter().enumerate() {
                    if o.alive && matches!(o.fat, Bounds::Finite(_)) && near(&leaf.fat, &o.fat) {
                        push(other as u32);
                    }
                }
            }
        }
    }

    /// Calls `f` with every collider whose fat box meets `region`, in no particular order.
    pub fn in_region(&self, region: &Box3, f: &mut dyn FnMut(u32)) {
        self.tree.intersect_aabb(&region.aabb()).for_each(&mut *f);
        for &id in &self.unbounded {
            if near(&Bounds::Finite(*region), &self.leaves[id as usize].fat) {
                f(id);
            }
        }
    }

    /// The numbers of colliders that were removed since the last call, sorted; some may be in use again.
    pub fn take_removed(&mut self) -> Vec<u32> {
        let mut removed = std::mem::take(&mut self.removed);
        removed.sort_unstable();
        removed
    }

    /// The rank of a collider.
    pub fn order(&self, id: u32) -> u64 {
        self.leaves[id as usize].order
    }

    /// Ranks a collider anew. Ranks may change, but never so that two colliders change places.
    pub fn set_order(&mut self, id: u32, order: u64) {
        self.leaves[id as usize].order = order;
    }

    /// Was the collider inserted as one that moves?
    pub fn is_movable(&self, id: u32) -> bool {
        self.leaves[id as usize].movable
    }

    /// Number of colliders.
    pub fn len(&self) -> usize {
        self.leaves.len() - self.free.len()
    }

    /// Is there no collider?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Merges `new` into `list`; both are sorted by rank and have nothing in common. `new` is empty then.
pub fn insert_sorted<T: Default, K: Ord>(list: &mut Vec<T>, new: &mut Vec<T>, rank: impl Fn(&T) -> K) {
    let mut end = list.len();
    list.resize_with(end + new.len(), T::default);
    while let Some(item) = new.pop() {
        let key = rank(&item);
        let start = list[..end].partition_point(|p| rank(p) < key);
        // What is free behind `end` comes to stand before what ranks higher.
        list[start..end + new.len() + 1].rotate_right(new.len() + 1);
        list[start + new.len()] = item;
        end = start;
    }
}

/// How far apart two bounds are along some axis at least; −∞ for two half-spaces, negative where they meet.
fn gap(a: &Bounds, b: &Bounds) -> f64 {
    match (a, b) {
        (Bounds::Finite(x), Bounds::Finite(y)) => (x.low - y.high).max(y.low - x.high).max_element(),
        (Bounds::Finite(x), Bounds::Below { normal, offset })
        | (Bounds::Below { normal, offset }, Bounds::Finite(x)) => {
            let (middle, half) = (0.5 * (x.low + x.high), 0.5 * (x.high - x.low));
            normal.dot(middle) - normal.abs().dot(half) - *offset
        }
        (Bounds::Below { .. }, Bounds::Below { .. }) => f64::NEG_INFINITY,
    }
}

/// Room to move before the tree is touched again: a tenth of the smallest edge.
fn fatten(bounds: Bounds) -> Bounds {
    match bounds {
        Bounds::Finite(tight) => {
            let room = 0.1 * (tight.high - tight.low).min_element();
            Bounds::Finite(Box3 { low: tight.low - room, high: tight.high + room })
        }
        below => below,
    }
}

#[inline]
fn near(a: &Bounds, b: &Bounds) -> bool {
    match (a, b) {
        (Bounds::Finite(x), Bounds::Finite(y)) => x.meets(y),
        (Bounds::Finite(x), Bounds::Below { normal, offset })
        | (Bounds::Below { normal, offset }, Bounds::Finite(x)) => {
            let (middle, half) = (0.5 * (x.low + x.high), 0.5 * (x.high - x.low));
            normal.dot(middle) - normal.abs().dot(half) <= *offset
        }
        (Bounds::Below { .. }, Bounds::Below { .. }) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) as f64 / (1u64 << 31) as f64
    }

    fn cube(at: DVec3, half: f64) -> Box3 {
        Box3 { low: at - half, high: at + half }
    }

    /// Random motion, spawns and despawns: the kept pairs are those a double loop over the fat boxes finds.
    #[test]
    fn kept_pairs_equal_a_double_loop() {
        let mut seed = 3;
        let mut broad = BroadPhase::default();
        let mut live: Vec<(u32, DVec3, f64)> = Vec::new();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let floor = broad.insert(0, Bounds::Below { normal: DVec3::Z, offset: -3.0 }, false);
        let mut order = 1;
        for round in 0..200 {
            if round % 7 == 3 && live.len() > 20 {
                let gone = live.remove((random(&mut seed) * live.len() as f64) as usize);
                broad.remove(gone.0);
            }
            for _ in 0..if round == 0 { 80 } else { round % 2 } {
                let at = DVec3::new(random(&mut seed), random(&mut seed), random(&mut seed)) * 8.0 - 4.0;
                let half = 0.1 + random(&mut seed) * 0.6;
                let id = broad.insert(order, Bounds::Finite(cube(at, half)), order % 5 != 0);
                order += 1;
                live.push((id, at, half));
            }
            for (id, at, half) in &mut live {
                let step = DVec3::new(random(&mut seed), random(&mut seed), random(&mut seed)) - 0.5;
                *at += 0.1 * step;
                broad.update(*id, Bounds::Finite(cube(*at, *half)));
            }
            broad.refresh();
            let removed = broad.take_removed();
            pairs.retain(|p| !removed.contains(&p.0) && !removed.contains(&p.1) && !broad.parted(*p));
            insert_sorted(&mut pairs, &mut broad.found().to_vec(), |p| broad.rank(*p));
            broad.settle();
            let mut expected = Vec::new();
            let mut ids: Vec<u32> = live.iter().map(|l| l.0).chain([floor]).collect();
            ids.sort_by_key(|id| broad.leaves[*id as usize].order);
            for (i, a) in ids.iter().enumerate() {
                for b in &ids[i + 1..] {
                    let (la, lb) = (&broad.leaves[*a as usize], &broad.leaves[*b as usize]);
                    if (la.movable || lb.movable) && near(&la.fat, &lb.fat) {
                        expected.push((*a, *b));
                    }
                }
            }
            assert_eq!(pairs, expected, "round {round}");
        }
    }
}
