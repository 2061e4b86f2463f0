//! What a case is, how it is judged, and where the cases come from.

pub mod folders;
pub mod parent;
pub mod scenes;
pub mod snapshots;
pub mod values;
pub mod worker;

#[path = "../../../tests/support/mlcp.rs"]
#[allow(dead_code, missing_docs)]
mod problems;

pub use problems::{Random, any_problem};

use hecs::World;
use std::time::Instant;
use turnbuckle::components::*;
use turnbuckle::{Physics, StepReport};

/// Steps of larger worlds may take as long as they like: the limits within which `--step-limit-seconds` holds.
pub const MOST_BODIES: u32 = 2_000;
/// The same for rows.
pub const MOST_ROWS: u32 = 20_000;

/// What a case is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Shipped scenes with a few values or items changed.
    Scenes,
    /// Snapshots with damaged bytes.
    Snapshots,
    /// Problem folders for the solvers by name.
    Folders,
    /// Worlds, joints and settings made of random numbers.
    Values,
    /// One case of each in turn.
    All,
}

impl Mode {
    /// The modes that a case can have.
    pub const SINGLE: [Mode; 4] = [Mode::Scenes, Mode::Snapshots, Mode::Folders, Mode::Values];

    /// That of one case.
    pub fn of_case(self, case: u64) -> Mode {
        if self == Mode::All { Mode::SINGLE[(case % 4) as usize] } else { self }
    }

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Scenes => "scenes",
            Mode::Snapshots => "snapshots",
            Mode::Folders => "folders",
            Mode::Values => "values",
            Mode::All => "all",
        }
    }
}

/// What is wrong with the engine, seen in one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A panic, or the end of the process.
    Panic,
    /// A step above the limit.
    Slow,
    /// A body's state is not finite.
    NotFinite,
    /// A number of the report is not finite.
    NullResidual,
    /// Something was said that is not so.
    Untrue,
}

impl Fault {
    /// All of them, in the order of the table.
    pub const ALL: [Fault; 5] =
        [Fault::Panic, Fault::Slow, Fault::NotFinite, Fault::NullResidual, Fault::Untrue];

    /// The word in the table and in the names of files.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Panic => "panic",
            Fault::Slow => "slow",
            Fault::NotFinite => "nan",
            Fault::NullResidual => "null",
            Fault::Untrue => "untrue",
        }
    }
}

/// How a case went.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The sentence with which the input was refused.
    pub refused: Option<String>,
    /// Was there a step that was told as unconverged?
    pub unconverged: bool,
    /// Too large for the limits, so not stepped.
    pub large: bool,
    /// What is wrong.
    pub fault: Option<(Fault, String)>,
}

impl Verdict {
    /// An input that is refused.
    pub fn refused(sentence: impl ToString) -> Verdict {
        Verdict { refused: Some(sentence.to_string()), ..Verdict::default() }
    }

    /// A fault.
    pub fn fault(fault: Fault, what: impl ToString) -> Verdict {
        Verdict { fault: Some((fault, what.to_string())), ..Verdict::default() }
    }
}

/// How long a case may go on.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Steps of a case.
    pub steps: u64,
    /// Seconds a step may take.
    pub step_seconds: f64,
}

impl Patience {
    /// Seconds after which a case is not stepped any further; a case that has run so long has shown what it has to show.
    const CASE_SECONDS: f64 = 20.0;

    /// Steps a world and judges every step; `before` may change the world before each.
    pub fn watch(
        &self,
        world: &mut World,
        physics: &mut Physics,
        dt: f64,
        mut before: impl FnMut(u64, &mut World, &mut Physics),
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let start = Instant::now();
        for step in 0..self.steps {
            before(step, world, physics);
            worker::alive();
            let begun = Instant::now();
            physics.step(world, dt);
            let seconds = begun.elapsed().as_secs_f64();
            let report = physics.report();
            verdict.unconverged |= !report.converged;
            let runs = f64::from(physics.settings.substeps.clamp(1, 1_000));
            let small = report.bodies <= MOST_BODIES && report.rows <= MOST_ROWS;
            verdict.fault = if small && seconds > self.step_seconds * runs {
                Some((
                    Fault::Slow,
                    format!("step {} took {seconds:.1} s ({} rows)", report.step, report.rows),
                ))
            } else {
                look(world, report).map(|(fault, what)| (fault, format!("step {}: {what}", report.step)))
            };
            if verdict.fault.is_some() || start.elapsed().as_secs_f64() > Self::CASE_SECONDS {
                break;
            }
        }
        verdict
    }
}

/// What is wrong with a world and a report after a step.
fn look(world: &World, report: &StepReport) -> Option<(Fault, String)> {
    type State<'a> = (&'a Position, &'a Rotation, &'a LinearVelocity, &'a AngularVelocity);
    let mut states = world.query::<(hecs::Entity, State<'_>)>().with::<&BodyIndex>();
    let finite =
        |(x, q, v, w): State<'_>| x.0.is_finite() && q.0.is_finite() && v.0.is_finite() && w.0.is_finite();
    if let Some((entity, _)) = states.iter().find(|(_, state)| !finite(*state)) {
        return Some((Fault::NotFinite, format!("the state of {entity:?} is not finite")));
    }
    for (name, number) in [
        ("residual", report.residual),
        ("residual_relative", report.residual_relative),
        ("residual_energy", report.residual_energy),
        ("joint_error_max", report.joint_error_max),
        ("joint_error_rms", report.joint_error_rms),
        ("penetration_max", report.penetration_max),
        ("penetration_mean", report.penetration_mean),
        ("friction_bound_shift", report.friction_bound_shift),
        ("kinetic", report.kinetic),
        ("potential", report.potential),
    ] {
        if !number.is_finite() {
            return Some((Fault::NullResidual, format!("{name} is {number}")));
        }
    }
    // 1e-8: ten times the tolerance of the solvers, for the step's own sum over islands.
    if report.converged && report.residual_relative > 1e-8 {
        let what = format!("converged, with a relative residual of {:.1e}", report.residual_relative);
        return Some((Fault::Untrue, what));
    }
    if !report.converged && report.trouble_count == 0 {
        return Some((Fault::Untrue, "not converged, and no trouble says so".into()));
    }
    None
}

/// One case: a function of mode, seed and number alone.
pub enum Case {
    /// A scene's text.
    Scene(scenes::SceneCase),
    /// A snapshot's bytes.
    Snapshot(snapshots::SnapshotCase),
    /// Files of a problem folder.
    Folder(folders::FolderCase),
    /// A script of calls.
    Values(values::Script),
}

impl Case {
    /// Makes case number `case` of a seed.
    pub fn new(mode: Mode, seed: u64, case: u64) -> Case {
        let mut random = Random::new(seed.wrapping_mul(0x0001_0000_01b3) ^ case.wrapping_add(1) << 20);
        match mode.of_case(case) {
            Mode::Snapshots => Case::Snapshot(snapshots::SnapshotCase::new(&mut random)),
            Mode::Folders => Case::Folder(folders::FolderCase::new(&mut random)),
            Mode::Values => Case::Values(values::Script::new(&mut random)),
            Mode::Scenes | Mode::All => Case::Scene(scenes::SceneCase::new(&mut random)),
        }
    }

    /// Runs it. Panics of the engine come through.
    pub fn run(self, patience: &Patience) -> Verdict {
        match self {
            Case::Scene(case) => case.run(patience),
            Case::Snapshot(case) => case.run(patience),
            Case::Folder(case) => case.run(),
            Case::Values(case) => case.run(patience),
        }
    }

    /// Name and bytes of the files that hold it, and the line that says how to repeat it from them (if it can be).
    pub fn files(&self) -> (Vec<(String, Vec<u8>)>, String) {
        match self {
            Case::Scene(case) => case.files(),
            Case::Snapshot(case) => case.files(),
            Case::Folder(case) => case.files(),
            Case::Values(case) => case.files(),
        }
    }
}
