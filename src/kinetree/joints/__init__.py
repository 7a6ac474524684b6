"""Joints: one class per kind, all behind ``jcalc`` — RBDA §4.4.

To add a kind, write its class and add it to ``KINDS`` here.
"""

from kinetree.arguments import guard_module
from kinetree.errors import JointError
from kinetree.joints.axis import active_subspace_from_wrench
from kinetree.joints.base import AbstractJoint
from kinetree.joints.check import check_joint
from kinetree.joints.custom import CustomJoint
from kinetree.joints.euler import Euler, Universal
from kinetree.joints.fixed import Fixed
from kinetree.joints.free import Free
from kinetree.joints.one_axis import Cylindrical, Helical, Prismatic, Revolute, Screw, Translation
from kinetree.joints.planar import Planar
from kinetree.joints.prescribed import Prescribed, PrescribedInstant
from kinetree.joints.rack_and_pinion import RackAndPinion
from kinetree.joints.reversed import Reversed
from kinetree.joints.spherical import Exponential, SphereInCylinder, Spherical

__all__ = [
    "KINDS", "REPRESENTATIVES", "AbstractJoint", "CustomJoint", "Cylindrical", "Euler",
    "Exponential", "Fixed", "Free", "Helical", "Planar", "Prescribed", "PrescribedInstant",
    "Prismatic", "RackAndPinion", "Reversed", "Revolute", "Screw", "SphereInCylinder", "Spherical",
    "Translation", "Universal", "active_subspace_from_wrench", "check_joint", "known_joints",
    "register",
]  # fmt: skip

KINDS: tuple[type[AbstractJoint], ...] = (
    Fixed, Revolute, Prismatic, Helical, Screw, Cylindrical, Universal, RackAndPinion, Planar,
    Spherical, Euler, Exponential, Translation, SphereInCylinder, Free, Reversed, CustomJoint,
    Prescribed, PrescribedInstant,
)  # fmt: skip
"""All kinds of joint."""

REPRESENTATIVES: tuple[AbstractJoint, ...] = tuple(j for kind in KINDS for j in kind.examples())
"""One or more instances of every kind of joint, for tests that should meet them all."""

_registered: list[type[AbstractJoint]] = []


def register(kind: type[AbstractJoint]) -> type[AbstractJoint]:
    """Class decorator: register a user-defined joint class, so that model files can name it.

    @kt.joints.register
    @dataclass(frozen=True)
    class Parabola(kt.joints.AbstractJoint): ...
    """
    for other in known_joints():
        if other.spelling == kind.spelling and other.__qualname__ != kind.__qualname__:
            raise JointError(
                f"joint class {kind.__name__} cannot be registered: files call {other.__name__} "
                f"{kind.spelling!r} already; give it another attribute spelling"
            )
    _registered[:] = [k for k in _registered if k.spelling != kind.spelling] + [kind]
    return kind


def known_joints() -> tuple[type[AbstractJoint], ...]:
    """Joint classes that model files may name: kinetree's and registered ones."""
    return (*KINDS, *_registered)


guard_module(__name__)
