"""Arms that cylinders move: an excavator — RBDA §8.11 —, and the front of a wheel loader."""

from math import atan2, cos, hypot, inf, radians, sin, sqrt
from typing import NamedTuple

import numpy as np

from kinetree.joints import Prismatic, Revolute
from kinetree.model import Limits, Model, ModelBuilder
from kinetree.samples.solids import (
    DARK,
    GOLD,
    STEEL,
    add_body,
    add_scenery,
    box,
    cylinder,
    with_motors,
)
from kinetree.spatial import Inertia, roty, xlt


def excavator() -> Model:
    """The two-link arm of RBDA Figure 8.3, whose first link a hydraulic cylinder lifts.

    Bodies in the order of the figure: ``boom``, ``barrel`` and ``piston`` of the cylinder,
    ``stick``; loop joint ``rod_eye`` between piston and boom. Two degrees of freedom, driven by the
    cylinder and by a motor at the stick. With ``l1`` = 0.45 m between the pivots of boom and barrel
    and ``l2`` = 0.9 m from the boom's pivot to the eye, the figure's angle is ``theta1`` = 85° at
    q = 0, and ``d`` there is the length to which ``q3`` adds. The book gives no dimensions: these
    are of an excavator of two tonnes, rounded.
    """
    l1, l2, theta1, tilt = 0.45, 0.9, radians(85), radians(-45)
    boom, stick, height = 1.9, 1.1, 0.7
    barrel_pivot = l1 * cos(tilt), 0, height + l1 * sin(tilt)
    robot = ModelBuilder("excavator")
    add_scenery(
        robot,
        box(1.4, 1.1, 0.3, at=(-0.5, 0, 0.3), color=DARK),
        box(0.25, 0.25, 0.5, at=(0.02, 0, 0.5), color=GOLD),
        box(0.9, 0.9, 0.8, at=(-0.7, 0, 0.85), color=GOLD),
        box(0.3, 0.14, 0.1, at=(barrel_pivot[0] - 0.08, *barrel_pivot[1:]), color=GOLD),
    )
    add_body(
        robot,
        "boom",
        box(boom, 0.14, 0.18, mass=120.0, at=(boom / 2, 0, 0), color=GOLD),
        cylinder(0.03, 0.2, at=(l2, 0, 0), axis="y", color=DARK),
        cylinder(0.07, 0.18, axis="y", color=DARK),
        joint=Revolute("-y"),
        at=roty(-(tilt + theta1)) @ xlt(0, 0, height),
        limits=Limits(-1.0, 0.8, 1, 30e3),
    )
    d = sqrt(l1**2 + l2**2 - 2 * l1 * l2 * cos(theta1))
    theta2 = atan2(l2 * sin(theta1), l2 * cos(theta1) - l1)
    _hydraulic_cylinder(robot, roty(-(tilt + theta2)) @ xlt(*barrel_pivot), d)
    add_body(
        robot,
        "stick",
        box(stick, 0.1, 0.12, mass=55.0, at=(stick / 2, 0, 0), color=GOLD),
        box(0.3, 0.4, 0.25, mass=35.0, at=(stick + 0.1, 0, 0), color=DARK),
        cylinder(0.05, 0.16, axis="y", color=DARK),
        on="boom",
        joint=Revolute("-y"),
        at=roty(radians(115)) @ xlt(boom, 0, 0),
        limits=Limits(-0.7, 1.3, 1.5, 8e3),
    )
    robot.loop(
        "rod_eye",
        predecessor="piston",
        successor="boom",
        joint=Revolute("-y"),
        successor_at=(l2, 0, 0),
    )
    robot.frame("bucket", on="stick", at=(stick + 0.25, 0, 0))
    return with_motors(robot.posture("home").build(), ["piston_joint", "stick_joint"])


def _hydraulic_cylinder(robot, at, length):
    """Add a hydraulic cylinder: barrel and piston."""
    add_body(
        robot,
        "barrel",
        cylinder(0.045, 0.55, mass=15.0, at=(0.275, 0, 0), axis="x", color=DARK),
        joint=Revolute("-y"),
        at=at,
        limits=Limits(-inf, inf, 1, 1e3),
    )
    add_body(
        robot,
        "piston",
        cylinder(0.025, 0.6, mass=9.0, at=(-0.3, 0, 0), axis="x", color=STEEL),
        on="barrel",
        joint=Prismatic("x"),
        at=(length, 0, 0),
        limits=Limits(-0.35, 0.3, 0.5, 60e3),
    )


_LIFT_PIN, _TILT_PIN = (0.2, -0.6), (0.1, 0.55)  # of the cylinders on the frame
_BOOM_EYE, _BELLCRANK_PIN, _BUCKET_PIN = (1.2, -0.1), (1.4, 0.4), (2.6, -0.2)  # on the boom
_UPPER, _LOWER, _BUCKET_EYE = (0.0, 0.5), (0.0, -0.45), (-0.05, 0.4)
_BOOM, _BELLCRANK, _BUCKET = radians(-15), radians(5), radians(20)  # bellcrank, bucket on the boom


def loader() -> Model:
    """A loader linkage like that of Spencer's example (§4.5): 8 bodies, 3 loops, mobility 2.

    Bodies ``boom``, ``lift_barrel`` and ``lift_piston`` of the cylinder that raises it,
    ``bellcrank``, ``link``, ``bucket``, and ``tilt_barrel`` and ``tilt_piston`` of the cylinder
    that turns the bellcrank and, through the link, the bucket. Loop joints ``lift_eye``,
    ``link_eye`` and ``tilt_eye``. At q = 0 the boom points 15° down, and strokes count from there.
    The thesis prints no dimensions: these are our own, for a machine of about ten tonnes.
    """
    boom = _Placed((0.0, 0.0), _BOOM)
    bellcrank = _Placed(boom.point(_BELLCRANK_PIN), _BOOM + _BELLCRANK)
    bucket = _Placed(boom.point(_BUCKET_PIN), _BOOM + _BUCKET)
    lift, lift_stroke = _toward(_LIFT_PIN, boom.point(_BOOM_EYE))
    tilt, tilt_stroke = _toward(_TILT_PIN, bellcrank.point(_UPPER))
    link, length = _toward(bellcrank.point(_LOWER), bucket.point(_BUCKET_EYE))

    robot = ModelBuilder("loader")
    add_scenery(robot, box(0.9, 0.5, 1.5, at=(-0.45, 0, -0.1), color=DARK))
    _link(robot, "boom", boom, _Bar(2.6, 900, 500, (1.3, 0.05)), color=GOLD)
    _link(robot, "lift_barrel", lift, _BARREL)
    _piston(robot, "lift", lift_stroke)
    on_boom = _Placed(_BELLCRANK_PIN, _BELLCRANK)
    upright = _Bar(0.95, 150, 12, (0, 0.02), upright=True)
    _link(robot, "bellcrank", on_boom, upright, on="boom", color=GOLD)
    on_bellcrank = _Placed(_LOWER, link.angle - bellcrank.angle)
    _link(robot, "link", on_bellcrank, _Bar(length, 40, 2, (length / 2, 0)), on="bellcrank")
    on_boom, shovel = _Placed(_BUCKET_PIN, _BUCKET), _Bar(1.0, 700, 250, (0.5, 0.1))
    _link(robot, "bucket", on_boom, shovel, on="boom", color=STEEL)
    _link(robot, "tilt_barrel", tilt, _BARREL)
    _piston(robot, "tilt", tilt_stroke)

    _eye(robot, "lift_eye", ("lift_piston", None), ("boom", _BOOM_EYE))
    _eye(robot, "link_eye", ("link", (length, 0.0)), ("bucket", _BUCKET_EYE))
    _eye(robot, "tilt_eye", ("tilt_piston", None), ("bellcrank", _UPPER))
    motors = ["lift_piston_joint", "tilt_piston_joint"]
    return with_motors(robot.posture("home").build(), motors)


class _Placed:
    """A part in the plane: where its frame is, and its direction."""

    def __init__(self, origin, angle):
        self.origin, self.angle = origin, angle

    def point(self, place):
        """Position in the plane of a point of the placed part."""
        (x, z), c, s = place, cos(self.angle), sin(self.angle)
        return self.origin[0] + c * x - s * z, self.origin[1] + s * x + c * z


def _toward(start, end):
    """Part placed from one point towards another, and their distance."""
    x, z = end[0] - start[0], end[1] - start[1]
    return _Placed(start, atan2(z, x)), hypot(x, z)


def _in_plane(place):
    """Point (x, 0, z) of a planar position."""
    return place[0], 0, place[1]


class _Bar(NamedTuple):
    """A flat part with its moment of inertia about the mass centre, ``(x, z)`` in its frame."""

    length: float
    mass: float
    moment: float
    center: tuple[float, float]
    upright: bool = False

    def solid(self, color):
        """Box solid that is drawn for the bar."""
        if self.upright:
            return box(0.12, 0.2, self.length, at=(0, 0, 0), color=color)
        return box(self.length, 0.2, 0.12, at=(self.length / 2, 0, self.center[1]), color=color)


_BARREL = _Bar(0.7, 60, 5, (0.35, 0))


def _link(robot, name, placed, bar, *, on=None, color=DARK):
    """Add a part on a pin, placed in the plane of its parent."""
    add_body(
        robot,
        name,
        bar.solid(color),
        inertia=_flat(bar.mass, bar.moment, bar.center),
        on=on,
        joint=Revolute("-y"),
        at=roty(-placed.angle) @ xlt(*_in_plane(placed.origin)),
        limits=Limits(-inf, inf, 2, 1e6),
    )


def _eye(robot, name, first, second):
    """Add a pin that closes a loop between two bodies."""
    robot.loop(
        name,
        predecessor=first[0],
        successor=second[0],
        joint=Revolute("-y"),
        at=None if first[1] is None else _in_plane(first[1]),
        successor_at=_in_plane(second[1]),
    )


def _piston(robot, name, stroke):
    """Add the piston of a cylinder, with its frame at the rod's eye."""
    add_body(
        robot,
        f"{name}_piston",
        cylinder(0.04, 0.6, at=(-0.3, 0, 0), axis="x", color=STEEL),
        inertia=_flat(50, 4, (-0.3, 0)),
        on=f"{name}_barrel",
        joint=Prismatic("x"),
        at=(stroke, 0, 0),
        limits=Limits(-0.4, 0.4, 0.5, 5e5),
    )


def _flat(mass, moment, center):
    """Inertia of a part that moves in the plane only."""
    about = np.diag([moment / 10, moment, moment])
    return Inertia.from_mass_center(mass, np.array(_in_plane(center), dtype=float), about)
