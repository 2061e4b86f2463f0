//! The pipeline's mechanism: order, insertion, conditions, loops, timings.

use hecs::World;
use std::sync::{Arc, Mutex};
use turnbuckle::schedule::{Pipeline, ScheduleError};
use turnbuckle::{Physics, Stage, Step};

type Log = Arc<Mutex<Vec<&'static str>>>;

fn note(log: &Log, word: &'static str) -> impl FnMut(&mut Step<'_>) + Send + Sync + use<> {
    let log = log.clone();
    move |_| log.lock().unwrap().push(word)
}

fn step(physics: &mut Physics) {
    physics.step(&mut World::new(), 1.0 / 60.0);
}

fn place(physics: &Physics, name: &str) -> usize {
    physics.systems().iter().position(|n| *n == name).unwrap_or_else(|| panic!("no system {name}"))
}

#[test]
fn a_users_system_stands_at_the_end_of_its_stage_and_is_timed_under_its_name() {
    let mut physics = Physics::new();
    physics.add_system(Stage::Forces, "wind", |_| {});
    physics.add_system(Stage::Forces, "tide", |_| {});
    assert!(place(&physics, "gravity") < place(&physics, "wind"));
    assert!(place(&physics, "wind") < place(&physics, "tide"));
    assert!(place(&physics, "tide") < place(&physics, "gather"));
    for _ in 0..7 {
        step(&mut physics);
    }
    let wind = physics.timings().into_iter().find(|t| t.name == "wind").unwrap();
    assert_eq!((wind.calls, wind.stage), (7, Stage::Forces));
    assert!(wind.median <= wind.p99 && wind.mean * 7.0 <= wind.total * (1.0 + 1e-9));
    physics.reset_timings();
    assert!(physics.timings().iter().all(|t| t.calls == 0));
}

#[test]
fn systems_go_before_and_after_named_ones_and_unknown_names_are_told_what_there_is() {
    let (mut physics, log) = (Physics::new(), Log::default());
    physics.pipeline().add_before("gravity", "before", note(&log, "before")).unwrap();
    physics.pipeline().add_after("gravity", "after", note(&log, "after")).unwrap();
    assert_eq!(place(&physics, "before") + 1, place(&physics, "gravity"));
    assert_eq!(place(&physics, "gravity") + 1, place(&physics, "after"));
    step(&mut physics);
    assert_eq!(*log.lock().unwrap(), ["before", "after"]);
    let error = physics.pipeline().add_after("gravty", "x", |_| {}).unwrap_err();
    let ScheduleError::UnknownSystem { name, known } = &error;
    assert_eq!(name, "gravty");
    assert!(known.contains("gravity"), "{error}");
}

#[test]
fn a_run_condition_is_asked_every_step() {
    let (mut physics, log) = (Physics::new(), Log::default());
    physics.add_system(Stage::Forces, "pulse", note(&log, "pulse"));
    physics.run_if("pulse", |step| step.report.step % 3 == 0).unwrap();
    for _ in 0..9 {
        step(&mut physics);
    }
    assert_eq!(log.lock().unwrap().len(), 3);
    assert!(physics.run_if("nobody", |_| true).is_err());
}

#[test]
fn a_loop_runs_until_its_condition_holds_and_can_be_entered_by_name() {
    fn count(step: &mut Step<'_>) {
        step.report.coupling_iterations += 1;
    }
    fn four_times(step: &Step<'_>) -> bool {
        step.report.coupling_iterations >= 4
    }
    let log = Log::default();
    let mut pipeline = Pipeline::new()
        .stage(Stage::Guard, "first", |_| {})
        .repeat_until(four_times, Pipeline::new().stage(Stage::Schur, "inner", count))
        .stage(Stage::Integrate, "last", |_| {});
    pipeline.add_after("inner", "inner too", note(&log, "inner too")).unwrap();
    pipeline.add(Stage::Assemble, "middle", note(&log, "middle"));
    assert_eq!(pipeline.names(), ["first", "middle", "inner", "inner too", "last"]);
    let (mut world, mut work, mut report) = (World::new(), Default::default(), Default::default());
    let settings = turnbuckle::Settings::default();
    let mut step =
        Step { world: &mut world, dt: 0.1, settings: &settings, work: &mut work, report: &mut report };
    pipeline.run(&mut step);
    pipeline.end_step();
    assert_eq!(*log.lock().unwrap(), ["middle", "inner too", "inner too", "inner too", "inner too"]);
    assert_eq!(pipeline.timings()[2].calls, 4);
}
