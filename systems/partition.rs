//! Islands are cut into partitions (000 §6), which are entities.

use super::parallel::for_each;
use crate::components::*;
use crate::coupling::cost;
use crate::coupling::cut::GLUE;
use crate::graph::{BodyGraph, Grouping, min_degree, pins, semantic};
use crate::schedule::Step;
use crate::settings::{Partitioning, Settings};
use crate::solver::condensed::Outline;
use crate::solver::{Label, Method};
use crate::state::{Bodies, ConstraintBlock, Island, NO_ISLAND, Rows, Scheme, Work};
use hecs::World;
use rayon::prelude::*;

/// Bodies per partition where a coupling method is asked for without a way to cut (000 Table 2).
const PUBLISHED_SIZE: u32 = 16;

/// Decides how every island is solved and, where it is cut, which body goes where. The choice follows from the constraint
/// graph and the settings alone: never from the number of threads, nor from earlier steps.
pub fn partition_bodies(step: &mut Step<'_>) {
    read_hints(step);
    cut_islands(step.work, step.settings);
    number_partitions(step);
}

/// How every island is solved under these settings; hints and pins are those that the step has read.
pub fn cut_islands(work: &mut Work, settings: &Settings) {
    number_locally(&work.islands, work.bodies.len(), &mut work.local);
    let Work { islands, bodies, rows, hints, pins, local, .. } = work;
    let choose = |island: &mut Box<Island>| choose(island, settings, bodies, rows, (hints, pins), local);
    // Waking threads costs more than a look at small islands.
    match islands.iter().any(|island| island.bodies.len() >= cost::FEWEST) {
        true => for_each(islands.par_iter_mut(), choose),
        false => islands.iter_mut().for_each(choose),
    }
}

/// The number of each slot within its island.
fn number_locally(islands: &[Box<Island>], n: usize, local: &mut Vec<u32>) {
    local.resize(n, 0);
    for island in islands {
        for (k, &slot) in island.bodies.iter().enumerate() {
            local[slot as usize] = k as u32;
        }
    }
}

fn read_hints(step: &mut Step<'_>) {
    let work = &mut *step.work;
    for wishes in [&mut work.hints, &mut work.pins] {
        wishes.clear();
        wishes.resize(work.bodies.len(), None);
    }
    for (index, pin) in step.world.query_mut::<(&BodyIndex, &PartitionPin)>() {
        if let Some(slot) = work.pins.get_mut(index.0 as usize) {
            *slot = Some(pin.0);
        }
    }
    for (index, hint) in step.world.query_mut::<(&BodyIndex, &PartitionHint)>() {
        if let Some(slot) = work.hints.get_mut(index.0 as usize) {
            *slot = Some(hint.0);
        }
    }
}

fn choose(
    island: &mut Island,
    settings: &Settings,
    bodies: &Bodies,
    rows: &Rows,
    (hints, pins): (&[Option<u32>], &[Option<u32>]),
    local: &[u32],
) {
    let how = match settings.method {
        Method::SchurBpp | Method::SchurPgsSm | Method::Fbic => Scheme::CouplingLoop,
        Method::Auto | Method::Bpp | Method::Ipm | Method::SchurIpm => Scheme::Substructured,
        _ => Scheme::Monolithic,
    };
    let pinned = island.bodies.iter().any(|&slot| pins[slot as usize].is_some());
    let fewest = match settings.partitioning {
        Partitioning::None => usize::MAX,
        _ if pinned => 2,
        Partitioning::Auto if how == Scheme::Substructured && settings.method != Method::SchurIpm => {
            cost::FEWEST
        }
        _ => 2,
    };
    island.cut.linear = false;
    // The paper's loop knows nothing but rows between partitions.
    let coupled = !island.elements.is_empty();
    if how == Scheme::Monolithic || island.bodies.len() < fewest || coupled && how == Scheme::CouplingLoop {
        island.cut.scheme = Scheme::Monolithic;
        island.cut.made_for.clear();
        return;
    }
    let mut by_joints = false;
    if settings.partitioning == Partitioning::Auto && settings.method == Method::Auto {
        let outline = outline(island, bodies, rows);
        island.cut.linear = cost::is_nearly_linear(&outline);
        by_joints = cost::is_cut_by_joints(&outline);
        if !pinned && cost::stays_whole(&outline) {
            // The grouping is kept: contacts come and go.
            island.cut.scheme = Scheme::Monolithic;
            return;
        }
    }
    let Island { bodies: own, blocks, elements, cut, .. } = island;
    let mut made_for = std::mem::take(&mut cut.asked_for);
    made_for.clear();
    made_for.push(own.len() as u32);
    let ties = |&&b: &&u32| !by_joints || bounded_rows(&rows.blocks[b as usize], rows) == 0;
    let mut tying = 0;
    for &b in blocks.iter().filter(ties) {
        let block = &rows.blocks[b as usize];
        tying += block.rows as usize;
        made_for.push(block.rows);
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        made_for.extend(slots.iter().filter(|&&s| bodies.is_dynamic(s)).map(|&s| local[s as usize]));
    }
    let wish = |wish: Option<u32>| wish.map_or(0, |number| number.wrapping_add(1));
    made_for.extend(own.iter().map(|&s| wish(hints[s as usize])));
    if pinned {
        made_for.extend(own.iter().map(|&s| wish(pins[s as usize])));
    }
    made_for.extend(marks(settings));
    let coupled = elements.iter().flat_map(|&e| {
        let moving = rows.couplings.slots(&rows.couplings.elements[e as usize]);
        let mut moving = moving.filter(|&s| bodies.is_dynamic(s)).map(|s| local[s as usize]);
        let first = moving.next();
        moving.filter_map(move |other| Some((first?, other)))
    });
    made_for.extend(coupled.clone().flat_map(|(a, b)| [a, b]));
    if made_for != cut.made_for {
        std::mem::swap(&mut cut.made_for, &mut made_for);
        build_graph(
            &mut cut.graph,
            own.len(),
            (blocks.iter().filter(ties), coupled.clone()),
            bodies,
            rows,
            local,
        );
        let own_hints: Vec<Option<u32>> = own.iter().map(|&s| hints[s as usize]).collect();
        // From what it is made for and nothing else: a restored world must cut as this one does.
        cut.grouping = group(&cut.graph, tying, settings, how, &own_hints);
        if pinned {
            let own_pins: Vec<Option<u32>> = own.iter().map(|&s| pins[s as usize]).collect();
            cut.grouping = pins::pin(&cut.grouping, &own_pins);
        }
        cut.grouping = cut.grouping.joined(coupled);
    }
    cut.asked_for = made_for;
    cut.scheme = if cut.grouping.count > 1 { how } else { Scheme::Monolithic };
}

/// How much of an island has to be decided.
fn outline(island: &mut Island, bodies: &Bodies, rows: &Rows) -> Outline {
    let (touched, mut bounded) = (&mut island.cut.touched, 0);
    touched.clear();
    for block in island.blocks.iter().map(|&b| &rows.blocks[b as usize]) {
        let own = bounded_rows(block, rows);
        if own > 0 {
            let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
            touched.extend(slots.iter().filter(|&&slot| bodies.is_dynamic(slot)));
        }
        bounded += own;
    }
    touched.sort_unstable();
    touched.dedup();
    Outline { bodies: island.bodies.len(), rows: island.rows.len(), bounded, touched: touched.len() }
}

/// Rows of a block that have bounds.
fn bounded_rows(block: &ConstraintBlock, rows: &Rows) -> usize {
    let own = block.row as usize..(block.row + block.rows) as usize;
    own.filter(|&i| rows.lo[i].is_finite() || rows.hi[i].is_finite()).count()
}

/// The settings a grouping depends on, as numbers.
fn marks(settings: &Settings) -> [u32; 3] {
    let kind = match settings.partitioning {
        Partitioning::None => 0,
        Partitioning::Semantic => 1,
        Partitioning::Auto => 2,
        Partitioning::MinDegree(n) => 3 + n,
    };
    [settings.method as u32, kind, settings.coupling.parallelism]
}

fn build_graph<'a>(
    graph: &mut BodyGraph,
    n: usize,
    (blocks, coupled): (impl Iterator<Item = &'a u32>, impl Iterator<Item = (u32, u32)>),
    bodies: &Bodies,
    rows: &Rows,
    local: &[u32],
) {
    graph.reset(n);
    graph.work.fill(8);
    for &b in blocks {
        let block = &rows.blocks[b as usize];
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        let tied: Vec<u32> =
            slots.iter().filter(|&&s| bodies.is_dynamic(s)).map(|&s| local[s as usize]).collect();
        for (k, &a) in tied.iter().enumerate() {
            // Rows with bounds change at every pivot and iteration, and their bodies with them.
            graph.work[a as usize] += if block.fold { 2 * block.rows } else { block.rows };
            tied[..k].iter().for_each(|&b| graph.tie(a, b, block.rows));
        }
    }
    coupled.for_each(|(a, b)| graph.tie(a, b, 6));
    graph.finish();
}

fn group(
    graph: &BodyGraph,
    rows: usize,
    settings: &Settings,
    how: Scheme,
    hints: &[Option<u32>],
) -> Grouping {
    let named = hints.iter().any(Option::is_some);
    match settings.partitioning {
        Partitioning::None => Grouping::whole(graph.len()),
        Partitioning::Semantic => semantic::partition(graph, hints),
        Partitioning::MinDegree(most) => min_degree::partition(graph, most),
        Partitioning::Auto if how == Scheme::CouplingLoop || settings.method == Method::SchurIpm => {
            if named {
                semantic::partition(graph, hints)
            } else {
                min_degree::partition(graph, PUBLISHED_SIZE)
            }
        }
        Partitioning::Auto => {
            let mut graph = graph.clone();
            // A body copied across a cut costs six rows, however many points it touches at.
            graph.cap_weights(6);
            cost::choose(&graph, rows, settings.coupling.parallelism)
        }
    }
}

/// Numbers all partitions, island by island, and tells the bodies.
fn number_partitions(step: &mut Step<'_>) {
    let work = &mut *step.work;
    let mut of = std::mem::take(&mut work.partition_was);
    of.clear();
    of.resize(work.bodies.len(), NO_ISLAND);
    let mut next = 0;
    for island in &mut work.islands {
        island.cut.first_partition = next;
        let cut = island.cut.scheme != Scheme::Monolithic;
        for (k, &slot) in island.bodies.iter().enumerate() {
            of[slot as usize] = next + if cut { island.cut.grouping.of[k] } else { 0 };
        }
        next += if cut { island.cut.grouping.count } else { 1 };
    }
    step.report.partitions = next;
    if of != work.partition_of {
        report_bodies(step.world, &work.bodies, &of);
    }
    work.partition_was = std::mem::replace(&mut work.partition_of, of);
}

fn report_bodies(world: &mut World, bodies: &Bodies, of: &[u32]) {
    for (&entity, &partition) in bodies.entity.iter().zip(of) {
        match world.query_one_mut::<&mut PartitionIndex>(entity) {
            Ok(index) => index.0 = partition,
            // A body seen for the first time; one that is gone meanwhile needs no number.
            Err(_) => drop(world.insert_one(entity, PartitionIndex(partition))),
        }
    }
}

/// Brings the partition entities up to date: members, rows, index set, factor, solver. Entities are kept and used again, and so is what
/// they hold.
pub fn show_partitions(step: &mut Step<'_>) {
    let work = &mut *step.work;
    let mut used = 0;
    for (number, island) in work.islands.iter().enumerate() {
        if island.cut.scheme == Scheme::Monolithic {
            continue;
        }
        for part in 0..island.cut.grouping.count {
            if used == work.partition_entities.len() {
                work.partition_entities.push(step.world.spawn(Shown::default()));
            }
            let entity = &mut work.partition_entities[used];
            used += 1;
            if step.world.query_one_mut::<ShownMut<'_>>(*entity).is_err() {
                // The game took it, or something of it, away.
                let _ = step.world.despawn(*entity);
                *entity = step.world.spawn(Shown::default());
            }
            let Ok(shown) = step.world.query_one_mut::<ShownMut<'_>>(*entity) else { continue };
            *shown.0 = Partition { number: island.cut.first_partition + part, island: number as u32 };
            let members = island.bodies.iter().zip(&island.cut.grouping.of).filter(|&(_, &p)| p == part);
            shown.1.0.clear();
            shown.1.0.extend(members.map(|(&slot, _)| work.bodies.entity[slot as usize]));
            describe(island, part as usize, step.settings.method, shown);
        }
    }
    for &entity in &work.partition_entities[used..] {
        if let Ok((_, members, rows, index_set, ..)) = step.world.query_one_mut::<ShownMut<'_>>(entity) {
            members.0.clear();
            index_set.0.clear();
            *rows = PartitionRows::default();
        }
    }
}

/// What a partition entity has.
type Shown =
    (Partition, PartitionMembers, PartitionRows, PartitionIndexSet, PartitionFactor, PartitionSolver);
type ShownMut<'a> = (
    &'a mut Partition,
    &'a mut PartitionMembers,
    &'a mut PartitionRows,
    &'a mut PartitionIndexSet,
    &'a mut PartitionFactor,
    &'a mut PartitionSolver,
);

/// What the solver of an island knows of one of its partitions.
fn describe(
    island: &Island,
    part: usize,
    method: Method,
    (_, _, rows, index_set, factor, solver): ShownMut<'_>,
) {
    let (cut, symbolic) = match (island.cut.scheme, &island.cut.substructured, &island.cut.coupling_loop) {
        (Scheme::Substructured, Some(flat), _) => {
            *solver = PartitionSolver(method);
            (flat.linear().cut(), flat.linear().symbolic_of(part))
        }
        (Scheme::CouplingLoop, _, Some(nested)) => {
            *solver = PartitionSolver(nested.method_of(part));
            (nested.cut(), nested.symbolic_of(part))
        }
        _ => return,
    };
    let Some(shape) = cut.parts.get(part) else { return };
    let label = |&row: &u32| island.solution.labels.get(row as usize).copied().unwrap_or_default();
    index_set.0.clear();
    index_set.0.extend(shape.rows.iter().map(label));
    *rows = PartitionRows {
        internal: shape.rows.len() as u32,
        interface: shape.interface.len() as u32,
        free: index_set.0.iter().filter(|label| **label == Label::Free).count() as u32,
    };
    *factor = symbolic.map_or_else(PartitionFactor::default, |symbolic| PartitionFactor {
        fronts: symbolic.fronts.len() as u32,
        operations: symbolic.flops(),
    });
    debug_assert!(cut.interface.iter().all(|&r| r == GLUE || (r as usize) < island.rows.len()));
}
