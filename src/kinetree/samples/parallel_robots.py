"""Parallel robots: Delta, which cannot tilt, and Stewart, a platform on six legs."""

from math import cos, hypot, pi, radians, sin, sqrt

import numpy as np

from kinetree.joints import Free, Prismatic, Revolute, Spherical, Universal
from kinetree.model import JointDynamics, Limits, Model, ModelBuilder, geometry
from kinetree.samples.solids import (
    BLUE,
    DARK,
    ORANGE,
    STEEL,
    WHITE,
    add_body,
    add_scenery,
    box,
    cylinder,
    sphere,
    with_motors,
)
from kinetree.spatial import Plucker, rotz, xlt

# ABB FlexPicker IRB 360-1/1600, from R. L. Williams II, "The delta parallel robot: kinematics
# solutions" (2016) [m]: w_B, u_P, L, l, h.
_HIP, _PLATE, _UPPER, _LOWER, _WIDTH = 0.164, 0.044, 0.524, 1.244, 0.131
_INWARD = _HIP + _UPPER - _PLATE  # how far a rod goes inward and down at q = 0 [m]
_DROP = sqrt(_LOWER**2 - _INWARD**2)


def delta() -> Model:
    """A delta robot: three driven arms, each with a parallelogram of two rods, carry a plate.

    The plate can move along x, y and z but not turn. It hangs on the base by a free joint,
    ``plate_pose``, whose variables say where it is; each rod has a universal joint at the arm and a
    ball at the plate, the loop joint. That makes 21 - 18 = 3 degrees of freedom, without redundant
    constraints. At q = 0 the arms are horizontal; positive angles lower them.

    Dimensions of the ABB FlexPicker IRB 360-1/1600 as given in R. L. Williams II, "The delta
    parallel robot: kinematics solutions" (2016); masses are estimates for light arms.
    """
    robot = ModelBuilder("delta")
    add_scenery(robot, cylinder(_HIP + 0.06, 0.06, at=(0, 0, 0.08), color=WHITE))
    add_body(
        robot,
        "plate",
        cylinder(hypot(_PLATE, _WIDTH / 2) + 0.01, 0.02, mass=0.5, color=BLUE),
        cylinder(0.015, 0.06, at=(0, 0, -0.04), color=DARK),
        joint=Free(),
        at=(0, 0, -_DROP),
        joint_name="plate_pose",
    )
    for i in (1, 2, 3):
        angle = (i - 1) * 2 * pi / 3
        turn = rotz(angle)
        add_scenery(robot, box(0.1, 0.1, 0.1, at=xlt(_HIP, 0, 0) @ turn, color=DARK))
        add_body(
            robot,
            f"arm{i}",
            cylinder(0.03, _UPPER, mass=1.2, at=(_UPPER / 2, 0, 0), axis="x", color=ORANGE),
            cylinder(0.015, _WIDTH, mass=0.2, at=(_UPPER, 0, 0), axis="y", color=STEEL),
            joint=Revolute("y"),
            at=xlt(_HIP, 0, 0) @ turn,
            limits=Limits(-0.7, 1.5, 20, 250),
        )
        for side, y in (("a", _WIDTH / 2), ("b", -_WIDTH / 2)):
            _delta_rod(robot, f"{i}{side}", f"arm{i}", y)
            robot.loop(
                f"ball{i}{side}",
                predecessor=f"rod{i}{side}",
                successor="plate",
                joint=Spherical(),
                at=(0, 0, _LOWER),
                successor_at=_turn(angle, _PLATE, y),
            )
    robot.frame("tool", on="plate", at=(0, 0, -0.07))
    return with_motors(robot.posture("home").build())


def _delta_rod(robot, name, arm, y):
    """Add a rod of a delta robot's parallelogram."""
    along = np.array([-_INWARD, 0, -_DROP]) / _LOWER  # of a rod, in the frame of its arm
    across = np.array([0, 1, 0])
    tilt = np.array([np.cross(across, along), across, along])
    add_body(
        robot,
        f"rod{name}",
        cylinder(0.008, _LOWER, mass=0.2, at=(0, 0, _LOWER / 2), color=DARK),
        sphere(0.016, color=STEEL),
        sphere(0.016, at=(0, 0, _LOWER), color=STEEL),
        on=arm,
        joint=Universal("yx"),
        at=Plucker(tilt, np.array([_UPPER, y, 0])),
        limits=Limits([-2, -1], [2, 1], [20, 20], [10, 10]),
        touches=False,  # at the plate, the rods of two arms meet
    )
    free = geometry.Cylinder(0.008, _LOWER - 0.1)
    robot.geometry(free, on=f"rod{name}", at=(0, 0, _LOWER / 2), visual=False)


def _turn(angle, x, y):
    """Position on the delta robot's plate, given in the frame of an arm."""
    return np.array([x * cos(angle) - y * sin(angle), x * sin(angle) + y * cos(angle), 0])


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
    (1965). Dimensions are our own, in the usual proportions of motion simulators.
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
        robot,
        "platform",
        cylinder(_TOP + 0.06, 0.05, mass=_PLATFORM, at=(0, 0, 0.05), color=BLUE),
        box(0.12, 0.04, 0.02, at=(_TOP - 0.05, 0, 0.085), color=ORANGE),
        joint=Free(),
        at=(0, 0, _HEIGHT),
        joint_name="platform_pose",
    )
    for i, (foot, ball) in enumerate(pairs, start=1):
        add_body(
            robot,
            f"leg{i}_barrel",
            barrel,
            sphere(0.045, color=ORANGE),
            joint=Universal("xy"),
            at=_upright(foot, ball),
            joint_name=f"leg{i}_universal",
            limits=Limits([-1, -1], [1, 1], [5, 5], [100, 100]),
        )
        add_body(
            robot,
            f"leg{i}_rod",
            rod,
            sphere(0.035, color=ORANGE),
            on=f"leg{i}_barrel",
            joint=Prismatic("z"),
            at=(0, 0, length),
            joint_name=f"leg{i}_stroke",
            limits=Limits(-0.2, 0.2, 1, 2000),
            dynamics=spring,
        )
        robot.loop(
            f"leg{i}_ball",
            predecessor=f"leg{i}_rod",
            successor="platform",
            joint=Spherical(),
            successor_at=ball - np.array([0, 0, _HEIGHT]),
        )
    return with_motors(robot.posture("home").build())


def _ends(k):
    """Ends of leg ``k`` on base and platform, in base coordinates."""
    side = 1 if k % 2 == 0 else -1
    middle = (k // 2) * 2 * pi / 3
    foot, ball = middle + side * _SPREAD, middle + side * (pi / 3 - _SPREAD)
    return (
        np.array([_BASE * cos(foot), _BASE * sin(foot), 0]),
        np.array([_TOP * cos(ball), _TOP * sin(ball), _HEIGHT]),
    )


def _leg_size(ends):
    """Length of a leg and cosine of its angle with the vertical."""
    foot, ball = ends
    length = sqrt(float((ball - foot) @ (ball - foot)))
    return length, _HEIGHT / length


def _upright(foot, ball):
    """Transform to the frame at ``foot`` with z towards ``ball`` and x horizontal."""
    z = (ball - foot) / np.linalg.norm(ball - foot)
    x = np.cross([0, 0, 1], z)
    x = x / np.linalg.norm(x)
    return Plucker(np.array([x, np.cross(z, x), z]), foot)


def _thrust(length, lean):
    """Force of each leg that carries the weight at q = 0."""
    tilt = (1 - lean**2) / length  # rise of a point of the leg, by its turn, per distance from foot
    lifted = _PLATFORM / 6 + _BARREL * 0.25 * tilt + _ROD * (1 - 0.3 * tilt)
    return 9.81 * lifted / lean
