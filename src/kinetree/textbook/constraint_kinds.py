"""Kinds of constraints and the freedoms that they leave — RBDA §3.4, Fig. 3.1.

A ``kt.ConstraintFunction`` is holonomic or not, and moves with time or not; ``kind`` says which. A
nonholonomic one is the rate of nothing, and takes away velocities only.
"""

from dataclasses import dataclass, replace

import numpy as np

from kinetree.algorithms.closed.constraints import function_rows, loop_constraints, velocity_rows
from kinetree.algorithms.closed.subspace import Subspace
from kinetree.errors import ShapeError

__all__ = ["Freedoms", "check_functions", "freedoms"]


@dataclass(frozen=True)
class Freedoms:
    """Degrees of freedom of a constrained system.

    Attributes:
        position: dimension of the set of reachable configurations.
        velocity: dimension of the set of allowed velocities; smaller if something rolls.
    """

    position: int
    velocity: int


def freedoms(model, q) -> Freedoms:
    """Freedoms that loops and constraints of one's own leave in the configuration ``q``, (nq,).

    Takes the word of each constraint for being nonholonomic: such rows take away velocities only.
    """
    K = loop_constraints(model, np.asarray(q, dtype=float), model.zero_velocity).K.astype(float)
    of_positions = K.copy()
    of_positions[velocity_rows(model)] = 0
    return Freedoms(*(Subspace.null(rows, "motion").dim for rows in (of_positions, K)))


def check_functions(model, q, qd, *, tolerance=1e-10):
    """Raise ShapeError unless rates are linear in ``qd`` and time derivatives of positions.

    Args:
        model: the mechanism, with constraints of one's own.
        q: position variables, (nq,).
        qd: velocity variables, (nv,), none of them zero.
        tolerance: relative error that passes for rounding.
    """
    q, qd = np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
    given = [c for c in model.constraints if c.holonomic and c.rate is not None]
    derivable = model.replace(constraints=[replace(c, rate=None) for c in given])
    at_rest = function_rows(model, q, 0 * qd)
    for c, now, rest in zip(model.constraints, function_rows(model, q, qd), at_rest, strict=True):
        scale = tolerance * (1 + np.max(np.abs(now.K)) * np.linalg.norm(qd))
        if np.any(np.abs(now.K @ qd + rest.rate - now.rate) > scale):
            raise ShapeError(f"the rate of constraint {c.name!r} must be linear in qd")
    for c, derived in zip(given, function_rows(derivable, q, qd), strict=True):
        value = c.value("rate", model=model.spanning_tree, q=q, qd=qd, t=c.t)
        scale = tolerance * (1 + np.max(np.abs(derived.K)) * np.linalg.norm(qd))
        if np.any(np.abs(derived.rate - value) > scale):
            raise ShapeError(
                f"the rate of constraint {c.name!r} is not the time derivative of its position: "
                f"{np.asarray(value).tolist()} against {derived.rate.tolist()}"
            )
