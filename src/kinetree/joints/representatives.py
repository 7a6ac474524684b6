"""One or more instances of every kind of joint, for tests that should meet them all."""

from kinetree.joints.cylindrical import Cylindrical
from kinetree.joints.euler import Euler
from kinetree.joints.exponential import Exponential
from kinetree.joints.fixed import Fixed
from kinetree.joints.free import Free
from kinetree.joints.helical import Helical
from kinetree.joints.planar import Planar
from kinetree.joints.prismatic import Prismatic
from kinetree.joints.rack_and_pinion import RackAndPinion
from kinetree.joints.reversed import Reversed
from kinetree.joints.revolute import Revolute
from kinetree.joints.screw import Screw
from kinetree.joints.sphere_in_cylinder import SphereInCylinder
from kinetree.joints.spherical import Spherical
from kinetree.joints.translation import Translation
from kinetree.joints.universal import Universal

__all__ = ["REPRESENTATIVES"]

REPRESENTATIVES = (
    Fixed(),
    *(Revolute(axis) for axis in ("x", "y", "z", "-y", (1.0, 2.0, -3.0))),
    *(Prismatic(axis) for axis in ("x", "-y", "z", (2.0, -1.0, 2.0))),
    Helical("z", pitch=0.1),
    Helical((1.0, -1.0, 0.5), pitch=-0.2),
    Screw((0.6, 0.0, 0.8, 0.3, -0.2, 0.1)),
    Cylindrical("z"),
    Cylindrical((-1.0, 0.4, 2.0)),
    Universal("xy"),
    Universal("zy"),
    RackAndPinion(0.3),
    Planar("z"),
    Planar((0.5, 1.0, -1.0)),
    Planar("z", translation="child"),
    Spherical(),
    Euler("zyx"),
    Euler("zxz"),
    Exponential(),
    Translation(),
    SphereInCylinder("z"),
    SphereInCylinder((1.0, 2.0, 2.0)),
    Free(),
    Free(translation="child"),
    Reversed(RackAndPinion(0.2)),
    Reversed(Planar("y")),
    Reversed(Spherical()),
    Reversed(Free()),
)
