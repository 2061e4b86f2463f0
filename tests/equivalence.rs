//! Substructured = whole: on bilateral problems in one pass, with contact wherever the residual is small.

use turnbuckle::coupling::body_graph;
use turnbuckle::coupling::coupling_loop::{self, CouplingLoop};
use turnbuckle::coupling::cut::Seam;
use turnbuckle::coupling::executor::Serial;
use turnbuckle::coupling::schur::{Coupling, CouplingSettings};
use turnbuckle::coupling::substructured::Substructured;
use turnbuckle::graph::{Grouping, bisection, min_degree};
use turnbuckle::partition::Partition;
use turnbuckle::solver::row_solver::Solver;
use turnbuckle::solver::{Method, RowProblem, RowSolver, Solution, generate};

fn groupings(problem: &RowProblem) -> Vec<Grouping> {
    let graph = body_graph(problem);
    let mut all: Vec<Grouping> = [4, 8, 16, 32, 64].map(|n| min_degree::partition(&graph, n)).into();
    let bodies = problem.bodies() as u32;
    all.extend([8, 64].map(|n| bisection::partition(&graph, bodies.div_ceil(n))));
    all
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let size = a.iter().fold(1e-300f64, |m, x| m.max(x.abs()));
    a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size
}

fn published(interface: Method) -> CouplingSettings {
    CouplingSettings { interface, max_iterations: 10, as_published: true }
}

#[test]
fn bilateral_problems_are_solved_in_one_coupling_iteration() {
    for (name, problem) in
        [("chain", generate::chain(100, 500.0, 1e-9)), ("net", generate::net(4, 24, 8000.0, 1e-9))]
    {
        let mut problem = problem;
        problem.lo.fill(f64::NEG_INFINITY);
        problem.hi.fill(f64::INFINITY);
        let mut whole = Solution::default();
        assert!(RowSolver::new(Method::Bpp).solve(&problem, &mut whole).converged);
        for grouping in groupings(&problem) {
            for interface in [Method::Bpp, Method::PgsSm] {
                let (mut nested, mut solution) = (CouplingLoop::default(), Solution::default());
                let settings = published(interface);
                let stats =
                    coupling_loop::solve(&mut nested, &problem, &grouping, &mut solution, &settings, &Serial);
                assert_eq!(nested.outcome(), (1, true), "{name}, {} parts", grouping.count);
                // The issue's own bound for bilateral systems.
                let error = distance(&whole.v, &solution.v);
                assert!(error <= 1e-10, "{name}, {} parts: {error:e}, {stats:?}", grouping.count);
            }
        }
    }
}

#[test]
fn with_contact_every_solved_problem_has_the_velocities_of_the_whole() {
    let problems = [
        ("chain on ground", generate::chain_on_ground(60, 1e-8)),
        ("tower", generate::tower(16, 2, 2500.0, 1e-8)),
        ("rocks", generate::rocks(40, 1e-8)),
        ("net", generate::net(4, 16, 8000.0, 1e-9)),
    ];
    for (name, problem) in problems {
        let mut whole = Solution::default();
        let stats = RowSolver::new(Method::Auto).solve(&problem, &mut whole);
        assert!(stats.converged, "{name}: {stats:?}");
        for grouping in groupings(&problem) {
            let check = |how: &str, must: bool, stats: turnbuckle::solver::SolveStats, v: &[f64]| {
                let context = format!("{name}, {how}, {} parts", grouping.count);
                assert!(stats.converged || !must, "{context}: {stats:?}");
                if stats.residual_relative <= 1e-9 {
                    // The issue's own bound: v is unique where λ is not.
                    let error = distance(&whole.v, v);
                    assert!(error <= 1e-8, "{context}: {error:e} at {stats:?}");
                }
            };
            // Flat: as sure as the whole, for either seam and for both ways to find the index set.
            for (method, seam) in
                [(Method::Auto, Seam::Bodies), (Method::Auto, Seam::Rows), (Method::SchurIpm, Seam::Bodies)]
            {
                let mut solver = Solver::<Substructured<Serial>>::new(method);
                solver.linear_mut().set_grouping(&grouping, seam);
                let mut solution = Solution::default();
                let stats = solver.solve(&problem, &mut solution);
                check("flat", true, stats, &solution.v);
            }
            for interface in [Method::Bpp, Method::PgsSm] {
                let (mut nested, mut solution) = (CouplingLoop::default(), Solution::default());
                let settings = CouplingSettings { interface, max_iterations: 10, as_published: false };
                let stats =
                    coupling_loop::solve(&mut nested, &problem, &grouping, &mut solution, &settings, &Serial);
                check("nested", false, stats, &solution.v);
            }
        }
    }
}

/// Loose point masses: their own unknowns, its own solver, no rigid body in sight.
struct PointMasses {
    handles: Vec<u32>,
    mass: Vec<f64>,
    velocity: Vec<f64>,
    /// Unit directions of the handles on the masses: (mass, sign).
    grips: Vec<(usize, f64)>,
}

impl Partition for PointMasses {
    fn handles(&self) -> &[u32] {
        &self.handles
    }
    fn free_motion(&mut self, velocity: &mut [f64]) {
        for (out, &(mass, sign)) in velocity.iter_mut().zip(&self.grips) {
            *out = sign * self.velocity[mass];
        }
    }
    fn response(&mut self, inverse_mass: &mut [f64]) {
        let m = self.grips.len();
        for (i, &(a, sa)) in self.grips.iter().enumerate() {
            for (j, &(b, sb)) in self.grips.iter().enumerate() {
                inverse_mass[i * m + j] = if a == b { sa * sb / self.mass[a] } else { 0.0 };
            }
        }
    }
    fn finish(&mut self, impulse: &[f64]) -> bool {
        for (&l, &(mass, sign)) in impulse.iter().zip(&self.grips) {
            self.velocity[mass] += sign * l / self.mass[mass];
        }
        false
    }
}

#[test]
fn the_interface_does_not_care_what_a_partition_is() {
    // 2 kg at 3 m/s meets 1 kg at rest through a rod of no compliance: both go on at 2 m/s.
    let left: Box<dyn Partition + Send> = Box::new(PointMasses {
        handles: vec![0],
        mass: vec![2.0],
        velocity: vec![3.0],
        grips: vec![(0, -1.0)],
    });
    let right: Box<dyn Partition + Send> = Box::new(PointMasses {
        handles: vec![0, 1],
        mass: vec![1.0, 4.0],
        velocity: vec![0.0, -1.0],
        grips: vec![(0, 1.0), (1, 1.0)],
    });
    let mut coupling = Coupling::new([left, right]);
    // The second handle rests on the ground: its mass of 4 kg comes down at 1 m/s and is stopped by 4 N s.
    let inf = f64::INFINITY;
    coupling.begin(&[0.0, 0.0], &[0.0, 0.0], (&[-inf, 0.0], &[inf, inf]), &[]);
    coupling.run(&published(Method::Bpp), &Serial);
    assert!(coupling.settled && coupling.iterations == 1);
    // Exact in binary but for thirds: (2 · 3) / 3 = 2.
    assert!((coupling.interface.lambda[0] - 2.0).abs() < 1e-14);
    assert!((coupling.interface.lambda[1] - 4.0).abs() < 1e-14);
}

#[test]
fn a_warm_start_from_the_answer_settles_at_once() {
    let problem = generate::tower(16, 2, 2500.0, 1e-8);
    let mut whole = Solution::default();
    RowSolver::new(Method::Auto).solve(&problem, &mut whole);
    let grouping = min_degree::partition(&body_graph(&problem), 8);
    let (mut nested, mut solution) = (CouplingLoop::default(), whole.clone());
    let settings = published(Method::Bpp);
    let stats = coupling_loop::solve(&mut nested, &problem, &grouping, &mut solution, &settings, &Serial);
    assert_eq!(nested.outcome(), (1, true));
    assert!(stats.converged && distance(&whole.v, &solution.v) <= 1e-8, "{stats:?}");
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    use turnbuckle::systems::parallel::Crew;
    // Contacts everywhere; few contacts, decided with all else eliminated; none.
    for problem in
        [generate::rocks(40, 1e-8), generate::net(8, 30, 8000.0, 1e-8), generate::chain(120, 500.0, 1e-8)]
    {
        let grouping = bisection::partition(&body_graph(&problem), 5);
        let mut serial = Solver::<Substructured<Serial>>::new(Method::Auto);
        serial.linear_mut().set_grouping(&grouping, Seam::Bodies);
        let mut expected = Solution::default();
        assert!(serial.solve(&problem, &mut expected).converged);
        for threads in [1, 2, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let mut solver = Solver::<Substructured<Crew>>::new(Method::Auto);
            solver.linear_mut().set_grouping(&grouping, Seam::Bodies);
            let crew = solver.linear().executor().share();
            // Again, in the memory that other threads have read from and written to.
            for _ in 0..3 {
                let mut solution = Solution::default();
                solver.set_pivoting_failed(false);
                pool.install(|| crew.together(threads, || solver.solve(&problem, &mut solution)));
                let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&expected.v), bits(&solution.v), "{threads} threads");
                assert_eq!(bits(&expected.lambda), bits(&solution.lambda), "{threads} threads");
            }
        }
    }
}

/// Loads a scene of the house.
fn load(name: &str) -> (hecs::World, turnbuckle::Physics) {
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    turnbuckle::scene::load(path).expect("a scene of the house")
}

#[test]
fn partitions_are_entities_and_bodies_know_theirs() {
    use turnbuckle::components::*;
    use turnbuckle::settings::Partitioning;
    let (mut world, mut physics) = load("chain_wrap");
    physics.settings.partitioning = Partitioning::MinDegree(12);
    for _ in 0..3 {
        let report = physics.step(&mut world, 1.0 / 60.0);
        assert!(report.partitions > 4 && report.interface_rows > 0 && report.converged);
    }
    let count = physics.report().partitions;
    let mut seen = Vec::new();
    for (partition, members, rows, index_set, factor) in world
        .query::<(&Partition, &PartitionMembers, &PartitionRows, &PartitionIndexSet, &PartitionFactor)>()
        .iter()
    {
        assert!(!members.0.is_empty() && members.0.len() <= 18);
        assert!(rows.internal > 0 && rows.interface > 0 && rows.free <= rows.internal);
        assert_eq!(index_set.0.len() as u32, rows.internal);
        assert!(factor.fronts as usize >= members.0.len() / 2 && factor.operations > 1000, "{factor:?}");
        for &body in &members.0 {
            assert_eq!(world.get::<&PartitionIndex>(body).expect("a body").0, partition.number);
        }
        seen.push(partition.number);
    }
    seen.sort_unstable();
    // Bodies on which no row acts are in no partition; every partition of a cut island is an entity.
    assert!(seen.len() as u32 <= count && seen.windows(2).all(|w| w[0] < w[1]), "{seen:?} of {count}");
    // Uncut, the entities wait in the pool.
    physics.settings.partitioning = Partitioning::None;
    physics.step(&mut world, 1.0 / 60.0);
    assert!(world.query::<&PartitionMembers>().iter().all(|m| m.0.is_empty()));
    assert_eq!(physics.report().interface_rows, 0);
}

#[test]
fn pinned_bodies_are_a_partition_of_their_own_whoever_cuts() {
    use turnbuckle::components::*;
    use turnbuckle::settings::Partitioning;
    for partitioning in [Partitioning::Auto, Partitioning::Semantic, Partitioning::MinDegree(12)] {
        let (mut world, mut physics) = load("chain_wrap");
        physics.settings.partitioning = partitioning;
        let mut bodies: Vec<hecs::Entity> =
            world.query::<(hecs::Entity, &Mass)>().iter().map(|(entity, _)| entity).collect();
        bodies.sort_unstable();
        // Two stretches of the chain, far apart, as one; and a single link as another.
        let pins = (30..36).chain(60..64).map(|k| (k, 7)).chain([(80, 3)]);
        for (k, pin) in pins.clone() {
            world.insert_one(bodies[k], PartitionPin(pin)).expect("a link of the chain");
        }
        for _ in 0..3 {
            assert!(physics.step(&mut world, 1.0 / 60.0).converged);
        }
        let of = |k: usize| world.get::<&PartitionIndex>(bodies[k]).expect("a link").0;
        let members = |number: u32| {
            let mut query = world.query::<(&Partition, &PartitionMembers)>();
            query.iter().find(|(partition, _)| partition.number == number).map(|(_, m)| m.0.len())
        };
        for (k, pin) in pins {
            assert_eq!(of(k), if pin == 7 { of(30) } else { of(80) }, "{partitioning:?}: link {k}");
        }
        assert_eq!((members(of(30)), members(of(80))), (Some(10), Some(1)), "{partitioning:?}");
    }
}

#[test]
fn every_coupling_method_runs_a_scene() {
    for method in [Method::SchurBpp, Method::SchurPgsSm, Method::SchurIpm] {
        let (mut world, mut physics) = load("chain_wrap");
        physics.settings.method = method;
        for step in 0..20 {
            let report = physics.step(&mut world, 1.0 / 60.0);
            // Nothing touches yet: joints alone, one pass.
            assert!(report.converged && report.coupling_iterations == 1, "{} {step}", method.name());
            assert!(!report.coupling_at_limit);
        }
        // 1 mm: what exact joints without contact keep to (chain of 20 m under 500 kg).
        assert!(physics.report().joint_error_max < 1e-3, "{}", physics.report().joint_error_max);
    }
}
