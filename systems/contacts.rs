//! Contacts write their rows (000 eqs. 3, 7, 9–11), and friction bounds follow the normal impulses (000 §8.2).

use crate::components::{Contact, Manifold, ManifoldPoint, RowImpulses, Surface};
use crate::constraint::BodyView;
use crate::constraint::contact_rows::{
    ContactRow, ContactRules, STRIDE, impacting_fraction_of, normal_offset, relative_velocity,
    resting_fraction_of, slides, write_point,
};
use crate::schedule::Step;
use crate::settings::Settings;
use crate::solver::{Cone, Label, RowKind};
use crate::state::{Bodies, Closing, ConstraintBlock, Island, NO_ROW, Rows};
use glam::DVec3;
use hecs::Entity;

/// Less of the normal impulse than this is there to carry: the rest stops an approach.
const STRUCK: f64 = 0.7;

/// The numbers that all contacts of a step share.
pub fn rules(settings: &Settings, dt: f64) -> ContactRules {
    ContactRules {
        dt,
        correction: settings.tuning.contact_correction,
        max_recovery_speed: settings.tuning.max_recovery_speed,
        load_follow: settings.tuning.friction_follow,
    }
}

/// Writes the rows of all contacts, in the order of the pairs. Runs after all other constraints, so that it knows which
/// bodies are tied.
pub fn write_contacts(step: &mut Step<'_>) {
    let settings = step.settings;
    let rules = rules(settings, step.dt);
    let mut jointed = std::mem::take(&mut step.work.jointed_pairs);
    jointed.sort_unstable();
    jointed.dedup();
    let (bodies, rows, collision) = (&step.work.bodies, &mut step.work.rows, &step.work.collision);
    let mut query = step.world.query::<(&mut Contact, &mut Manifold, &Surface, &RowImpulses)>();
    let mut contacts = query.view();
    let (mut deepest, mut sum, mut count) = (0.0f64, 0.0, 0u32);
    for pair in &collision.pairs {
        let Some(entity) = pair.entity else { continue };
        let Some((contact, manifold, surface, last)) = contacts.get_mut(entity) else { continue };
        let (a, b) = (&collision.colliders[pair.ids.0 as usize], &collision.colliders[pair.ids.1 as usize]);
        if contact.sensor || !surface.enabled || !is_sound(surface) {
            continue;
        }
        let asleep = !bodies.is_dynamic(a.slot) && !bodies.is_dynamic(b.slot);
        let tied = jointed.binary_search(&(a.slot.min(b.slot), a.slot.max(b.slot))).is_ok();
        if tied {
            continue;
        }
        for point in manifold.points.iter().filter(|p| p.separation < 0.0 && !p.answered) {
            deepest = deepest.max(-point.separation);
            sum -= point.separation;
            count += 1;
        }
        if asleep || manifold.points.iter().all(|p| p.answered) {
            continue;
        }
        let views = [&bodies.view[a.slot as usize], &bodies.view[b.slot as usize]];
        let rules = ContactRules { max_recovery_speed: rules.max_recovery_speed.min(pair.parting), ..rules };
        let block = open_block(rows, entity, [a.slot, b.slot]);
        for point in manifold.points.iter_mut().filter(|p| !p.answered) {
            let pull = [a.slot, b.slot].map(|s| pull_along(bodies, s, point.normal));
            let speed = point.normal.dot(relative_velocity(point, views));
            let gain = pull[0] - pull[1];
            let d = match pair.crowded {
                true => -pair.parting,
                false => normal_offset(point.separation, &rules),
            };
            let calm = resting_fraction_of(point.separation, speed, gain, step.dt);
            point.impacting = impacting_fraction_of(point.separation, speed, gain, step.dt);
            if point.separation <= step.dt * (gain - speed) {
                contact.approach = contact.approach.max(-speed);
            }
            // The last step knows nothing of a blow.
            let first = match settings.tuning.friction_passes {
                _ if settings.has_cones() && !pair.crowded => FirstPass::Cone,
                0 => FirstPass::Bounded,
                _ if point.age > 0 && calm > STRUCK => FirstPass::Bounded,
                _ if slides(point, surface, views, (gain - speed).max(0.0)) => FirstPass::Slides,
                _ => FirstPass::Sticks,
            };
            let normal = rows.len();
            push_point(rows, point, surface, views, d, last, &rules, first);
            if first == FirstPass::Cone {
                refine_friction(rows, normal, point, surface, views, gain - speed);
            }
            if pair.crowded {
                (rows.lo[normal], rows.label[normal]) = (f64::NEG_INFINITY, Label::Free);
            }
            point.resting_fraction = calm;
        }
        close_block(rows, block);
    }
    drop(contacts);
    drop(query);
    step.work.jointed_pairs = jointed;
    step.report.penetration_max = deepest;
    step.report.penetration_mean = if count == 0 { 0.0 } else { sum / f64::from(count) };
}

/// What the step's forces add to the velocity of a body along a direction (m/s).
fn pull_along(bodies: &Bodies, slot: u32, n: DVec3) -> f64 {
    n.dot(bodies.velocity[slot as usize][0] - bodies.view[slot as usize].linear_velocity)
}

/// A surface that a user's system edited may hold anything.
pub fn is_sound(s: &Surface) -> bool {
    s.friction >= 0.0
        && s.compliance > 0.0
        && s.friction_compliance > 0.0
        && s.velocity.is_finite()
        && [
            s.friction,
            s.restitution,
            s.compliance,
            s.friction_compliance,
            s.torsion_radius,
            s.rolling_radius,
        ]
        .iter()
        .all(|x| x.is_finite())
}

fn label_of(last: &RowImpulses, key: u32) -> Label {
    last.0.iter().find(|r| r.key == key).map_or(Label::Free, |r| r.label)
}

/// Begins the rows of a contact.
pub fn open_block(rows: &mut Rows, entity: Entity, slots: [u32; 2]) -> usize {
    rows.blocks.push(ConstraintBlock {
        entity,
        row: rows.d.len() as u32,
        rows: 0,
        body: rows.body.len() as u32,
        bodies: 2,
        entry: rows.jacobian.len() as u32,
        fold: true,
        last: 1,
        lever: DVec3::ZERO,
    });
    rows.body.extend(slots);
    rows.blocks.len() - 1
}

/// Ends the rows of a contact.
pub fn close_block(rows: &mut Rows, block: usize) {
    rows.blocks[block].rows = rows.d.len() as u32 - rows.blocks[block].row;
}

/// What bounds the friction of a new or struck point before the normal impulse of the step is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPass {
    /// The normal impulses of the last steps; none where it is new.
    Bounded,
    /// It sticks; what sticking needs beyond μ λₙ is taken back in the second pass (000 §8.2).
    Sticks,
    /// It slides without friction, which comes in the second pass.
    Slides,
    /// Nothing: Coulomb's law is solved together with the normal impulse. Spin and rolling stay bounded.
    Cone,
}

/// Friction on the mean of the velocities before and after the step where it slides on, on the one after it where it may stop:
/// w_t = J_t v⁺ + γ J_t v⁻. With γ = 1 sliding is second order and friction's work −μ λ_n|ū_t| is never positive; with γ = 0 what slides
/// stops dead. γ goes by how often over friction could stop the sliding in this step. `closing` is the velocity (m/s) that the normal
/// impulse has to stop, that of forces included.
fn refine_friction(
    rows: &mut Rows,
    normal: usize,
    point: &ManifoldPoint,
    surface: &Surface,
    views: [&BodyView; 2],
    closing: f64,
) {
    if rows.cones.last().is_none_or(|cone| cone.row as usize != normal) {
        return;
    }
    let over = relative_velocity(point, views) - surface.velocity;
    let slip = over - point.normal * point.normal.dot(over);
    let light: f64 = views.iter().filter(|view| view.is_dynamic()).map(|view| 1.0 / view.mass).sum();
    let stop = surface.friction * (light * point.load).max(closing);
    let share = if stop > 0.0 { (slip.length() / stop - 1.0).clamp(0.0, 1.0) } else { 1.0 };
    let tangents = [point.tangent, point.normal.cross(point.tangent)];
    for (row, t) in [normal + 1, normal + 2].into_iter().zip(tangents) {
        // Friction's compliance tells redundant points apart; by what held in the last step it is taken back, so that nothing creeps.
        rows.d[row] += share * slip.dot(t) - rows.compliance[row] * rows.lambda[row];
    }
}

/// Appends the rows of one point.
#[allow(clippy::too_many_arguments)]
pub fn push_point(
    rows: &mut Rows,
    point: &mut ManifoldPoint,
    surface: &Surface,
    views: [&BodyView; 2],
    d: f64,
    last: &RowImpulses,
    rules: &ContactRules,
    first: FirstPass,
) {
    let normal = rows.d.len() as u32;
    write_point(point, surface, views, d, last, rules, &mut |row| {
        push(rows, &row, normal, label_of(last, row.key), first);
    });
    if first == FirstPass::Cone && surface.friction > 0.0 {
        rows.cones.push(Cone { row: normal, mu: surface.friction });
    }
}

fn push(rows: &mut Rows, row: &ContactRow, normal: u32, label: Label, first: FirstPass) {
    let friction = row.kind == RowKind::Friction;
    let tangent = friction && matches!(row.key % STRIDE, 1 | 2);
    let coulomb = first == FirstPass::Cone && tangent;
    let hi = match first {
        _ if coulomb => f64::INFINITY,
        FirstPass::Sticks => f64::INFINITY,
        FirstPass::Slides if friction => 0.0,
        _ => row.hi,
    };
    rows.jacobian.extend(row.jacobian.iter().map(|t| t.to_array()));
    rows.violation.push(row.violation);
    rows.compliance.push(row.compliance);
    rows.d.push(row.d);
    rows.lo.push(if friction { -hi } else { 0.0 });
    rows.hi.push(hi);
    rows.kind.push(row.kind);
    rows.key.push(row.key);
    rows.measured.push(false);
    rows.position_level.push(false);
    // Surfaces that move along themselves.
    rows.drives.push(friction && row.d != 0.0);
    rows.closing.push(Closing::Contact);
    rows.before.push(0.0);
    rows.lambda.push(row.lambda);
    rows.label.push(label);
    rows.normal_of.push(if friction && !coulomb { normal } else { NO_ROW });
    rows.slides.push(friction && first == FirstPass::Slides);
    rows.friction.push(row.friction);
}

/// Bounds the friction of new points by the present normal impulses, if it is off by a share that matters; then the island is
/// to be solved again.
pub fn renew_friction_bounds(island: &mut Island, rows: &Rows, settings: &Settings) -> bool {
    let matters = bounds_matter(island, rows, settings.tuning.friction_tolerance);
    if matters {
        each_friction_row(island, rows, |row| {
            if row.is_open() {
                (*row.lo, *row.hi) = (-row.want, row.want);
            }
        });
    }
    matters
}

/// Is there friction that nothing bounds yet, so that its bounds may have to be renewed?
pub fn has_open_friction(island: &Island, rows: &Rows) -> bool {
    let mut own = island.rows.iter().zip(&island.problem.hi);
    own.any(|(&row, hi)| {
        rows.normal_of[row as usize] != NO_ROW && (hi.is_infinite() || rows.slides[row as usize])
    })
}

/// The greatest impulse of friction that sticks, whatever its normal impulse (N·s).
pub fn unbounded_friction(island: &mut Island, rows: &Rows) -> f64 {
    let mut most = 0.0f64;
    each_friction_row(island, rows, |row| {
        if row.hi.is_infinite() {
            most = most.max(row.lambda.abs());
        }
    });
    most
}

/// The bound of friction that was to stick and slides first: as good as none, and not the zero of a point without load.
const SLIDES_FIRST: f64 = f64::MIN_POSITIVE;

/// Takes away the friction that nothing bounds yet; what it is bounded by comes with the normal impulses ([`renew_friction_bounds`]).
pub fn let_open_friction_slide(island: &mut Island, rows: &Rows) {
    each_friction_row(island, rows, |row| {
        if row.hi.is_infinite() {
            (*row.lo, *row.hi) = (-SLIDES_FIRST, SLIDES_FIRST);
        }
    });
}

/// How far the normal impulses are from those that set the friction bounds (N·s).
pub fn friction_shift(island: &mut Island, rows: &Rows) -> f64 {
    let mut shift = 0.0f64;
    each_friction_row(island, rows, |row| {
        if row.hi.is_finite() {
            shift = shift.max((row.want - *row.hi).abs() / row.mu);
        }
    });
    shift
}

/// Is the friction of new points, which nothing bounds yet, off by a share of the island's friction that matters: beyond μ λₙ
/// where they stick, missing where they slide?
fn bounds_matter(island: &mut Island, rows: &Rows, tolerance: f64) -> bool {
    let (mut off, mut sum) = (0.0, 0.0);
    each_friction_row(island, rows, |row| {
        sum += row.want;
        if row.is_open() {
            off += if row.slides { row.want } else { (row.lambda.abs() - row.want).max(0.0) };
        }
    });
    off > tolerance * sum
}

/// A friction row and what bounds it.
struct FrictionRow<'a> {
    lo: &'a mut f64,
    hi: &'a mut f64,
    lambda: f64,
    /// The bound by the present normal impulse.
    want: f64,
    mu: f64,
    slides: bool,
}

impl FrictionRow<'_> {
    /// Has no normal impulse bounded it yet?
    fn is_open(&self) -> bool {
        self.hi.is_infinite() || (self.slides && *self.hi <= SLIDES_FIRST)
    }
}

fn each_friction_row(island: &mut Island, rows: &Rows, mut f: impl FnMut(FrictionRow<'_>)) {
    let (problem, solution) = (&mut island.problem, &island.solution);
    for (k, &row) in island.rows.iter().enumerate() {
        let normal = rows.normal_of[row as usize];
        if normal == NO_ROW {
            continue;
        }
        // A contact's rows stay together, so the distance to its normal row is the same here and there.
        let normal = k - (row - normal) as usize;
        let mu = rows.friction[row as usize];
        let want = mu * solution.lambda[normal].max(0.0);
        let slides = rows.slides[row as usize] || problem.hi[k] == SLIDES_FIRST;
        f(FrictionRow {
            lo: &mut problem.lo[k],
            hi: &mut problem.hi[k],
            lambda: solution.lambda[k],
            want,
            mu,
            slides,
        });
    }
}
