//! Whether and how to cut: the cost model behind `Partitioning::Auto`.
//!
//! A pivot or an interior-point iteration is one factorization and about three solves. Its time is estimated from the
//! operations of the elimination (counted, by ordering the graph) and the number of bodies; that of a cut from its
//! largest part, its interface and the price of starting threads. All figures are measured ones; only their
//! proportions matter, and the choice depends on the graph and the settings alone.

use crate::graph::{BodyGraph, Grouping, bisection};
use crate::linalg::ordering::MinDegree;
use crate::linalg::symbolic::Layout;
use crate::linalg::{BlockGraph, NodeKind, OrderingKind, Symbolic, dissection};
use crate::solver::condensed::Outline;

/// Microseconds per operation of a factorization (40 GF/s on fronts of middling size).
const OPERATION: f64 = 1.0 / 40_000.0;

/// Microseconds per row of a factorization and three solves: assembly, right-hand sides, small fronts, decisions.
const ROW: f64 = 0.038;

/// Microseconds per entry of the factor in three solves with refinement.
const ENTRY: f64 = 0.0011;

/// Microseconds to give work to threads that wait awake, to hand over what they need and to wait for them, for all the regions of an
/// iteration.
const REGIONS: f64 = 15.0;

/// Microseconds below which an iteration is not worth a look: a chain of 100 links (26) solves slower cut, log_tower as it stands (66) a tenth faster,
/// two cranes (73) half as fast again.
const SMALL: f64 = 48.0;

/// A cut must promise at least this share of the whole's time as gain.
const GAIN: f64 = 0.08;

/// Islands of fewer bodies are never worth a look: it would cost more than it can find.
pub const FEWEST: usize = 40;

/// Share of the work that stays serial in a cut system: copying between the whole and its parts, sums, decisions.
const SERIAL: f64 = 0.08;

/// Parts per thread at most: with more, interfaces grow faster than threads even out what the graph does not foretell.
const PARTS: u32 = 1;

/// What cutting adds to the arithmetic of the factorizations: interface fronts, shared bodies.
const FILL: f64 = 1.1;

/// So many rows with bounds are next to none: limits of a motor or two, decided in a pivot, on numbers that are linear otherwise.
const NEXT_TO_NONE: usize = 24;

/// So many rows with bounds may fall across a cut without being asked.
const FEW: usize = 320;

/// Do the rows without bounds alone say where to cut? Contacts come and go, and where they are few partitions had better stay. Where they are
/// many (cables wound around each other), a cut across them would be wide.
pub fn is_cut_by_joints(outline: &Outline) -> bool {
    outline.pays() && outline.bounded <= FEW
}

/// Rows with bounds from which on the interior point on all threads decides them faster than one thread does while the others are eliminated.
const MANY: usize = 700;

/// Is a problem better left whole, whatever its size? Where rows with bounds are too many to be decided alone in parts, but few enough in
/// the whole: cables of cable_spinner that begin to touch (520 rows) took 1.7 ms whole and 2.1 cut.
pub fn stays_whole(outline: &Outline) -> bool {
    outline.pays() && !outline.pays_in(true) && outline.bounded <= MANY
}

/// Is a step a linear solve or two and little else?
pub fn is_nearly_linear(outline: &Outline) -> bool {
    outline.bounded <= NEXT_TO_NONE
}

/// Times of one iteration on a whole graph (µs).
#[derive(Clone, Copy, Debug)]
struct Whole {
    /// Work on vectors: assembly, right-hand sides, rows.
    vectors: f64,
    /// Factorization and substitutions.
    numeric: f64,
}

fn whole(graph: &BodyGraph, rows: usize) -> Whole {
    let mut blocks = BlockGraph::default();
    for _ in 0..graph.len() {
        blocks.node(6, NodeKind::Body, false);
    }
    for body in 0..graph.len() as u32 {
        graph.of(body).iter().filter(|&&o| o > body).for_each(|&o| blocks.edge(body, o));
    }
    blocks.finish();
    let order = dissection::order(&blocks, OrderingKind::MinDegree, &mut MinDegree::default());
    let symbolic = Symbolic::build(&blocks, &order, Layout::Sequence);
    Whole {
        vectors: ROW * rows as f64,
        numeric: OPERATION * symbolic.flops() as f64 + ENTRY * symbolic.panels as f64,
    }
}

/// Time of one iteration with an interface of `m` rows between `parts` of which the busiest thread has this share (µs).
fn cut(whole: Whole, longest: f64, m: f64, parts: f64) -> f64 {
    // The factor of the interface, its assembly, and three solves: of the whole of it, or of what each part ties together.
    let tied = f64::min(m, 2.0 * m / parts);
    let operations = f64::min(m * m * m / 3.0, parts * tied * tied * tied);
    let entries = f64::min(m * m, 2.0 * parts * tied * tied);
    let interface = OPERATION * operations + 2.0 * ENTRY * entries;
    let shared = FILL * whole.numeric + whole.vectors;
    SERIAL * (whole.numeric + whole.vectors) + shared * longest + interface + REGIONS
}

/// The grouping of an island of so many rows for `threads` threads; one partition if cutting does not pay.
pub fn choose(graph: &BodyGraph, rows: usize, threads: u32) -> Grouping {
    let n = graph.len();
    let uncut = Grouping::whole(n);
    if threads < 2 || n < FEWEST {
        return uncut;
    }
    let uncut_time = whole(graph, rows);
    let time = uncut_time.vectors + uncut_time.numeric;
    if time < SMALL {
        return uncut;
    }
    let mut best = (time * (1.0 - GAIN), uncut);
    let mut parts = 2;
    while parts <= PARTS * threads.next_power_of_two() && n as u32 / parts >= 16 {
        let grouping = bisection::partition(graph, parts);
        let (longest, m) = (longest_share(graph, &grouping, threads), interface_estimate(graph, &grouping));
        let estimate = cut(uncut_time, longest, m, f64::from(parts));
        if estimate < best.0 {
            best = (estimate, grouping);
        }
        parts *= 2;
    }
    best.1
}

/// Share of the work that the busiest of the threads has, if each takes the largest part left.
fn longest_share(graph: &BodyGraph, grouping: &Grouping, threads: u32) -> f64 {
    let mut work = vec![0u64; grouping.count as usize];
    for (body, &part) in grouping.of.iter().enumerate() {
        work[part as usize] += u64::from(graph.work[body]);
    }
    let total: u64 = work.iter().sum();
    work.sort_unstable_by(|a, b| b.cmp(a));
    let mut load = vec![0u64; threads.max(1) as usize];
    for part in work {
        if let Some(least) = load.iter_mut().min() {
            *least += part;
        }
    }
    load.into_iter().max().unwrap_or(0) as f64 / total.max(1) as f64
}

/// Rows of the interface: six per body of the side with fewer of them, or the rows themselves where they are fewer.
fn interface_estimate(graph: &BodyGraph, grouping: &Grouping) -> f64 {
    let (mut bodies, mut rows) = (0.0, 0.0);
    for body in 0..graph.len() as u32 {
        let own = grouping.of[body as usize];
        let mut crossing = 0.0;
        for (other, weight) in graph.ties(body) {
            if grouping.of[other as usize] != own {
                crossing += f64::from(weight);
            }
        }
        if crossing > 0.0 {
            bodies += 1.0;
        }
        rows += 0.5 * crossing;
    }
    f64::min(3.0 * bodies, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(w: u32, h: u32, rows: u32) -> BodyGraph {
        let mut graph = BodyGraph::default();
        graph.reset((w * h) as usize);
        for y in 0..h {
            for x in 0..w {
                if x + 1 < w {
                    graph.tie(y * w + x, y * w + x + 1, rows);
                }
                if y + 1 < h {
                    graph.tie(y * w + x, y * w + x + w, rows);
                }
            }
        }
        graph.finish();
        graph
    }

    #[test]
    fn small_islands_stay_whole_and_large_ones_are_cut() {
        assert_eq!(choose(&grid(60, 1, 5), 295, 8).count, 1);
        assert_eq!(choose(&grid(40, 40, 6), 18_720, 1).count, 1);
        assert_eq!(choose(&grid(40, 40, 6), 18_720, 2).count, 2);
        // Long and thin: three cuts are as cheap as one.
        assert!(choose(&grid(600, 4, 6), 25_176, 8).count >= 4);
    }

    #[test]
    fn few_contacts_do_not_move_a_cut() {
        let net = Outline { bodies: 622, rows: 3944, bounded: 113, touched: 24 };
        assert!(is_cut_by_joints(&net) && !is_nearly_linear(&net));
        assert!(
            !is_cut_by_joints(&Outline { bounded: 1271, touched: 120, ..net }),
            "cables around each other"
        );
        assert!(is_nearly_linear(&Outline { bounded: 1, touched: 1, ..net }), "a motor");
        let cables = Outline { bodies: 386, rows: 2885, bounded: 522, touched: 60 };
        assert!(
            stays_whole(&cables) && !stays_whole(&Outline { bounded: 1046, ..cables }) && !stays_whole(&net)
        );
    }
}
