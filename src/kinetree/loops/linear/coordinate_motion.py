"""The motion of all joints from that of the independent coordinates — Spencer (4.8)–(4.10)."""

from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.functions import on_host
from kinetree.errors import LoopError, ShapeError
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.linear.independent import coordinates
from kinetree.loops.linear.motion_state import require_loops
from kinetree.loops.linear.velocity_basis import (
    coordinate_accelerations,
    coordinate_values,
    moved,
    velocity_basis,
)
from kinetree.model.arrays import as_configuration, as_model

__all__ = ["CoordinateMotion", "coordinate_motion"]


class CoordinateMotion(NamedTuple):
    """A motion of all joints that keeps loops closed."""

    q: Any
    """(..., nq)"""
    qd: Any
    """(..., nv)"""
    qdd: Any
    """(..., nv)"""


@on_host
def coordinate_motion(model, q0, y, yd, ydd, *, independent) -> CoordinateMotion:
    """All joints of a closed mechanism, for a motion of its independent coordinates.

    Args:
        model: the mechanism, with loops or couplings.
        q0: a closed configuration near the first ``y``, which tells the assembly, (nq,).
        y: values of the coordinates [m or rad], (p,), or (samples, p) along a motion.
        yd: their rates, like ``y``.
        ydd: their accelerations, like ``y``.
        independent: names of the joints whose variables are the coordinates.

    Raises:
        LoopError: the rates of a coordinate are not the derivatives of its values, as those of a
            free or ball joint are not; ``model.integrate`` moves these.
    """
    q0 = as_configuration(as_model(model), q0)
    require_loops(model, "the variables of all its joints are independent")
    given = [np.asarray(a, dtype=float) for a in (y, yd, ydd)]
    try:
        y, yd, ydd = np.broadcast_arrays(*given)
    except ValueError:
        raise ShapeError(
            f"y, yd and ydd must have one shape, (p,) or (samples, p), got "
            f"{', '.join(str(a.shape) for a in given)}"
        ) from None
    chosen = coordinates(model, constraint(model, q0, np.zeros(model.nv)).K, independent)
    if not chosen.flat:
        raise LoopError(
            f"coordinate_motion cannot take {', '.join(map(repr, chosen.names))} of model "
            f"{model.name!r} as coordinates: velocity variables of a free or ball joint are not "
            f"the derivatives of its positions. Name other joints as independent; or move q0 by "
            f"model.integrate and close the loops with kt.loops.assemble"
        )
    if y.ndim not in (1, 2) or y.shape[-1] != len(chosen.names):
        raise ShapeError(
            f"y must have shape ({len(chosen.names)},) or (samples, {len(chosen.names)}) for the "
            f"coordinates {', '.join(map(repr, chosen.names))}, got {y.shape}"
        )
    positions, q = [], q0
    for sample in y.reshape(-1, y.shape[-1]):
        q = moved(model, q, sample - coordinate_values(model, q, chosen), chosen)
        positions.append(q)
    q = np.array(positions).reshape(*y.shape[:-1], model.nq)
    K = constraint(model, q, np.zeros(model.nv)).K
    basis = velocity_basis(model, q, K, chosen)
    qd = np.einsum("...np,...p->...n", basis.G, yd)
    products = coordinate_accelerations(model, q, qd, np.zeros(model.nv), chosen)
    wanted = np.concatenate([ydd - products, constraint(model, q, qd).k], axis=-1)
    return CoordinateMotion(q, qd, np.einsum("...nc,...c->...n", basis.inverse, wanted))
