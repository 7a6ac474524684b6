"""Robots with legs: a floating base and simple shapes. x is forward, y left, z up."""

from math import cos

from kinetree.joints import Free, Planar, Prismatic, Revolute
from kinetree.model import JointDynamics, Limits, Model, ModelBuilder, geometry
from kinetree.samples.solids import (
    BLUE,
    DARK,
    GOLD,
    ORANGE,
    WHITE,
    add_body,
    box,
    capsule,
    cylinder,
    sphere,
    with_motors,
)

__all__ = ["hopping_leg", "quadruped"]


def quadruped() -> Model:
    """A dog-sized robot: three joints in each leg, 12 kg, feet 0.4 m below the trunk.

    Dimensions, mass and limits rounded from those published for the Unitree A1. Inertias are those
    of the shapes.

    Joints ``root``, then ``<leg>_hip_joint``, ``<leg>_thigh_joint`` and ``<leg>_shank_joint`` for
    the legs ``front_left``, ``front_right``, ``rear_left``, ``rear_right``; frames ``<leg>_foot``;
    posture ``home``: standing on the ground with its knees bent. At q = 0 the legs are stretched
    out, which the knees' limits do not allow.
    """
    robot = ModelBuilder("quadruped")
    add_body(
        robot, "trunk", box(0.38, 0.16, 0.12, mass=6.0, color=WHITE),
        box(0.05, 0.12, 0.08, at=(0.21, 0, 0.01), color=DARK),
        joint=Free(),
        joint_name="root",
    )  # fmt: skip
    for end, x in (("front", 0.18), ("rear", -0.18)):
        for side, y in (("left", 1), ("right", -1)):
            _leg(robot, f"{end}_{side}", x, y)
    legs = [f"{end}_{side}" for end in ("front", "rear") for side in ("left", "right")]
    home = {f"{leg}_thigh_joint": 0.8 for leg in legs}
    home |= {f"{leg}_shank_joint": -1.6 for leg in legs}
    height = 0.4 * cos(0.8) + 0.02
    robot.posture("home", q={"root": (0, 0, height, 1, 0, 0, 0), **home})
    return with_motors(robot.build())


def _leg(robot, leg, x, y):
    add_body(
        robot, f"{leg}_hip",
        cylinder(0.04, 0.06, mass=0.6, at=(0, 0.02 * y, 0), axis="y", color=DARK),
        on="trunk",
        joint=Revolute("x"),
        at=(x, 0.05 * y, 0),
        limits=Limits(-0.8, 0.8, 21, 33.5),
    )  # fmt: skip
    add_body(
        robot, f"{leg}_thigh",
        box(0.04, 0.03, 0.22, mass=0.75, at=(0, 0, -0.09), color=ORANGE),
        cylinder(0.04, 0.04, axis="y", color=ORANGE),
        on=f"{leg}_hip",
        joint=Revolute("y"),
        at=(0, 0.08 * y, 0),
        limits=Limits(-1.0, 4.2, 21, 33.5),
    )  # fmt: skip
    add_body(
        robot, f"{leg}_shank",
        capsule(0.012, 0.2, mass=0.15, at=(0, 0, -0.1)),
        on=f"{leg}_thigh",
        joint=Revolute("y"),
        at=(0, 0, -0.2),
        limits=Limits(-2.7, -0.9, 21, 33.5),
    )  # fmt: skip
    robot.geometry(geometry.Sphere(0.02), on=f"{leg}_shank", at=(0, 0, -0.2), color=DARK)
    robot.frame(f"{leg}_foot", on=f"{leg}_shank", at=(0, 0, -0.2))


def hopping_leg() -> Model:
    """A body on one springy leg, which hops in the x-z plane.

    After M. H. Raibert, "Hopping in legged systems: modeling and simulation for the
    two-dimensional one-legged case" (1984): body of 10 kg and about 10 kg·m², its mass centre 0.4 m
    above the hip, leg of 1 m and 1 kg with a spring of 1 kN/m. Here the leg is a sleeve and a rod
    of uniform density, and the spring has a little damping.

    Joints ``root`` (pitch, height, distance), ``hip``, ``leg`` (longer is positive); motors on the
    latter two; frame ``foot``; posture ``home``: standing with the spring slack.
    """
    robot = ModelBuilder("hopping leg")
    add_body(
        robot, "body",
        box(2.14, 0.12, 0.1, mass=2.0, at=(0, 0, 0.4), color=BLUE),
        sphere(0.12, mass=4.0, at=(1.07, 0, 0.4), color=GOLD),
        sphere(0.12, mass=4.0, at=(-1.07, 0, 0.4), color=GOLD),
        box(0.1, 0.06, 0.4, at=(0, 0, 0.2), color=BLUE),
        joint=Planar("y"),
        joint_name="root",
    )  # fmt: skip
    add_body(
        robot, "sleeve", cylinder(0.04, 0.5, mass=0.4, at=(0, 0, -0.25), color=ORANGE),
        sphere(0.07, color=DARK),
        on="body",
        joint=Revolute("y"),
        joint_name="hip",
        limits=Limits(-0.8, 0.8, 20, 200),
    )  # fmt: skip
    add_body(
        robot, "rod", cylinder(0.02, 0.6, mass=0.5, at=(0, 0, -0.67)),
        sphere(0.03, mass=0.1, at=(0, 0, -0.97), color=DARK),
        on="sleeve",
        joint=Prismatic("-z"),
        joint_name="leg",
        limits=Limits(-0.45, 0.1, 10, 1000),
        dynamics=JointDynamics(stiffness=1000.0, damping=5.0),
    )  # fmt: skip
    robot.frame("foot", on="rod", at=(0, 0, -1.0))
    robot.posture("home", q={"root": (0, 1.0, 0)})
    return with_motors(robot.build())
