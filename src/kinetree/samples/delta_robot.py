"""A parallel robot that cannot tilt."""

from math import cos, hypot, pi, sin, sqrt

import numpy as np

from kinetree.joints import Free, Revolute, Spherical, Universal
from kinetree.model import Limits, Model, ModelBuilder
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

__all__ = ["delta"]

# ABB FlexPicker IRB 360-1/1600, from R. L. Williams II, "The delta parallel robot: kinematics
# solutions" (2016) [m]: w_B, u_P, L, l, h.
_HIP, _PLATE, _UPPER, _LOWER, _WIDTH = 0.164, 0.044, 0.524, 1.244, 0.131


def delta() -> Model:
    """A delta robot: three driven arms, each with a parallelogram of two rods, carry a plate.

    The plate can move along x, y and z but not turn. It hangs on the base by a free joint,
    ``plate_pose``, whose variables say where it is; each rod has a universal joint at the arm and a
    ball at the plate, the loop joint. That makes 21 - 18 = 3 degrees of freedom, without redundant
    constraints. At q = 0 the arms are horizontal; positive angles lower them.

    Dimensions of the ABB FlexPicker IRB 360-1/1600 as given in R. L. Williams II, "The delta
    parallel robot: kinematics solutions" (2016); masses are estimates for light arms.
    """
    inward = _HIP + _UPPER - _PLATE
    drop = sqrt(_LOWER**2 - inward**2)
    along = np.array([-inward, 0, -drop]) / _LOWER  # of a rod, in the frame of its arm
    across = np.array([0, 1, 0])
    tilt = np.array([np.cross(across, along), across, along])
    robot = ModelBuilder("delta")
    add_scenery(robot, cylinder(_HIP + 0.06, 0.06, at=(0, 0, 0.08), color=WHITE))
    add_body(
        robot, "plate",
        cylinder(hypot(_PLATE, _WIDTH / 2) + 0.01, 0.02, mass=0.5, color=BLUE),
        cylinder(0.015, 0.06, at=(0, 0, -0.04), color=DARK),
        joint=Free(),
        at=(0, 0, -drop),
        joint_name="plate_pose",
    )  # fmt: skip
    for i in (1, 2, 3):
        angle = (i - 1) * 2 * pi / 3
        turn = rotz(angle)
        add_scenery(robot, box(0.1, 0.1, 0.1, at=xlt(_HIP, 0, 0) @ turn, color=DARK))
        add_body(
            robot, f"arm{i}",
            cylinder(0.03, _UPPER, mass=1.2, at=(_UPPER / 2, 0, 0), axis="x", color=ORANGE),
            cylinder(0.015, _WIDTH, mass=0.2, at=(_UPPER, 0, 0), axis="y", color=STEEL),
            joint=Revolute("y"),
            at=xlt(_HIP, 0, 0) @ turn,
            limits=Limits(-0.7, 1.5, 20, 250),
        )  # fmt: skip
        for side, y in (("a", _WIDTH / 2), ("b", -_WIDTH / 2)):
            name = f"rod{i}{side}"
            add_body(
                robot, name,
                cylinder(0.008, _LOWER, mass=0.2, at=(0, 0, _LOWER / 2), color=DARK),
                sphere(0.016, color=STEEL),
                sphere(0.016, at=(0, 0, _LOWER), color=STEEL),
                on=f"arm{i}",
                joint=Universal("yx"),
                at=Plucker(tilt, np.array([_UPPER, y, 0])),
                limits=Limits([-2, -1], [2, 1], [20, 20], [10, 10]),
            )  # fmt: skip
            robot.loop(
                f"ball{i}{side}",
                predecessor=name,
                successor="plate",
                joint=Spherical(),
                at=(0, 0, _LOWER),
                successor_at=_turned(angle, _PLATE, y),
            )
    robot.frame("tool", on="plate", at=(0, 0, -0.07))
    return with_motors(robot.posture("home").build())


def _turned(angle, x, y):
    """A point of the plate, given in the frame of an arm."""
    return np.array([x * cos(angle) - y * sin(angle), x * sin(angle) + y * cos(angle), 0])
