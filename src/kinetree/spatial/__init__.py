"""Spatial vector algebra — RBDA chapter 2 and appendix A.

Angular part first. ``X = Plucker(E, r)`` takes coordinates from frame A to frame B.
"""

from kinetree.spatial.cross import crf, crm, cross_force, cross_motion
from kinetree.spatial.exponential import displacement_velocity, exp, log
from kinetree.spatial.inertia import ArticulatedInertia, Inertia, dyadic
from kinetree.spatial.transform import Plucker, rot, rotx, roty, rotz, rx, ry, rz, xlt
from kinetree.spatial.vector import Force, Motion
from kinetree.spatial.vector3 import cross, skew, unskew

__all__ = [
    "ArticulatedInertia",
    "Force",
    "Inertia",
    "Motion",
    "Plucker",
    "crf",
    "crm",
    "cross",
    "cross_force",
    "cross_motion",
    "displacement_velocity",
    "dyadic",
    "exp",
    "log",
    "rot",
    "rotx",
    "roty",
    "rotz",
    "rx",
    "ry",
    "rz",
    "skew",
    "unskew",
    "xlt",
]
