"""Constraint equations of loops and couplings, compiled and batched — RBDA §8.2, Table 8.4."""

from typing import Any, NamedTuple

from kinetree.algorithms.loop_constraints import loop_constraints, loop_errors
from kinetree.functional.kernel import kernel
from kinetree.loops.compiling import compiled

__all__ = ["Constraint", "constraint", "error"]


class Constraint(NamedTuple):
    """``K qdd = k`` with its errors; rows of the loops in order, then one for each coupling."""

    K: Any
    """Constraint matrix, (..., nc, nv)."""
    k: Any
    """Right-hand side, from velocity products alone, (..., nc)."""
    error: Any
    """Position error [m or rad], (..., nc)."""
    rate: Any
    """Velocity error [m/s or rad/s], (..., nc): ``K qd`` less what moves with time."""


def constraint(model, q, qd, *, coordinates="loop") -> Constraint:
    """What loops and couplings ask of the joint accelerations: ``K qdd = k``.

    The equation holds off the constraint manifold too: the rate of change of ``rate`` is
    ``K qdd - k`` in every state. To first order in the errors, that of ``error`` is ``rate``.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        coordinates: where the loops are evaluated: ``"loop"``, each as seen from the last body
            that carries all of it; ``"base"``, as the book has it, which loses digits where the
            mechanism is far from the base.
    """
    return Constraint(*compiled(_constraint, model, q, qd, coordinates=coordinates))


def error(model, q):
    """Position errors of loops and couplings [m or rad], (..., nc); zero where they hold."""
    return compiled(_error, model, q)


@kernel
def _constraint(model, q, qd, *, coordinates):
    return tuple(loop_constraints(model, q, qd, coordinates=coordinates))


@kernel
def _error(model, q):
    return loop_errors(model, q)
