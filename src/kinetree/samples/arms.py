"""Robot arms from Denavit–Hartenberg tables: typical ones, the Panda and the UR5."""

from math import pi

from kinetree.joints import Fixed, Prismatic
from kinetree.model import Limits, Model, ModelBuilder, attach, shapes
from kinetree.model.dh import DHRow, from_dh
from kinetree.samples.solids import (
    BLUE,
    DARK,
    ORANGE,
    STEEL,
    WHITE,
    box,
    capsule,
    cylinder,
    inertia_of,
    sphere,
    with_looks,
    with_motors,
    with_posture,
)
from kinetree.spatial import rotz, xlt


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
    model = with_motors(with_looks(model, {"base": stand, **links}))
    return with_posture(model, "home", {"arm1_joint": -0.6, "arm2_joint": 1.2, "quill_joint": 0.1})


def arm() -> Model:
    """A six-axis industrial arm: shoulder and elbow offsets, spherical wrist, 0.9 m reach.

    Proportions, masses and limits typical of arms for 10 kg, rounded; not a particular product.
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
        (0, 0, 0.4, 0), (0.15, -pi / 2, 0, -pi / 2), (0.44, 0, 0, 0), (0.13, -pi / 2, 0.42, 0),
        (0, pi / 2, 0, 0), (0, -pi / 2, 0, 0),
    ]  # fmt: skip
    bounds = [
        (-2.96, 2.96, 3.4, 400), (-1.6, 2.3, 3.4, 400), (-2.6, 1.2, 3.4, 250), (-3.3, 3.3, 5.2, 60),
        (-2.1, 2.1, 5.2, 60), (-6.2, 6.2, 7.8, 30),
    ]  # fmt: skip
    rows = [
        DHRow(*row, inertia=inertia_of(solids), name=name, limits=Limits(*limits))
        for row, (name, solids), limits in zip(parameters, links.items(), bounds, strict=True)
    ]
    model = from_dh(rows, tool=(0, 0, 0.085, 0), name="arm")
    foot = [box(0.36, 0.36, 0.03, at=(0, 0, 0.015), color=DARK)]
    foot += [cylinder(0.14, 0.14, at=(0, 0, 0.09), color=BLUE)]
    touching = {"forearm": [cylinder(0.05, 0.24, at=(0, 0, -0.185))]}  # clear of elbow and flange
    model = with_motors(with_looks(model, {"base": foot, **links}, touching))
    return with_posture(model, "home", {"upper_joint": 0.4, "elbow_joint": 0.2, "wrist_joint": 0.9})


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
        (0, 0, 0.333, 0), (0, -pi / 2, 0, 0), (0, pi / 2, 0.316, 0), (0.0825, pi / 2, 0, 0),
        (-0.0825, -pi / 2, 0.384, 0), (0, pi / 2, 0, 0), (0.088, pi / 2, 0, 0),
    ]  # fmt: skip
    bounds = [
        (-2.8973, 2.8973, 2.175, 87), (-1.7628, 1.7628, 2.175, 87), (-2.8973, 2.8973, 2.175, 87),
        (-3.0718, -0.0698, 2.175, 87), (-2.8973, 2.8973, 2.61, 12), (-0.0175, 3.7525, 2.61, 12),
        (-2.8973, 2.8973, 2.61, 12),
    ]  # fmt: skip
    rows = [
        DHRow(*row, inertia=inertia, limits=Limits(*limits))
        for row, inertia, limits in zip(parameters, links, bounds, strict=True)
    ]
    model = attach(from_dh(rows, tool=(0, 0, 0.107, 0), name="panda"), _gripper(), on="tool")
    model = with_motors(with_looks(model, _looks(), _hull()))
    home = [0, -pi / 4, 0, -3 * pi / 4, 0, pi / 2, pi / 4]
    positions = {f"link{i}_joint": value for i, value in enumerate(home, start=1)}
    fingers = {"left_finger_joint": 0.04, "right_finger_joint": 0.04}
    return with_posture(model, "home", {**positions, **fingers})


def _gripper():
    """Gripper with two fingers."""
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
    """Solids drawn at each joint axis of the Panda, and between them."""
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


def _hull():
    """Collision shapes of the Panda: capsules along links, boxes for palm and fingers."""
    finger = [box(0.02, 0.016, 0.055, at=(0, 0.008, 0.0275))]
    return {
        "base": [box(0.24, 0.19, 0.06, at=(-0.05, 0, 0.03))],
        "link1": [capsule(0.06, 0.13, at=(0, 0, -0.1))],
        "link2": [capsule(0.06, 0.1, at=(0, -0.1, 0), axis="y")],
        "link3": [capsule(0.055, 0.06, at=(0, 0, -0.07)), sphere(0.055, at=(0.07, 0, 0))],
        "link4": [capsule(0.055, 0.05), sphere(0.055, at=(-0.0825, 0.04, 0))],
        "link5": [capsule(0.052, 0.1, at=(0, 0, -0.22)), capsule(0.03, 0.08, at=(0, 0.07, -0.12))],
        "link6": [capsule(0.048, 0.05), sphere(0.048, at=(0.07, 0, 0))],
        "link7": [capsule(0.042, 0.05, at=(0, 0, 0.04))],
        "palm": [box(0.05, 0.2, 0.06, at=(0, 0, 0.03))],
        "left_finger": finger,
        "right_finger": finger,
    }


_UR5_NAMES = ("shoulder", "upper_arm", "forearm", "wrist1", "wrist2", "wrist3")


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
            a,
            alpha,
            d,
            inertia=shapes.cylinder(radius, length, mass=mass, at=center, axis=axis),
            name=name,
            limits=Limits(-2 * pi, 2 * pi, pi, 28 if "wrist" in name else 150),
        )
        for (a, alpha, d, mass, center), (radius, length, axis), name in zip(
            table, sizes, _UR5_NAMES, strict=True
        )
    ]
    model = from_dh(rows, convention="standard", name="ur5")
    model = with_motors(with_looks(model, _ur5_looks(), _ur5_hull()))
    straight = [0, -pi / 2, 0, -pi / 2, 0, 0]
    bent = [pi, -1.9, 1.9, -pi / 2, -pi / 2, 0]
    for name, angles in (("home", bent), ("upright", straight)):
        model = with_posture(model, name, dict(zip(model.joint_names, angles, strict=True)))
    return model


def _ur5_looks():
    """Solids drawn at each joint axis of the UR5, and between them."""
    return {
        "base": [cylinder(0.075, 0.04, at=(0, 0, 0.02), color=STEEL)],
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


def _ur5_hull():
    """Collision shapes of the UR5: capsules along the links."""
    return {
        "dh1": [capsule(0.058, 0.05, at=(0, 0, 0.02))],
        "dh2": [
            capsule(0.05, 0.425, at=(0.2125, 0, 0.135), axis="x"),
            capsule(0.055, 0.03, at=(0.425, 0, 0.135)),
        ],
        "dh3": [
            capsule(0.042, 0.392, at=(0.196, 0, 0.018), axis="x"),
            capsule(0.042, 0.03, at=(0.39225, 0, 0.03)),
        ],
        "dh4": [capsule(0.038, 0.03), capsule(0.038, 0.03, axis="y")],
        "dh5": [capsule(0.038, 0.03), capsule(0.038, 0.03, axis="y")],
        "dh6": [cylinder(0.036, 0.036, at=(0, 0, -0.018))],
    }
