"""Joints: one kind per file, all behind ``jcalc`` — RBDA §4.4."""

from kinetree.joints.actuation import active_subspace_from_wrench
from kinetree.joints.base import AbstractJoint
from kinetree.joints.check import check_joint
from kinetree.joints.custom import CustomJoint
from kinetree.joints.cylindrical import Cylindrical
from kinetree.joints.euler import Euler
from kinetree.joints.exponential import Exponential
from kinetree.joints.fixed import Fixed
from kinetree.joints.free import Free
from kinetree.joints.helical import Helical
from kinetree.joints.planar import Planar
from kinetree.joints.prescribed import Prescribed, PrescribedInstant
from kinetree.joints.prismatic import Prismatic
from kinetree.joints.rack_and_pinion import RackAndPinion
from kinetree.joints.representatives import REPRESENTATIVES
from kinetree.joints.reversed import Reversed
from kinetree.joints.revolute import Revolute
from kinetree.joints.screw import Screw
from kinetree.joints.sphere_in_cylinder import SphereInCylinder
from kinetree.joints.spherical import Spherical
from kinetree.joints.translation import Translation
from kinetree.joints.universal import Universal

__all__ = [
    "REPRESENTATIVES",
    "AbstractJoint",
    "CustomJoint",
    "Cylindrical",
    "Euler",
    "Exponential",
    "Fixed",
    "Free",
    "Helical",
    "Planar",
    "Prescribed",
    "PrescribedInstant",
    "Prismatic",
    "RackAndPinion",
    "Reversed",
    "Revolute",
    "Screw",
    "SphereInCylinder",
    "Spherical",
    "Translation",
    "Universal",
    "active_subspace_from_wrench",
    "check_joint",
]
