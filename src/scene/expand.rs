//! From trees to a plan: parameters, generators, prefabs.
//!
//! The builder walks the items of a scene in the order of the file and appends bodies at once; joints,
//! scripts and expectations wait until every body is known ([`super::resolve`]).

use super::body::{self, BodySpec, ShapeCache};
use super::error::{Fault, MOST_FAULTS, Read, SceneError, Sources, Span, suggestion};
use super::expect::{ExpectationSpec, read_expectation};
use super::expr::Variables;
use super::files::Files;
use super::joint::{self, JointSpec};
use super::limits::Limits;
use super::plan::{BodyPlan, ScenePlan};
use super::read::{self, Fields};
use super::scope::{Scope, declared_parts, safe_path};
use super::script::{self, ScriptSpec};
use super::text::{Node, Value, parse, shorten};
use super::{LoadOptions, odd, settings};
use crate::components::BodyKind;
use glam::{DQuat, DVec3};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Something that waits for all bodies, with the names it can see and the parts it stands in.
pub(super) struct Pending<T> {
    pub spec: T,
    pub prefix: Rc<str>,
    pub trail: Rc<[Span]>,
}

pub(super) struct Builder<'a> {
    pub limits: &'a Limits,
    files: &'a dyn Files,
    parsed: Vec<(PathBuf, Rc<Node>)>,
    pub variables: Variables,
    pub shapes: ShapeCache,
    pub plan: ScenePlan,
    pub names: HashMap<String, u32>,
    pub partitions: HashMap<String, u32>,
    pub joints: Vec<Pending<JointSpec>>,
    pub scripts: Vec<Pending<ScriptSpec>>,
    pub expectations: Vec<Pending<ExpectationSpec>>,
    open: Vec<(PathBuf, String)>,
    trail: Rc<[Span]>,
    work: usize,
    name_bytes: usize,
    /// What is legal and yet hardly meant.
    pub odd: Vec<Fault>,
    texts: Vec<String>,
    faults: Vec<Fault>,
}

/// The items a scene can have besides joints.
const ITEMS: &[&str] = &[
    "Body", "Chain", "Cable", "Sheet", "Stack", "Grid", "Scatter", "Repeat", "Group", "Prefab", "After",
    "Move", "Drive",
];

/// Reads a scene file and everything it uses.
///
/// # Errors
/// The first fault, with its place.
pub(super) fn build(path: &Path, options: &LoadOptions, files: &dyn Files) -> Result<ScenePlan, SceneError> {
    let mut builder = Builder {
        limits: &options.limits,
        files,
        parsed: Vec::new(),
        variables: Variables::new(0),
        shapes: ShapeCache::default(),
        plan: ScenePlan::default(),
        names: HashMap::new(),
        partitions: HashMap::new(),
        joints: Vec::new(),
        scripts: Vec::new(),
        expectations: Vec::new(),
        open: Vec::new(),
        trail: Rc::new([]),
        work: 0,
        name_bytes: 0,
        odd: Vec::new(),
        texts: Vec::new(),
        faults: Vec::new(),
    };
    let read = builder.open_file(path, None).and_then(|root| builder.scene(&root, path, options));
    let sources = Sources { names: builder.plan.files.clone(), texts: std::mem::take(&mut builder.texts) };
    let mut faults = std::mem::take(&mut builder.faults);
    faults.extend(read.err());
    // What refers to bodies that could not be read would only add to it.
    if let Some(error) = sources.place_all(faults) {
        return Err(error);
    }
    let odd = std::mem::take(&mut builder.odd);
    let mut plan = super::resolve::resolve(builder).map_err(|faults| {
        sources
            .place_all(faults)
            .unwrap_or_else(|| SceneError::of_file(path.display().to_string(), "no fault"))
    })?;
    plan.warnings = odd::look(&plan, odd).into_iter().map(|fault| sources.place(fault)).collect();
    Ok(plan)
}

impl Builder<'_> {
    /// Reads and parses a file, once.
    fn open_file(&mut self, path: &Path, used_at: Option<Span>) -> Read<Rc<Node>> {
        if let Some((_, node)) = self.parsed.iter().find(|(p, _)| p == path) {
            return Ok(node.clone());
        }
        let file = self.plan.files.len() as u16;
        self.plan.files.push(path.display().to_string());
        let whole = Span { file, line: 0, column: 0 };
        let at = used_at.unwrap_or(whole);
        if self.parsed.len() >= self.limits.files {
            return Err(Fault::last(at, format!("the scene uses more than {} files", self.limits.files)));
        }
        let text = self.files.read(path, self.limits.file_bytes).map_err(|why| match used_at {
            Some(at) => Fault::new(at, format!("cannot read `{}`: {why}", path.display())),
            None => Fault::new(whole, format!("cannot read the file: {why}")),
        })?;
        // Files are read while others are: a text takes the place of its number.
        self.texts.resize_with(self.plan.files.len(), String::new);
        self.texts[file as usize] = text;
        let node = Rc::new(parse(&self.texts[file as usize], file, self.limits)?);
        self.parsed.push((path.to_path_buf(), node.clone()));
        Ok(node)
    }

    fn scene(&mut self, root: &Rc<Node>, path: &Path, options: &LoadOptions) -> Read<()> {
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        if let Value::Struct(Some(name), _) | Value::Tuple(Some(name), _) = &root.value
            && name != "Scene"
        {
            let hint =
                if name == "Part" { "; a part is used by a scene with `Prefab(file: ..)`" } else { "" };
            return Err(Fault::new(
                root.at,
                format!("expected `Scene(..)`, found `{}(..)`{hint}", shorten(name)),
            ));
        }
        let none = Variables::new(0);
        let mut f = Fields::of(root, "the scene", &none)?;
        let params = f.get("params");
        self.plan.parameters = self.parameters(params, &options.set, root.at)?;
        let (about, name) = (f.text("about")?, f.text("name")?);
        self.plan.about = about.unwrap_or_default();
        self.plan.name = name.unwrap_or(stem);
        if let Some(node) = f.get("settings") {
            match settings::read_settings(node, &self.variables) {
                Ok(settings) => self.plan.settings = settings,
                Err(fault) => self.note(fault)?,
            }
        }
        if let Some(node) = f.get("cameras") {
            for camera in read::items(node, "a list of cameras")? {
                match settings::read_camera(camera, &self.variables) {
                    Ok(camera) => self.plan.cameras.push(camera),
                    Err(fault) => self.note(fault)?,
                }
            }
        }
        let parts = declared_parts(f.get("parts"))?;
        let items = read::items(f.need("items")?, "a list of items")?;
        let expect = f.get("expect").map(|n| read::items(n, "a list of expectations")).transpose()?;
        if let Err(fault) = f.finish() {
            self.note(fault)?;
        }
        let folder: Rc<Path> = path.parent().unwrap_or(Path::new("")).into();
        let scope = Scope {
            prefix: "".into(),
            position: DVec3::ZERO,
            rotation: DQuat::IDENTITY,
            partition: None,
            folder,
            parts: Rc::new(parts),
        };
        self.items(items, &scope)?;
        for node in expect.unwrap_or_default() {
            let spec = match read_expectation(node, &self.variables) {
                Ok(spec) => spec,
                Err(fault) => {
                    self.note(fault)?;
                    continue;
                }
            };
            self.expectations.push(Pending { spec, prefix: scope.prefix.clone(), trail: self.trail.clone() });
        }
        Ok(())
    }

    /// Puts parameters into the variables: the file's values, unless `set` says otherwise.
    fn parameters(
        &mut self,
        node: Option<&Node>,
        set: &[(String, f64)],
        at: Span,
    ) -> Read<Vec<(String, f64)>> {
        let fields = match node.map(|n| (&n.value, n)) {
            None => &[][..],
            Some((Value::Struct(_, fields), _)) => fields.as_slice(),
            Some((Value::Tuple(_, items), _)) if items.is_empty() => &[][..],
            Some((_, n)) => {
                return Err(Fault::new(
                    n.at,
                    format!("expected parameters `(name: 1.0)`, found {}", n.kind()),
                ));
            }
        };
        if let Some((name, _)) = set.iter().find(|(name, _)| !fields.iter().any(|f| f.name == *name)) {
            let hint = suggestion(name, fields.iter().map(|f| f.name.as_str()));
            let at = node.map_or(at, |n| n.at);
            return Err(Fault::new(at, format!("there is no parameter `{}` to set{hint}", shorten(name))));
        }
        let mut values = Vec::with_capacity(fields.len());
        for f in fields {
            let value = match set.iter().rev().find(|(name, _)| *name == f.name) {
                Some((_, value)) => *value,
                None => read::number(&f.node, &self.variables)?,
            };
            self.variables.push(f.name.clone(), value);
            values.push((f.name.clone(), value));
        }
        Ok(values)
    }

    /// Expands items in the order of the file. A fault of one does not keep the others from being looked at.
    pub fn items(&mut self, nodes: &[Node], scope: &Scope) -> Read<()> {
        for node in nodes {
            let mark = self.variables.len();
            if let Err(fault) = self.item(node, scope) {
                self.variables.truncate(mark);
                self.note(fault)?;
            }
        }
        Ok(())
    }

    /// Keeps a fault and lets reading go on, unless it is the last one. What a generator repeats is told once.
    fn note(&mut self, mut fault: Fault) -> Read<()> {
        if fault.last || self.faults.len() + 1 >= MOST_FAULTS {
            return Err(fault);
        }
        if fault.trail.is_empty() {
            fault.trail = self.trail.to_vec();
        }
        if !self.faults.iter().any(|f| f.at == fault.at) {
            self.faults.push(fault);
        }
        Ok(())
    }

    /// One turn of a generator or one item: nothing is free, so that no file runs for ever.
    pub fn spend(&mut self, at: Span) -> Read<()> {
        self.work += 1;
        if self.work > self.limits.work {
            return Err(Fault::last(
                at,
                format!("the scene has more than {} items and generator turns", self.limits.work),
            ));
        }
        Ok(())
    }

    fn item(&mut self, node: &Node, scope: &Scope) -> Read<()> {
        self.spend(node.at)?;
        let (Value::Struct(Some(name), _) | Value::Tuple(Some(name), _)) = &node.value else {
            let message = format!("expected an item such as `Body(..)`, found {}", node.kind());
            return Err(Fault::new(node.at, message));
        };
        match name.as_str() {
            "Body" => {
                let spec = self.read_body(node, "the body")?;
                self.add_body(spec, scope).map(drop)
            }
            "Chain" | "Cable" => self.chain(node, scope, name == "Cable"),
            "Sheet" => self.sheet(node, scope),
            "Stack" => self.stack(node, scope),
            "Grid" => self.grid(node, scope),
            "Scatter" => self.scatter(node, scope),
            "Repeat" => self.repeat(node, scope),
            "Group" => self.group(node, scope),
            "Prefab" => self.prefab(node, scope),
            "After" | "Move" | "Drive" => {
                let spec = script::read_script(name, node, &self.variables, scope)?;
                self.scripts.push(Pending { spec, prefix: scope.prefix.clone(), trail: self.trail.clone() });
                Ok(())
            }
            name if joint::JOINTS.contains(&name) => {
                let mut f = Fields::of(node, name, &self.variables)?;
                let spec = joint::read_joint(name, &mut f)?;
                f.finish()?;
                self.add_joint(spec, scope)
            }
            other => {
                let hint = suggestion(other, ITEMS.iter().chain(joint::JOINTS).copied());
                Err(Fault::new(node.at, format!("there is no item `{}`{hint}", shorten(other))))
            }
        }
    }

    /// Reads a body with the variables as they are now.
    pub fn read_body(&mut self, node: &Node, what: &str) -> Read<BodySpec> {
        let mut f = Fields::of(node, what, &self.variables)?;
        let spec = body::read_body(&mut f, &mut self.shapes, self.limits)?;
        f.finish()?;
        Ok(spec)
    }

    /// Full name of something in a part.
    pub fn full_name(&mut self, name: &str, scope: &Scope, at: Span) -> Read<String> {
        if name.is_empty() {
            return Ok(String::new());
        }
        if name == "world" {
            return Err(Fault::new(at, "`world` is the name of the world; call the body otherwise"));
        }
        let full = format!("{}{name}", scope.prefix);
        self.name_bytes += full.len();
        if self.name_bytes > self.limits.name_bytes {
            return Err(Fault::last(
                at,
                format!("the names take more than {} bytes", self.limits.name_bytes),
            ));
        }
        Ok(full)
    }

    fn partition(&mut self, name: &Option<String>, scope: &Scope, at: Span) -> Read<Option<u32>> {
        let Some(name) = name else { return Ok(scope.partition) };
        let full = self.full_name(name, scope, at)?;
        let next = self.plan.partitions.len() as u32;
        let number = *self.partitions.entry(full.clone()).or_insert(next);
        if number == next {
            self.plan.partitions.push(full);
        }
        Ok(Some(number))
    }

    /// Puts a body into the plan: from the author's origin in the part to the centre of mass in the world.
    pub fn add_body(&mut self, spec: BodySpec, scope: &Scope) -> Read<u32> {
        self.spend(spec.place)?;
        let index = self.plan.bodies.len();
        if index >= self.limits.bodies {
            return Err(Fault::last(
                spec.place,
                format!("the scene has more than {} bodies", self.limits.bodies),
            ));
        }
        for fault in spec.odd {
            self.add_odd(fault);
        }
        let name = self.full_name(&spec.name, scope, spec.place)?;
        if let Some(&first) = self.names.get(&name) {
            let first = self.plan.bodies[first as usize].at;
            let message =
                format!("there are two bodies `{}`; the first is in line {}", shorten(&name), first.line);
            return Err(Fault::new(spec.place, message));
        }
        let partition = self.partition(&spec.partition, scope, spec.place)?;
        if spec.pinned && partition.is_none() {
            let message = "`pinned` needs to know where: give the body, or the part it is in, a `partition`";
            return Err(Fault::new(spec.place, message));
        }
        let rotation = (scope.rotation * spec.rotate).normalize();
        let center = spec.mass.center;
        let position = scope.point(spec.at) + rotation * center;
        if !position.is_finite() || position.abs().max_element() > 2.0 * super::limits::LARGEST_LENGTH {
            return Err(Fault::new(spec.place, format!("the body would stand at {position}, too far out")));
        }
        let mut colliders = spec.colliders;
        for c in &mut colliders {
            c.position -= center;
        }
        let fixed = spec.kind == BodyKind::Fixed;
        // A name is taken once its body is there: reading goes on after a body that is faulty.
        if !name.is_empty() {
            self.names.insert(name.clone(), index as u32);
        }
        self.plan.bodies.push(BodyPlan {
            name,
            kind: spec.kind,
            position,
            rotation,
            velocity: if fixed { DVec3::ZERO } else { scope.rotation * spec.velocity },
            spin: if fixed { DVec3::ZERO } else { scope.rotation * spec.spin },
            mass: spec.mass.mass,
            inertia: spec.mass.inertia,
            origin: -center,
            colliders,
            gravity_scale: spec.gravity_scale,
            damping: spec.damping,
            partition,
            pinned: spec.pinned,
            point: spec.point,
            color: spec.color,
            cable: spec.cable,
            at: spec.place,
        });
        Ok(index as u32)
    }

    /// Keeps something odd, once for every place it is written at.
    fn add_odd(&mut self, mut fault: Fault) {
        if self.odd.len() < MOST_FAULTS && !self.odd.iter().any(|f| f.at == fault.at) {
            fault.trail = self.trail.to_vec();
            self.odd.push(fault);
        }
    }

    /// Queues a joint, with its points and directions turned into the world.
    pub fn add_joint(&mut self, mut spec: JointSpec, scope: &Scope) -> Read<()> {
        self.spend(spec.place)?;
        if self.joints.len() >= self.limits.joints {
            return Err(Fault::last(
                spec.place,
                format!("the scene has more than {} joints", self.limits.joints),
            ));
        }
        for fault in std::mem::take(&mut spec.odd) {
            self.add_odd(fault);
        }
        spec.name = self.full_name(&spec.name, scope, spec.place)?;
        spec.points = spec.points.map(|p| scope.point(p));
        spec.axes = spec.axes.map(|a| scope.rotation * a);
        spec.side = scope.rotation * spec.side;
        for (_, p) in &mut spec.rope {
            *p = scope.point(*p);
        }
        self.joints.push(Pending { spec, prefix: scope.prefix.clone(), trail: self.trail.clone() });
        Ok(())
    }

    fn group(&mut self, node: &Node, scope: &Scope) -> Read<()> {
        let mut f = Fields::of(node, "the group", &self.variables)?;
        let when = f.flag("when")?.unwrap_or(true);
        let inner = self.inner_scope(&mut f, scope)?;
        let items = read::items(f.need("items")?, "a list of items")?;
        let (name, partition) = (f.text("name")?, f.text("partition")?);
        f.finish()?;
        if !when {
            return Ok(());
        }
        let inner = self.named_scope(inner, name, partition, scope, node.at)?;
        self.items(items, &inner)
    }

    fn inner_scope(&self, f: &mut Fields<'_, '_>, scope: &Scope) -> Read<Scope> {
        let at = f.vector("at")?.unwrap_or(DVec3::ZERO);
        Ok(scope.moved(at, f.rotation("rotate")?.unwrap_or(DQuat::IDENTITY)))
    }

    fn named_scope(
        &mut self,
        mut inner: Scope,
        name: Option<String>,
        partition: Option<String>,
        outer: &Scope,
        at: Span,
    ) -> Read<Scope> {
        inner.partition = self.partition(&partition, outer, at)?;
        if let Some(name) = name.filter(|n| !n.is_empty()) {
            inner.prefix = format!("{}/", self.full_name(&name, outer, at)?).into();
        }
        Ok(inner)
    }

    /// `Prefab(file: "parts/crane.ron", name: "left", at: .., params: (..))` or `part: "name"` of this file.
    fn prefab(&mut self, node: &Node, scope: &Scope) -> Read<()> {
        let mut f = Fields::of(node, "the prefab", &self.variables)?;
        let mut inner = self.inner_scope(&mut f, scope)?;
        let (name, partition) = (f.text("name")?, f.text("partition")?);
        let (file, part) = (f.text("file")?, f.text("part")?);
        let params = f.get("params");
        let when = f.flag("when")?.unwrap_or(true);
        f.finish()?;
        if !when {
            return Ok(());
        }
        let set = match params {
            None => Vec::new(),
            Some(p) => self.given_parameters(p)?,
        };
        let (tree, key) = match (file, part) {
            (Some(file), None) => {
                let path = safe_path(&scope.folder, &file, node.at)?;
                let key = (path.clone(), String::new());
                self.refuse_loop(&key, node.at)?;
                let tree = self.open_file(&path, Some(node.at))?;
                inner.folder = path.parent().unwrap_or(Path::new("")).into();
                (tree, key)
            }
            (None, Some(part)) => {
                let Some((_, tree)) = scope.parts.iter().find(|(n, _)| *n == part) else {
                    let hint = suggestion(&part, scope.parts.iter().map(|(n, _)| n.as_str()));
                    return Err(Fault::new(
                        node.at,
                        format!("there is no part `{}` in this file{hint}", shorten(&part)),
                    ));
                };
                let key = (PathBuf::from(format!("{}", tree.at.file)), part);
                self.refuse_loop(&key, node.at)?;
                (Rc::new(tree.clone()), key)
            }
            _ => return Err(Fault::new(node.at, "a prefab needs either `file` or `part`")),
        };
        let inner = self.named_scope(inner, name, partition, scope, node.at)?;
        self.expand_part(&tree, key, &set, inner, node.at)
    }

    fn refuse_loop(&self, key: &(PathBuf, String), at: Span) -> Read<()> {
        if self.open.contains(key) {
            let name = if key.1.is_empty() { key.0.display().to_string() } else { key.1.clone() };
            return Err(Fault::new(at, format!("the part `{}` includes itself", shorten(&name))));
        }
        if self.open.len() >= self.limits.part_depth {
            return Err(Fault::new(
                at,
                format!("parts are nested more than {} deep", self.limits.part_depth),
            ));
        }
        Ok(())
    }

    fn given_parameters(&self, node: &Node) -> Read<Vec<(String, f64)>> {
        let Value::Struct(_, fields) = &node.value else {
            return Err(Fault::new(
                node.at,
                format!("expected parameters `(name: 1.0)`, found {}", node.kind()),
            ));
        };
        fields.iter().map(|f| Ok((f.name.clone(), read::number(&f.node, &self.variables)?))).collect()
    }

    /// Expands a part in a scope of variables of its own.
    fn expand_part(
        &mut self,
        tree: &Rc<Node>,
        key: (PathBuf, String),
        set: &[(String, f64)],
        mut inner: Scope,
        used_at: Span,
    ) -> Read<()> {
        if let Value::Struct(Some(name), _) = &tree.value
            && name != "Part"
        {
            return Err(Fault::new(tree.at, format!("expected `Part(..)`, found `{}(..)`", shorten(name))));
        }
        let seed = self.variables.random().bits();
        let outer = std::mem::replace(&mut self.variables, Variables::new(seed));
        let trail: Rc<[Span]> = std::iter::once(used_at).chain(self.trail.iter().copied()).collect();
        let outer_trail = std::mem::replace(&mut self.trail, trail);
        self.open.push(key);
        let result = (|| {
            let none = Variables::new(0);
            let mut f = Fields::of(tree, "the part", &none)?;
            f.text("about")?;
            let params = f.get("params");
            self.parameters(params, set, used_at)?;
            let parts = declared_parts(f.get("parts"))?;
            let items = read::items(f.need("items")?, "a list of items")?;
            f.finish()?;
            if !parts.is_empty() {
                inner.parts = Rc::new(parts);
            }
            self.items(items, &inner)
        })();
        self.open.pop();
        self.variables = outer;
        let trail = std::mem::replace(&mut self.trail, outer_trail);
        result.map_err(|mut fault: Fault| {
            if fault.trail.is_empty() && fault.at != used_at {
                fault.trail = trail.to_vec();
            }
            fault
        })
    }
}
