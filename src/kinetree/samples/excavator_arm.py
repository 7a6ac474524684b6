"""An arm whose first joint is moved by a cylinder — RBDA §8.11."""

from math import atan2, cos, inf, radians, sin, sqrt

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
from kinetree.spatial import roty, xlt

__all__ = ["excavator"]


def excavator() -> Model:
    """The two-link arm of RBDA Figure 8.3, whose first link a hydraulic cylinder lifts.

    Bodies in the order of the figure: ``boom``, ``barrel`` and ``piston`` of the cylinder,
    ``stick``; loop joint ``rod_eye`` between piston and boom. Two degrees of freedom, driven by the
    cylinder and by a motor at the stick. With ``l1`` = 0.45 m between the pivots of boom and barrel
    and ``l2`` = 0.9 m from the boom's pivot to the eye, the figure's angle is ``theta1`` = 85° at
    q = 0, and ``d`` there is the length to which ``q3`` adds. The book gives no dimensions: these
    are of an excavator of two tonnes, rounded.
    """
    l1, l2, theta1, slope = 0.45, 0.9, radians(85), radians(-45)
    d = sqrt(l1**2 + l2**2 - 2 * l1 * l2 * cos(theta1))
    theta2 = atan2(l2 * sin(theta1), l2 * cos(theta1) - l1)
    boom, stick, height = 1.9, 1.1, 0.7
    robot = ModelBuilder("excavator")
    add_scenery(
        robot,
        box(1.4, 1.1, 0.3, at=(-0.5, 0, 0.3), color=DARK),
        box(0.25, 0.25, 0.5, at=(0.02, 0, 0.5), color=GOLD),
        box(0.9, 0.9, 0.8, at=(-0.7, 0, 0.85), color=GOLD),
        box(0.3, 0.14, 0.1, at=(l1 * cos(slope) - 0.08, 0, height + l1 * sin(slope)), color=GOLD),
    )
    add_body(
        robot, "boom",
        box(boom, 0.14, 0.18, mass=120.0, at=(boom / 2, 0, 0), color=GOLD),
        cylinder(0.03, 0.2, at=(l2, 0, 0), axis="y", color=DARK),
        cylinder(0.07, 0.18, axis="y", color=DARK),
        joint=Revolute("-y"),
        at=roty(-(slope + theta1)) @ xlt(0, 0, height),
        limits=Limits(-1.0, 0.8, 1, 30e3),
    )  # fmt: skip
    add_body(
        robot, "barrel", cylinder(0.045, 0.55, mass=15.0, at=(0.275, 0, 0), axis="x", color=DARK),
        joint=Revolute("-y"),
        at=roty(-(slope + theta2)) @ xlt(l1 * cos(slope), 0, height + l1 * sin(slope)),
        limits=Limits(-inf, inf, 1, 1e3),
    )  # fmt: skip
    add_body(
        robot, "piston",
        cylinder(0.025, 0.6, mass=9.0, at=(-0.3, 0, 0), axis="x", color=STEEL),
        on="barrel",
        joint=Prismatic("x"),
        at=(d, 0, 0),
        limits=Limits(-0.35, 0.3, 0.5, 60e3),
    )  # fmt: skip
    add_body(
        robot, "stick",
        box(stick, 0.1, 0.12, mass=55.0, at=(stick / 2, 0, 0), color=GOLD),
        box(0.3, 0.4, 0.25, mass=35.0, at=(stick + 0.1, 0, 0), color=DARK),
        cylinder(0.05, 0.16, axis="y", color=DARK),
        on="boom",
        joint=Revolute("-y"),
        at=roty(radians(115)) @ xlt(boom, 0, 0),
        limits=Limits(-0.7, 1.3, 1.5, 8e3),
    )  # fmt: skip
    robot.loop("rod_eye", predecessor="piston", successor="boom", joint=Revolute("-y"),
               successor_at=(l2, 0, 0))  # fmt: skip
    robot.frame("bucket", on="stick", at=(stick + 0.25, 0, 0))
    return with_motors(robot.posture("home").build(), ["piston_joint", "stick_joint"])
