//! Where the items of a scene stand.

use super::error::{Fault, Read, Span};
use super::text::{Node, Value, shorten};
use glam::{DQuat, DVec3};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// Where items stand: the part they are in, its place, its names.
#[derive(Clone)]
pub(super) struct Scope {
    /// Put in front of names: `"crane_a/"`, empty at the top.
    pub prefix: Rc<str>,
    /// Origin of the part in the world.
    pub position: DVec3,
    /// Orientation of the part in the world.
    pub rotation: DQuat,
    /// Partition of bodies that name none.
    pub partition: Option<u32>,
    /// Folder that prefab files are looked for in.
    pub folder: Rc<Path>,
    /// Parts declared in the same file.
    pub parts: Rc<Vec<(String, Node)>>,
}

impl Scope {
    /// A point of the part in the world.
    pub fn point(&self, p: DVec3) -> DVec3 {
        self.position + self.rotation * p
    }

    /// The same names, elsewhere.
    pub fn moved(&self, at: DVec3, rotate: DQuat) -> Scope {
        Scope { position: self.point(at), rotation: (self.rotation * rotate).normalize(), ..self.clone() }
    }
}

/// `parts: { "wheel": Part(..) }`.
pub(super) fn declared_parts(node: Option<&Node>) -> Read<Vec<(String, Node)>> {
    let Some(node) = node else { return Ok(Vec::new()) };
    match &node.value {
        Value::Struct(_, fields) => Ok(fields.iter().map(|f| (f.name.clone(), f.node.clone())).collect()),
        _ => Err(Fault::new(
            node.at,
            format!("expected parts `{{\"name\": Part(..)}}`, found {}", node.kind()),
        )),
    }
}

/// Prefab files lie beside the scene or below it: a scene from a stranger opens nothing else.
pub(super) fn safe_path(folder: &Path, file: &str, at: Span) -> Read<PathBuf> {
    let relative = Path::new(file);
    let inside = relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if !inside || file.is_empty() {
        let message = format!("the prefab file `{}` must be a relative path without `..`", shorten(file));
        return Err(Fault::new(at, message));
    }
    Ok(folder.join(relative))
}
