"""Robot arms that stand for their kind, from Denavit–Hartenberg tables."""

from math import pi

from kinetree.model import Limits, Model
from kinetree.model.dh import DHRow, from_dh
from kinetree.samples.solids import (
    BLUE,
    DARK,
    ORANGE,
    WHITE,
    box,
    cylinder,
    dressed,
    inertia_of,
    sphere,
    with_motors,
)
from kinetree.samples.states import with_posture

__all__ = ["arm", "scara"]


def scara() -> Model:
    """Four axes for assembly: two links in the horizontal plane, a quill that slides and turns.

    Links of 325 and 275 mm and a stroke of 200 mm, the sizes of many robots of the 600 mm class
    (Epson LS6, Staubli TS60, Yamaha YK600X and others); masses and limits are typical of them.
    """
    links = {
        "arm1": [
            box(0.4, 0.12, 0.1, mass=8.0, at=(0.16, 0, 0), color=WHITE),
            cylinder(0.06, 0.11, at=(0, 0, -0.01)),
        ],
        "arm2": [
            box(0.32, 0.1, 0.12, mass=6.0, at=(0.13, 0, 0.02), color=ORANGE),
            cylinder(0.05, 0.11, at=(0, 0, 0.01)),
        ],
        "quill": [cylinder(0.01, 0.35, mass=0.8)],
        "flange": [
            cylinder(0.03, 0.02, mass=0.3, color=DARK),
            cylinder(0.01, 0.1, at=(0, 0, 0.05)),
        ],
    }
    arm1, arm2, quill, flange = map(inertia_of, links.values())
    model = from_dh(
        [
            DHRow(0, 0, 0.3, inertia=arm1, name="arm1", limits=Limits(-2.3, 2.3, 6.5, 200)),
            DHRow(0.325, inertia=arm2, name="arm2", limits=Limits(-2.6, 2.6, 10, 100)),
            DHRow(
                0.275, pi, kind="prismatic", inertia=quill, name="quill",
                limits=Limits(0, 0.2, 1.1, 300),
            ),
            DHRow(inertia=flange, name="flange", limits=Limits(-2 * pi, 2 * pi, 25, 10)),
        ],
        tool=(0, 0, 0.1, 0),
        name="scara",
    )  # fmt: skip
    stand = [box(0.2, 0.2, 0.02, at=(0, 0, 0.01), color=DARK)]
    stand += [box(0.12, 0.12, 0.24, at=(0, 0, 0.13), color=DARK)]
    model = with_motors(dressed(model, {"base": stand, **links}))
    return with_posture(model, "home", {"arm1_joint": -0.6, "arm2_joint": 1.2, "quill_joint": 0.1})


def arm() -> Model:
    """A six-axis industrial arm: shoulder and elbow offsets, spherical wrist, 0.9 m reach.

    Proportions, masses and limits typical of arms for 10 kg, rounded; it is no particular product.
    """
    links = {
        "column": [cylinder(0.12, 0.3, mass=20.0, at=(0, 0, -0.1), color=ORANGE)],
        "upper": [
            box(0.6, 0.12, 0.14, mass=15.0, at=(0.22, 0, 0), color=ORANGE),
            cylinder(0.09, 0.16, color=DARK),
        ],
        "elbow": [
            box(0.2, 0.14, 0.14, mass=8.0, at=(0.06, 0, 0), color=ORANGE),
            cylinder(0.08, 0.16, color=DARK),
        ],
        "forearm": [cylinder(0.05, 0.35, mass=5.0, at=(0, 0, -0.2), color=ORANGE)],
        "wrist": [sphere(0.06, mass=2.0, color=DARK)],
        "flange": [
            cylinder(0.04, 0.03, mass=0.4, at=(0, 0, 0.07)),
            cylinder(0.03, 0.06, at=(0, 0, 0.03)),
        ],
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
        DHRow(*row, inertia=inertia_of(solids), name=name, limits=Limits(*limits))
        for row, (name, solids), limits in zip(parameters, links.items(), bounds, strict=True)
    ]
    model = from_dh(rows, tool=(0, 0, 0.085, 0), name="arm")
    foot = [box(0.36, 0.36, 0.03, at=(0, 0, 0.015), color=DARK)]
    foot += [cylinder(0.14, 0.14, at=(0, 0, 0.09), color=BLUE)]
    model = with_motors(dressed(model, {"base": foot, **links}))
    return with_posture(model, "home", {"upper_joint": 0.4, "elbow_joint": 0.2, "wrist_joint": 0.9})
