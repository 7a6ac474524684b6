"""Spatial vector algebra — RBDA chapter 2 and appendix A.

Angular part first. ``X = Plucker(E, r)`` takes coordinates from frame A to frame B. In modules of
their own: ``planar`` vectors, ``axial_screw`` transforms, ``dense`` matrices, ``lie`` for the
notation of Lynch & Park, ``order`` for those who put the linear part first.
"""

from kinetree.spatial import axial_screw, dense, lie, order, planar
from kinetree.spatial.acceleration import (
    classical_acceleration,
    point_acceleration,
    point_velocity,
    spatial_acceleration,
)
from kinetree.spatial.articulated_inertia import ArticulatedInertia, dyadic
from kinetree.spatial.basis import DualBasis
from kinetree.spatial.cross import crf, crm, cross_force, cross_motion
from kinetree.spatial.derivative import (
    apparent_derivative,
    carried_rate,
    transform_rate,
    true_derivative,
)
from kinetree.spatial.dyads import Dyadic, inertia_dyads
from kinetree.spatial.exponential import displacement_velocity, exp, log
from kinetree.spatial.inertia import Inertia
from kinetree.spatial.inverse_inertia import InverseInertia
from kinetree.spatial.order import swap_matrix_order, swap_vector_order
from kinetree.spatial.screw import Screw, moment_about
from kinetree.spatial.transform import Plucker, rot, rotx, roty, rotz, rx, ry, rz, xlt
from kinetree.spatial.vector import Force, Motion
from kinetree.spatial.vector3 import cross, skew, unskew

__all__ = [
    "ArticulatedInertia",
    "DualBasis",
    "Dyadic",
    "Force",
    "Inertia",
    "InverseInertia",
    "Motion",
    "Plucker",
    "Screw",
    "apparent_derivative",
    "axial_screw",
    "carried_rate",
    "classical_acceleration",
    "crf",
    "crm",
    "cross",
    "cross_force",
    "cross_motion",
    "dense",
    "displacement_velocity",
    "dyadic",
    "exp",
    "inertia_dyads",
    "lie",
    "log",
    "moment_about",
    "order",
    "planar",
    "point_acceleration",
    "point_velocity",
    "rot",
    "rotx",
    "roty",
    "rotz",
    "rx",
    "ry",
    "rz",
    "skew",
    "spatial_acceleration",
    "swap_matrix_order",
    "swap_vector_order",
    "transform_rate",
    "true_derivative",
    "unskew",
    "xlt",
]
