"""Mechanisms that are not trees to begin with: loops, and parts that fly — RBDA §4.1.

The planar ones move in the x-z plane and are assembled at q = 0.
"""

from math import acos, atan2, cos, hypot, sin, sqrt

from kinetree.joints import Prismatic, Revolute
from kinetree.model import MechanismGraph, Model, ModelBuilder, shapes
from kinetree.spatial import roty, xlt

__all__ = ["crank_slider", "four_bar", "satellite"]


def four_bar() -> Model:
    """Crank and rocker: bars of 0.2, 0.5 and 0.4 m on pivots that are 0.6 m apart.

    The crank can turn all the way round. It points up at q = 0.
    """
    crank, coupler, rocker, ground = 0.2, 0.5, 0.4, 0.6
    # The pin between coupler and rocker, by the triangle over the diagonal from the crank's end.
    diagonal = hypot(ground, crank)
    opening = acos((coupler**2 + diagonal**2 - rocker**2) / (2 * coupler * diagonal))
    angle = opening - atan2(crank, ground)
    pin = (coupler * cos(angle), crank + coupler * sin(angle))
    lean = atan2(pin[0] - ground, pin[1])
    return (
        ModelBuilder("four-bar")
        .body("crank", joint=Revolute("y"), inertia=_bar(crank))
        .body(
            "coupler",
            on="crank",
            joint=Revolute("y"),
            at=roty(atan2(pin[0], pin[1] - crank)) @ xlt(0, 0, crank),
            inertia=_bar(coupler),
        )
        .body(
            "rocker",
            joint=Revolute("y"),
            at=roty(lean) @ xlt(ground, 0, 0),
            inertia=_bar(rocker),
        )
        .loop(
            "pin",
            predecessor="coupler",
            successor="rocker",
            joint=Revolute("y"),
            at=(0, 0, coupler),
            successor_at=(0, 0, rocker),
        )
        .build()
    )


def crank_slider() -> Model:
    """A piston driven by a crank of 0.1 m through a rod of 0.3 m — RBDA Figure 4.1."""
    return crank_slider_graph().to_model()


def crank_slider_graph() -> MechanismGraph:
    """The same before a spanning tree was chosen. All bodies are described at the assembly."""
    crank, rod = 0.1, 0.3
    reach = sqrt(rod**2 - crank**2)
    lean = atan2(reach, -crank)  # of the rod, from the end of the crank down to the piston
    return (
        MechanismGraph("crank-slider")
        .body("crank", inertia=_bar(crank))
        .body("rod", inertia=_bar(rod))
        .body("piston", inertia=shapes.cylinder(0.04, 0.06, mass=0.5, axis="x"))
        .joint("main bearing", Revolute("y"), predecessor="base", successor="crank")
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


def satellite() -> Model:
    """A satellite with a dish on a hinge, floating — RBDA Figure 4.1."""
    return (
        MechanismGraph("satellite", base_name="planet", gravity=(0, 0, 0))
        .body("bus", inertia=shapes.box(1.0, 1.2, 1.5, mass=300.0))
        .body("dish", inertia=shapes.disc(0.8, mass=20.0, at=(0, 0, 0.3)))
        .joint("hinge", Revolute("x"), predecessor="bus", successor="dish", at=(0, 0, 0.8))
        .float_unconnected("bus")
        .to_model()
    )


def _bar(length):
    """A bar from the body's origin along z, 2 kg per metre."""
    return shapes.box(0.03, 0.02, length, mass=2.0 * length, at=(0, 0, length / 2))
