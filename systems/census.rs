//! Which types of constraints the world has: some twenty are registered, most worlds hold one or two, and a system for each of the
//! others would cost more than the solve of a small world.

use crate::schedule::Step;
use std::any::TypeId;

/// What the world held when it was last looked at.
#[derive(Default)]
pub struct Census {
    /// Components of all archetypes that have entities, one archetype after another.
    components: Vec<TypeId>,
    /// Has a system of the game run since, which may have spawned constraints?
    pub needs_solve: bool,
}

/// Looks which registered types of constraints there are.
///
/// The lists of components are compared as they are: neither the number of archetypes nor its generation says that the world is
/// still the same one.
pub fn take_census(step: &mut Step<'_>) {
    let census = &mut step.work.census;
    census.needs_solve = false;
    let inhabited = step.world.archetypes().filter(|a| !a.is_empty());
    if inhabited.flat_map(|a| a.component_types()).eq(census.components.iter().copied()) {
        return;
    }
    census.components.clear();
    for archetype in step.world.archetypes().filter(|a| !a.is_empty()) {
        census.components.extend(archetype.component_types());
    }
    for of in &mut step.work.constraints {
        of.present = census.components.contains(&of.component);
    }
}

/// Has the world constraints of the type with this number?
pub fn has_constraints(step: &mut Step<'_>, number: usize) -> bool {
    if step.work.census.needs_solve {
        take_census(step);
    }
    step.work.constraints.get(number).is_none_or(|of| of.present)
}
