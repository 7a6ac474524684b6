"""Joints: one kind per file, all behind ``jcalc`` — RBDA §4.4."""

from kinetree.joints.base import AbstractJoint
from kinetree.joints.fixed import Fixed
from kinetree.joints.free import Free
from kinetree.joints.prismatic import Prismatic
from kinetree.joints.revolute import Revolute
from kinetree.joints.spherical import Spherical

__all__ = ["AbstractJoint", "Fixed", "Free", "Prismatic", "Revolute", "Spherical"]
