"""The parallel four-bar robot of Spencer's thesis; its five-bar is among the linkages."""

from math import inf, pi, radians

from kinetree.joints import Revolute, SphereInCylinder
from kinetree.model import Limits, Model, ModelBuilder
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
)
from kinetree.spatial import roty, xlt

__all__ = ["parallel_four_bar"]


def parallel_four_bar(L1: float = 0.5, L2: float = 0.4) -> Model:
    """Two links on one axle move a parallelogram: four bodies, two freedoms — Spencer Fig. 2.4.

    ``link1`` of length L1 and ``link2`` of length L2 turn about the base, ``link3`` of length L1
    and ``link4`` of length L2 follow; the end of ``link4`` is pinned to that of ``link1``. Angles
    count from x towards z: at q = 0 ``link1`` stands at 75° and ``link2`` at 20°. As long as it is
    a parallelogram, ``q3 = q1 - q2`` and ``q4 = q2 - q1``. Motors drive the two links on the base.
    Masses are ours.
    """
    first, second = radians(75), radians(20)
    turns = (first, second, first - second, second - first - pi)
    lengths = (L1, L2, L1, L2)
    robot = ModelBuilder("parallel-four-bar")
    add_scenery(robot, box(0.12, 0.16, 0.06, at=(0, 0, -0.05), color=DARK))
    for i, (turn, length) in enumerate(zip(turns, lengths, strict=True), start=1):
        reach = xlt(lengths[i - 2], 0, 0) if i > 2 else None
        add_body(
            robot, f"link{i}",
            box(length, 0.02, 0.03, mass=2 * length, at=(length / 2, 0, 0),
                color=ORANGE if i in (1, 3) else BLUE),
            cylinder(0.025, 0.04, axis="y", color=STEEL),
            on=f"link{i - 1}" if i > 2 else None,
            joint=Revolute("-y"),
            at=roty(-turn) if reach is None else roty(-turn) @ reach,
            limits=Limits(-inf, inf, 50, 50),
        )  # fmt: skip
    robot.loop(
        "pin",
        predecessor="link1",
        successor="link4",
        joint=SphereInCylinder("y"),
        at=(L1, 0, 0),
        successor_at=(L2, 0, 0),
    )
    return with_motors(robot.posture("home").build(), ["link1_joint", "link2_joint"])
