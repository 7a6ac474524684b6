"""The UR5 of Universal Robots."""

from math import pi

from kinetree.model import Limits, Model, shapes
from kinetree.model.dh import DHRow, from_dh
from kinetree.samples.solids import BLUE, DARK, STEEL, cylinder, dressed, with_motors
from kinetree.samples.states import with_posture

__all__ = ["ur5"]

_NAMES = ("shoulder", "upper_arm", "forearm", "wrist1", "wrist2", "wrist3")


def ur5() -> Model:
    """A six-axis arm for 5 kg whose wrist axes do not meet.

    Denavit–Hartenberg parameters, masses and mass centres as published by Universal Robots ("DH
    parameters for calculations of kinematics and dynamics", UR5, series 3), limits from its user
    manual. The maker publishes no rotational inertias: they are those of cylinders of the size of
    the links.

    Bodies are named after the links, joints ``<link>_joint``; frames ``dh1`` … ``dh6`` of the
    standard convention, ``tool`` on the flange; postures ``home``, elbow up and tool down, and
    ``upright``, where the maker puts zero.
    """
    table = [  # a, alpha, d, mass, mass centre in frame i
        (0, pi / 2, 0.089159, 3.7, (0, -0.02561, 0.00193)),
        (-0.425, 0, 0, 8.393, (0.2125, 0, 0.11336)),
        (-0.39225, 0, 0, 2.33, (0.15, 0, 0.0265)),
        (0, pi / 2, 0.10915, 1.219, (0, -0.0018, 0.01634)),
        (0, -pi / 2, 0.09465, 1.219, (0, 0.0018, 0.01634)),
        (0, 0, 0.0823, 0.1879, (0, 0, -0.001159)),
    ]
    sizes = [  # radius, length, axis of the cylinder
        (0.06, 0.178, "y"), (0.054, 0.533, "x"), (0.045, 0.46, "x"),
        (0.0375, 0.12, "z"), (0.0375, 0.12, "z"), (0.0375, 0.037, "z"),
    ]  # fmt: skip
    rows = [
        DHRow(
            a, alpha, d,
            inertia=shapes.cylinder(radius, length, mass=mass, at=center, axis=axis),
            name=name,
            limits=Limits(-2 * pi, 2 * pi, pi, 28 if "wrist" in name else 150),
        )
        for (a, alpha, d, mass, center), (radius, length, axis), name in zip(
            table, sizes, _NAMES, strict=True
        )
    ]  # fmt: skip
    model = from_dh(rows, convention="standard", name="ur5")
    model = with_motors(dressed(model, _looks()))
    straight = [0, -pi / 2, 0, -pi / 2, 0, 0]
    bent = [pi, -1.9, 1.9, -pi / 2, -pi / 2, 0]
    for name, angles in (("home", bent), ("upright", straight)):
        model = with_posture(model, name, dict(zip(model.joint_names, angles, strict=True)))
    return model


def _looks():
    """Round housings about each joint axis, and the tubes between them, in the frames dh1 … dh6."""
    return {
        "base": [
            cylinder(0.075, 0.04, at=(0, 0, 0.02), color=STEEL),
        ],
        "dh1": [
            cylinder(0.06, 0.11, at=(0, -0.02, 0), axis="y", color=STEEL),
            cylinder(0.06, 0.13, at=(0, 0, 0.03), color=STEEL),
            cylinder(0.058, 0.01, at=(0, -0.08, 0), axis="y", color=BLUE),
        ],
        "dh2": [
            cylinder(0.06, 0.12, at=(0.425, 0, 0.135), color=STEEL),
            cylinder(0.048, 0.4, at=(0.2125, 0, 0.135), axis="x", color=STEEL),
            cylinder(0.05, 0.12, at=(0, 0, 0.125), color=STEEL),
            cylinder(0.058, 0.01, at=(0.425, 0, 0.2), color=BLUE),
        ],
        "dh3": [
            cylinder(0.048, 0.11, at=(0.39225, 0, 0.025), color=STEEL),
            cylinder(0.04, 0.37, at=(0.196, 0, 0.018), axis="x", color=STEEL),
            cylinder(0.04, 0.1, at=(0, 0, 0.025), color=STEEL),
            cylinder(0.048, 0.01, at=(0.39225, 0, -0.035), color=BLUE),
        ],
        "dh4": [
            cylinder(0.038, 0.1, at=(0, 0, -0.002), color=STEEL),
            cylinder(0.038, 0.09, at=(0, -0.01, 0.0), axis="y", color=DARK),
        ],
        "dh5": [
            cylinder(0.038, 0.1, at=(0, 0, 0.002), color=STEEL),
            cylinder(0.038, 0.09, at=(0, 0.01, 0.0), axis="y", color=DARK),
        ],
        "dh6": [cylinder(0.036, 0.036, at=(0, 0, -0.018), color=BLUE)],
    }
