"""Robots with legs: a floating base and simple shapes. x is forward, y left, z up."""

from kinetree.joints import Free, Revolute, Spherical
from kinetree.model import Limits, Model, ModelBuilder, shapes

__all__ = ["humanoid", "quadruped"]

_SIDES = (("left", 1), ("right", -1))


def quadruped() -> Model:
    """A dog-sized robot: three joints in each leg, 12 kg, feet 0.4 m below the trunk."""
    robot = ModelBuilder("quadruped").body(
        "trunk", joint=Free(), inertia=shapes.box(0.38, 0.16, 0.12, mass=6.0), joint_name="root"
    )
    for end, x in (("front", 0.18), ("rear", -0.18)):
        for side, y in _SIDES:
            leg = f"{end}_{side}"
            robot.body(
                f"{leg}_hip",
                on="trunk",
                joint=Revolute("x"),
                at=(x, 0.05 * y, 0),
                inertia=shapes.cylinder(0.04, 0.06, mass=0.6, at=(0, 0.02 * y, 0), axis="y"),
                limits=Limits(-0.8, 0.8, 21, 33.5),
            )
            robot.body(
                f"{leg}_thigh",
                on=f"{leg}_hip",
                joint=Revolute("y"),
                at=(0, 0.08 * y, 0),
                inertia=shapes.box(0.04, 0.03, 0.22, mass=0.75, at=(0, 0, -0.09)),
                limits=Limits(-1.0, 4.2, 21, 33.5),
            )
            robot.body(
                f"{leg}_shank",
                on=f"{leg}_thigh",
                joint=Revolute("y"),
                at=(0, 0, -0.2),
                inertia=shapes.capsule(0.012, 0.2, mass=0.15, at=(0, 0, -0.1)),
                limits=Limits(-2.7, -0.9, 21, 33.5),
            )
            robot.frame(f"{leg}_foot", on=f"{leg}_shank", at=(0, 0, -0.2))
    return robot.build()


def humanoid() -> Model:
    """A person-sized robot: ball joints at hips and shoulders, 65 kg, 1.7 m."""
    robot = (
        ModelBuilder("humanoid")
        .body(
            "pelvis",
            joint=Free(),
            inertia=shapes.box(0.16, 0.3, 0.16, mass=10.0),
            joint_name="root",
        )
        .body(
            "torso",
            on="pelvis",
            joint=Revolute("z"),
            at=(0, 0, 0.12),
            inertia=shapes.box(0.2, 0.34, 0.46, mass=24.0, at=(0, 0, 0.22)),
            joint_name="waist",
        )
        .body(
            "head",
            on="torso",
            joint=Revolute("y"),
            at=(0, 0, 0.5),
            inertia=shapes.ellipsoid(0.1, 0.08, 0.13, mass=4.5, at=(0, 0, 0.13)),
            joint_name="neck",
        )
    )
    for side, y in _SIDES:
        _arm(robot, side, y)
        _leg(robot, side, y)
    return robot.build()


def _arm(robot, side, y):
    robot.body(
        f"{side}_upper_arm",
        on="torso",
        joint=Spherical(),
        at=(0, 0.2 * y, 0.42),
        inertia=shapes.capsule(0.045, 0.24, mass=2.0, at=(0, 0, -0.15)),
        joint_name=f"{side}_shoulder",
    )
    robot.body(
        f"{side}_forearm",
        on=f"{side}_upper_arm",
        joint=Revolute("y"),
        at=(0, 0, -0.3),
        inertia=shapes.capsule(0.035, 0.3, mass=1.5, at=(0, 0, -0.18)),
        joint_name=f"{side}_elbow",
        limits=Limits(-2.5, 0.0, 12, 60),
    )
    robot.frame(f"{side}_hand", on=f"{side}_forearm", at=(0, 0, -0.35))


def _leg(robot, side, y):
    robot.body(
        f"{side}_thigh",
        on="pelvis",
        joint=Spherical(),
        at=(0, 0.1 * y, -0.08),
        inertia=shapes.capsule(0.07, 0.32, mass=6.0, at=(0, 0, -0.2)),
        joint_name=f"{side}_hip",
    )
    robot.body(
        f"{side}_shank",
        on=f"{side}_thigh",
        joint=Revolute("y"),
        at=(0, 0, -0.42),
        inertia=shapes.capsule(0.05, 0.32, mass=3.2, at=(0, 0, -0.2)),
        joint_name=f"{side}_knee",
        limits=Limits(0.0, 2.4, 12, 200),
    )
    robot.body(
        f"{side}_ankle",
        on=f"{side}_shank",
        joint=Revolute("y"),
        at=(0, 0, -0.42),
        inertia=shapes.sphere(0.04, mass=0.3),
        joint_name=f"{side}_ankle_pitch",
        limits=Limits(-1.0, 0.7, 12, 150),
    )
    robot.body(
        f"{side}_foot",
        on=f"{side}_ankle",
        joint=Revolute("x"),
        inertia=shapes.box(0.24, 0.1, 0.06, mass=0.8, at=(0.05, 0, -0.05)),
        joint_name=f"{side}_ankle_roll",
        limits=Limits(-0.5, 0.5, 12, 80),
    )
    robot.frame(f"{side}_sole", on=f"{side}_foot", at=(0.05, 0, -0.08))
