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
pub mod expect;
pub mod expr;
pub mod files;
mod generate;
mod joint;
pub mod limits;
pub mod plan;
mod random;
mod read;
mod resolve;
mod script;
mod settings;
mod text;

pub use error::SceneError;
pub use files::{Disk, Files, Memory};
pub use limits::Limits;
pub use plan::ScenePlan;

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
