"""The spatial cross products ``v×`` and ``v×*`` — RBDA §2.9, (2.31)–(2.34).

Both take the dense form (arrays of six, or three planar, coordinates) as well as typed vectors,
so that one algorithm text runs on either.
"""

import numpy as np

from kinetree.errors import SpatialTypeError
from kinetree.spatial import dense
from kinetree.spatial.vector import SpatialVector

__all__ = ["crf", "crm", "cross_force", "cross_motion"]


def crm(v, m):
    """``v × m``: rate of change of a motion vector ``m`` carried along at velocity ``v``."""
    if isinstance(v, np.ndarray):
        return dense.crm(v) @ m
    _refuse(m, "Force", "crm", "crf")
    return v.cross(m)


def crf(v, f):
    """``v ×* f``: rate of change of a force vector ``f`` carried along at velocity ``v``."""
    if isinstance(v, np.ndarray):
        return dense.crf(v) @ f
    _refuse(f, "Motion", "crf", "crm")
    return v.cross(f)


def _refuse(vector, kind, this, other):
    if isinstance(vector, SpatialVector) and type(vector).__name__.endswith(kind):
        raise SpatialTypeError(f"{this} got a {type(vector).__name__}; use {other} for it")


cross_motion, cross_force = crm, crf
