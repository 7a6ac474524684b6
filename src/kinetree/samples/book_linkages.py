"""Mechanisms with loops from the figures of RBDA chapter 8, and of a thesis.

Planar ones move in the x-y plane. The book gives no dimensions and no inertias: these are ours.
"""

from math import atan2, cos, hypot, inf, pi, radians, sin

import numpy as np

from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.errors import ModelError
from kinetree.joints import Prismatic, Revolute, SphereInCylinder, Spherical
from kinetree.model import Limits, Model, ModelBuilder
from kinetree.samples.random_mechanisms import check_count, closed_loop
from kinetree.samples.solids import (
    BLUE,
    DARK,
    ORANGE,
    STEEL,
    add_body,
    add_scenery,
    box,
    cylinder,
    with_motors,
    with_posture,
)
from kinetree.spatial import Inertia, roty, xlt


def actuated_arm(l1: float = 1.0, l2: float = 0.6) -> Model:
    """Two links, the first of them moved by a linear actuator — RBDA Figure 8.3.

    Bodies in the order of the figure: ``arm``, ``barrel`` and ``rod`` of the actuator, ``forearm``;
    the hinge ``eye`` between rod and arm closes the loop. The variables are those of the figure:
    ``q = (theta1, theta2, d, theta4)``. The mechanism is assembled in the posture ``home``, where
    ``theta1`` is 0.8, and not at q = 0.

    Args:
        l1: distance between the pivots of arm and actuator [m].
        l2: distance from the arm's pivot to the eye [m].
    """
    if l1 <= 0 or l2 <= 0:
        raise ModelError(f"an actuated arm needs lengths above zero, got l1={l1!r} and l2={l2!r}")
    z, reach = Revolute("z"), 2 * l2
    model = (
        ModelBuilder("actuated arm", gravity=(0.0, -9.81, 0.0))
        .body("arm", joint=z, inertia=_bar(reach, 4.0))
        .body("barrel", joint=z, at=(l1, 0, 0), inertia=_bar(0.5 * l1, 1.0))
        .body("rod", on="barrel", joint=Prismatic("x"), inertia=_bar(-0.5 * l1, 0.5))
        .body("forearm", on="arm", joint=z, at=(reach, 0, 0), inertia=_bar(l2, 2.0))
        .loop("eye", predecessor="rod", successor="arm", joint=z, successor_at=(l2, 0, 0))
        .build()
    )
    theta = 0.8
    x, y = l2 * cos(theta) - l1, l2 * sin(theta)
    home = {"arm_joint": theta, "barrel_joint": atan2(y, x), "rod_joint": hypot(x, y)}
    return with_posture(model, "home", home)


def kite_pair() -> Model:
    """Two kites with a common pair of sides; one to three degrees of freedom — RBDA Figure 8.2.

    A link of 1 m turns about ``A``, which is 1 m from ``B``; arms of two equal links, of 0.7 m and
    of 0.9 m, reach from ``B`` and from the end of the link to the hinges ``D`` and ``E``. In the
    posture ``open`` there is one freedom. In ``folded`` the link's end lies on ``B``, and there are
    two. In ``flat`` the arms lie on the line through the pivots besides, where the two kinds of
    motion meet: three degrees of freedom, for an instant.
    """
    z, link, first, second = Revolute("z"), 1.0, 0.7, 0.9
    builder = (
        ModelBuilder("kite pair", gravity=(0.0, -9.81, 0.0))
        .body("link", joint=z, inertia=_bar(link, 1.0))
        .body("near1", joint=z, at=(link, 0, 0), inertia=_bar(first, 0.7))
        .body("far1", on="link", joint=z, at=(link, 0, 0), inertia=_bar(first, 0.7))
        .body("near2", joint=z, at=(link, 0, 0), inertia=_bar(second, 0.9))
        .body("far2", on="link", joint=z, at=(link, 0, 0), inertia=_bar(second, 0.9))
    )
    for name, n, length in (("D", 1, first), ("E", 2, second)):
        at = (length, 0, 0)
        builder.loop(
            name, predecessor=f"near{n}", successor=f"far{n}", joint=z, at=at, successor_at=at
        )
    model = with_posture(builder.build(), "open", _kites(0.6, first, second))
    folded = {"near1_joint": 0.5, "far1_joint": 0.5, "near2_joint": -0.9, "far2_joint": -0.9}
    return with_posture(with_posture(model, "folded", folded), "flat", {})


def _kites(theta, *arms):
    """Joint angles of two kites whose hinges lie on the bisector of ``theta``."""
    middle = cos(theta / 2)  # from A to half way between B and the end of the link
    q = {"link_joint": theta}
    for n, length in enumerate(arms, start=1):
        out = middle + (length**2 - sin(theta / 2) ** 2) ** 0.5
        x, y = out * cos(theta / 2), out * sin(theta / 2)
        q[f"near{n}_joint"] = atan2(y, x - 1)
        q[f"far{n}_joint"] = atan2(y - sin(theta), x - cos(theta)) - theta
    return q


def clustered_linkage() -> Model:
    """Twenty bodies and four loops, of which two share joints — RBDA Figure 8.1.

    Loops 1 and 2 run through joints 3 to 7, loop 3 through 10 to 12, and loop 4 through 19 and 20;
    all other joints are in no loop. The book gives no dimensions: these are our own.
    Assembled at the posture ``home``.
    """
    parents = (0, 1, 2, 3, 2, 5, 5, 0, 8, 9, 10, 9, 12, 13, 14, 0, 16, 17, 18, 18)
    builder = ModelBuilder("clustered linkage")
    for i, parent in enumerate(parents, start=1):
        builder.body(
            f"body{i}",
            on=f"body{parent}" if parent else None,
            joint=Spherical() if i == 19 else Revolute("z"),
            at=(0.4, 0.1 * (-1) ** i, 0.02 * i),
            inertia=_bar(0.4, 1.0),
        )
    bend = {f"body{i}_joint": 0.3 + 0.5 * sin(i) for i in range(1, 21) if i != 19}
    tree = with_posture(builder.build(), "home", bend)
    X_0 = base_transforms(tree, joint_transforms(tree, np.array(tree.posture("home").q))[0])
    tip, pin, ball = xlt(0.5, 0, 0), SphereInCylinder("z"), Spherical()
    ends = ((4, 6, pin), (4, 7, pin), (11, 12, pin), (19, 20, ball))
    loops = [
        closed_loop(X_0, f"loop{n}", (p, s), joint, joint.neutral(), tip)
        for n, (p, s, joint) in enumerate(ends, start=1)
    ]
    return tree.replace(loops=tuple(loops))


def corner_ladder(rungs: int = 4) -> Model:
    """Blocks at the corners of a ladder, pinned to their neighbours — RBDA Figure 8.4.

    Bodies 1, 3, 5, … are on one side and 2, 4, 6, … on the other; pins half way between neighbours.
    Each loop shares a joint with the next. The tree consists of the first side and of all rungs;
    body 1 is pinned to the base. Two degrees of freedom, without redundant constraints.

    Args:
        rungs: number of rungs, at least 1, of two bodies each.
    """
    check_count(rungs, "corner_ladder")
    z, block = Revolute("z"), Inertia.from_mass_center(1.0, np.zeros(3), 0.1 * np.eye(3))
    builder = ModelBuilder("corner ladder", gravity=(0.0, -9.81, 0.0))
    for i in range(1, 2 * rungs + 1):
        on = i - 1 if i % 2 == 0 else i - 2  # across the rung, or down the first side
        at = (0, 0, 0) if i == 1 else ((1, 0, 0) if i % 2 == 0 else (0, -1, 0))
        builder.body(f"body{i}", on=f"body{on}" if i > 1 else None, joint=z, at=at, inertia=block)
        if i % 2 == 0 and i > 2:
            builder.loop(
                f"pin{i}",
                predecessor=f"body{i - 2}",
                successor=f"body{i}",
                joint=SphereInCylinder("z"),
                at=(0.3, -0.5, 0),
                successor_at=(0.3, 0.5, 0),
            )
    return builder.posture("home").build()


def _bar(length, mass):
    """Inertia of a slender bar along x from the body's origin."""
    moment = mass * length**2 / 12
    return Inertia.from_mass_center(
        mass, np.array([length / 2, 0, 0]), np.diag([0.1 * moment, moment, moment])
    )


def parallel_four_bar(L1: float = 0.5, L2: float = 0.4) -> Model:
    """Two links on one axle move a parallelogram: 4 bodies, mobility 2 — Spencer Fig. 2.4.

    ``link1`` of length L1 and ``link2`` of length L2 turn about the base, ``link3`` of length L1
    and ``link4`` of length L2 follow; the end of ``link4`` is pinned to that of ``link1``. Angles
    count from x towards z: at q = 0 ``link1`` stands at 75° and ``link2`` at 20°. As long as it is
    a parallelogram, ``q3 = q1 - q2`` and ``q4 = q2 - q1``. Motors drive the two links on the base.
    Masses are our own.
    """
    first, second = radians(75), radians(20)
    turns = (first, second, first - second, second - first - pi)
    lengths = (L1, L2, L1, L2)
    robot = ModelBuilder("parallel-four-bar")
    add_scenery(robot, box(0.12, 0.16, 0.06, at=(0, 0, -0.05), color=DARK))
    for i, (turn, length) in enumerate(zip(turns, lengths, strict=True), start=1):
        reach = xlt(lengths[i - 2], 0, 0) if i > 2 else None
        add_body(
            robot,
            f"link{i}",
            box(
                length,
                0.02,
                0.03,
                mass=2 * length,
                at=(length / 2, 0, 0),
                color=ORANGE if i in (1, 3) else BLUE,
            ),
            cylinder(0.025, 0.04, axis="y", color=STEEL),
            on=f"link{i - 1}" if i > 2 else None,
            joint=Revolute("-y"),
            at=roty(-turn) if reach is None else roty(-turn) @ reach,
            limits=Limits(-inf, inf, 50, 50),
        )
    robot.loop(
        "pin",
        predecessor="link1",
        successor="link4",
        joint=SphereInCylinder("y"),
        at=(L1, 0, 0),
        successor_at=(L2, 0, 0),
    )
    return with_motors(robot.posture("home").build(), ["link1_joint", "link2_joint"])
