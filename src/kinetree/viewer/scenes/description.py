"""A scene: coloured surfaces on nodes that move, and arrows; plain arrays, nothing that draws.

The browser, the stand-alone page and the pictures all draw this. A node whose position is not a
number is not drawn at that time.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinetree.rendering.bodies import round_number
from kinetree.rendering.surfaces import Surface

LAYERS = {
    "bodies": "bodies",
    "ghost": "ghost",
    "paths": "paths",
    "contacts": "contacts",
    "loops": "loop errors",
    "forces": "forces",
    "reactions": "joint reactions",
    "velocities": "velocities",
    "center": "centre of mass",
    "inertias": "inertia ellipsoids",
    "frames": "frames",
    "cameras": "cameras",
    "sensors": "sensors",
}
"""Layers that can be shown or hidden, and their labels, in the order of the list."""

SHOWN = ("bodies", "ghost", "paths", "contacts", "loops", "reactions")
"""Layers that are shown by default."""


@dataclass(frozen=True, eq=False)
class Part:
    """A surface of one colour, fixed to a node.

    Attributes:
        name: what it is.
        layer: one of ``LAYERS``.
        node: number of the node; body ``i`` of the model is node ``i``.
        surface: in the coordinates of the node.
        color: red, green, blue, each from 0 to 1.
        opacity: from 0 to 1.
    """

    name: str
    layer: str
    node: int
    surface: Surface
    color: tuple[float, float, float]
    opacity: float = 1.0


@dataclass(frozen=True, eq=False)
class Arrows:
    """Arrows of one kind, over time.

    Attributes:
        name: what they mean.
        layer: one of ``LAYERS``.
        color: red, green, blue.
        origins: where they begin [m], (T, K, 3).
        vectors: from there to the tip [m], (T, K, 3).
        legend: how long they are, such as ``"forces: 0.1 m for 25 N"``.
    """

    name: str
    layer: str
    color: tuple[float, float, float]
    origins: np.ndarray
    vectors: np.ndarray
    legend: str = ""


@dataclass(frozen=True, eq=False)
class Scene:
    """A scene: nodes that move, parts on them, and arrows.

    Attributes:
        title: what it is.
        nodes: names of the nodes; the first is the base.
        parts: what is on them.
        arrows: on them or in the world.
        times: [s], (T,).
        positions: of the nodes [m], (T, N, 3).
        quaternions: of the nodes, (w, x, y, z), (T, N, 4).
        up: away from the ground, (3,).
        box: least and largest coordinates of the bodies [m], (2, 3): during the whole motion, or at
            the beginning of one that goes away.
        goes_away: whether the motion leaves the box, so that a camera should follow.
        ground: height of the ground along ``up`` [m], if the mechanism has one.
        notices: messages about what could not be drawn.
    """

    title: str
    nodes: tuple[str, ...]
    parts: tuple[Part, ...]
    arrows: tuple[Arrows, ...]
    times: np.ndarray
    positions: np.ndarray
    quaternions: np.ndarray
    up: Any = (0.0, 0.0, 1.0)
    box: Any = field(default_factory=lambda: np.array([[-0.5] * 3, [0.5] * 3]))
    goes_away: bool = False
    ground: float | None = None
    notices: tuple[str, ...] = ()

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers with at least one part."""
        used = {part.layer for part in self.parts} | {a.layer for a in self.arrows}
        return tuple(layer for layer in LAYERS if layer in used)

    @property
    def center(self) -> int:
        """Index of the centre-of-mass node, or of the base if there is none."""
        return self.nodes.index("centre of mass") if "centre of mass" in self.nodes else 0

    @property
    def size(self) -> float:
        """Largest side of the scene's bounding box [m]."""
        return float(np.max(self.box[1] - self.box[0]))

    @property
    def duration(self) -> float:
        """Duration of the motion [s]."""
        return float(self.times[-1] - self.times[0])

    @property
    def floor(self) -> float:
        """Height of the drawn ground along ``up`` [m], below everything if there is none.

        Where there is none, it is below everything, and not above the base.
        """
        if self.ground is not None:
            return self.ground
        corners = np.array([[self.box[k, i] for i, k in enumerate(c)] for c in np.ndindex(2, 2, 2)])
        return min(float((corners @ np.asarray(self.up)).min()), 0.0)

    @property
    def grid_step(self) -> float:
        """Spacing of the lines on the ground [m], a round number."""
        return round_number(max(self.size, 1e-6) / 6)
