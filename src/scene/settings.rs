//! Reading what a scene says about the simulation and the pictures.

use super::error::{Fault, Read};
use super::expr::Variables;
use super::plan::{Camera, SceneSettings};
use super::read::{self, Fields};
use super::text::Node;
use crate::settings::Partitioning;
use crate::solver::Method;
use glam::DVec3;

/// Reads `settings: (..)`.
///
/// # Errors
/// Unknown fields, steps that are not positive.
pub fn read_settings(node: &Node, variables: &Variables) -> Read<SceneSettings> {
    let mut f = Fields::of(node, "settings", variables)?;
    let solver = f
        .get("solver")
        .map(|n| read::choice(n, "solver", &Method::ALL.map(|m| (m.name(), m))))
        .transpose()?;
    let partition = f.get("partition").map(|n| read_partition(n, variables)).transpose()?;
    let settings = SceneSettings {
        dt: f.positive("dt")?,
        seconds: f.positive("seconds")?,
        test_seconds: f.positive("test_seconds")?,
        gravity: f.vector("gravity")?,
        substeps: f.count("substeps", 1000)?,
        refine: f.count("refine", 100)?,
        newton: f.count("newton", 100)?,
        projection: f.count("projection", 100)?,
        solver,
        partition,
        joint_compliance: f.not_negative("joint_compliance")?,
        contact_compliance: f.not_negative("contact_compliance")?,
        sleep: f.flag("sleep")?,
        sleep_speed: f.not_negative("sleep_speed")?,
        sleep_time: f.not_negative("sleep_time")?,
    };
    if settings.substeps == Some(0) {
        return Err(Fault::new(node.at, "`substeps` is 0; it must be at least 1"));
    }
    f.finish()?;
    Ok(settings)
}

fn read_partition(node: &Node, variables: &Variables) -> Read<Partitioning> {
    read::text(node, variables)?.parse().map_err(|message: String| Fault::new(node.at, message))
}

/// Reads one camera.
///
/// # Errors
/// Unknown fields, an eye that looks at itself.
pub fn read_camera(node: &Node, variables: &Variables) -> Read<Camera> {
    let mut f = Fields::of(node, "the camera", variables)?;
    let camera = Camera {
        eye: f.need_vector("eye")?,
        target: f.vector("target")?.unwrap_or(DVec3::ZERO),
        fov: f.positive("fov")?.unwrap_or(40.0),
    };
    if camera.eye == camera.target {
        return Err(Fault::new(node.at, "the camera looks at the point it stands on"));
    }
    f.finish()?;
    Ok(camera)
}
