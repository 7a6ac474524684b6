"""The Panda of Franka Emika, with its gripper."""

from math import pi

from kinetree.joints import Fixed, Prismatic
from kinetree.model import Limits, Model, ModelBuilder, attach, shapes
from kinetree.model.dh import DHRow, from_dh
from kinetree.samples.solids import DARK, STEEL, WHITE, box, cylinder, dressed, with_motors
from kinetree.samples.states import with_posture
from kinetree.spatial import rotz, xlt

__all__ = ["panda"]


def panda() -> Model:
    """A seven-axis research arm with a two-finger gripper.

    Dimensions and limits of the arm as published by Franka Emika (FCI documentation, "Robot and
    interface specifications"), link masses rounded from the identification of Gaz et al., "Dynamic
    identification of the Franka Emika Panda robot" (RA-L 2019). Mass centres and inertias are those
    of simple shapes, and the masses of the gripper are typical: good for tests, not for
    controlling the real robot.

    Joints ``link1_joint`` … ``link7_joint``, ``left_finger_joint``, ``right_finger_joint``; frames
    ``tool`` on the flange and ``grasp`` between the fingertips; posture ``home``, the usual one.
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
    model = attach(from_dh(rows, tool=(0, 0, 0.107, 0), name="panda"), _gripper(), on="tool")
    model = with_motors(dressed(model, _looks()))
    home = [0, -pi / 4, 0, -3 * pi / 4, 0, pi / 2, pi / 4]
    positions = {f"link{i}_joint": value for i, value in enumerate(home, start=1)}
    fingers = {"left_finger_joint": 0.04, "right_finger_joint": 0.04}
    return with_posture(model, "home", {**positions, **fingers})


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


def _looks():
    """Round housings about each joint axis, and what connects them."""
    finger = [box(0.02, 0.016, 0.055, at=(0, 0.008, 0.0275), color=STEEL)]
    return {
        "base": [
            box(0.24, 0.19, 0.06, at=(-0.05, 0, 0.03), color=WHITE),
            cylinder(0.075, 0.14, at=(0, 0, 0.1), color=WHITE),
        ],
        "link1": [
            cylinder(0.06, 0.2, at=(0, 0, -0.1), color=WHITE),
            cylinder(0.062, 0.14, axis="y", color=WHITE),
        ],
        "link2": [
            cylinder(0.06, 0.14, at=(0, -0.13, 0), axis="y", color=WHITE),
            cylinder(0.061, 0.12, color=DARK),
        ],
        "link3": [
            cylinder(0.055, 0.16, at=(0, 0, -0.08), color=WHITE),
            box(0.1, 0.09, 0.1, at=(0.06, 0, 0), color=WHITE),
        ],
        "link4": [
            cylinder(0.058, 0.13, color=DARK),
            box(0.12, 0.11, 0.1, at=(-0.06, 0.05, 0), color=WHITE),
        ],
        "link5": [
            cylinder(0.055, 0.2, at=(0, 0, -0.2), color=WHITE),
            box(0.09, 0.13, 0.12, at=(0, 0.04, -0.06), color=WHITE),
        ],
        "link6": [
            cylinder(0.05, 0.12, color=DARK),
            box(0.1, 0.08, 0.09, at=(0.06, 0, 0), color=WHITE),
        ],
        "link7": [
            cylinder(0.044, 0.09, at=(0, 0, 0.02), color=WHITE),
            cylinder(0.035, 0.05, at=(0, 0, 0.085), color=STEEL),
        ],
        "palm": [box(0.05, 0.2, 0.06, at=(0, 0, 0.03), color=WHITE)],
        "left_finger": finger,
        "right_finger": finger,
    }
