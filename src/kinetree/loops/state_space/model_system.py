"""Models with loops and couplings as constrained systems, all terms compiled — Spencer §2.1."""

from collections.abc import Callable

import numpy as np

from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.closed.constraints import loop_constraints, loop_errors
from kinetree.algorithms.closed.rank import scaling
from kinetree.algorithms.passive import passive_force
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import JointError, LoopError, ShapeError, refuse_formulas
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.loops.kinematics.constraint import call_compiled
from kinetree.loops.kinematics.space import space_of
from kinetree.loops.state_space.system import (
    ConstrainedSystem,
    ConstraintTerms,
    central_differences,
)
from kinetree.model import Model
from kinetree.model.arrays import as_joint_vector, as_model
from kinetree.model.limits import has_passive_forces
from kinetree.quantities import dynamics
from kinetree.quantities.dynamics import external_forces
from kinetree.spatial import Force


def system_of(
    model: Model,
    tau: Callable | ArrayLike | None = None,
    f_ext: Callable | ArrayLike | dict | None = None,
    *,
    passive: bool = True,
) -> ConstrainedSystem:
    """``ConstrainedSystem`` of a model: ``M vdot = F - Gᵀ lam``, ``g = 0``.

    Coordinates are those of the spanning tree. Constraints may be redundant: charts leave out what
    is not needed where they begin. The sign of ``lam`` is that of Spencer's thesis, opposite to the
    loop forces of ``kt.loops.solve``.

    Args:
        model: the mechanism.
        tau: joint forces [N, N·m], (nv,), or a function of ``t, q, qd`` that returns them; zero by
            default.
        f_ext: external forces on bodies, as for ``kt.forward_dynamics``.
        passive: whether springs, dampers and friction of the joints act as well, loop joints
            included.

    Returns:
        The system; with its energy, if only gravity acts.
    """
    model = as_model(model)
    refuse_formulas("system_of", (model,))
    _check_is_supported(model)
    tree = model.spanning_tree
    space, units = space_of(model), scaling(model)
    is_passive = passive and has_passive_forces(model)
    force = _force(model, tau)

    def F(t, q, v):
        total = force(t, q, v) - dynamics.bias_force(tree, q, v, f_ext)
        return total + dynamics.passive_force(model, q, v) if is_passive else total

    def energy_gradient(q, v):
        return np.concatenate([_energy_gradient(tree, q, v), dynamics.mass_matrix(tree, q) @ v])

    def derivatives(t, q, v, vdot, lam):
        loads = () if f_ext is None else (external_forces(model, f_ext),)
        by_q, by_v = _equation_derivatives(model, q, v, vdot, lam, *loads, passive=is_passive)
        if callable(tau):  # a function of the user's own
            of_motors = central_differences(lambda q, v: force(t, q, v), q, v, space.move)
            by_q[: model.nv] -= of_motors[0]
            by_v[: model.nv] -= of_motors[1]
        return by_q, by_v

    isolated = tau is None and f_ext is None and not is_passive
    return ConstrainedSystem(
        n=model.nv,
        m=len(units.rows),
        M=lambda q: dynamics.mass_matrix(tree, q),
        F=F,
        g=lambda q: call_compiled(_error, model, q),
        G=lambda q: call_compiled(_matrix, model, q),
        Gdot_v=lambda q, v: call_compiled(_products, model, q, v),
        energy=(lambda q, v: _energy(tree, q, v)) if isolated else None,
        energy_gradient=energy_gradient if isolated else None,
        weights=units.rows,
        terms=lambda q, v: ConstraintTerms(*call_compiled(_terms, model, q, v)),
        rate_gradient=lambda q, v: _rate_gradient(model, q, v),
        derivatives=derivatives,
        space=space,
        scaling=units,
    )


def _check_is_supported(model):
    """Raise an error for self-moving joints and constraints on velocity or time."""
    for name, joint in zip(_names(model), _joints(model), strict=True):
        if joint.moves_by_itself:
            raise JointError(
                f"system_of does not support joint {name!r} of model {model.name!r}, which time "
                f"moves: constraints of a constrained system do not depend on time. Use "
                f"kinetree.forward_dynamics, or kinetree.simulate(prescribed=...)"
            )
    for c in model.constraints:
        if c.rheonomic or not c.holonomic:
            raise LoopError(
                f"system_of does not support constraint {c.name!r} of model {model.name!r}, which "
                f"is {c.kind.partition(', ')[2]}: those of a constrained system are functions of "
                f"position alone. Use kinetree.forward_dynamics, or kinetree.simulate"
            )


def _names(model):
    """Names of all joints, tree joints before loop joints."""
    return (*model.joint_names, *model.loop_names)


def _joints(model):
    """All joints, tree joints before loop joints."""
    return (*model.joint[1:], *(loop.joint for loop in model.loops))


def _force(model, tau) -> Callable:
    """Function ``(t, q, v)`` of joint forces, from a vector, a function or None."""
    if tau is None:
        return lambda t, q, v: 0.0
    if callable(tau):
        return tau
    constant = as_joint_vector(model, tau, "tau")
    if constant.ndim != 1:
        raise ShapeError(f"tau of a constrained system is one vector ({model.nv},), or a function")
    return lambda t, q, v: constant


@kernel
def _error(model, q):
    """Kernel of the constraint errors ``g``."""
    return loop_errors(model, q)


@kernel
def _matrix(model, q):
    """Kernel of the constraint matrix ``G``."""
    return loop_constraints(model, q, model.zero_velocity).K


@kernel
def _products(model, q, qd):
    """Kernel of the velocity products ``Gdot v``."""
    return -loop_constraints(model, q, qd).k


@kernel
def _terms(model, q, qd):
    """Kernel of ``g``, ``G`` and ``Gdot v`` together."""
    K, k, error, _ = loop_constraints(model, q, qd)
    return error, K, -k


@kernel
def _rate(model, q, qd):
    """Kernel of the constraint rates ``G v``."""
    return loop_constraints(model, q, qd).rate


@kernel
def _equations(model, q, qd, qdd, lam, f_ext=None, *, passive=True):
    """Kernel of the residuals ``M vdot - F + Gᵀ lam`` without motors, and ``G vdot + Gdot v``."""
    forces = None if f_ext is None else [None, *map(Force.from_array, f_ext)]
    load = fewest.inverse_dynamics(model, q, qd, qdd, forces)
    if passive:
        load = load - passive_force(model, q, qd)
    c = loop_constraints(model, q, qd)
    return np.concatenate([load + c.K.T @ lam, c.K @ qdd - c.k])


_equation_derivatives = differentiate(_equations, wrt=("q", "qd"))


@kernel
def _energy(model, q, qd):
    """Kernel of the kinetic plus potential energy [J]."""
    return dynamics.kinetic_energy(model, q, qd) + dynamics.potential_energy(model, q)


_energy_gradient = differentiate(_energy, wrt="q")
_rate_gradient = differentiate(_rate, wrt="q")
