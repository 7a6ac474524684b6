"""Constraint equations of loops and couplings, compiled and batched — RBDA §8.2, Table 8.4."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.constraints import (
    closure_errors,
    loop_constraints,
    loop_errors,
    velocity_rows,
)
from kinetree.algorithms.closed.independent import coordinate_labels, named_variables
from kinetree.algorithms.closed.rank import count_values
from kinetree.algorithms.closed.rank import independent as far_from_dependent
from kinetree.algorithms.closed.scaling import Scaling, rows_of
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import LoopError, ModelError, ShapeError, TraceError, names_itself
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model
from kinetree.quantities.loops import allowed_velocities, allowed_velocity_rate, coordinate_names


class Constraint(NamedTuple):
    """``K qdd = k`` with its errors; rows of the loops in order, then user-defined ones."""

    K: Any
    """Constraint matrix, (..., nc, nv)."""
    k: Any
    """Right-hand side, from velocity products alone, (..., nc)."""
    error: Any
    """Position error [m or rad], (..., nc)."""
    rate: Any
    """Velocity error [m/s or rad/s], (..., nc): ``K qd`` less what moves with time."""


def constraint(
    model: Model, q: ArrayLike, qd: ArrayLike, *, coordinates: str = "loop"
) -> Constraint:
    """``Constraint`` equations ``K qdd = k`` of loops and user-defined constraints.

    The equation holds off the constraint manifold too: the rate of change of ``rate`` is
    ``K qdd - k`` in every state. To first order in the errors, that of ``error`` is ``rate``.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        coordinates: where the loops are evaluated: ``"loop"``, each relative to the last body
            that carries all of it; ``"base"``, as in the book, which loses digits where the
            mechanism is far from the base.
    """
    return Constraint(*call_compiled(equations, model, q, qd, coordinates=coordinates))


def error(model: Model, q: ArrayLike) -> Array:
    """Position errors of loops and couplings [m or rad], (..., nc), zero where satisfied."""
    return call_compiled(_error, model, q)


@kernel
def equations(model, q, qd, *, coordinates):
    """Kernel of the constraint equations, as the fields of a ``Constraint``."""
    return tuple(loop_constraints(model, q, qd, coordinates=coordinates))


@kernel
def _error(model, q):
    """Kernel of the position errors of loops and couplings."""
    return loop_errors(model, q)


# --- the same in independent coordinates: RBDA §3.2, §8.5 ----------------------------------------


class NullSpaceMotion(NamedTuple):
    """``qd = G yd`` and ``qdd = G ydd + g`` for the independent coordinates ``y``."""

    G: Any
    """(..., nv, p): columns that span the velocities which the loops allow."""
    g: Any
    """(..., nv): accelerations at ``ydd = 0``."""
    coordinates: tuple[str, ...]
    """Names of ``y``."""


def independent(model: Model) -> tuple[str, ...]:
    """Names of the variables that are by default the coordinates of a mechanism with loops.

    They are chosen once for a model, such that the others follow from them in configurations all
    over its manifold of closed loops. ``mass_matrix``, ``bias_force``, ``coriolis_matrix`` and the
    like belong to them, unless ``independent=`` names others.
    """
    return coordinate_names(_with_constraints(model, "independent"))


@names_itself
def null_space(
    model: Model, q: ArrayLike, qd: ArrayLike, *, independent: str | Sequence[str] | None = None
) -> NullSpaceMotion:
    """``NullSpaceMotion``: joint velocities and accelerations from independent coordinates.

    The equation of motion is ``GᵀHG ydd + Gᵀ(C + H g) = Gᵀ tau``, whose coefficients
    ``kinetree.mass_matrix`` and ``kinetree.bias_force`` return. It is compiled and batched, and can
    be called inside ``@kinetree.kernel``.

    Args:
        model: the mechanism, with loops.
        q: joint positions that close the loops, (..., nq).
        qd: joint velocities that keep them closed, (..., nv).
        independent: names of the joints whose variables are the coordinates, joints that close
            loops among them, or of single variables such as ``"ball[1]"``; ``independent(model)``
            if left out.

    Raises:
        ShapeError: the state does not close the loops.
        SingularError: the coordinates do not determine the motion in this configuration.
    """
    found = allowed_velocities(
        _with_constraints(model, "null_space"), q, qd, independent=independent
    )
    names = coordinate_labels(model)
    chosen = tuple(names[i] for i in named_variables(model, independent))
    return NullSpaceMotion(found[..., :-1], found[..., -1], chosen)


@names_itself
def null_space_rate(
    model: Model, q: ArrayLike, qd: ArrayLike, *, independent: str | Sequence[str] | None = None
) -> Array:
    """Time derivative ``dG/dt`` of ``null_space`` at velocity ``qd``, (..., nv, p).

    ``dG/dt @ yd`` is ``g`` if no constraint depends on time. Time-dependent joints raise an error.
    """
    model = _with_constraints(model, "null_space_rate")
    return allowed_velocity_rate(model, q, qd, independent=independent)


def _with_constraints(model, function):
    """``model`` itself; LoopError naming the function if it has no loops."""
    if not as_model(model).is_constrained:
        raise LoopError(
            f"{function}: model {model.name!r} has no loops: all its joint variables are "
            f"independent, and G is the unit matrix"
        )
    return model


# --- rank: RBDA §8.8, §8.10 ----------------------------------------------------------------------
# Ranks are decided in units of the loops (``algorithms.closed.scaling``) and by one policy
# (``algorithms.closed.rank``), which distinguishes rounding errors, misalignment and singular
# configurations. CPU only: ranks are decisions.


@on_host
def rank(K: ArrayLike, scaling: Scaling | None = None, *, tolerance: float | None = None) -> Any:
    """Number of independent rows of ``K``; for a batch (..., nc, nv), an array of them.

    Args:
        K: constraint matrix, or matrices.
        scaling: ``scaling(model)``; None if ``K`` is dimensionless. With it, nearly redundant
            constraints are not counted, see ``rank_policy``.
        tolerance: singular values below this times the largest count as zero, whatever the
            policy. With a scaling, the largest is taken to be at least 1, so that rounding errors
            alone have rank 0. None for the policy, or 1e-10 without a scaling.
    """
    s = np.linalg.svd(_in_pure_numbers(K, scaling), compute_uv=False)
    found = np.asarray(count_values(s, scaling, tolerance))
    return int(found) if found.ndim == 0 else found


@on_host
def independent_rows(
    K: ArrayLike, scaling: Scaling | None = None, *, tolerance: float | None = None
) -> np.ndarray:
    """Numbers of well-conditioned rows of ``K`` that imply all others, chosen greedily.

    The row that is farthest from the span of those already chosen comes next, the first of
    several; in ascending order.
    """
    return far_from_dependent(_in_pure_numbers(K, scaling), rank(K, scaling, tolerance=tolerance))


@on_host
def dependencies(
    K: ArrayLike, scaling: Scaling | None = None, *, tolerance: float | None = None
) -> np.ndarray:
    """Orthonormal rows ``c`` with ``c K = 0``, the dependencies of scaled constraints.

    A row of ``K`` whose entries in ``c`` are all zero is necessary; any other may be dropped
    instead of those that ``independent_rows`` drops.
    """
    U, s, _ = np.linalg.svd(_in_pure_numbers(K, scaling))
    return U[:, int(count_values(s, scaling, tolerance)) :].T


def with_misalignment(model: Model, misalignment: float | None) -> Model:
    """Copy of the model with another misalignment tolerance for all its loops.

    Args:
        model: the mechanism.
        misalignment: constraints that are redundant up to this error in all configurations are
            dropped [rad, or fraction of the size of the loop]; 0 to keep every constraint, None for
            the default of 1e-3.
    """
    model = as_model(model)
    return model.replace(loops=[replace(loop, misalignment=misalignment) for loop in model.loops])


def _in_pure_numbers(K, units):
    """Constraint matrix scaled to be dimensionless, after checks."""
    if hasattr(K, "bodies"):
        raise ModelError(
            "ranks are those of a constraint matrix, got a model: give "
            "loops.constraint(model, q, qd).K and loops.scaling(model), or call "
            "loops.mobility(model, q) for the rank and what it means"
        )
    K = np.asarray(K, dtype=float)
    if K.ndim < 2:
        raise ShapeError(f"a constraint matrix has shape (..., nc, nv), got {K.shape}")
    if units is None:
        return K
    if not isinstance(units, Scaling):
        raise ShapeError(
            f"the units of a constraint matrix are those of loops.scaling(model), got "
            f"{type(units).__name__}"
        )
    return units.apply(K)


# --- closure errors ------------------------------------------------------------------------------

_FEW = 256


def closure_error(model: Model, q: ArrayLike) -> Any:
    """Closure errors of the loops [m or rad], (..., nc): zero where closed and nowhere else."""
    return call_compiled(_closure_error, model, q)


def closing(model, q) -> Any:
    """Closure errors (..., nc) and their derivatives by joint velocities, (..., nc, nv).

    A few samples take the code for single ones: that for batches takes longer to compile than it
    saves.
    """
    try:
        if q.ndim != 2 or len(q) > _FEW or not len(q):
            return _closure_and_gradient(model, q)
        found = [_closure_and_gradient(model, sample) for sample in q]
        return tuple(np.array(part) for part in zip(*found, strict=True))
    except TraceError:
        rest = np.zeros((*q.shape[:-1], model.nv))
        return _closure_error.reference(model, q), constraint(model, q, rest).K


def velocity_matrix(model, q) -> np.ndarray:
    """Derivatives of the closure errors, (..., nc, nv), with nonholonomic rows included."""
    K, moving = np.array(closing(model, q)[1]), velocity_rows(model)
    if moving:
        rest = np.zeros((*q.shape[:-1], model.nv))
        K[..., moving, :] = np.asarray(constraint(model, q, rest).K)[..., moving, :]
    return K


@kernel
def _closure_error(model, q):
    """Kernel of the loops' closure errors [m or rad], (nc,)."""
    return closure_errors(model, q)


_closure_gradient = differentiate(_closure_error, wrt="q")


@kernel
def _closure_and_gradient(model, q):
    """Compiled closure errors and their derivatives along velocities."""
    return _closure_error(model, q), _closure_gradient(model, q)


def owners(model) -> list[str]:
    """Names of the loops, couplings and constraints that own rows, such as ``"loop 'pin'"``."""
    return list(dict.fromkeys(row.owner for row in rows_of(model)))


@on_host
def loop_gaps(model: Model, q: ArrayLike) -> dict[str, np.ndarray]:
    """Norm of the closure error of every loop and coupling [m or rad], by owner."""
    error = np.asarray(closing(model, as_configuration(model, q))[0])
    names = [row.owner for row in rows_of(model)]
    return {
        owner: np.linalg.norm(error[..., [n == owner for n in names]], axis=-1)
        for owner in owners(model)
    }


def require_holonomic(model):
    """Raise LoopError if the model has a nonholonomic constraint."""
    for c in model.constraints:
        if not c.holonomic:
            raise LoopError(
                f"constraint {c.name!r} of model {model.name!r} is nonholonomic: positions have "
                f"more degrees of freedom than velocities; kinetree.linearize has coordinates for "
                f"both"
            )


# --- compiled or as written ----------------------------------------------------------------------


def call_compiled(function, *arguments, **options):
    """Result of a kernel, uncompiled where a user-defined joint cannot be traced."""
    try:
        return function(*arguments, **options)
    except TraceError:
        return function.reference(*arguments, **options)
