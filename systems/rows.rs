//! Constraints write their rows (000 eqs. 3, 7).

use super::census::take_census;
use super::elements::{Definite, Element};
use crate::components::{Broken, ConstraintIndex, JointCollision, RowImpulse, RowImpulses};
use crate::constraint::row::{Coupled, STIFFNESS_KEYS, Softness, Stiffness};
use crate::constraint::{Bounds, Constraint, Row, RowWriter, Twist};
use crate::report::Trouble;
use crate::schedule::Step;
use crate::settings::Settings;
use crate::solver::Label;
use crate::state::{Bodies, Closing, ConstraintBlock, ConstraintEvaluator, NO_ROW, RowSample, Rows};
use hecs::{Entity, World};

/// Forgets the rows of the last step, and looks which types of constraints will write new ones.
pub fn clear_rows(step: &mut Step<'_>) {
    take_census(step);
    step.work.rows.clear();
    step.work.jointed_pairs.clear();
}

/// The system that writes the rows of all constraints of type `T`, in creation order.
pub fn write_rows<T: Constraint<N>, const N: usize>() -> impl FnMut(&mut Step<'_>) + Send + Sync {
    let mut scratch = Scratch::<N>::default();
    move |step| {
        number_new::<T>(step.world, &mut step.work.next_constraint);
        scratch.list::<T>(step.world);
        let mut query = step.world.query::<(&mut T, &RowImpulses, Option<&JointCollision>)>();
        let mut constraints = query.view();
        for k in 0..scratch.order.len() {
            let (_, entity) = scratch.order[k];
            let Some((constraint, last, collision)) = constraints.get_mut(entity) else { continue };
            scratch.rows.clear();
            scratch.stiffness.clear();
            scratch.coupled.rows.clear();
            scratch.coupled.blocks.clear();
            let slots = match find_bodies(&step.work.bodies, entity, constraint.bodies()) {
                Ok(slots) => slots,
                Err(trouble) => {
                    step.report.trouble(trouble);
                    continue;
                }
            };
            let bodies = slots.map(|s| &step.work.bodies.view[s as usize]);
            if let Err(number) = constraint.check() {
                step.report.trouble(Trouble::BadConstraint { entity, number });
                continue;
            }
            constraint.advance(bodies, last, step.dt);
            let mut writer = RowWriter::new(step.dt, last, &mut scratch.rows, &mut scratch.stiffness)
                .with_stiffness_share(step.settings.tuning.geometric_stiffness)
                .with_coupled(&mut scratch.coupled);
            constraint.write_rows(bodies, &mut writer);
            if !collision.map_or_else(|| constraint.collide(), |c| c.0) {
                forbid_contact(&mut step.work.jointed_pairs, &slots);
            }
            let written = Written {
                entity,
                slots,
                rows: &scratch.rows,
                stiffness: &scratch.stiffness,
                last,
                lever: constraint.anchor(bodies) - bodies.last().map_or(glam::DVec3::ZERO, |b| b.position),
            };
            if written.store(&mut step.work.rows, &step.work.bodies, step.settings, step.dt) {
                step.report.joints += 1;
            } else {
                step.report.trouble(Trouble::BadRow { entity });
                continue;
            }
            let coupled = &scratch.coupled;
            if coupled.rows.is_empty() && coupled.blocks.is_empty() {
                continue;
            }
            let element = Element { entity, slots: &slots, coupled };
            let how = (step.settings, step.dt);
            let stored = element.store(&mut step.work.rows, &step.work.bodies, how, &mut scratch.definite);
            if let Err(trouble) = stored {
                step.report.trouble(trouble);
            }
        }
    }
}

/// Tells how far the constraints of type `T` are violated at the given poses, in creation order.
pub fn gauge<T: Constraint<N>, const N: usize>() -> ConstraintEvaluator {
    let mut scratch = Scratch::<N>::default();
    Box::new(move |world, bodies, question, witness| {
        scratch.list::<T>(world);
        let mut query = world.query::<(&T, &RowImpulses)>();
        let constraints = query.view();
        let mut block = 0;
        for &(_, entity) in &scratch.order {
            let Some((constraint, last)) = constraints.get(entity) else { continue };
            let Ok(slots) = find_bodies(bodies, entity, constraint.bodies()) else { continue };
            if constraint.check().is_err() {
                continue;
            }
            if question.only.is_some_and(|only| !slots.iter().any(|&s| only[s as usize])) {
                continue;
            }
            scratch.rows.clear();
            scratch.stiffness.clear();
            let views = slots.map(|s| &question.poses[s as usize]);
            let shown =
                question.impulses.is_some_and(|shown| show(shown, entity, &mut block, &mut scratch.shown));
            let last = if shown { &scratch.shown } else { last };
            let mut writer = RowWriter::new(question.dt, last, &mut scratch.rows, &mut scratch.stiffness)
                .with_stiffness_share(question.stiffness_share);
            constraint.write_rows(views, &mut writer);
            scratch.ends.clear();
            if let Some(ends) = question.ends {
                let views = slots.map(|s| &ends[s as usize]);
                scratch.unused.clear();
                constraint.write_rows(
                    views,
                    &mut RowWriter::new(question.dt, last, &mut scratch.ends, &mut scratch.unused),
                );
            }
            if !scratch.rows.iter().chain(&scratch.ends).all(is_sound) {
                continue;
            }
            for row in &scratch.rows {
                let end = scratch.ends.iter().find(|end| end.key == row.key);
                scratch.jacobian.clear();
                scratch.jacobian.extend(merged(row, &slots, bodies));
                witness.row(&RowSample {
                    entity,
                    slots: &slots,
                    key: row.key,
                    violation: end.unwrap_or(row).violation,
                    measured: is_measured(row),
                    target_velocity: row.target_velocity,
                    jacobian: &scratch.jacobian,
                });
            }
            for (k, stiffness) in &scratch.stiffness {
                witness.stiffness(slots[*k], &acting(stiffness, bodies, slots[*k]));
            }
        }
    })
}

/// The impulses of a constraint's rows, as its evaluation is to see them; false if it wrote no rows. `block` remembers how far that is.
fn show((rows, lambda): (&Rows, &[f64]), entity: Entity, block: &mut usize, shown: &mut RowImpulses) -> bool {
    let Some(ahead) = rows.blocks[*block..].iter().position(|b| b.entity == entity) else { return false };
    *block += ahead;
    let own = &rows.blocks[*block];
    shown.0.clear();
    shown.0.extend((own.row as usize..(own.row + own.rows) as usize).map(|i| RowImpulse {
        key: rows.key[i],
        lambda: lambda[i],
        label: Label::Free,
    }));
    true
}

/// Buffers of one constraint type, kept from step to step.
struct Scratch<const N: usize> {
    order: Vec<(u64, Entity)>,
    rows: Vec<Row<N>>,
    stiffness: Vec<(usize, Stiffness)>,
    coupled: Coupled<N>,
    definite: Definite,
    ends: Vec<Row<N>>,
    unused: Vec<(usize, Stiffness)>,
    jacobian: Vec<[f64; 6]>,
    shown: RowImpulses,
}

impl<const N: usize> Default for Scratch<N> {
    fn default() -> Self {
        let (order, rows, stiffness, coupled) = Default::default();
        let (ends, unused, jacobian, shown) = Default::default();
        let definite = Definite::default();
        Scratch { order, rows, stiffness, coupled, definite, ends, unused, jacobian, shown }
    }
}

impl<const N: usize> Scratch<N> {
    fn list<T: Send + Sync + 'static>(&mut self, world: &World) {
        list::<T>(world, &mut self.order);
    }
}

/// All constraints or subsystems of a type in creation order.
pub(super) fn list<T: Send + Sync + 'static>(world: &World, order: &mut Vec<(u64, Entity)>) {
    order.clear();
    let mut query = world.query::<(Entity, &ConstraintIndex)>().with::<&T>().without::<&Broken>();
    order.extend(query.iter().map(|(entity, index)| (index.0, entity)));
    if !order.is_sorted() {
        order.sort_unstable();
    }
}

/// Gives constraints that are new their number and a place for their impulses.
pub(super) fn number_new<T: Send + Sync + 'static>(world: &mut World, next: &mut u64) {
    let new = world.query_mut::<Entity>().with::<&T>().without::<&ConstraintIndex>();
    let mut new: Vec<Entity> = new.into_iter().collect();
    new.sort_unstable_by_key(|e| (e.id(), e.to_bits()));
    for entity in new {
        // The entity was yielded by the query above, so it exists.
        let _ = world.insert(entity, (ConstraintIndex(*next), RowImpulses::default()));
        *next += 1;
    }
}

/// The slots of a constraint's bodies, or the reason why it is skipped.
fn find_bodies<const N: usize>(
    bodies: &Bodies,
    entity: Entity,
    names: [Entity; N],
) -> Result<[u32; N], Trouble> {
    let mut slots = [0; N];
    for (k, body) in names.into_iter().enumerate() {
        let slot = bodies.slot_of(body).ok_or(Trouble::MissingBody { entity, body })?;
        if N == 2 && slots[..k].contains(&slot) {
            return Err(Trouble::SameBody { entity, body });
        }
        slots[k] = slot;
    }
    Ok(slots)
}

fn forbid_contact(pairs: &mut Vec<(u32, u32)>, slots: &[u32]) {
    for (i, &a) in slots.iter().enumerate() {
        for &b in &slots[i + 1..] {
            pairs.push((a.min(b), a.max(b)));
        }
    }
}

/// What one constraint wrote.
struct Written<'a, const N: usize> {
    entity: Entity,
    slots: [u32; N],
    rows: &'a [Row<N>],
    stiffness: &'a [(usize, Stiffness)],
    last: &'a RowImpulses,
    /// From the last body's centre of mass to the constraint's anchor.
    lever: glam::DVec3,
}

impl<const N: usize> Written<'_, N> {
    /// Appends the rows; false, and nothing appended, if one of them is not finite.
    fn store(&self, out: &mut Rows, bodies: &Bodies, settings: &Settings, dt: f64) -> bool {
        if !self.rows.iter().all(is_sound) {
            return false;
        }
        if self.rows.is_empty() {
            return true;
        }
        out.blocks.push(ConstraintBlock {
            entity: self.entity,
            row: out.d.len() as u32,
            rows: self.rows.len() as u32,
            body: out.body.len() as u32,
            bodies: distinct(&self.slots).count() as u32,
            entry: out.jacobian.len() as u32,
            fold: false,
            last: distinct(&self.slots).position(|(_, s)| Some(&s) == self.slots.last()).unwrap_or(0) as u32,
            lever: self.lever,
        });
        out.body.extend(distinct(&self.slots).map(|(_, slot)| slot));
        let ease = self.slots.map(|slot| Ease::of(bodies, slot));
        for row in self.rows {
            let tied = row.jacobian.iter().zip(&ease).map(|(twist, ease)| ease.along(twist)).sum();
            let Discrete { compliance, d, most } = discretise(row, settings, tied, dt);
            out.most.push(most);
            out.jacobian.extend(merged(row, &self.slots, bodies));
            out.violation.push(row.violation);
            out.compliance.push(compliance);
            out.d.push(d);
            out.lo.push(row.bounds.lower * dt);
            out.hi.push(row.bounds.upper * dt);
            out.kind.push(row.kind);
            out.key.push(row.key);
            out.measured.push(is_measured(row));
            out.position_level.push(bends(row));
            out.drives.push(drives(row));
            out.closing.push(closing(row, settings));
            let last = self.last.0.iter().find(|r| r.key == row.key);
            out.lambda.push(last.map_or(0.0, |r| r.lambda));
            out.before.push(last.map_or(0.0, |r| r.lambda));
            out.label.push(last.map_or(Label::Free, |r| r.label));
            out.normal_of.push(NO_ROW);
            out.slides.push(false);
            out.friction.push(0.0);
        }
        let other = |k: usize| if N == 2 { self.slots[1 - k] } else { self.slots[k] };
        out.stiffness.extend(
            self.stiffness
                .iter()
                .map(|(k, s)| (self.slots[*k], other(*k), acting(s, bodies, self.slots[*k]))),
        );
        true
    }
}

/// The slots of a constraint without repetitions, each with its first place: a block may carry two sheaves of one rope.
pub(super) fn distinct<const N: usize>(slots: &[u32; N]) -> impl Iterator<Item = (usize, u32)> + '_ {
    slots.iter().copied().enumerate().filter(|&(k, slot)| !slots[..k].contains(&slot))
}

/// A row's Jacobian by distinct body. Nothing turns a point mass.
pub(super) fn merged<'a, const N: usize>(
    row: &'a Row<N>,
    slots: &'a [u32; N],
    bodies: &'a Bodies,
) -> impl Iterator<Item = [f64; 6]> + 'a {
    distinct(slots).map(move |(_, slot)| {
        let parts = row.jacobian.iter().zip(slots).filter(|(_, s)| **s == slot);
        let sum = parts.fold(Twist::ZERO, |sum, (t, _)| sum + *t);
        bodies.view[slot as usize].acting(sum).to_array()
    })
}

/// What of a geometric stiffness acts on a body: on a point mass, what does not turn it.
fn acting(stiffness: &Stiffness, bodies: &Bodies, slot: u32) -> Stiffness {
    match bodies.view[slot as usize].rotates() {
        true => *stiffness,
        false => Stiffness { linear: stiffness.linear, ..Stiffness::default() },
    }
}

/// The row that was told about, and its block. Constraints are told in the order in which they wrote their rows;
/// `block` remembers how far that is.
pub(super) fn find(rows: &Rows, block: &mut usize, told: &RowSample<'_>) -> Option<usize> {
    let ahead = rows.blocks[*block..].iter().position(|b| b.entity == told.entity)?;
    *block += ahead;
    let first = rows.blocks[*block].row as usize;
    let mut range = first..first + rows.blocks[*block].rows as usize;
    range.find(|&i| rows.key[i] == told.key)
}

fn closing<const N: usize>(row: &Row<N>, settings: &Settings) -> Closing {
    match row.softness {
        _ if row.key >= STIFFNESS_KEYS && row.key != Row::<N>::AUTO_KEY => Closing::Tangent,
        Softness::Rigid if row.bounds == Bounds::BOTH => Closing::Share(settings.tuning.joint_correction),
        Softness::Rigid => Closing::Share(settings.tuning.stop_correction),
        Softness::Compliant { correction, .. } => Closing::Share(correction),
        Softness::Spring { stiffness, damping } => Closing::Spring { stiffness, damping },
        Softness::Velocity { .. } => Closing::Velocity,
    }
}

/// Does the curvature of the motion count in this row? It does where a violation is to be closed at the end of the step.
fn bends<const N: usize>(row: &Row<N>) -> bool {
    row.bounds == Bounds::BOTH && matches!(row.softness, Softness::Rigid | Softness::Compliant { .. })
}

/// May energy come from the row? What a spring gives it has taken before, but energies of springs are not told.
fn drives<const N: usize>(row: &Row<N>) -> bool {
    row.target_velocity != 0.0 || matches!(row.softness, Softness::Spring { .. })
}

/// Does the row's violation count as an error of a joint?
fn is_measured<const N: usize>(row: &Row<N>) -> bool {
    row.measured && row.bounds == Bounds::BOTH && !matches!(row.softness, Softness::Velocity { .. })
}

/// Larger numbers would overflow where a few of them are multiplied; scenes have the same bound.
pub(super) const LARGEST: f64 = 1e30;

pub(super) fn is_sound<const N: usize>(row: &Row<N>) -> bool {
    let within = |x: f64| x.abs() <= LARGEST;
    let small = |v: glam::DVec3| within(v.x) && within(v.y) && within(v.z);
    let soft = match row.softness {
        Softness::Rigid => true,
        Softness::Spring { stiffness, damping } => {
            within(stiffness) && within(damping) && stiffness >= 0.0 && damping >= 0.0
        }
        Softness::Compliant { compliance, correction, max_speed } => {
            within(compliance) && within(correction) && max_speed >= 0.0
        }
        Softness::Velocity { compliance } => within(compliance),
    };
    row.jacobian.iter().all(|t| small(t.linear) && small(t.angular))
        && within(row.violation)
        && within(row.target_velocity)
        && soft
        && row.bounds.lower <= row.bounds.upper
        && row.bounds.lower < f64::INFINITY
        && row.bounds.upper > f64::NEG_INFINITY
}

/// How easily a body is moved: 1/m, and one over the mean of its principal moments; zero for those that do not move.
pub(super) struct Ease {
    linear: f64,
    angular: f64,
}

impl Ease {
    pub(super) fn of(bodies: &Bodies, slot: u32) -> Ease {
        if !bodies.is_dynamic(slot) {
            return Ease { linear: 0.0, angular: 0.0 };
        }
        let view = &bodies.view[slot as usize];
        // The trace does not change with the axes.
        let trace = view.inertia.x_axis.x + view.inertia.y_axis.y + view.inertia.z_axis.z;
        Ease { linear: 1.0 / view.mass, angular: if view.rotates() { 3.0 / trace } else { 0.0 } }
    }

    /// J M⁻¹ Jᵀ of one body's part in a row, as if it were a ball: the size of it is all that matters here.
    pub(super) fn along(&self, twist: &Twist) -> f64 {
        self.linear * twist.linear.length_squared() + self.angular * twist.angular.length_squared()
    }
}

/// Greatest compliance of a rigid row relative to the inertia that it ties, A_ii = J M⁻¹ Jᵀ.
///
/// A force F opens a joint by h²CF: an absolute C holds links of 0.25 kg to micrometres under 10 kN, and lets links of 500 kg
/// open by metres under the 1e9 N that their load puts on them. With C = 1e-7 A_ii a joint opens by 1e-7 of the way that the
/// force would move its bodies in a step: a tenth of a millimetre there. At 1e-8 chains of 0.25 kg links become harder, too, and gain
/// 0.2 mm of height.
const RIGID: f64 = 1e-7;

/// C and d of 000 eq. (3).
pub(super) struct Discrete {
    pub compliance: f64,
    pub d: f64,
    /// Greatest velocity of a correction.
    most: f64,
}

/// From a row's softness to C and d = (share of φ)/h − w₀.
///
/// One-sided rows on their slack side (a rope not yet taut, a stop not yet reached) may use up exactly the slack in
/// this step and no more, so all of φ counts there.
///
/// `tied` is the inertia that the row ties, as A_ii.
pub(super) fn discretise<const N: usize>(row: &Row<N>, settings: &Settings, tied: f64, dt: f64) -> Discrete {
    let phi = row.violation;
    let slack = (row.bounds.lower == 0.0 && phi > 0.0) || (row.bounds.upper == 0.0 && phi < 0.0);
    let corrected = |share: f64, most: f64| {
        if slack { phi / dt } else { (share * phi / dt).clamp(-most, most) }
    };
    let most = match row.softness {
        Softness::Compliant { max_speed, .. } => max_speed,
        _ => settings.tuning.max_correction_speed,
    };
    let (compliance, bias) = match row.softness {
        Softness::Rigid => {
            let share = if row.bounds == Bounds::BOTH {
                settings.tuning.joint_correction
            } else {
                settings.tuning.stop_correction
            };
            (settings.joint_compliance.min(RIGID * tied), corrected(share, most))
        }
        Softness::Compliant { compliance, correction, .. } => (compliance, corrected(correction, most)),
        // 003 eqs. 2.20–2.25: λ = −h (k (φ + h J v⁺) + c J v⁺)
        Softness::Spring { stiffness, damping } => {
            let total = dt * stiffness + damping;
            (1.0 / (dt * total).max(1e-12), stiffness * phi / total.max(1e-12))
        }
        Softness::Velocity { compliance } => (compliance, 0.0),
    };
    Discrete { compliance: compliance.max(1e-14), d: bias - row.target_velocity, most }
}
