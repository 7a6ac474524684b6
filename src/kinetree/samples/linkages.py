"""Planar loops: linkages that move in the x-z plane and are assembled at q = 0 — RBDA §4.1, §8.10.

Two kinds of pin close them. A hinge (``four_bar``, ``slider_crank``) imposes five constraints, of
which three repeat what the other hinges do. A ball in a cylinder (``five_bar``, ``ladder``)
imposes the two that are needed, so that no constraint is redundant.
"""

from math import acos, asin, atan, atan2, cos, hypot, inf, pi, radians, sin, sqrt, tan

import numpy as np

from kinetree.joints import Prismatic, Revolute, SphereInCylinder
from kinetree.model import Limits, MechanismGraph, Model, ModelBuilder
from kinetree.samples.random_mechanisms import check_count
from kinetree.samples.solids import (
    BLUE,
    DARK,
    GREEN,
    ORANGE,
    STEEL,
    add_body,
    add_scenery,
    box,
    cylinder,
    inertia_of,
    sphere,
    with_motors,
    with_posture,
)
from kinetree.spatial import Inertia, rotx, roty, rotz, xlt

_ROUND = Limits(-inf, inf, 50, 50)


def four_bar() -> Model:
    """Crank and rocker, a planar linkage: bars of 0.2, 0.5, 0.4 m on pivots that are 0.6 m apart.

    The crank can turn all the way round (Grashof: 0.2 + 0.6 < 0.5 + 0.4). It points up at q = 0.
    One degree of freedom; a motor drives the crank. Dimensions are our own.
    """
    crank, coupler, rocker, ground = 0.2, 0.5, 0.4, 0.6
    # The pin between coupler and rocker, by the triangle over the diagonal from the crank's end.
    diagonal = hypot(ground, crank)
    opening = acos((coupler**2 + diagonal**2 - rocker**2) / (2 * coupler * diagonal))
    angle = opening - atan2(crank, ground)
    pin = (coupler * cos(angle), crank + coupler * sin(angle))
    lean = atan2(pin[0] - ground, pin[1])
    linkage = ModelBuilder("four-bar")
    add_scenery(linkage, box(ground + 0.1, 0.02, 0.03, at=(ground / 2, 0, -0.03), color=DARK))
    add_body(linkage, "crank", *_bar(crank, ORANGE), joint=Revolute("y"), limits=_ROUND)
    add_body(
        linkage,
        "coupler",
        *_bar(coupler, STEEL),
        on="crank",
        joint=Revolute("y"),
        at=roty(atan2(pin[0], pin[1] - crank)) @ xlt(0, 0, crank),
        limits=_ROUND,
    )
    add_body(
        linkage,
        "rocker",
        *_bar(rocker, BLUE),
        joint=Revolute("y"),
        at=roty(lean) @ xlt(ground, 0, 0),
        limits=_ROUND,
    )
    linkage.loop(
        "pin",
        predecessor="coupler",
        successor="rocker",
        joint=Revolute("y"),
        at=(0, 0, coupler),
        successor_at=(0, 0, rocker),
    )
    return with_motors(linkage.posture("home").build(), ["crank_joint"])


def slider_crank() -> Model:
    """A piston driven by a crank of 0.1 m through a rod of 0.3 m — RBDA Figure 4.1.

    The crank points up at q = 0. One degree of freedom; a motor drives the crank. The book gives no
    dimensions: these are our own.
    """
    model = slider_crank_graph().to_model()
    turn, stroke = Limits(-inf, inf, 100, 50), Limits(-0.2, 0.2, 10, 1000)
    limits = {name: stroke if name == "cylinder" else turn for name in model.joint_names}
    model = with_motors(model.replace(limits=limits), ["main bearing"])
    return with_posture(model, "home", {})


def slider_crank_graph() -> MechanismGraph:
    """Slider crank before a spanning tree is chosen; all bodies are described at the assembly."""
    crank, rod = 0.1, 0.3
    reach = sqrt(rod**2 - crank**2)
    lean = atan2(reach, -crank)  # of the rod, from the end of the crank down to the piston
    parts = {
        "crank": [
            *_bar(crank, ORANGE),
            cylinder(0.04, 0.01, at=(0, 0.02, 0), axis="y", color=DARK),
        ],
        "rod": _bar(rod, STEEL),
        "piston": [cylinder(0.04, 0.06, mass=0.5, axis="x", color=BLUE)],
    }
    graph = MechanismGraph("slider-crank")
    add_scenery(graph, box(0.4, 0.06, 0.01, at=(reach, 0, -0.05), color=DARK))
    for name, solids in parts.items():
        graph.body(name, inertia=inertia_of(solids))
        add_scenery(graph, *solids, on=name)
    return (
        graph.joint("main bearing", Revolute("y"), predecessor="base", successor="crank")
        .joint(
            "big end",
            Revolute("y"),
            predecessor="crank",
            successor="rod",
            at=roty(lean) @ xlt(0, 0, crank),
        )
        .joint(
            "small end",
            Revolute("y"),
            predecessor="rod",
            successor="piston",
            at=roty(-lean) @ xlt(0, 0, rod),
        )
        .joint("cylinder", Prismatic("x"), predecessor="base", successor="piston", at=(reach, 0, 0))
    )


def five_bar() -> Model:
    """Four links between two supports 1 m apart, which can pass through a singularity.

    Lengths, masses and inertias of Spencer's Table 3.1: outer links of 1 m, 2 kg and 1 kg·m², inner
    ones of 1.5 m, 3 kg and 2 kg·m², about mass centres in the middle. Angles count from x towards
    z. At q = 0 the linkage stands, symmetric, as at the start of the second example of §3.2; in the
    posture ``singular``, where the first example starts, all four links lie on the line of the
    supports, and the mechanism has three instantaneous degrees of freedom instead of two.
    """
    inner = acos(2 / 3)
    directions = (2 * pi / 3, inner, -inner, -2 * pi / 3)
    flat = (pi, 0.0, 0.0, -pi)
    sizes = ((1.0, 2.0, 1.0), (1.5, 3.0, 2.0), (1.5, 3.0, 2.0), (1.0, 2.0, 1.0))
    linkage = ModelBuilder("five-bar")
    add_scenery(
        linkage,
        box(0.14, 0.14, 0.08, at=(0, 0, -0.06), color=DARK),
        box(0.14, 0.14, 0.08, at=(1, 0, -0.06), color=DARK),
    )
    before, singular = 0.0, {}
    for i, (length, mass, moment) in enumerate(sizes, start=1):
        name, turn = f"link{i}", directions[i - 1] - before
        reach = None if i == 1 else xlt(sizes[i - 2][0], 0, 0)
        add_body(
            linkage,
            name,
            box(length, 0.04, 0.06, at=(length / 2, 0, 0), color=BLUE if i in (1, 4) else ORANGE),
            cylinder(0.045, 0.08, axis="y", color=STEEL),
            inertia=Inertia.from_mass_center(
                mass, np.array([length / 2, 0, 0]), np.diag([0.01, moment, moment])
            ),
            on=None if i == 1 else f"link{i - 1}",
            joint=Revolute("-y"),
            at=roty(-turn) if reach is None else roty(-turn) @ reach,
            limits=Limits(-inf, inf, 50, 100),
        )
        singular[f"{name}_joint"] = flat[i - 1] - (0.0 if i == 1 else flat[i - 2]) - turn
        before = directions[i - 1]
    linkage.loop(
        "right_support",
        predecessor="base",
        successor="link4",
        joint=SphereInCylinder("y"),
        at=(1, 0, 0),
        successor_at=(1, 0, 0),
    )
    return linkage.posture("home").posture("singular", q=singular).build()


def ladder(rungs: int = 4) -> Model:
    """A ladder that hangs from its top: one loop and one degree of freedom for each rung.

    Every cell is a parallelogram 0.3 m wide and 0.25 m high: two side bars on the rung above, and
    the rung below, on the left bar by a tree joint and on the right one by a loop joint. Loops meet
    in rungs and share no joint; those of ``corner_ladder``, RBDA Figure 8.4, do share joints.
    Dimensions are our own.

    Args:
        rungs: number of rungs below the fixed one.
    """
    check_count(rungs, "ladder")
    width, height = 0.3, 0.25
    model = ModelBuilder("ladder" if rungs == 4 else f"ladder({rungs})")
    add_scenery(model, box(width + 0.1, 0.05, 0.04, at=(width / 2, 0, 0.03), color=DARK))
    above = None
    for i in range(1, rungs + 1):
        for side, x in (("left", 0.0), ("right", width)):
            add_body(
                model,
                f"{side}{i}",
                box(0.03, 0.02, height, mass=0.5, at=(0, 0, -height / 2), color=BLUE),
                on=above,
                joint=Revolute("y"),
                at=(x, 0, 0),
                limits=_ROUND,
            )
        add_body(
            model,
            f"rung{i}",
            box(width, 0.03, 0.03, mass=0.6, at=(width / 2, 0, 0), color=GREEN),
            on=f"left{i}",
            joint=Revolute("y"),
            at=(0, 0, -height),
            limits=_ROUND,
        )
        model.loop(
            f"pin{i}",
            predecessor=f"rung{i}",
            successor=f"right{i}",
            joint=SphereInCylinder("y"),
            at=(width, 0, 0),
            successor_at=(0, 0, -height),
        )
        above = f"rung{i}"
    return model.posture("home").build()


def _bar(length, color):
    """Inertia and looks of a bar along z, 2 kg per metre, pinned at the origin."""
    return [
        box(0.03, 0.02, length, mass=2.0 * length, at=(0, 0, length / 2), color=color),
        cylinder(0.018, 0.04, axis="y", color=DARK),
    ]


_A, _B, _ALPHA = 0.3, 0.4, radians(40)
_BETA = asin(_B / _A * sin(_ALPHA))  # Bennett's condition: sin(alpha) / a = sin(beta) / b


def bennett() -> Model:
    """Bennett's linkage, a loop of four skew hinges that moves although it has too few of them.

    Opposite links are alike: lengths ``a`` and ``b``, and twists ``alpha`` and ``beta`` between
    hinges, with ``sin(alpha) / a = sin(beta) / b`` — G. T. Bennett, "A new mechanism" (1903).
    Counting degrees of freedom gives 4 - 6 = -2, while the mobility is 1: three of the five
    constraints of the loop joint are redundant at every position — RBDA §8.10. Here a = 0.3 m,
    b = 0.4 m, alpha = 40°; a motor drives the first hinge.
    """
    first, second = _angles(radians(110))
    a_side = rotx(_ALPHA) @ xlt(_A, 0, 0)
    b_side = rotx(_BETA) @ xlt(_B, 0, 0)
    limits = Limits(-inf, inf, 20, 20)
    linkage = ModelBuilder("bennett")
    # The fixed link comes from the fourth hinge, along x of the base, to the first at the origin.
    fourth = b_side.inverse()
    add_scenery(
        linkage,
        *_link(_B, DARK, at=fourth),
        cylinder(0.015, 0.08, color=STEEL),
        box(0.1, 0.1, 0.02, at=(0, 0, -0.06), color=DARK),
        touches=False,  # the hinges join it to the first link and the last
    )
    add_body(
        linkage,
        "link1",
        *_link(_A, ORANGE),
        joint=Revolute("z"),
        at=rotz(first),
        limits=limits,
    )
    add_body(
        linkage,
        "link2",
        *_link(_B, BLUE),
        on="link1",
        joint=Revolute("z"),
        at=rotz(second) @ a_side,
        limits=limits,
    )
    add_body(
        linkage,
        "link3",
        *_link(_A, GREEN),
        on="link2",
        joint=Revolute("z"),
        at=rotz(-first) @ b_side,
        limits=limits,
    )
    linkage.loop(
        "hinge4",
        predecessor="link3",
        successor="base",
        joint=Revolute("z"),
        at=rotz(-second) @ a_side,
        successor_at=fourth,
    )
    return with_motors(linkage.posture("home").build(), ["link1_joint"])


def _angles(first):
    """Angles of the hinges of Bennett's linkage, given the first one."""
    ratio = sin((_BETA + _ALPHA) / 2) / sin((_BETA - _ALPHA) / 2)
    second = 2 * atan(ratio / tan(first / 2))
    return first, second


def _link(length, color, at=None):
    """Inertia and looks of a bar along x with its hinge at the origin."""
    start = xlt(0, 0, 0) if at is None else at
    return [
        cylinder(
            0.014,
            length,
            mass=1.5 * length,
            at=xlt(length / 2, 0, 0) @ start,
            axis="x",
            color=color,
        ),
        cylinder(0.015, 0.08, at=start, color=STEEL),
        sphere(0.018, at=xlt(length, 0, 0) @ start, color=color),
    ]
