"""Robot arms, from their Denavit–Hartenberg tables."""

from math import pi

from kinetree.joints import Fixed, Prismatic
from kinetree.model import Limits, Model, ModelBuilder, attach, shapes
from kinetree.model.dh import DHRow, from_dh
from kinetree.spatial import rotz, xlt

__all__ = ["arm", "panda", "scara"]


def scara() -> Model:
    """Four axes for assembly: two links in the horizontal plane, a quill that slides and turns."""
    first = shapes.box(0.4, 0.12, 0.1, mass=8.0, at=(0.16, 0, 0))
    second = shapes.box(0.32, 0.1, 0.12, mass=6.0, at=(0.13, 0, 0.02))
    quill = shapes.cylinder(0.01, 0.35, mass=0.8)
    flange = shapes.cylinder(0.03, 0.02, mass=0.3)
    return from_dh(
        [
            DHRow(0, 0, 0.3, inertia=first, name="arm1", limits=Limits(-2.3, 2.3, 6.5, 200)),
            DHRow(0.325, inertia=second, name="arm2", limits=Limits(-2.6, 2.6, 10, 100)),
            DHRow(
                0.275, pi, kind="prismatic", inertia=quill, name="quill",
                limits=Limits(0, 0.2, 1.1, 300),
            ),
            DHRow(inertia=flange, name="flange", limits=Limits(-2 * pi, 2 * pi, 25, 10)),
        ],
        tool=(0, 0, 0.1, 0),
        name="scara",
    )  # fmt: skip


def arm() -> Model:
    """A six-axis industrial arm: shoulder and elbow offsets, spherical wrist, 0.9 m reach."""
    links = {
        "column": shapes.cylinder(0.12, 0.3, mass=20.0, at=(0, 0, -0.1)),
        "upper": shapes.box(0.6, 0.12, 0.14, mass=15.0, at=(0.22, 0, 0)),
        "elbow": shapes.box(0.2, 0.14, 0.14, mass=8.0, at=(0.06, 0, 0)),
        "forearm": shapes.cylinder(0.05, 0.35, mass=5.0, at=(0, 0, -0.2)),
        "wrist": shapes.sphere(0.06, mass=2.0),
        "flange": shapes.cylinder(0.04, 0.03, mass=0.4, at=(0, 0, 0.07)),
    }
    parameters = [
        (0, 0, 0.4, 0),
        (0.15, -pi / 2, 0, -pi / 2),
        (0.44, 0, 0, 0),
        (0.13, -pi / 2, 0.42, 0),
        (0, pi / 2, 0, 0),
        (0, -pi / 2, 0, 0),
    ]
    bounds = [
        (-2.96, 2.96, 3.4, 400),
        (-1.6, 2.3, 3.4, 400),
        (-2.6, 1.2, 3.4, 250),
        (-3.3, 3.3, 5.2, 60),
        (-2.1, 2.1, 5.2, 60),
        (-6.2, 6.2, 7.8, 30),
    ]
    rows = [
        DHRow(*row, inertia=inertia, name=name, limits=Limits(*limits))
        for row, (name, inertia), limits in zip(parameters, links.items(), bounds, strict=True)
    ]
    return from_dh(rows, tool=(0, 0, 0.085, 0), name="arm")


def panda() -> Model:
    """A seven-axis research arm with a two-finger gripper.

    Dimensions and limits of the arm as published for the Franka Emika Panda, link masses rounded
    from published identification. Mass centres and inertias are those of simple shapes, and the
    masses of the gripper are typical: good for tests, not for controlling the real robot.
    """
    links = [
        shapes.cylinder(0.06, 0.3, mass=4.97, at=(0, -0.03, -0.12)),
        shapes.cylinder(0.06, 0.2, mass=0.65, at=(0, -0.07, 0.03), axis="y"),
        shapes.cylinder(0.06, 0.22, mass=3.23, at=(0.04, 0.02, -0.06)),
        shapes.cylinder(0.06, 0.2, mass=3.59, at=(-0.05, 0.08, 0.02), axis="y"),
        shapes.cylinder(0.05, 0.3, mass=1.23, at=(0, 0.06, -0.12)),
        shapes.sphere(0.07, mass=1.67, at=(0.06, -0.01, -0.01)),
        shapes.cylinder(0.045, 0.1, mass=0.74, at=(0.01, 0, 0.07)),
    ]
    parameters = [
        (0, 0, 0.333, 0),
        (0, -pi / 2, 0, 0),
        (0, pi / 2, 0.316, 0),
        (0.0825, pi / 2, 0, 0),
        (-0.0825, -pi / 2, 0.384, 0),
        (0, pi / 2, 0, 0),
        (0.088, pi / 2, 0, 0),
    ]
    bounds = [
        (-2.8973, 2.8973, 2.175, 87),
        (-1.7628, 1.7628, 2.175, 87),
        (-2.8973, 2.8973, 2.175, 87),
        (-3.0718, -0.0698, 2.175, 87),
        (-2.8973, 2.8973, 2.61, 12),
        (-0.0175, 3.7525, 2.61, 12),
        (-2.8973, 2.8973, 2.61, 12),
    ]
    rows = [
        DHRow(*row, inertia=inertia, limits=Limits(*limits))
        for row, inertia, limits in zip(parameters, links, bounds, strict=True)
    ]
    return attach(from_dh(rows, tool=(0, 0, 0.107, 0), name="panda"), _gripper(), on="tool")


def _gripper():
    palm = shapes.box(0.04, 0.2, 0.07, mass=0.73, at=(0, 0, 0.04))
    finger = shapes.box(0.02, 0.02, 0.05, mass=0.015, at=(0, 0.01, 0.03))
    gripper = (
        ModelBuilder("gripper", base_name="mount")
        .body("palm", joint=Fixed(), at=rotz(-pi / 4), inertia=palm)
        .frame("grasp", on="palm", at=(0, 0, 0.1034))
    )
    for side, turn in (("left", 0), ("right", pi)):
        gripper.body(
            f"{side}_finger",
            on="palm",
            joint=Prismatic("y"),
            at=rotz(turn) @ xlt(0, 0, 0.0584),
            inertia=finger,
            limits=Limits(0, 0.04, 0.2, 20),
        )
    return gripper.build()
