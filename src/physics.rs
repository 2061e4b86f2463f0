//! The façade: pipeline, settings, buffers and the last report. The world belongs to the game.

use crate::components::{Force, Torque};
use crate::constraint::Constraint;
use crate::events::ContactEvent;
use crate::report::{StepReport, Trouble};
use crate::schedule::{Pipeline, ScheduleError, Stage, Step, SystemTiming};
use crate::settings::Settings;
use crate::snapshot::StateCodec;
use crate::state::{ConstraintEvaluator, ConstraintType, Work};
use crate::stopwatch::Stopwatch;
use crate::subsystem::Subsystem;
use crate::systems::parallel::on_this_thread;
use crate::systems::still::{is_still, note_stillness};
use crate::systems::{self, rows, subsystems};
use hecs::{Entity, World};

/// A physics stage. Make one, add what your game needs, and call [`Physics::step`] on your world.
pub struct Physics {
    /// All tunables; change them between steps as you like.
    pub settings: Settings,
    pipeline: Pipeline,
    pub(crate) work: Work,
    report: StepReport,
    threads: Threads,
    base_forces: Vec<(Entity, Force, Torque)>,
    /// The last settings that were all within their ranges.
    good: Settings,
}

/// Whose threads work on a step.
#[derive(Default)]
enum Threads {
    /// Those of the global rayon pool.
    #[default]
    Shared,
    /// Only the one that asks for the step.
    Alone,
    /// A pool of its own.
    Own(rayon::ThreadPool),
}

impl Default for Physics {
    fn default() -> Physics {
        Physics::new()
    }
}

impl Physics {
    /// A stage with the built-in systems, joints and contacts.
    pub fn new() -> Physics {
        let mut physics = Physics {
            settings: Settings::default(),
            pipeline: systems::step_pipeline(),
            work: Work::default(),
            report: StepReport::default(),
            threads: Threads::Shared,
            base_forces: Vec::new(),
            good: Settings::default(),
        };
        systems::add_built_in_constraints(&mut physics);
        physics
    }

    /// A stage with these settings.
    pub fn with_settings(settings: Settings) -> Physics {
        Physics { settings, ..Physics::new() }
    }

    /// Advances the world by `dt` seconds.
    ///
    /// Whatever is wrong with the world's data is handled and told in the report; nothing of it panics.
    ///
    /// # Panics
    /// If `dt` is not a positive finite number of seconds.
    pub fn step(&mut self, world: &mut World, dt: f64) -> &StepReport {
        assert!(dt.is_finite() && dt > 0.0, "dt is {dt}; a step needs a positive finite number of seconds");
        let start = Stopwatch::start();
        if !self.pipeline.has_games() && is_still(world, &self.work, &self.settings, dt) {
            self.report.repeat(dt);
            self.pipeline.end_step();
            self.report.step_ms = 1e3 * start.elapsed().as_secs_f64();
            self.report.solve_ms = 0.0;
            return &self.report;
        }
        let threads = std::mem::take(&mut self.threads);
        let mut run = || on_this_thread(matches!(threads, Threads::Alone), || self.run(world, dt));
        match &threads {
            Threads::Alone => run(),
            Threads::Own(pool) => pool.install(run),
            // From outside, every parallel region would have to wake the pool and wait for it; from within, threads take what
            // there is. So the whole step goes there at once.
            Threads::Shared => drop(rayon::join(run, || ())),
        }
        self.threads = threads;
        self.report.step_ms = 1e3 * start.elapsed().as_secs_f64();
        self.report.solve_ms = self.pipeline.last_step_within(Stage::Factor, Stage::IndexSets);
        &self.report
    }

    fn run(&mut self, world: &mut World, dt: f64) {
        let (step, time) = (self.report.step + 1, self.report.time + dt);
        let (troubles, mut unconverged) = (std::mem::take(&mut self.report.troubles), false);
        let resolves = std::mem::take(&mut self.report.resolves);
        self.report = StepReport { step, time, troubles, resolves, ..StepReport::default() };
        self.report.troubles.clear();
        self.report.resolves.clear();
        self.check_settings();
        let substeps = self.settings.substeps;
        let substep = dt / f64::from(substeps);
        self.report.dt = substep;
        self.base_forces.clear();
        if substeps > 1 {
            self.base_forces.extend(world.query_mut::<(Entity, &Force, &Torque)>().into_iter().filter_map(
                |(entity, force, torque)| {
                    (*force != Force::default() || *torque != Torque::default())
                        .then_some((entity, *force, *torque))
                },
            ));
        }
        for number in 0..substeps {
            if number > 0 {
                self.restore_forces(world);
            }
            self.report.begin_substep();
            self.work.substep = (number, substeps);
            let Self { pipeline, settings, work, report, .. } = self;
            let dt = substep;
            systems::couple::with_helpers(work, |work| {
                pipeline.run(&mut Step { world: &mut *world, dt, settings, work, report });
            });
            unconverged |= !self.report.converged;
        }
        self.report.converged = !unconverged;
        clear_forces(world);
        self.pipeline.end_step();
        if !self.pipeline.has_games() {
            note_stillness(world, &mut self.work, &self.report, &self.settings, dt);
        }
    }

    /// Numbers out of their ranges are told, and the last good ones put back.
    fn check_settings(&mut self) {
        if self.settings != self.good {
            let Self { settings, good, report, .. } = self;
            settings.mend(good, |number| report.trouble(Trouble::Setting { number }));
            good.clone_from(settings);
        }
    }

    /// What the user applied before the step acts in every substep; what systems added in the last one does not.
    fn restore_forces(&mut self, world: &mut World) {
        clear_forces(world);
        for &(entity, force, torque) in &self.base_forces {
            if let Ok((f, t)) = world.query_one_mut::<(&mut Force, &mut Torque)>(entity) {
                (*f, *t) = (force, torque);
            }
        }
    }

    /// What a system works on outside of a step.
    pub(crate) fn parts(&mut self) -> (&Settings, &mut Work, &mut StepReport) {
        (&self.settings, &mut self.work, &mut self.report)
    }

    /// Sets the clock and forgets what buffers remember of the steps since.
    pub(crate) fn restart(&mut self, step: u64, time: f64, next_constraint: u64) {
        self.report = StepReport { step, time, ..StepReport::default() };
        self.work.next_constraint = next_constraint;
        self.work.forget();
    }

    /// What the last step had to say.
    pub fn report(&self) -> &StepReport {
        &self.report
    }

    /// Calls, mean, median and p99 of every system since the start, or since [`Physics::reset_timings`].
    pub fn timings(&mut self) -> Vec<SystemTiming> {
        self.pipeline.timings()
    }

    /// Name and milliseconds of every system in the last step.
    pub fn last_step_timings(&mut self) -> Vec<(String, f64)> {
        let times = self.pipeline.last_step();
        self.pipeline.names().into_iter().map(String::from).zip(times).collect()
    }

    /// Milliseconds of every system in the last step, in the order of [`Physics::systems`].
    pub fn last_step_milliseconds(&mut self) -> Vec<f64> {
        self.pipeline.last_step()
    }

    /// Forgets all timings, say after a warm-up.
    pub fn reset_timings(&mut self) {
        self.pipeline.reset_timings();
    }

    /// The names of all systems, in the order in which they run.
    pub fn systems(&self) -> Vec<&str> {
        self.pipeline.names()
    }

    /// Puts a system at the end of a stage. It is timed under its name like the built-in ones.
    pub fn add_system(
        &mut self,
        stage: Stage,
        name: &str,
        system: impl FnMut(&mut Step<'_>) + Send + Sync + 'static,
    ) {
        self.pipeline.add(stage, name, system);
    }

    /// The pipeline itself: insertion before and after named systems, run conditions.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    /// Makes the engine solve constraints of type `T`, which tie two bodies.
    pub fn add_constraint<T: Constraint>(&mut self) {
        self.add_constraint_of::<2, T>();
    }

    /// Makes the engine solve constraints of type `T`, which tie `N` bodies.
    pub fn add_constraint_of<const N: usize, T: Constraint<N>>(&mut self) {
        let number = self.work.constraints.len();
        self.pipeline.add_constraint(Stage::Rows, number, short_name::<T>(), rows::write_rows::<T, N>());
        let component = std::any::TypeId::of::<T>();
        // Until the census says otherwise: the first one may find the components that it found before.
        self.work.constraints.push(ConstraintType { component, present: true, gauge: rows::gauge::<T, N>() });
        self.work.codecs.push(StateCodec::of::<T, N>());
    }

    /// Makes the engine take subsystems of type `T` in: physics of a game's own behind some of its bodies.
    pub fn add_subsystem<T: Subsystem>(&mut self) {
        let number = self.work.constraints.len();
        let name = short_name::<T>();
        self.pipeline.add_constraint(Stage::Rows, number, name, subsystems::couple_ports::<T>());
        let after = format!("{name} commit");
        self.pipeline.add_constraint(Stage::Integrate, number, &after, subsystems::commit_ports::<T>());
        let component = std::any::TypeId::of::<T>();
        let gauge: ConstraintEvaluator = Box::new(|_, _, _, _| {});
        self.work.constraints.push(ConstraintType { component, present: true, gauge });
        self.work.codecs.push(StateCodec::of_subsystem::<T>());
    }

    /// Runs steps on `n` threads of its own; results do not depend on `n`. One thread is the one that calls [`Physics::step`]:
    /// it does everything itself, and none is started. So it is where the operating system has no threads to give.
    /// Without this call the global rayon pool is used.
    pub fn set_threads(&mut self, n: usize) {
        let pool = (n > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(n).build());
        self.threads = match pool {
            Some(Ok(pool)) => Threads::Own(pool),
            _ => Threads::Alone,
        };
    }

    /// What happened in the last step, in a stable order.
    pub fn events(&self) -> &[ContactEvent] {
        &self.work.collision.events
    }

    /// How many pairs of colliders are near enough to be watched; `StepReport::contacts` says how many of them touch or are about to.
    pub fn near_pairs(&self) -> usize {
        self.work.collision.near.len() + self.work.collision.pairs.len()
    }

    /// Wakes a body, and with it its island, in the coming step.
    pub fn wake(&mut self, body: Entity) {
        self.work.collision.disturbed.push(body);
    }

    /// Lets `filter` decide which pairs of bodies may touch. It is asked for every near pair in every step, from many
    /// threads, and must give the same answer for the same pair.
    pub fn set_contact_filter(&mut self, filter: impl Fn(Entity, Entity) -> bool + Send + Sync + 'static) {
        self.work.collision.filter = Some(Box::new(filter));
        self.work.still = None;
    }

    /// Puts a run condition on the system called `name`.
    ///
    /// # Errors
    /// If no system has that name.
    pub fn run_if(
        &mut self,
        name: &str,
        condition: impl FnMut(&Step<'_>) -> bool + Send + Sync + 'static,
    ) -> Result<(), ScheduleError> {
        self.pipeline.run_if(name, condition)
    }
}

fn clear_forces(world: &mut World) {
    for (force, torque) in world.query_mut::<(&mut Force, &mut Torque)>() {
        *force = Force::default();
        *torque = Torque::default();
    }
}

/// `Rope` of `game::ropes::Rope`.
fn short_name<T>() -> &'static str {
    let name = std::any::type_name::<T>();
    name.rsplit("::").next().unwrap_or(name)
}
