//! THE step: one list of systems, in order.
//!
//! | stage | reads | writes | paper |
//! |---|---|---|---|
//! | guard | all body components | dense bodies, quarantine | |
//! | motion | targets | velocity of kinematic bodies | |
//! | collide | pose, colliders | contact entities | |
//! | forces (open) | body state | `Force`, `Torque` | f in (2) |
//! | gather | velocity, `Force`, `Torque` | dense forces, free velocities | p in (4) |
//! | rows (open) | joints, contacts, users' constraints, bodies | J, φ, C, w₀, bounds per row | (3), (7) |
//! | graph | rows | islands; velocity and pose of what bounces | §4 |
//! | partition | constraint graph, hints | partition of each body | Alg. 2 |
//! | assemble | rows, M, p | one problem per island | (8), (13)–(15) |
//! | factor | problems | partitions' rows, masses, index sets | §4.2 |
//! | factor | constraints at trial poses | λ, v⁺ of islands of joints alone (the chord step); the next stages have the others | |
//! | schur ↻ | factors | S, z | (24), (25) |
//! | interface ↻ | S, z, bounds | λ_Γ | (18) |
//! | partitions ↻ | problems, λ_Γ | λ, v⁺ | (16), (28) |
//! | index sets ↻ | λ, bounds | free / tight, "settled" | (12) |
//! | index sets | λ, v⁺ | islands solved again: surprised joints, overlaps ahead, curves | §3 |
//! | integrate | λ, v⁺ | pose, velocity, stored impulses | (2), (6) |
//! | finish | everything | events, report | |
//!
//! A system is a `fn(&mut Step)`. The runner times each under its name. Users put their own into any stage with
//! `Physics::add_system`; *forces* and *rows* are made for that.

pub mod assemble;
pub mod census;
pub mod chord;
pub mod collide;
pub mod contacts;
pub mod couple;
pub mod drift;
pub mod elements;
pub mod energy;
pub mod events;
pub mod forces;
pub mod gather;
pub mod graph;
pub mod guard;
pub mod gyro;
pub mod hold;
pub mod impacts;
pub mod integrate;
pub mod joint_forces;
pub mod measure;
pub mod motion;
pub mod newton;
pub mod parallel;
pub mod partition;
pub mod project;
pub mod queries;
pub mod refine;
pub mod repeated;
pub mod resolve;
pub mod rows;
mod shelf;
pub mod sleep;
pub mod solve;
pub mod stiffness;
pub mod still;
pub mod subsystems;
pub mod work_done;

use crate::constraint::*;
use crate::physics::Physics;
use crate::schedule::{Pipeline, Stage::*};

/// The whole step. Constraints join the *rows* stage as they are registered.
pub fn step_pipeline() -> Pipeline {
    Pipeline::new()
        .stage(Guard, "guard", guard::quarantine_bad_state)
        .stage(Guard, "rest", sleep::read_rest)
        .stage(Guard, "clear events", events::clear_events)
        .stage(Guard, "changes", work_done::count_changes)
        .stage(Motion, "previous poses", motion::keep_previous_poses)
        .stage(Motion, "motion", motion::follow_targets)
        .stage(Motion, "drift", drift::drift_to_middle)
        .stage(Collide, "collide", collide::update_contacts)
        .stage(Forces, "gravity", forces::apply_gravity) // open to users
        .stage(Gather, "wake", sleep::wake_islands)
        .stage(Gather, "gather", gather::gather_forces) // p of (4)
        .stage(Rows, "clear rows", rows::clear_rows) // open to users: (3)
        .stage(Graph, "repeated", repeated::meet_half_way) // before contacts, which may repeat each other
        .stage(Graph, "impacts", impacts::take_impacts)
        .stage(Graph, "contacts", contacts::write_contacts) // (9)–(11), after every other constraint
        .stage(Graph, "islands", graph::find_islands) // §4
        .stage(Partition, "partition", partition::partition_bodies) // §6, Alg. 2
        .stage(Assemble, "stiffness", stiffness::sum_stiffness) // 000 §3, [Tournier et al. 2015]
        .stage(Assemble, "assemble", assemble::assemble_islands) // (8), (13)–(15)
        .stage(Factor, "load", couple::load_partitions) // §4.2
        .stage(Factor, "chord", chord::follow_joints) // islands of joints; they take part in nothing up to "look ahead"
        .repeat_until(
            couple::index_sets_settled,
            Pipeline::new() // Alg. 1
                .stage(Schur, "schur", couple::form_schur_complement) // (24), (25)
                .stage(Interface, "interface", couple::solve_interface) // (18)
                .stage(Partitions, "partitions", couple::solve_partitions) // (16)
                .stage(IndexSets, "index sets", couple::update_index_sets), // (12)
        )
        .stage(IndexSets, "collect", solve::collect_impulses)
        .stage(IndexSets, "bend", refine::bend_rough_islands)
        .stage(IndexSets, "newton", newton::solve_surprised_islands)
        .stage(IndexSets, "look ahead", collide::look_ahead)
        .stage(IndexSets, "finish solves", couple::finish_solves)
        .stage(IndexSets, "newton again", newton::solve_those_still_open)
        .stage(IndexSets, "refine", refine::solve_along_the_curve)
        .stage(IndexSets, "tell solves", solve::report_solves)
        .stage(IndexSets, "show partitions", partition::show_partitions)
        .stage(Integrate, "work", work_done::count_work)
        .stage(Integrate, "sweep", collide::sweep_fast_bodies)
        .stage(Integrate, "integrate", integrate::integrate_bodies) // (2), (6)
        .stage(Integrate, "stop", collide::stop_fast_bodies)
        .stage(Integrate, "velocities", chord::velocity::project_velocities)
        .stage(Integrate, "project", project::close_joints)
        .stage(Integrate, "show", impacts::show_before_blow)
        .stage(Integrate, "scatter", integrate::scatter_bodies)
        .stage(Integrate, "store impulses", integrate::store_impulses)
        .stage(Integrate, "joint forces", joint_forces::report_joint_forces)
        .stage(Finish, "sleep", sleep::fall_asleep)
        .stage(Finish, "events", events::report_contacts)
        .stage(Finish, "measure", measure::measure_step)
}

/// The built-in constraints come through the door that users have.
pub fn add_built_in_constraints(physics: &mut Physics) {
    physics.add_constraint::<Fixed>();
    physics.add_constraint::<Revolute>();
    physics.add_constraint::<Prismatic>();
    physics.add_constraint::<Cylindrical>();
    physics.add_constraint::<Ball>();
    physics.add_constraint::<Universal>();
    physics.add_constraint::<Planar>();
    physics.add_constraint::<PointOnLine>();
    physics.add_constraint::<Distance>();
    physics.add_constraint::<Rope>();
    physics.add_constraint::<SpringDamper>();
    physics.add_constraint::<Spring>();
    physics.add_constraint::<Cable>();
    physics.add_constraint::<Gear>();
    physics.add_constraint::<Wheel>();
    physics.add_constraint_of::<3, GearTrain<3>>();
    physics.add_constraint_of::<4, Differential>();
    physics.add_constraint_of::<3, RackPinion>();
    physics.add_constraint_of::<2, PulleyRope<2>>();
    physics.add_constraint_of::<3, PulleyRope<3>>();
    physics.add_constraint_of::<4, PulleyRope<4>>();
    physics.add_constraint_of::<5, PulleyRope<5>>();
    physics.add_constraint_of::<6, PulleyRope<6>>();
}
