//! The pipeline: stages, named systems, timings. Mechanism only; no physics.
//!
//! A [`Pipeline`] is a list of systems in the order in which they run. Each belongs to a [`Stage`];
//! stages are the places where users put their own systems. The runner times every system and opens
//! a `tracing` span with its name; nothing else in the house takes the time.

use crate::report::StepReport;
use crate::settings::Settings;
use crate::state::Work;
use crate::stopwatch::Stopwatch;
use crate::systems::census::has_constraints;
use hecs::World;
use std::time::Duration;

/// The stages of a step, in order. *Forces* and *Rows* are made for users' systems; any other is open to them too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Bad state is taken out before any other stage reads it.
    Guard,
    /// Scripts and targets move kinematic bodies.
    Motion,
    /// Contact entities are brought up to date.
    Collide,
    /// Forces and torques are added up.
    Forces,
    /// Bodies are gathered into dense arrays.
    Gather,
    /// Joints, contacts and users' constraints write their rows.
    Rows,
    /// The constraint graph and its islands.
    Graph,
    /// Islands are cut into partitions.
    Partition,
    /// Rows become one problem per island or partition.
    Assemble,
    /// Factorizations that do not depend on the coupling loop.
    Factor,
    /// Interface matrices.
    Schur,
    /// The interface problem.
    Interface,
    /// The partitions' own problems.
    Partitions,
    /// Labels, and whether they have settled.
    IndexSets,
    /// Velocities and poses are advanced and scattered.
    Integrate,
    /// Events, sleeping and reports.
    Finish,
}

/// What a system works on.
pub struct Step<'a> {
    /// The game's world.
    pub world: &'a mut World,
    /// Length of this (sub)step (s).
    pub dt: f64,
    /// All tunables.
    pub settings: &'a Settings,
    /// Buffers of the engine, kept from step to step.
    pub work: &'a mut Work,
    /// What is told about this step.
    pub report: &'a mut StepReport,
}

type System = Box<dyn FnMut(&mut Step<'_>) + Send + Sync>;
type Condition = Box<dyn FnMut(&Step<'_>) -> bool + Send + Sync>;

enum Node {
    System {
        stage: Stage,
        name: String,
        run: System,
        run_if: Option<Condition>,
        origin: Origin,
        timing: Timing,
    },
    Loop {
        until: fn(&Step<'_>) -> bool,
        body: Pipeline,
    },
}

/// Where a system comes from.
#[derive(Clone, Copy)]
enum Origin {
    /// The engine's own.
    Engine,
    /// It writes the rows of a registered type of constraints, and runs only where the world has some.
    Constraint(usize),
    /// The game's: it may do anything.
    Game,
}

/// Systems in order; a loop of systems counts as one entry.
#[derive(Default)]
pub struct Pipeline {
    nodes: Vec<Node>,
    /// Has the game put systems or conditions of its own in?
    has_games: bool,
}

/// Why a system could not be put into the pipeline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There is no system of that name.
    #[error("no system is called \"{name}\"; the pipeline has: {known}")]
    UnknownSystem {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
}

impl Pipeline {
    /// An empty pipeline.
    pub fn new() -> Pipeline {
        Pipeline::default()
    }

    /// Appends a system.
    pub fn stage(mut self, stage: Stage, name: &str, run: fn(&mut Step<'_>)) -> Pipeline {
        self.nodes.push(system(stage, name, Origin::Engine, Box::new(run)));
        self
    }

    /// Appends a loop whose systems run until `until` says so (asked after each pass).
    pub fn repeat_until(mut self, until: fn(&Step<'_>) -> bool, body: Pipeline) -> Pipeline {
        self.nodes.push(Node::Loop { until, body });
        self
    }

    /// Puts a system at the end of its stage.
    pub fn add(&mut self, stage: Stage, name: &str, run: impl FnMut(&mut Step<'_>) + Send + Sync + 'static) {
        self.has_games = true;
        self.append(system(stage, name, Origin::Game, Box::new(run)));
    }

    /// Puts a system that serves the constraint type with this number at the end of a stage; it runs while the world has any.
    pub(crate) fn add_constraint(
        &mut self,
        stage: Stage,
        number: usize,
        name: &str,
        run: impl FnMut(&mut Step<'_>) + Send + Sync + 'static,
    ) {
        self.append(system(stage, name, Origin::Constraint(number), Box::new(run)));
    }

    fn append(&mut self, node: Node) {
        let stage = node.last_stage();
        let at = self.nodes.iter().rposition(|n| n.last_stage() <= stage).map_or(0, |i| i + 1);
        self.nodes.insert(at, node);
    }

    /// Puts a system before the one called `name`, also inside a loop.
    ///
    /// # Errors
    /// If no system has that name.
    pub fn add_before(
        &mut self,
        name: &str,
        new: &str,
        run: impl FnMut(&mut Step<'_>) + Send + Sync + 'static,
    ) -> Result<(), ScheduleError> {
        self.insert_beside(name, new, 0, Box::new(run))
    }

    /// Puts a system after the one called `name`, also inside a loop.
    ///
    /// # Errors
    /// If no system has that name.
    pub fn add_after(
        &mut self,
        name: &str,
        new: &str,
        run: impl FnMut(&mut Step<'_>) + Send + Sync + 'static,
    ) -> Result<(), ScheduleError> {
        self.insert_beside(name, new, 1, Box::new(run))
    }

    /// Lets the system called `name` run only where `condition` holds.
    ///
    /// # Errors
    /// If no system has that name.
    pub fn run_if(
        &mut self,
        name: &str,
        condition: impl FnMut(&Step<'_>) -> bool + Send + Sync + 'static,
    ) -> Result<(), ScheduleError> {
        let known = self.names().join(", ");
        self.has_games = true;
        match self.find_mut(name) {
            Some(Node::System { run_if, .. }) => {
                *run_if = Some(Box::new(condition));
                Ok(())
            }
            _ => Err(ScheduleError::UnknownSystem { name: name.into(), known }),
        }
    }

    /// Are there systems of the game's, or conditions? They may do anything in any step.
    pub(crate) fn has_games(&self) -> bool {
        self.has_games
    }

    /// The names of all systems in the order in which they run.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for node in &self.nodes {
            match node {
                Node::System { name, .. } => names.push(name.as_str()),
                Node::Loop { body, .. } => names.extend(body.names()),
            }
        }
        names
    }

    /// Runs every system once, loops until they are done.
    pub fn run(&mut self, step: &mut Step<'_>) {
        self.run_from(&mut Stopwatch::start(), step);
    }

    /// Runs every system. One look at the clock ends a system and begins the next.
    fn run_from(&mut self, time: &mut Stopwatch, step: &mut Step<'_>) {
        for node in &mut self.nodes {
            match node {
                Node::System { name, run, run_if, origin, timing, .. } => {
                    if matches!(*origin, Origin::Constraint(number) if !has_constraints(step, number)) {
                        continue;
                    }
                    if run_if.as_mut().is_none_or(|condition| condition(step)) {
                        let _span = tracing::info_span!("system", name = name.as_str()).entered();
                        run(step);
                        timing.add(time.lap());
                        step.work.census.needs_solve |= matches!(origin, Origin::Game);
                    }
                }
                Node::Loop { until, body } => loop {
                    body.run_from(time, step);
                    if until(step) {
                        break;
                    }
                },
            }
        }
    }

    /// Adds up what each system took in the last step and closes the step's account.
    pub fn end_step(&mut self) {
        self.each(&mut |_, _, timing| timing.end_step());
    }

    /// The timings of all systems, in order, since the last [`Pipeline::reset_timings`].
    pub fn timings(&mut self) -> Vec<SystemTiming> {
        let mut all = Vec::new();
        self.each(&mut |stage, name, timing| all.push(timing.summary(stage, name)));
        all
    }

    /// Milliseconds that each system took in the last step, in order.
    pub fn last_step(&mut self) -> Vec<f64> {
        let mut all = Vec::new();
        self.each(&mut |_, _, timing| all.push(1e3 * timing.last.as_secs_f64()));
        all
    }

    /// Milliseconds that the systems of these stages, both included, took in the last step.
    pub fn last_step_within(&mut self, first: Stage, last: Stage) -> f64 {
        let mut sum = 0.0;
        self.each(&mut |stage, _, timing| {
            if (first..=last).contains(&stage) {
                sum += 1e3 * timing.last.as_secs_f64();
            }
        });
        sum
    }

    /// Forgets all timings.
    pub fn reset_timings(&mut self) {
        self.each(&mut |_, _, timing| *timing = Timing::default());
    }

    fn each<F: FnMut(Stage, &str, &mut Timing)>(&mut self, f: &mut F) {
        for node in &mut self.nodes {
            match node {
                Node::System { stage, name, timing, .. } => f(*stage, name, timing),
                Node::Loop { body, .. } => body.each(f),
            }
        }
    }

    fn insert_beside(
        &mut self,
        name: &str,
        new: &str,
        offset: usize,
        run: System,
    ) -> Result<(), ScheduleError> {
        let known = self.names().join(", ");
        self.has_games = true;
        match self.place_of(name) {
            Some((pipeline, at)) => {
                let stage = pipeline.nodes[at].last_stage().unwrap_or(Stage::Guard);
                pipeline.nodes.insert(at + offset, system(stage, new, Origin::Game, run));
                Ok(())
            }
            None => Err(ScheduleError::UnknownSystem { name: name.into(), known }),
        }
    }

    fn place_of(&mut self, wanted: &str) -> Option<(&mut Pipeline, usize)> {
        let here = self.nodes.iter().position(|n| matches!(n, Node::System { name, .. } if name == wanted));
        if let Some(at) = here {
            return Some((self, at));
        }
        self.nodes.iter_mut().find_map(|n| match n {
            Node::Loop { body, .. } => body.place_of(wanted),
            Node::System { .. } => None,
        })
    }

    fn find_mut(&mut self, wanted: &str) -> Option<&mut Node> {
        self.place_of(wanted).map(|(pipeline, at)| &mut pipeline.nodes[at])
    }
}

fn system(stage: Stage, name: &str, origin: Origin, run: System) -> Node {
    Node::System { stage, name: name.into(), run, run_if: None, origin, timing: Timing::default() }
}

impl Node {
    fn last_stage(&self) -> Option<Stage> {
        match self {
            Node::System { stage, .. } => Some(*stage),
            Node::Loop { body, .. } => body.nodes.last().and_then(Node::last_stage),
        }
    }
}

/// How often a system ran and how long a step's worth of it took.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemTiming {
    /// Its name.
    pub name: String,
    /// Its stage.
    pub stage: Stage,
    /// How often it ran.
    pub calls: u64,
    /// Mean per call (ms).
    pub mean: f64,
    /// Median per step (ms).
    pub median: f64,
    /// 99th percentile per step (ms).
    pub p99: f64,
    /// Sum (ms).
    pub total: f64,
}

/// Times of one system. Steps are kept in a bounded sample: every 2ᵏ-th step once it is full, so that
/// memory stays bounded and the sample stays even over the run.
#[derive(Clone, Debug)]
pub struct Timing {
    calls: u64,
    total: Duration,
    this_step: Duration,
    last: Duration,
    /// Nanoseconds.
    samples: Vec<u32>,
    /// A power of two.
    stride: u64,
    steps: u64,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            calls: 0,
            total: Duration::ZERO,
            this_step: Duration::ZERO,
            last: Duration::ZERO,
            samples: Vec::new(),
            stride: 1,
            steps: 0,
        }
    }
}

impl Timing {
    const MOST_SAMPLES: usize = 4096;

    /// Adds one call.
    pub fn add(&mut self, time: Duration) {
        self.calls += 1;
        self.total += time;
        self.this_step += time;
    }

    /// Closes the account of one step.
    pub fn end_step(&mut self) {
        self.last = std::mem::take(&mut self.this_step);
        // A division for every system would take as long as all of them where nothing moves.
        if self.steps & (self.stride - 1) == 0 {
            if self.samples.len() == Self::MOST_SAMPLES {
                let mut keep = false;
                self.samples.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.stride *= 2;
            }
            self.samples.push(u32::try_from(self.last.as_nanos()).unwrap_or(u32::MAX));
        }
        self.steps += 1;
    }

    /// The figures of a report.
    pub fn summary(&self, stage: Stage, name: &str) -> SystemTiming {
        let total = 1e3 * self.total.as_secs_f64();
        let mut sorted: Vec<f64> = self.samples.iter().map(|&t| 1e-6 * f64::from(t)).collect();
        sorted.sort_by(f64::total_cmp);
        SystemTiming {
            name: name.into(),
            stage,
            calls: self.calls,
            mean: total / self.steps.max(1) as f64,
            median: quantile(&sorted, 0.5),
            p99: quantile(&sorted, 0.99),
            total,
        }
    }
}

/// The value below which a share `q` of a sorted list lies; zero for an empty list.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((q * last).round() as usize).copied().unwrap_or(0.0)
}
