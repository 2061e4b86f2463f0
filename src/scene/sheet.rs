//! Sheets: points in rows and columns, tied by springs that are part of the matter.

use super::body::{self, BodySpec};
use super::error::{Fault, Read};
use super::expand::Builder;
use super::joint::JointSpec;
use super::plan::JointKind;
use super::read::{self, Fields};
use super::scope::Scope;
use super::text::Node;
use crate::components::Collider;
use crate::geometry::Shape;
use glam::{DMat3, DVec3};

impl Builder<'_> {
    /// `Sheet(name: .., counts: (nx, ny), spacing: 0.1, mass: .., stiffness: .., spring_damping: .., radius: .., at: .., rotate: ..)`.
    ///
    /// Point masses of `mass` each in the plane of local x and y, the middle of them at `at`, called `name/0_0`, `name/1_0`, ..; each is
    /// tied to its neighbours along both axes and across by springs as long as they are apart. With a `radius` each of them is a ball that
    /// touches things. Every field of a body (friction, color, groups, ..) applies to each point.
    pub(super) fn sheet(&mut self, node: &Node, scope: &Scope) -> Read<()> {
        let mut f = Fields::of(node, "the sheet", &self.variables)?;
        let name = read::text(f.need("name")?, f.variables)?;
        let counts = f.need("counts")?;
        let [nx, ny] = read::items(counts, "two counts `(nx, ny)`")? else {
            return Err(Fault::new(counts.at, "expected two counts `(nx, ny)`"));
        };
        let count = |n: &Node| read::count(n, self.limits.bodies, f.variables);
        let (nx, ny) = (count(nx)?, count(ny)?);
        if nx.min(ny) == 0 {
            return Err(Fault::new(counts.at, "a sheet needs at least one point along either axis"));
        }
        let spacing = f.need_positive("spacing")?;
        let stiffness = f.need_positive("stiffness")?;
        let damping = f.not_negative("spring_damping")?.unwrap_or(0.0);
        let radius = f.positive("radius")?;
        f.need("mass")?;
        let mut template = body::read_template(&mut f, &mut self.shapes, self.limits)?;
        f.finish()?;
        let scope = &scope.moved(template.at, template.rotate);
        template.rotate = glam::DQuat::IDENTITY;
        template.point = true;
        template.mass.mass = template.given_mass.unwrap_or(1.0);
        (template.mass.center, template.mass.inertia) = (DVec3::ZERO, DMat3::ZERO);
        if let Some(radius) = radius {
            let mut bead = Collider::new(self.shapes.compile(Shape::Sphere { radius }, node.at)?);
            (bead.material, bead.filter) = template.surface;
            template.colliders = vec![bead];
        }
        let called = |ix: usize, iy: usize| format!("{name}/{ix}_{iy}");
        let place = |ix: usize, iy: usize| {
            let along = |i: usize, n: usize| spacing * (i as f64 - 0.5 * (n - 1) as f64);
            DVec3::new(along(ix, nx), along(iy, ny), 0.0)
        };
        for iy in 0..ny {
            for ix in 0..nx {
                self.add_body(
                    BodySpec { name: called(ix, iy), at: place(ix, iy), ..template.clone() },
                    scope,
                )?;
            }
        }
        for iy in 0..ny {
            for ix in 0..nx {
                let (right, up) = (ix + 1 < nx, iy + 1 < ny);
                for (from, to, there) in [
                    ((ix, iy), (ix + 1, iy), right),
                    ((ix, iy), (ix, iy + 1), up),
                    ((ix, iy), (ix + 1, iy + 1), right && up),
                    ((ix + 1, iy), (ix, iy + 1), right && up),
                ] {
                    if there {
                        let kind = JointKind::Spring { length: f64::NAN, stiffness, damping, coupled: true };
                        let bodies = [Some(called(from.0, from.1)), Some(called(to.0, to.1))];
                        let mut spring = JointSpec::new(kind, bodies, DVec3::ZERO, node.at);
                        spring.points = [place(from.0, from.1), place(to.0, to.1)];
                        self.add_joint(spring, scope)?;
                    }
                }
            }
        }
        Ok(())
    }
}
