"""Pendulums and spinning bodies: the smallest interesting mechanisms.

Pendulums swing in the x-z plane and hang at q = 0. Dimensions are round numbers, so that
results can be checked by hand.
"""

from math import cos, inf, pi, sin

from kinetree.joints import Prismatic, Revolute
from kinetree.model import Limits, MechanismGraph, Model, ModelBuilder, shapes
from kinetree.samples.solids import (
    BLUE,
    DARK,
    GOLD,
    ORANGE,
    STEEL,
    WHITE,
    add_body,
    add_scenery,
    box,
    capsule,
    cylinder,
    inertia_of,
    sphere,
    with_motors,
    with_posture,
)
from kinetree.spatial import rotx, rotz, xlt


def pendulum() -> Model:
    """A thin rod of 1 m and 0.2 kg with a bob of 1 kg at its end.

    Joint ``pivot``; frame ``tip`` in the middle of the bob.
    """
    bob = sphere(0.05, mass=1.0, at=(0, 0, -1), color=ORANGE)
    rod = cylinder(0.01, 1.0, at=(0, 0, -0.5))
    robot = ModelBuilder("pendulum")
    add_scenery(robot, box(0.1, 0.1, 0.04, at=(0, 0, 0.03), color=DARK))
    add_body(
        robot,
        "bob",
        rod,
        bob,
        inertia=shapes.rod(1.0, mass=0.2, at=(0, 0, -0.5)) + bob.inertia,
        joint=Revolute("y"),
        joint_name="pivot",
        limits=Limits(-inf, inf, 20, 25),
    )
    robot.frame("tip", on="bob", at=(0, 0, -1))
    return with_motors(_upright(robot, "pivot"))


def double_pendulum() -> Model:
    """Two slender rods of 1 m and 0.8 m, one below the other, 1 kg per metre.

    Joints ``shoulder`` and ``elbow``; frame ``tip`` at the end of the lower rod.
    """
    robot = ModelBuilder("double pendulum")
    add_scenery(robot, box(0.1, 0.1, 0.04, at=(0, 0, 0.04), color=DARK))
    add_body(
        robot,
        "upper",
        cylinder(0.02, 1.0, mass=1.0, at=(0, 0, -0.5), color=BLUE),
        joint=Revolute("y"),
        joint_name="shoulder",
        limits=Limits(-inf, inf, 20, 40),
    )
    add_body(
        robot,
        "lower",
        cylinder(0.02, 0.8, mass=0.8, at=(0, 0, -0.4), color=ORANGE),
        on="upper",
        joint=Revolute("y"),
        at=(0, 0, -1.0),
        joint_name="elbow",
        limits=Limits(-inf, inf, 20, 20),
    )
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
        robot,
        "cart",
        box(0.3, 0.2, 0.1, mass=1.0, color=BLUE),
        joint=Prismatic("x"),
        joint_name="rail",
        limits=Limits(-1, 1, 5, 20),
    )
    add_body(
        robot,
        "pole",
        cylinder(0.01, 0.6, mass=0.1, at=(0, 0, -0.3), color=ORANGE),
        sphere(0.02, color=STEEL),
        on="cart",
        joint=Revolute("y"),
        joint_name="pivot",
        limits=Limits(-inf, inf, 30, 1),
    )
    robot.frame("tip", on="pole", at=(0, 0, -0.6))
    return with_motors(_upright(robot, "pivot"), ["rail"])


def _upright(robot, joint):
    """Model with a posture in which the pendulum stands upright."""
    return robot.posture("home").posture("upright", q={joint: pi}).build()


# --- Spinning bodies: on gimbals, and in free fall -----------------------------------------------


def gyroscope() -> Model:
    """A disc that spins in two gimbals, with a weight that makes it precess.

    Joints ``outer`` about z, ``inner`` about x, ``spin`` about y, at right angles at q = 0; frame
    ``weight`` on the inner gimbal, 0.1 kg that is 0.13 m from the centre; posture ``spinning``: the
    rotor at 200 rad/s. Round numbers of the size of a gyroscope for lectures.
    """
    model = ModelBuilder("gyroscope")
    add_scenery(
        model,
        cylinder(0.11, 0.02, at=(0, 0, -0.29), color=DARK),
        cylinder(0.012, 0.12, at=(0, 0, -0.22), color=DARK),
    )
    add_body(
        model,
        "outer_gimbal",
        *_ring(0.16, "y", STEEL),
        inertia=shapes.cylinder_shell(0.16, 0.012, mass=0.4, axis="y"),
        joint=Revolute("z"),
        joint_name="outer",
        limits=Limits(-inf, inf, 50, 5),
    )
    weight = sphere(0.02, mass=0.1, at=(0, 0.13, 0), color=ORANGE)
    add_body(
        model,
        "inner_gimbal",
        *_ring(0.13, "z", GOLD),
        weight,
        cylinder(0.006, 0.32, axis="x", color=DARK),
        inertia=shapes.cylinder_shell(0.13, 0.012, mass=0.3) + weight.inertia,
        on="outer_gimbal",
        joint=Revolute("x"),
        joint_name="inner",
        limits=Limits(-inf, inf, 50, 5),
    )
    add_body(
        model,
        "rotor",
        cylinder(0.1, 0.02, mass=2.0, axis="y", color=BLUE),
        box(0.06, 0.022, 0.06, at=(0.05, 0, 0), color=WHITE),
        cylinder(0.006, 0.26, axis="y", color=DARK),
        on="inner_gimbal",
        joint=Revolute("y"),
        joint_name="spin",
        limits=Limits(-inf, inf, 1000, 2),
    )
    model.frame("weight", on="inner_gimbal", at=(0, 0.13, 0))
    model.posture("home").posture("spinning", qd={"spin": 200.0})
    return with_motors(model.build(), ["spin"])


def _ring(radius, axis, color):
    """Solids of a thin ring about an axis."""
    count = 24
    side = 2 * radius * sin(pi / count)
    upright = rotx(pi / 2) if axis == "y" else rotx(0)
    rods = []
    for k in range(count):
        angle = 2 * pi * k / count
        at = rotz(angle + pi / 2) @ xlt(radius * cos(angle), radius * sin(angle), 0)
        rods.append(capsule(0.006, side, at=at @ upright, axis="x", color=color))
    return rods


def satellite() -> Model:
    """A satellite with a dish on a hinge, floating without gravity — RBDA Figure 4.1.

    The book gives no dimensions: these are our own. A motor turns the dish.
    """
    bus = [
        box(1.0, 1.2, 1.5, mass=300.0, color=GOLD),
        box(0.8, 2.4, 0.03, at=(0, 1.9, 0), color=BLUE),
        box(0.8, 2.4, 0.03, at=(0, -1.9, 0), color=BLUE),
    ]
    dish = [
        cylinder(0.8, 0.04, at=(0, 0, 0.3), color=WHITE),
        cylinder(0.05, 0.3, at=(0, 0, 0.15), color=STEEL),
        cylinder(0.02, 0.4, at=(0, 0, 0.5), color=DARK),
    ]
    graph = MechanismGraph("satellite", base_name="planet", gravity=(0, 0, 0))
    graph.body("bus", inertia=inertia_of(bus))
    graph.body("dish", inertia=shapes.disc(0.8, mass=20.0, at=(0, 0, 0.3)))
    add_scenery(graph, *bus, on="bus")
    add_scenery(graph, *dish, on="dish")
    graph.joint(
        "hinge",
        Revolute("x"),
        predecessor="bus",
        successor="dish",
        at=(0, 0, 0.8),
        limits=Limits(-1.3, 1.3, 0.2, 5),
    )
    model = graph.float_unconnected("bus").to_model()
    return with_posture(with_motors(model), "home", {"hinge": 0.4})
