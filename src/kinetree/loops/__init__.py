"""Closed loops: kinematics, dynamics, local coordinates and linear models of closed chains.

    q = kt.loops.assemble(model, guess)
    print(kt.loops.mobility(model, q))
    motion = kt.loops.solve(model, q, qd, tau)

``kt.forward_dynamics``, ``kt.inverse_dynamics``, ``kt.simulate`` and ``kt.linearize`` support loops
directly; this package has everything else about them.
"""

from typing import Any

from kinetree.algorithms.closed.rank import rank_policy, scaling
from kinetree.arguments import guard_module
from kinetree.errors import warn
from kinetree.loops.dynamics import closed_forms
from kinetree.loops.dynamics.closure_functions import ClosedMotion, LoopClosure
from kinetree.loops.dynamics.clusters import Cluster, block_null_space, clusters, renumber
from kinetree.loops.dynamics.elimination_order import EliminationOrder, elimination_order
from kinetree.loops.dynamics.inverse_dynamics import (
    Actuation,
    ActuatorForces,
    actuation,
    inverse_dynamics,
)
from kinetree.loops.dynamics.methods import NullSpace
from kinetree.loops.dynamics.solution import METHODS, ConstrainedMotion, LoopForce, solve
from kinetree.loops.dynamics.sparse_maximal import BodyMotion, order_of, solve_bodies
from kinetree.loops.kinematics.assembly import assemble, assemblies
from kinetree.loops.kinematics.branches import Branch, SingularPoint, follow
from kinetree.loops.kinematics.constraint import (
    Constraint,
    NullSpaceMotion,
    closure_error,
    constraint,
    dependencies,
    error,
    independent,
    independent_rows,
    loop_gaps,
    null_space,
    null_space_rate,
    rank,
    with_misalignment,
)
from kinetree.loops.kinematics.loop_joints import (
    LimitDistance,
    actuation_matrix,
    limit_distances,
    loop_joint_forces,
    loop_positions,
    loop_velocities,
    weld_loops,
    welded_state,
)
from kinetree.loops.kinematics.mobility import Mobility, Replacement, mobilities, mobility
from kinetree.loops.kinematics.projection import (
    mechanical_energy,
    project_configuration,
    project_state,
    project_velocity,
)
from kinetree.loops.kinematics.singularities import (
    Singularity,
    determines,
    singularities,
    singularity,
    stabilization_time,
)
from kinetree.loops.linear.coordinate_motion import (
    CoordinateMotion,
    ImplicitStep,
    coordinate_motion,
    implicit_step,
)
from kinetree.loops.linear.derivatives import TorqueDerivatives, torque_derivatives
from kinetree.loops.linear.linearization import (
    LinearModel,
    ManifoldLinearization,
    linearize_in_coordinates,
    linearize_on_manifold,
)
from kinetree.loops.state_space import charts
from kinetree.loops.state_space.invariants import Dimensions, Drift, dimensions, drift
from kinetree.loops.state_space.linearized import (
    ChartLinearization,
    SystemLinearization,
    linearize_system,
)
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.multipliers import Stabilization
from kinetree.loops.state_space.svd_form import (
    SingularityWatch,
    SingularPass,
    SVDEvaluation,
    SVDForm,
)
from kinetree.loops.state_space.system import ConstrainedSystem, ConstraintTerms
from kinetree.loops.state_space.system_motion import (
    FormComparison,
    SystemMotion,
    compare_forms,
    integrate_system,
)

__all__ = [
    "METHODS", "Actuation", "ActuatorForces", "BodyMotion", "Branch", "ChartLinearization",
    "ClosedMotion", "Cluster", "ConstrainedMotion", "ConstrainedSystem", "Constraint",
    "ConstraintTerms", "CoordinateMotion", "Dimensions", "Drift", "EliminationOrder",
    "FormComparison", "ImplicitStep", "LimitDistance", "LinearModel", "LoopClosure", "LoopForce",
    "ManifoldLinearization", "Mobility", "NullSpace", "NullSpaceMotion", "Replacement",
    "SVDEvaluation", "SVDForm", "SingularPass", "SingularPoint", "Singularity", "SingularityWatch",
    "Stabilization", "SystemLinearization", "SystemMotion", "TorqueDerivatives", "actuation",
    "actuation_matrix", "assemble", "assemblies", "block_null_space", "charts", "closed_forms",
    "closure_error", "clusters", "compare_forms", "constraint", "coordinate_motion", "dependencies",
    "determines", "dimensions", "drift", "elimination_order", "error", "follow", "implicit_step",
    "independent", "independent_rows", "integrate_system", "inverse_dynamics", "limit_distances",
    "linearize_in_coordinates", "linearize_on_manifold", "linearize_system", "loop_gaps",
    "loop_joint_forces", "loop_positions", "loop_velocities", "mechanical_energy", "mobilities",
    "mobility", "null_space", "null_space_rate", "order_of", "project_configuration",
    "project_state", "project_velocity", "rank", "rank_policy", "renumber", "scaling",
    "singularities", "singularity", "solve", "solve_bodies", "stabilization_time", "system_of",
    "torque_derivatives", "weld_loops", "welded_state", "with_misalignment",
]  # fmt: skip

_DEPRECATED = {
    "TorqueSlopes": "TorqueDerivatives",
    "linearize": "linearize_in_coordinates",
    "torque_slopes": "torque_derivatives",
}


def __getattr__(name: str) -> Any:
    if name not in _DEPRECATED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = _DEPRECATED[name]
    warn(f"kt.loops.{name} is deprecated: use kt.loops.{new}", DeprecationWarning)
    return globals()[new]


guard_module(__name__)
