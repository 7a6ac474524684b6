"""Pendulums: the smallest interesting mechanisms. They swing in the x-z plane and hang at q = 0.

Dimensions are round numbers, so that results can be checked by hand.
"""

from math import inf, pi

from kinetree.joints import Prismatic, Revolute
from kinetree.model import Limits, Model, ModelBuilder, shapes
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

__all__ = ["cart_pole", "double_pendulum", "pendulum"]


def pendulum() -> Model:
    """A thin rod of 1 m and 0.2 kg with a bob of 1 kg at its end.

    Joint ``pivot``; frame ``tip`` in the middle of the bob.
    """
    bob = sphere(0.05, mass=1.0, at=(0, 0, -1), color=ORANGE)
    rod = cylinder(0.01, 1.0, at=(0, 0, -0.5))
    robot = ModelBuilder("pendulum")
    add_scenery(robot, box(0.1, 0.1, 0.04, at=(0, 0, 0.03), color=DARK))
    add_body(
        robot, "bob", rod, bob,
        inertia=shapes.rod(1.0, mass=0.2, at=(0, 0, -0.5)) + bob.inertia,
        joint=Revolute("y"),
        joint_name="pivot",
        limits=Limits(-inf, inf, 20, 25),
    )  # fmt: skip
    robot.frame("tip", on="bob", at=(0, 0, -1))
    return with_motors(_upright(robot, "pivot"))


def double_pendulum() -> Model:
    """Two slender rods of 1 m and 0.8 m, one below the other, 1 kg per metre.

    Joints ``shoulder`` and ``elbow``; frame ``tip`` at the end of the lower rod.
    """
    robot = ModelBuilder("double pendulum")
    add_scenery(robot, box(0.1, 0.1, 0.04, at=(0, 0, 0.04), color=DARK))
    add_body(
        robot, "upper", cylinder(0.02, 1.0, mass=1.0, at=(0, 0, -0.5), color=BLUE),
        joint=Revolute("y"),
        joint_name="shoulder",
        limits=Limits(-inf, inf, 20, 40),
    )  # fmt: skip
    add_body(
        robot, "lower", cylinder(0.02, 0.8, mass=0.8, at=(0, 0, -0.4), color=ORANGE),
        on="upper",
        joint=Revolute("y"),
        at=(0, 0, -1.0),
        joint_name="elbow",
        limits=Limits(-inf, inf, 20, 20),
    )  # fmt: skip
    robot.frame("tip", on="lower", at=(0, 0, -0.8))
    return with_motors(_upright(robot, "shoulder"))


def cart_pole() -> Model:
    """A cart of 1 kg on a rail along x with a pole of 0.1 kg that hangs from it.

    Joints ``rail``, which a motor drives, and ``pivot``; frame ``tip`` at the end of the pole.
    The task is to swing the pole up and balance it: posture ``upright``.
    """
    robot = ModelBuilder("cart-pole")
    add_scenery(robot, box(2.4, 0.03, 0.03, at=(0, 0, -0.065), color=DARK))
    add_body(
        robot, "cart", box(0.3, 0.2, 0.1, mass=1.0, color=BLUE),
        joint=Prismatic("x"),
        joint_name="rail",
        limits=Limits(-1, 1, 5, 20),
    )  # fmt: skip
    add_body(
        robot, "pole", cylinder(0.01, 0.6, mass=0.1, at=(0, 0, -0.3), color=ORANGE),
        sphere(0.02, color=STEEL),
        on="cart",
        joint=Revolute("y"),
        joint_name="pivot",
        limits=Limits(-inf, inf, 30, 1),
    )  # fmt: skip
    robot.frame("tip", on="pole", at=(0, 0, -0.6))
    return with_motors(_upright(robot, "pivot"), ["rail"])


def _upright(robot, joint):
    return robot.posture("home").posture("upright", q={joint: pi}).build()
