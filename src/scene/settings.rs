//! Reading what a scene says about the simulation and the pictures.

use super::error::{Fault, Read};
use super::expr::Variables;
use super::plan::{Camera, SceneSettings};
use super::read::{self, Fields};
use super::text::Node;
use crate::settings::table::{Setting, TABLE};
use crate::settings::{FrictionLaw, Partitioning};
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
        gravity: f.get("gravity").map(|n| read_gravity(n, variables)).transpose()?,
        solver,
        partition,
        sleep: f.flag("sleep")?,
        friction_law: f
            .get("friction_law")
            .map(|n| {
                read::choice(n, "friction law", &[("box", FrictionLaw::Box), ("cone", FrictionLaw::Cone)])
            })
            .transpose()?,
        numbers: read_numbers(&mut f, variables)?,
    };
    f.finish()?;
    Ok(settings)
}

fn read_gravity(node: &Node, variables: &Variables) -> Read<DVec3> {
    let gravity = read::vector(node, variables)?;
    let range = Setting::of("gravity").map(|s| s.range);
    let within = range.map_or(Ok(()), |range| range.check_all(gravity.to_array()));
    within.map(|()| gravity).map_err(|bad| Fault::new(node.at, bad.to_string()))
}

/// The numbers of the table of settings that are there.
fn read_numbers(f: &mut Fields<'_, '_>, variables: &Variables) -> Read<Vec<(&'static str, f64)>> {
    let mut numbers = Vec::new();
    for setting in TABLE.iter().filter(|s| s.scalar) {
        let name = setting.range.name;
        let Some(node) = f.get(name) else { continue };
        let value = if setting.whole {
            read::count(node, u32::MAX as usize, variables)? as f64
        } else {
            read::number(node, variables)?
        };
        setting.range.check(value).map_err(|bad| Fault::new(node.at, bad.to_string()))?;
        numbers.push((name, value));
    }
    Ok(numbers)
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
