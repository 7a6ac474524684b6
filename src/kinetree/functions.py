"""The quantities that are compiled: their arguments, result, and the algorithms that compute them.

``quantity(model, name)`` is the kernel of a quantity for one model, traced and compiled when it is
first called. Where several algorithms give the same quantity, all are traced and the one with the
fewest operations is kept.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kinetree.algorithms import (
    aba,
    coriolis,
    crba,
    energy,
    jacobians,
    minv,
    passive,
    projection,
    rnea,
)
from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms import momentum as momentum_
from kinetree.algorithms.dependent_joints import require_independent_joints
from kinetree.algorithms.sparsity import sparsity
from kinetree.batch import over_batch
from kinetree.codegen.program import Argument, cheapest, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import LoopError
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.fingerprint import is_plain
from kinetree.spatial import Force

__all__ = ["FUNCTIONS", "Function", "quantity"]


@dataclass(frozen=True)
class Function:
    """A quantity of a model.

    Attributes:
        arguments: names of its arrays.
        shape: shape of the result; names are attributes of the model.
        algorithms: functions of the model, the arrays and the options; the first is the reference.
        needs_tree: whether it is undefined for mechanisms with loops or couplings.
        inverts_inertia: whether it is undefined where the inertia matrix is singular.
    """

    arguments: tuple
    shape: tuple
    algorithms: tuple[Callable, ...]
    needs_tree: bool = True
    inverts_inertia: bool = False


def _frame_function(algorithm, *arguments, shape):
    """A quantity of a frame, which the caller names."""

    def of_frame(model, *arrays, of, reference, has_point=False, **options):
        *state, point = arrays if has_point else (*arrays, None)
        return algorithm(model, *state, model.frame(of), reference, point=point, **options)

    return Function(arguments, shape, (of_frame,), needs_tree=False)


def _pose(model, q, *, of):
    return jacobians.frame_pose(model, q, model.frame(of))


def _operational_space_inertia(model, q, *, of):
    return projection.operational_space_inertia(model, q, model.frame(of))


FUNCTIONS = {
    "inverse_dynamics": Function(
        ("q", "qd", "qdd"), ("nv",), (rnea.inverse_dynamics, fewest.inverse_dynamics)
    ),
    "forward_dynamics": Function(
        ("q", "qd", "tau"),
        ("nv",),
        (
            aba.forward_dynamics,
            fewest.forward_dynamics_by_articulated_bodies,
            fewest.forward_dynamics_by_inertia_matrix,
        ),
        inverts_inertia=True,
    ),
    "forward_dynamics_aba": Function(
        ("q", "qd", "tau"), ("nv",), (aba.forward_dynamics,), inverts_inertia=True
    ),
    "forward_dynamics_crba": Function(
        ("q", "qd", "tau"), ("nv",), (crba.forward_dynamics,), inverts_inertia=True
    ),
    "mass_matrix": Function(
        ("q",), ("nv", "nv"), (crba.joint_space_inertia, fewest.joint_space_inertia)
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
    "bias_force": Function(("q", "qd"), ("nv",), (rnea.bias_force, fewest.bias_force)),
    "gravity_force": Function(("q",), ("nv",), (rnea.gravity_force, fewest.gravity_force)),
    "passive_force": Function(("q", "qd"), ("nv",), (passive.passive_force,), needs_tree=False),
    "coriolis_matrix": Function(("q", "qd"), ("nv", "nv"), (coriolis.coriolis_matrix,)),
    "christoffel": Function(("q",), ("nv", "nv", "nv"), (coriolis.christoffel,)),
    "operational_space_inertia": Function(
        ("q",), (6, 6), (_operational_space_inertia,), inverts_inertia=True
    ),
    "pose": Function(("q",), (4, 4), (_pose,), needs_tree=False),
    "jacobian": _frame_function(jacobians.frame_jacobian, "q", shape=(6, "nv")),
    "jacobian_rate": _frame_function(jacobians.frame_jacobian_rate, "q", "qd", shape=(6, "nv")),
    "velocity": _frame_function(jacobians.frame_velocity, "q", "qd", shape=(6,)),
    "acceleration": _frame_function(jacobians.frame_acceleration, "q", "qd", "qdd", shape=(6,)),
    "kinetic_energy": Function(("q", "qd"), (), (energy.kinetic_energy,), needs_tree=False),
    "potential_energy": Function(("q",), (), (energy.potential_energy,), needs_tree=False),
    "momentum": Function(("q", "qd"), (6,), (momentum_.total_momentum,), needs_tree=False),
    "center_of_mass": Function(("q",), (3,), (momentum_.center_of_mass,), needs_tree=False),
}


def quantity(model, name, extra=(), **options):
    """The kernel of a quantity for a model.

    Args:
        model: the mechanism.
        name: a key of ``FUNCTIONS``.
        extra: names of optional arrays that follow the others: ``"f_ext"`` or ``"point"``.
        options: what the algorithm is specialised for, such as the name of a frame.
    """
    key = (name, extra, *sorted(options.items())) if extra or options else name
    kernel = as_model(model).kernels.get(key)
    if kernel is None:
        kernel = model.kernels[key] = _build(model, name, extra, options, key)
    return kernel


def _build(model, name, extra, options, key):
    function = FUNCTIONS[name]
    if function.needs_tree:
        require_tree(model, name)
    if function.inverts_inertia:
        require_independent_joints(model, name.removesuffix("_aba").removesuffix("_crba"))
    names = function.arguments + extra
    inputs = [Argument(n, argument_shape(model, n)) for n in names]
    shape = tuple(getattr(model, n) if isinstance(n, str) else n for n in function.shape)
    candidates = [a for a in function.algorithms if _is_worth_tracing(model, a)]
    algorithms = [_bound(model, a, extra, options) for a in candidates]

    def reference(arrays):
        core = [len(i.shape) for i in inputs]
        named = dict(zip(names, arrays, strict=True))
        return over_batch(algorithms[0], named, core=core, shape=shape)

    def make_program():
        traced = [trace(_checked(model, a), inputs, name) for a in algorithms]
        return cheapest(traced)

    return Kernel(
        name,
        inputs,
        [Argument("out0", shape)],
        make_program,
        reference=reference,
        validate=lambda arrays: validate(model, dict(zip(names, arrays, strict=True))),
        key=(model.fingerprint, key) if is_plain(model) else None,
    )


_BY_FACTORS = (fewest.forward_dynamics_by_inertia_matrix, fewest.inverse_mass_matrix_by_factors)


def _is_worth_tracing(model, algorithm):
    """Whether an algorithm can be the shortest; factors of a deep tree cannot, and take long."""
    if algorithm not in _BY_FACTORS:
        return True
    return 100 * model.nv >= sparsity(model.expanded_parent).D2


def argument_shape(model, name):
    """Shape of one sample of a named argument."""
    shapes = {"q": (model.nq,), "f_ext": (model.body_count, 6), "point": (3,)}
    return shapes.get(name, (model.nv,))


def _bound(model, algorithm, extra, options):
    """The algorithm as a function of arrays alone."""
    options = dict(options, has_point=True) if "point" in extra else options

    def of_arrays(*arrays):
        if "f_ext" in extra:
            *state, forces = arrays
            arrays = (*state, [None, *(Force.from_array(f) for f in forces)])
        return algorithm(model, *arrays, **options)

    return of_arrays


def _checked(model, algorithm):
    """The algorithm, and conditions on ``q`` that the compiled code must check."""

    def with_checks(q, *arrays):
        require_unit_parts(model, q)
        return algorithm(q, *arrays)

    return with_checks


def require_unit_parts(model, q):
    """Make the compiled code check that quaternions in a traced ``q`` have unit length."""
    for i in range(1, model.body_count + 1):
        for part in model.joint[i].unit_parts:
            p = q[model.q_slice[i]][part]
            deviation = p @ p - 1
            (deviation * deviation < 4e-8).require()


def validate(model, arrays):
    """Raise for wrong shapes, numbers that are not finite, quaternions not of unit length."""
    for name, array in arrays.items():
        if name == "q":
            as_configuration(model, array)
        elif name in ("f_ext", "point"):
            continue  # checked by the public function, which knows what the caller wrote
        else:
            as_joint_vector(model, array, name)


def require_tree(model, function):
    """Raise LoopError when the model has loops or couplings."""
    if model.couplings:
        c, names = model.couplings[0], (*model.joint_names, "")
        follows = f"follows {names[c.source - 1]!r}" if c.source else "is held"
        raise LoopError(
            f"{function} is not defined for model {model.name!r}, whose joint "
            f"{names[c.joint - 1]!r} {follows} by coupling {c.name!r}: its joint forces are not "
            f"independent. forward_dynamics(model, ...) honours couplings; "
            f"model.replace(couplings=()) is the same mechanism without them"
        )
    if model.loops:
        raise LoopError(
            f"{function} is not defined for model {model.name!r}, whose joint "
            f"{model.loops[0].name!r} closes a loop: its joint forces are not independent. "
            f"forward_dynamics(model, ...) honours loops; model.replace(loops=()) is the "
            f"spanning tree alone"
        )
