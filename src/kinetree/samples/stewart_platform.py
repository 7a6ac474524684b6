"""A platform on six legs."""

from math import cos, pi, radians, sin, sqrt

import numpy as np

from kinetree.joints import Free, Prismatic, Spherical, Universal
from kinetree.model import JointDynamics, Limits, Model, ModelBuilder
from kinetree.samples.solids import (
    BLUE,
    DARK,
    ORANGE,
    STEEL,
    add_body,
    add_scenery,
    box,
    cylinder,
    sphere,
    with_motors,
)
from kinetree.spatial import Plucker

__all__ = ["stewart"]

_BASE, _TOP, _HEIGHT = 0.7, 0.45, 0.8  # radii of the two circles of joints and their distance [m]
_SPREAD = radians(10)  # half the angle between the two joints of a pair
_PLATFORM, _BARREL, _ROD = 80.0, 6.0, 3.0  # masses [kg]
_STIFFNESS = 2e4  # of a leg [N/m]


def stewart() -> Model:
    """A Stewart–Gough platform: six legs with universal, prismatic and spherical joints.

    The platform hangs on the base by a free joint, ``platform_pose``, whose variables say where it
    is; the balls on top of the legs, ``leg1_ball`` … ``leg6_ball``, are the loop joints. That makes
    24 - 18 = 6 degrees of freedom, without redundant constraints. Every leg has a spring and a
    damper along its stroke, wound up so that the platform rests at q = 0 and rocks about it when it
    is pushed. Motors, too, act along the strokes.

    V. E. Gough and S. G. Whitehall (1962) and D. Stewart, "A platform with six degrees of freedom"
    (1965). Dimensions are ours, in the usual proportions of motion simulators.
    """
    pairs = [_ends(k) for k in range(6)]
    length, lean = _leg_size(pairs[0])
    barrel = cylinder(0.035, 0.5, mass=_BARREL, at=(0, 0, 0.25), color=DARK)
    rod = cylinder(0.02, 0.6, mass=_ROD, at=(0, 0, -0.3), color=STEEL)
    spring = JointDynamics(
        stiffness=_STIFFNESS, damping=200.0, rest=_thrust(length, lean) / _STIFFNESS
    )
    robot = ModelBuilder("stewart")
    add_scenery(robot, cylinder(_BASE + 0.1, 0.04, at=(0, 0, -0.06), color=DARK))
    add_body(
        robot, "platform",
        cylinder(_TOP + 0.06, 0.05, mass=_PLATFORM, at=(0, 0, 0.05), color=BLUE),
        box(0.12, 0.04, 0.02, at=(_TOP - 0.05, 0, 0.085), color=ORANGE),
        joint=Free(),
        at=(0, 0, _HEIGHT),
        joint_name="platform_pose",
    )  # fmt: skip
    for i, (foot, ball) in enumerate(pairs, start=1):
        add_body(
            robot, f"leg{i}_barrel", barrel, sphere(0.045, color=ORANGE),
            joint=Universal("xy"),
            at=_upright(foot, ball),
            joint_name=f"leg{i}_universal",
            limits=Limits([-1, -1], [1, 1], [5, 5], [100, 100]),
        )  # fmt: skip
        add_body(
            robot, f"leg{i}_rod", rod, sphere(0.035, color=ORANGE),
            on=f"leg{i}_barrel",
            joint=Prismatic("z"),
            at=(0, 0, length),
            joint_name=f"leg{i}_stroke",
            limits=Limits(-0.2, 0.2, 1, 2000),
            dynamics=spring,
        )  # fmt: skip
        robot.loop(
            f"leg{i}_ball",
            predecessor=f"leg{i}_rod",
            successor="platform",
            joint=Spherical(),
            successor_at=ball - np.array([0, 0, _HEIGHT]),
        )
    return with_motors(robot.posture("home").build())


def _ends(k):
    """Where leg ``k`` starts on the base and ends on the platform, both in base coordinates."""
    side = 1 if k % 2 == 0 else -1
    middle = (k // 2) * 2 * pi / 3
    foot, ball = middle + side * _SPREAD, middle + side * (pi / 3 - _SPREAD)
    return (
        np.array([_BASE * cos(foot), _BASE * sin(foot), 0]),
        np.array([_TOP * cos(ball), _TOP * sin(ball), _HEIGHT]),
    )


def _leg_size(ends):
    """Length of a leg and the cosine of its angle with the vertical."""
    foot, ball = ends
    length = sqrt(float((ball - foot) @ (ball - foot)))
    return length, _HEIGHT / length


def _upright(foot, ball):
    """The frame at ``foot`` with z towards ``ball`` and x horizontal."""
    z = (ball - foot) / np.linalg.norm(ball - foot)
    x = np.cross([0, 0, 1], z)
    x = x / np.linalg.norm(x)
    return Plucker(np.array([x, np.cross(z, x), z]), foot)


def _thrust(length, lean):
    """Force of each leg that carries the weight at q = 0: virtual work of lifting the platform."""
    tilt = (1 - lean**2) / length  # rise of a point of the leg, by its turn, per distance from foot
    lifted = _PLATFORM / 6 + _BARREL * 0.25 * tilt + _ROD * (1 - 0.3 * tilt)
    return 9.81 * lifted / lean
