"""Spatial vector algebra — RBDA chapter 2 and appendix A.

Angular part first. ``X = Plucker(E, r)`` takes coordinates from frame A to frame B. In separate
modules: ``planar`` vectors, ``axial_screw`` transforms, ``dense`` matrices, ``lie`` for the
notation of Lynch & Park, ``dense.swap_vector_order`` for those who put the linear part first.
"""

from kinetree.arguments import guard_module
from kinetree.errors import warn
from kinetree.spatial import axial_screw, dense, lie, planar
from kinetree.spatial.articulated_inertia import ArticulatedInertia, InverseInertia, dyadic
from kinetree.spatial.dense import swap_matrix_order, swap_vector_order
from kinetree.spatial.derivative import (
    apparent_derivative,
    carried_rate,
    classical_acceleration,
    point_acceleration,
    point_velocity,
    spatial_acceleration,
    transform_rate,
    true_derivative,
)
from kinetree.spatial.dyads import DualBasis, Dyadic, inertia_dyads
from kinetree.spatial.inertia import Inertia
from kinetree.spatial.lie import displacement_velocity, exp, log
from kinetree.spatial.screw import Screw, moment_about
from kinetree.spatial.transform import Plucker, rot, rotx, roty, rotz, rx, ry, rz, xlt
from kinetree.spatial.vector import Force, Motion, crf, crm, cross_force, cross_motion
from kinetree.spatial.vector3 import cross, skew, unskew

__all__ = [
    "ArticulatedInertia", "DualBasis", "Dyadic", "Force", "Inertia", "InverseInertia", "Motion",
    "Plucker", "Screw", "apparent_derivative", "axial_screw", "carried_rate",
    "classical_acceleration", "crf", "crm", "cross", "cross_force", "cross_motion", "dense",
    "displacement_velocity", "dyadic", "exp", "inertia_dyads", "lie", "log", "moment_about",
    "planar", "point_acceleration", "point_velocity", "rot", "rotx", "roty", "rotz", "rx", "ry",
    "rz", "skew", "spatial_acceleration", "swap_matrix_order", "swap_vector_order",
    "transform_rate", "true_derivative", "unskew", "xlt",
]  # fmt: skip

_DEPRECATED = {"order": "dense"}


def __getattr__(name):
    if name not in _DEPRECATED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = _DEPRECATED[name]
    message = f"kinetree.spatial.{name} is deprecated: use kinetree.spatial.{new}"
    warn(message, DeprecationWarning)
    return globals()[new]


guard_module(__name__)
