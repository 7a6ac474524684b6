"""Closed loops: kinematics, dynamics, local coordinates and linear models of closed chains.

    q = kt.loops.assemble(model, guess)
    print(kt.loops.mobility(model, q))
    motion = kt.loops.solve(model, q, qd, tau)

``kt.forward_dynamics``, ``kt.inverse_dynamics``, ``kt.simulate`` and ``kt.linearize`` support loops
directly; this package has everything else about them. Names that only the literature asks for, such
as ``SVDForm``, are texts of ``kinetree.textbook``, which are imported on first use.
"""

from typing import TYPE_CHECKING, Any

from kinetree.algorithms.closed.rank import rank_policy, scaling
from kinetree.arguments import guard_module, text_getter
from kinetree.errors import warn
from kinetree.loops.dynamics.clusters import Cluster, block_null_space, clusters, renumber
from kinetree.loops.dynamics.inverse_dynamics import (
    Actuation,
    ActuatorForces,
    actuation,
    inverse_dynamics,
)
from kinetree.loops.dynamics.loop_forces import LoopForce
from kinetree.loops.dynamics.methods import NullSpace
from kinetree.loops.dynamics.solution import METHODS, ConstrainedMotion, solve
from kinetree.loops.kinematics.all_assemblies import assemblies
from kinetree.loops.kinematics.assembly import assemble
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
from kinetree.loops.kinematics.projection import project_configuration, project_velocity
from kinetree.loops.kinematics.singularities import (
    Singularity,
    determines,
    singularities,
    singularity,
    stabilization_time,
)
from kinetree.loops.kinematics.state_projection import mechanical_energy, project_state
from kinetree.loops.linear.coordinate_motion import CoordinateMotion, coordinate_motion
from kinetree.loops.linear.derivatives import TorqueDerivatives, torque_derivatives
from kinetree.loops.linear.linearization import LinearModel, linearize_in_coordinates
from kinetree.loops.state_space import charts
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.multipliers import Stabilization
from kinetree.loops.state_space.system import ConstrainedSystem, ConstraintTerms

if TYPE_CHECKING:
    from kinetree.textbook import closure_rules as closed_forms
    from kinetree.textbook.closure_functions import ClosedMotion, LoopClosure
    from kinetree.textbook.elimination_order import EliminationOrder, elimination_order
    from kinetree.textbook.implicit_step import ImplicitStep, implicit_step
    from kinetree.textbook.manifold_linearization import (
        ManifoldLinearization,
        linearize_on_manifold,
    )
    from kinetree.textbook.sparse_maximal import BodyMotion, order_of, solve_bodies
    from kinetree.textbook.svd_form import (
        SingularityWatch,
        SingularPass,
        SVDEvaluation,
        SVDForm,
    )
    from kinetree.textbook.system_invariants import Dimensions, Drift, dimensions, drift
    from kinetree.textbook.system_linearization import (
        ChartLinearization,
        SystemLinearization,
        linearize_system,
    )
    from kinetree.textbook.system_motion import (
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

_text = text_getter(
    __name__,
    {
        "closure_functions": ("ClosedMotion", "LoopClosure"),
        "closure_rules": "closed_forms",
        "elimination_order": ("EliminationOrder", "elimination_order"),
        "implicit_step": ("ImplicitStep", "implicit_step"),
        "manifold_linearization": ("ManifoldLinearization", "linearize_on_manifold"),
        "sparse_maximal": ("BodyMotion", "order_of", "solve_bodies"),
        "svd_form": ("SVDEvaluation", "SVDForm", "SingularPass", "SingularityWatch"),
        "system_invariants": ("Dimensions", "Drift", "dimensions", "drift"),
        "system_linearization": ("ChartLinearization", "SystemLinearization", "linearize_system"),
        "system_motion": ("FormComparison", "SystemMotion", "compare_forms", "integrate_system"),
    },
)

_DEPRECATED = {
    "TorqueSlopes": "TorqueDerivatives",
    "linearize": "linearize_in_coordinates",
    "torque_slopes": "torque_derivatives",
}


def __getattr__(name: str) -> Any:
    if name not in _DEPRECATED:
        return _text(name)
    new = _DEPRECATED[name]
    warn(f"kt.loops.{name} is deprecated: use kt.loops.{new}", DeprecationWarning)
    return globals()[new]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


guard_module(__name__)
