"""The motion of all joints from that of the independent coordinates — Spencer (4.8)–(4.10)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError
from kinetree.loops.kinematics.constraint import constraint, require_holonomic
from kinetree.loops.linear.coordinates import coordinates
from kinetree.loops.linear.velocity_basis import (
    coordinate_accelerations,
    coordinate_values,
    move_coordinates,
    velocities,
    velocity_basis,
)
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model


class CoordinateMotion(NamedTuple):
    """A motion of all joints that keeps loops closed."""

    q: Any
    """(..., nq)"""
    qd: Any
    """(..., nv)"""
    qdd: Any
    """(..., nv)"""


@on_host
def coordinate_motion(
    model: Model,
    q0: ArrayLike,
    y: ArrayLike,
    yd: ArrayLike,
    ydd: ArrayLike,
    *,
    independent: Sequence[str],
) -> CoordinateMotion:
    """Motion of all joints for a given motion of independent coordinates.

    Of free and ball joints, whose velocity variables are not the derivatives of positions, ``y``
    are displacements from the neutral position, ``model.difference(model.neutral(), q)``, and
    ``yd`` and ``ydd`` velocity variables and their derivatives.

    Args:
        model: the mechanism; without loops all its variables are independent.
        q0: a closed configuration near the first ``y``, which selects the assembly, (nq,).
        y: values of the coordinates [m or rad], (p,), or (samples, p) along a motion.
        yd: their velocity variables, like ``y``: rates of ``y``, except for free and ball joints.
        ydd: the rates of these, like ``y``.
        independent: names of the joints whose variables are the coordinates.

    Raises:
        UnreachableError: no closed configuration has these coordinates.
    """
    q0 = as_configuration(as_model(model), q0)
    require_holonomic(model)
    given = [np.asarray(a, dtype=float) for a in (y, yd, ydd)]
    try:
        y, yd, ydd = np.broadcast_arrays(*given)
    except ValueError:
        raise ShapeError(
            f"y, yd and ydd must have one shape, (p,) or (samples, p), got "
            f"{', '.join(str(a.shape) for a in given)}"
        ) from None
    chosen = coordinates(model, constraint(model, q0, np.zeros(model.nv)).K, independent)
    if y.ndim not in (1, 2) or y.shape[-1] != len(chosen.names):
        raise ShapeError(
            f"y must have shape ({len(chosen.names)},) or (samples, {len(chosen.names)}) for the "
            f"coordinates {', '.join(map(repr, chosen.names))}, got {y.shape}"
        )
    positions, q, neutral = [], q0, model.neutral()
    for sample in y.reshape(-1, y.shape[-1]):
        start = q if chosen.flat else neutral
        q = move_coordinates(
            model, start, sample - coordinate_values(model, start, chosen), chosen, q
        )
        positions.append(q)
    q = np.array(positions).reshape(*y.shape[:-1], model.nq)
    K = constraint(model, q, np.zeros(model.nv)).K
    basis = velocity_basis(model, q, K, chosen)
    qd = velocities(model, q, yd, basis)
    products = coordinate_accelerations(model, q, qd, np.zeros(model.nv), chosen)
    wanted = np.concatenate([ydd - products, constraint(model, q, qd).k], axis=-1)
    return CoordinateMotion(q, qd, np.einsum("...nc,...c->...n", basis.inverse, wanted))
