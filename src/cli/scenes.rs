//! `turnbuckle scenes`.

use super::Failure;
use clap::Args;
use std::path::PathBuf;
use turnbuckle::scene::{self, LoadOptions};

/// Options of `scenes`.
#[derive(Args)]
pub struct ScenesArgs {
    /// Where to look
    #[arg(long, value_name = "DIR", default_value = "scenes")]
    folder: PathBuf,
}

/// Lists the scenes of a folder.
pub fn scenes(args: &ScenesArgs) -> Result<(), Failure> {
    let entries = std::fs::read_dir(&args.folder)
        .map_err(|e| Failure::Usage(format!("cannot look into {}: {e}", args.folder.display())))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ron"));
    paths.sort();
    let width = paths
        .iter()
        .filter_map(|p| Some(p.file_stem()?.to_string_lossy().chars().count()))
        .max()
        .unwrap_or(0);
    for path in paths {
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        match scene::plan(&path, &LoadOptions::default()) {
            Ok(plan) => {
                println!(
                    "{name:width$}  {:>5} bodies {:>5} joints  {}",
                    plan.bodies.len(),
                    plan.joints.len(),
                    plan.about
                );
            }
            Err(e) => println!("{name:width$}  cannot be loaded: {e}"),
        }
    }
    Ok(())
}
