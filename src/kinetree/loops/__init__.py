"""Closed loops: kinematics, dynamics, local coordinates and linear models of closed chains.

    q = kt.loops.assemble(model, guess)
    print(kt.loops.mobility(model, q))
    motion = kt.loops.solve(model, q, qd, tau)

``kt.forward_dynamics``, ``kt.simulate`` and ``kt.linearize`` honour loops without being asked; here
is what else one wants to know about them.
"""

from kinetree.loops import charts, closed_forms
from kinetree.loops.actuation import Actuation, actuation
from kinetree.loops.assemblies import assemblies
from kinetree.loops.assembly import assemble
from kinetree.loops.branches import Branch, SingularPoint, follow
from kinetree.loops.closing import closure_error, loop_gaps
from kinetree.loops.closure_functions import ClosedMotion, LoopClosure
from kinetree.loops.clusters import Cluster, block_null_space, clusters, renumber
from kinetree.loops.constraint import Constraint, constraint, error
from kinetree.loops.coordinate_motion import CoordinateMotion, coordinate_motion
from kinetree.loops.elimination_order import EliminationOrder, elimination_order
from kinetree.loops.implicit_steps import ImplicitStep, implicit_step
from kinetree.loops.invariants import Dimensions, Drift, dimensions, drift
from kinetree.loops.inverse_dynamics import ActuatorForces, inverse_dynamics
from kinetree.loops.linearization import LinearModel, linearize
from kinetree.loops.loop_joints import (
    LimitDistance,
    actuation_matrix,
    limit_distances,
    loop_joint_forces,
    loop_positions,
    loop_velocities,
)
from kinetree.loops.manifold_linearization import ManifoldLinearization, linearize_on_manifold
from kinetree.loops.mobility import Mobility, mobilities, mobility
from kinetree.loops.model_system import system_of
from kinetree.loops.multipliers import Baumgarte
from kinetree.loops.null_space import NullSpace
from kinetree.loops.overconstraint import Replacement
from kinetree.loops.projection import project_configuration, project_velocity
from kinetree.loops.rank import dependencies, independent_rows, rank, scaling
from kinetree.loops.reactions import LoopForce
from kinetree.loops.singular_passes import SingularityWatch, SingularPass
from kinetree.loops.singularities import (
    Singularity,
    determines,
    singularities,
    singularity,
    stabilization_time,
)
from kinetree.loops.solution import METHODS, ConstrainedMotion, solve
from kinetree.loops.sparse_maximal import BodyMotion, order_of, solve_bodies
from kinetree.loops.state_projection import mechanical_energy, project_state
from kinetree.loops.svd_form import SVDEvaluation, SVDForm
from kinetree.loops.system import ConstrainedSystem, ConstraintTerms
from kinetree.loops.system_motion import SystemMotion, integrate_system
from kinetree.loops.torque_slopes import TorqueSlopes, torque_slopes
from kinetree.loops.welded import weld_loops, welded_state

__all__ = [
    "METHODS", "Actuation", "ActuatorForces", "Baumgarte", "BodyMotion", "Branch", "ClosedMotion",
    "Cluster", "ConstrainedMotion", "ConstrainedSystem", "Constraint", "ConstraintTerms",
    "CoordinateMotion", "Dimensions", "Drift", "EliminationOrder", "ImplicitStep", "LimitDistance",
    "LinearModel", "LoopClosure", "LoopForce", "ManifoldLinearization", "Mobility", "NullSpace",
    "Replacement", "SVDEvaluation", "SVDForm", "SingularPass", "SingularPoint", "Singularity",
    "SingularityWatch", "SystemMotion", "TorqueSlopes", "actuation", "actuation_matrix",
    "assemble", "assemblies", "block_null_space", "charts", "closed_forms", "closure_error",
    "clusters", "constraint", "coordinate_motion", "dependencies", "determines", "dimensions",
    "drift", "elimination_order", "error", "follow", "implicit_step", "independent_rows",
    "integrate_system", "inverse_dynamics", "limit_distances", "linearize",
    "linearize_on_manifold", "loop_gaps", "loop_joint_forces", "loop_positions",
    "loop_velocities", "mechanical_energy", "mobilities", "mobility", "order_of",
    "project_configuration", "project_state", "project_velocity", "rank", "renumber", "scaling",
    "singularities", "singularity", "solve", "solve_bodies", "stabilization_time", "system_of",
    "torque_slopes", "weld_loops", "welded_state",
]  # fmt: skip
