"""How far loops are from closed, from near and from far away.

The position errors of RBDA Table 8.1 are made for small errors: those of a hinge vanish, too, when
its axes point against each other. Here the error of a loop is the logarithm of what is between
the two frames and the nearest position that the joint allows, ``Tᵀ log(X X_J(q)⁻¹)``. It vanishes
where the loop is closed and nowhere else, grows with the distance, and on closed loops its
derivative is the ``K`` of the velocity constraints.
"""

from typing import Any

import numpy as np

from kinetree.algorithms.loop_constraints import loop_motion
from kinetree.arrays.functions import on_host
from kinetree.errors import TraceError
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.joints import SphereInCylinder, Spherical, Universal
from kinetree.joints.base import AbstractJoint
from kinetree.loops.compiling import compiled
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.rank import rows_of
from kinetree.model.arrays import as_configuration

__all__ = ["closing", "closure_error", "loop_gaps", "owners"]

_FEW = 256
_EXACT = (Spherical, SphereInCylinder, Universal)
"""Joints whose own position error vanishes only where they are closed."""


def closure_error(model, q) -> Any:
    """Errors of the loops [m or rad], (..., nc): zero where closed."""
    return compiled(_error, model, q)


def closing(model, q) -> Any:
    """Errors (..., nc) and their derivative along the joint velocities, (..., nc, nv).

    A few samples take the code for single ones: that for batches takes longer to compile than it
    saves.
    """
    try:
        if q.ndim != 2 or len(q) > _FEW or not len(q):
            return _error_and_slope(model, q)
        found = [_error_and_slope(model, sample) for sample in q]
        return tuple(np.array(part) for part in zip(*found, strict=True))
    except TraceError:
        rest = np.zeros((*q.shape[:-1], model.nv))
        return _error.reference(model, q), constraint(model, q, rest).K


@kernel
def _error(model, q):
    rest = model.zero_velocity
    errors = [_gap(loop.joint, loop_motion(model, loop, q, rest).X_J) for loop in model.loops]
    return np.concatenate([rest[:0], *errors])


def _gap(joint, X):
    if isinstance(joint, _EXACT):
        return joint.loop_error(X)
    return AbstractJoint.loop_error(joint, X)


_slope = differentiate(_error, wrt="q")


@kernel
def _error_and_slope(model, q):
    return _error(model, q), _slope(model, q)


def owners(model) -> list[str]:
    """To what each row belongs: ``"loop 'pin'"``, ``"coupling 'gear'"``; one for each."""
    return list(dict.fromkeys(row.owner for row in rows_of(model)))


@on_host
def loop_gaps(model, q) -> dict[str, np.ndarray]:
    """Size of the error of every loop and coupling [m or rad], by what ``owners`` calls them."""
    error = np.asarray(closing(model, as_configuration(model, q))[0])
    names = [row.owner for row in rows_of(model)]
    return {
        owner: np.linalg.norm(error[..., [n == owner for n in names]], axis=-1)
        for owner in owners(model)
    }
