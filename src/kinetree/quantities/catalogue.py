"""The quantities that are compiled: their arguments, results, and the algorithms for them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kinetree.algorithms import (
    aba,
    centroidal,
    coriolis,
    crba,
    energy,
    hybrid,
    jacobians,
    minv,
    passive,
    rnea,
)
from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms import regressors as reg
from kinetree.algorithms import task_space as task

__all__ = ["FUNCTIONS", "Function"]


@dataclass(frozen=True)
class Function:
    """A quantity of a model.

    Attributes:
        arguments: names of its arrays.
        shape: shape of the result; names are attributes of the model, functions take the model and
            the options.
        algorithms: functions of the model, the arrays and the options; the first is the reference.
        needs_tree: whether it is undefined for mechanisms with loops.
        inverts_inertia: whether it is undefined where the inertia matrix is singular.
    """

    arguments: tuple
    shape: tuple
    algorithms: tuple[Callable, ...]
    needs_tree: bool = True
    inverts_inertia: bool = False


def _frame_function(algorithm, *arguments, shape):
    """A quantity of a frame, which the caller names."""

    def of_frame(model, *state, of, reference, relative_to=None, **options):
        options["observer"] = None if relative_to is None else model.frame(relative_to)
        return algorithm(model, *state, model.frame(of), reference, **options)

    return Function(arguments, shape, (of_frame,), needs_tree=False)


def _pose(model, q, *, of, relative_to=None):
    observer = None if relative_to is None else model.frame(relative_to)
    return jacobians.frame_pose(model, q, model.frame(of), observer)


def _task_function(algorithm, *arguments, shape):
    """A quantity of a task, which is the motion of a frame or some coordinates of it."""

    def of_task(model, *state, of, reference, **options):
        return algorithm(model, *state, model.frame(of), reference, **options)

    ways = (of_task, partial(of_task, ways=task.FEWEST))
    return Function(arguments, shape, ways, inverts_inertia=True)


def _with_both(text, lean):
    """A text, its lean formulation, and that with inertias left where they are."""
    return text, lean, fewest.as_built(lean)


def _task_size(model, options):
    return len(task.task_rows(options.get("rows")))


def _parameter_count(model, options):
    """Ten for each body, and one for each effect of a joint, whether it leads or follows."""
    effects = reg.joint_effects(options.get("friction", False), options.get("rotors", False))
    return 10 * model.body_count + len(effects) * model.uncoupled.nv


FUNCTIONS = {
    "inverse_dynamics": Function(
        ("q", "qd", "qdd"), ("nv",), _with_both(rnea.inverse_dynamics, fewest.inverse_dynamics)
    ),
    "forward_dynamics": Function(
        ("q", "qd", "tau"),
        ("nv",),
        (
            aba.forward_dynamics,
            fewest.forward_dynamics_by_articulated_bodies,
            fewest.forward_dynamics_by_inertia_matrix,
            fewest.as_built(fewest.forward_dynamics_by_inertia_matrix),
        ),
        inverts_inertia=True,
    ),
    "forward_dynamics_aba": Function(
        ("q", "qd", "tau"), ("nv",), (aba.forward_dynamics,), inverts_inertia=True
    ),
    "forward_dynamics_crba": Function(
        ("q", "qd", "tau"), ("nv",), (crba.forward_dynamics,), inverts_inertia=True
    ),
    "hybrid": Function(
        ("q", "qd", "tau", "qdd"),
        (2, "nv"),
        (hybrid.hybrid_dynamics_by_articulated_bodies, hybrid.hybrid_dynamics),
    ),
    "hybrid_aba": Function(
        ("q", "qd", "tau", "qdd"), (2, "nv"), (hybrid.hybrid_dynamics_by_articulated_bodies,)
    ),
    "hybrid_crba": Function(("q", "qd", "tau", "qdd"), (2, "nv"), (hybrid.hybrid_dynamics,)),
    "hybrid_response": Function(("q",), ("nv", "nv"), (hybrid.response,)),
    "mass_matrix": Function(
        ("q",), ("nv", "nv"), _with_both(crba.joint_space_inertia, fewest.joint_space_inertia)
    ),
    "inverse_mass_matrix": Function(
        ("q",),
        ("nv", "nv"),
        (
            minv.inverse_mass_matrix,
            fewest.inverse_mass_matrix,
            fewest.inverse_mass_matrix_by_factors,
        ),
        inverts_inertia=True,
    ),
    "bias_force": Function(("q", "qd"), ("nv",), _with_both(rnea.bias_force, fewest.bias_force)),
    "gravity_force": Function(
        ("q",), ("nv",), _with_both(rnea.gravity_force, fewest.gravity_force)
    ),
    "passive_force": Function(("q", "qd"), ("nv",), (passive.passive_force,), needs_tree=False),
    "coriolis_matrix": Function(
        ("q", "qd"),
        ("nv", "nv"),
        (
            coriolis.coriolis_matrix,
            fewest.coriolis_matrix_in_root_coordinates,
            fewest.coriolis_matrix_by_axial_turns,
        ),
    ),
    "christoffel": Function(("q",), ("nv", "nv", "nv"), (coriolis.christoffel,)),
    "pose": Function(("q",), (4, 4), (_pose,), needs_tree=False),
    "jacobian": _frame_function(jacobians.frame_jacobian, "q", shape=(6, "nv")),
    "jacobian_rate": _frame_function(jacobians.frame_jacobian_rate, "q", "qd", shape=(6, "nv")),
    "hessian": _frame_function(jacobians.frame_hessian, "q", shape=(6, "nv", "nv")),
    "velocity": _frame_function(jacobians.frame_velocity, "q", "qd", shape=(6,)),
    "acceleration": _frame_function(jacobians.frame_acceleration, "q", "qd", "qdd", shape=(6,)),
    "bias_acceleration": _frame_function(jacobians.frame_bias_acceleration, "q", "qd", shape=(6,)),
    "poses": Function(("q",), ("body_count", 4, 4), (jacobians.all_poses,), needs_tree=False),
    "jacobians": Function(
        ("q",), ("body_count", 6, "nv"), (jacobians.all_jacobians,), needs_tree=False
    ),
    "kinetic_energy": Function(("q", "qd"), (), (energy.kinetic_energy,), needs_tree=False),
    "potential_energy": Function(("q",), (), (energy.potential_energy,), needs_tree=False),
    "momentum": Function(("q", "qd"), (6,), (centroidal.total_momentum,), needs_tree=False),
    "center_of_mass": Function(("q",), (3,), (centroidal.center_of_mass,), needs_tree=False),
    "generalized_momentum": Function(
        ("q", "qd"), ("nv",), (energy.generalized_momentum,), needs_tree=False
    ),
    "mass_matrix_rate": Function(
        ("q", "qd"),
        ("nv", "nv"),
        (energy.mass_matrix_rate, energy.mass_matrix_rate_by_axial_turns),
    ),
    "kinetic_energy_rate": Function(
        ("q", "qd", "qdd"), (), (energy.kinetic_energy_rate,), needs_tree=False
    ),
    "potential_energy_rate": Function(
        ("q", "qd"), (), (energy.potential_energy_rate,), needs_tree=False
    ),
    "generalized_force": Function(
        ("q", "f_ext"), ("nv",), (energy.generalized_force,), needs_tree=False
    ),
    "center_of_mass_velocity": Function(
        ("q", "qd"), (3,), (centroidal.center_of_mass_velocity,), needs_tree=False
    ),
    "center_of_mass_acceleration": Function(
        ("q", "qd", "qdd"), (3,), (centroidal.center_of_mass_acceleration,), needs_tree=False
    ),
    "center_of_mass_jacobian": Function(
        ("q",), (3, "nv"), (centroidal.center_of_mass_jacobian,), needs_tree=False
    ),
    "center_of_mass_jacobian_rate": Function(
        ("q", "qd"), (3, "nv"), (centroidal.center_of_mass_jacobian_rate,), needs_tree=False
    ),
    "centroidal_momentum": Function(
        ("q", "qd"), (6,), (centroidal.centroidal_momentum,), needs_tree=False
    ),
    "centroidal_momentum_rate": Function(
        ("q", "qd", "qdd"), (6,), (centroidal.centroidal_momentum_rate,), needs_tree=False
    ),
    "centroidal_momentum_bias": Function(
        ("q", "qd"), (6,), (centroidal.centroidal_momentum_bias,), needs_tree=False
    ),
    "centroidal_momentum_matrix": Function(
        ("q",), (6, "nv"), (centroidal.centroidal_momentum_matrix,), needs_tree=False
    ),
    "centroidal_momentum_matrix_rate": Function(
        ("q", "qd"), (6, "nv"), (centroidal.centroidal_momentum_matrix_rate,), needs_tree=False
    ),
    "centroidal_inertia": Function(
        ("q",), (6, 6), (centroidal.centroidal_inertia,), needs_tree=False
    ),
    "zero_moment_point": Function(
        ("q", "qd", "qdd", "point"), (3,), (centroidal.zero_moment_point,), needs_tree=False
    ),
    "operational_space_inertia": _task_function(task.inertia, "q", shape=(_task_size, _task_size)),
    "inverse_operational_space_inertia": _task_function(
        task.inverse_inertia, "q", shape=(_task_size, _task_size)
    ),
    "operational_space_bias": _task_function(task.bias, "q", "qd", shape=(_task_size,)),
    "operational_space_gravity": _task_function(task.gravity, "q", shape=(_task_size,)),
    "dynamically_consistent_inverse": _task_function(
        task.consistent_inverse, "q", shape=("nv", _task_size)
    ),
    "null_space_projector": _task_function(task.null_space_projector, "q", shape=("nv", "nv")),
    "task_space_inverse_dynamics": _task_function(
        task.task_inverse_dynamics, "q", "qd", "acceleration", shape=("nv",)
    ),
    "task_space_forward_dynamics": _task_function(
        task.task_forward_dynamics, "q", "qd", "force", shape=(_task_size,)
    ),
    "regressor": Function(
        ("q", "qd", "qdd"),
        ("nv", _parameter_count),
        (reg.regressor, reg.regressor_by_axial_turns),
    ),
    "momentum_regressor": Function(
        ("q", "qd"), (6, _parameter_count), (reg.momentum_regressor,), needs_tree=False
    ),
    "kinetic_energy_regressor": Function(
        ("q", "qd"), (_parameter_count,), (reg.kinetic_energy_regressor,), needs_tree=False
    ),
    "potential_energy_regressor": Function(
        ("q",), (_parameter_count,), (reg.potential_energy_regressor,), needs_tree=False
    ),
    "energy_regressor": Function(
        ("q", "qd"), (_parameter_count,), (reg.energy_regressor,), needs_tree=False
    ),
}
