"""A loop that should not be able to move, and does."""

from math import asin, atan, inf, radians, sin, tan

from kinetree.joints import Revolute
from kinetree.model import Limits, Model, ModelBuilder
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
    sphere,
    with_motors,
)
from kinetree.spatial import rotx, rotz, xlt

__all__ = ["bennett"]

_A, _B, _ALPHA = 0.3, 0.4, radians(40)
_BETA = asin(_B / _A * sin(_ALPHA))  # Bennett's condition: sin(alpha) / a = sin(beta) / b


def bennett() -> Model:
    """Bennett's linkage, a loop of four skew hinges that moves although it has too few of them.

    Opposite links are alike: lengths ``a`` and ``b``, and twists ``alpha`` and ``beta`` between
    hinges, with ``sin(alpha) / a = sin(beta) / b`` — G. T. Bennett, "A new mechanism" (1903).
    Counting freedoms gives 4 - 6 = -2, while the mobility is 1: three of the five
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
    )
    add_body(
        linkage, "link1", *_link(_A, ORANGE),
        joint=Revolute("z"), at=rotz(first), limits=limits,
    )  # fmt: skip
    add_body(
        linkage, "link2", *_link(_B, BLUE),
        on="link1", joint=Revolute("z"), at=rotz(second) @ a_side, limits=limits,
    )  # fmt: skip
    add_body(
        linkage, "link3", *_link(_A, GREEN),
        on="link2", joint=Revolute("z"), at=rotz(-first) @ b_side, limits=limits,
    )  # fmt: skip
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
    """Angles of the first two hinges; those of the opposite ones are the same, backwards."""
    ratio = sin((_BETA + _ALPHA) / 2) / sin((_BETA - _ALPHA) / 2)
    second = 2 * atan(ratio / tan(first / 2))
    return first, second


def _link(length, color, at=None):
    """A bar along x with its first hinge at the origin."""
    start = xlt(0, 0, 0) if at is None else at
    return [
        cylinder(0.014, length, mass=1.5 * length, at=xlt(length / 2, 0, 0) @ start, axis="x",
                 color=color),
        cylinder(0.015, 0.08, at=start, color=STEEL),
        sphere(0.018, at=xlt(length, 0, 0) @ start, color=color),
    ]  # fmt: skip
