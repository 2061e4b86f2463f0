//! Scenes as data.
//!
//! A scene is a RON file made of a small vocabulary: bodies, joints, chains and cables, stacks, grids,
//! seeded scatter, repetitions, prefabs with a transform, named partitions, scripted motion, named parameters
//! with arithmetic, and expectations that a test can check.
//!
//! ```text
//! text ─► tree with places ─► plan (flat, plain data) ─► hecs::World + Physics
//! ```
//!
//! Every fault names file, line and column and says what was expected. [`Limits`] keep any file from
//! exhausting the machine that reads it.

mod body;
mod chain;
pub mod error;
mod expand;
#[doc(hidden)]
pub mod expect;
#[doc(hidden)]
pub mod expr;
#[doc(hidden)]
pub mod files;
mod generate;
pub mod handle;
mod instantiate;
mod joint;
mod joints;
#[doc(hidden)]
pub mod judge;
#[doc(hidden)]
pub mod limits;
mod odd;
#[doc(hidden)]
pub mod plan;
mod play;
mod random;
mod read;
mod resolve;
mod scope;
mod script;
mod settings;
mod sheet;
#[doc(hidden)]
pub mod summary;
mod text;
pub mod watch;

pub use error::SceneError;
pub use files::{Disk, Files, Memory};
pub use handle::{Reading, SceneJoint};
pub use instantiate::{DEFAULT_DT, DEFAULT_SECONDS, Scene};
pub use judge::Judge;
pub use limits::Limits;
pub use plan::ScenePlan;
pub use watch::Watch;

use crate::Physics;
use hecs::World;
use std::path::Path;

/// How to load a scene.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Parameters to set, by name: `--set links=250`.
    pub set: Vec<(String, f64)>,
    /// How much is allowed.
    pub limits: Limits,
}

impl LoadOptions {
    /// Reads `NAME=VALUE`; the value may be arithmetic.
    ///
    /// # Errors
    /// A sentence saying what was expected.
    pub fn set(&mut self, assignment: &str) -> Result<(), String> {
        let (name, value) =
            assignment.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, found `{assignment}`"))?;
        let number = match value.trim() {
            "true" => 1.0,
            "false" => 0.0,
            text => expr::Expr::parse(text).and_then(|e| e.value(&expr::Variables::new(0)))?,
        };
        if !number.is_finite() || number.abs() > limits::LARGEST_NUMBER {
            return Err(format!("`{name}` is {number}; it must be finite"));
        }
        self.set.push((name.trim().to_string(), number));
        Ok(())
    }
}

/// Reads a scene from disk into a plan.
///
/// # Errors
/// The first fault, with file, line and column.
pub fn plan(path: impl AsRef<Path>, options: &LoadOptions) -> Result<ScenePlan, SceneError> {
    plan_from(path, options, &Disk)
}

/// Reads a scene from any source of files into a plan.
///
/// # Errors
/// The first fault, with file, line and column.
pub fn plan_from(
    path: impl AsRef<Path>,
    options: &LoadOptions,
    files: &dyn Files,
) -> Result<ScenePlan, SceneError> {
    expand::build(path.as_ref(), options, files)
}

/// Loads a scene: a world with its bodies and joints, and the stage that moves it.
///
/// # Errors
/// The first fault, with file, line and column.
pub fn load(path: impl AsRef<Path>) -> Result<(World, Physics), SceneError> {
    let scene = load_with(path, &LoadOptions::default())?;
    Ok((scene.world, scene.physics))
}

/// Loads a scene with parameters set, and keeps what the file said beside it.
///
/// # Errors
/// The first fault, with file, line and column.
pub fn load_with(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Scene, SceneError> {
    Ok(Scene::new(plan(path, options)?))
}

/// Opens a scene: its world and the stage that moves it, together with the names of its bodies and joints.
///
/// ```
/// use turnbuckle::scene;
///
/// let mut scene = scene::open("scenes/slider_crank.ron")?;
/// let slider = scene.body("slider").expect("it is called so in the file");
/// // Half as fast as the file has it.
/// let speed = scene.joint("motor").and_then(|motor| motor.target(0)).expect("a motor");
/// scene.joint("motor").expect("a joint").set_target(0, 0.5 * speed);
/// for _ in 0..30 {
///     scene.physics.step(&mut scene.world, 1.0 / 60.0);
/// }
/// let motor = scene.joint("motor").expect("a joint");
/// let [turn] = motor.readings()[..] else { panic!("a hinge has one coordinate") };
/// assert!((turn.rate - 0.5 * speed).abs() < 1e-3, "{turn:?}");
/// assert!(motor.force().force.length() > 0.0 && scene.world.contains(slider));
/// # Ok::<(), turnbuckle::scene::SceneError>(())
/// ```
///
/// # Errors
/// What is wrong, with file, line and column.
pub fn open(path: impl AsRef<Path>) -> Result<Scene, SceneError> {
    load_with(path, &LoadOptions::default())
}
