"""Shapes of a model as coloured surfaces on its bodies."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from kinetree.errors import LoadError
from kinetree.model import geometry
from kinetree.rendering.meshes import mesh_pieces
from kinetree.rendering.surfaces import Surface, surface_of
from kinetree.spelling import printable

# Where nothing has its own colour: calm, and light enough to be shaded.
COLORS = ((0.55, 0.64, 0.74), (0.86, 0.72, 0.50), (0.62, 0.73, 0.60), (0.78, 0.62, 0.62))
BASE = (0.62, 0.62, 0.64)


class Drawn(NamedTuple):
    """A surface of one colour, fixed to a body."""

    name: str
    body: int
    surface: Surface
    color: tuple[float, float, float]
    opacity: float
    shape: Any


def shapes_seen(model, *, collision=False):
    """Shapes of a model to draw: visual ones, or collision shapes where most are missing.

    A skin hides the shapes of the bodies under it, and skins are not drawn: those that can touch
    stand for it.

    Args:
        model: the mechanism.
        collision: the shapes that can touch instead of those to be seen.
    """
    seen = [g for g in model.geometry if (g.collision if collision else g.visual)]
    if collision or not seen:
        return seen if any(g.body for g in seen) else list(model.geometry)
    shown = {g.body for g in seen}
    bare = {g.body for g in model.geometry if g.body not in shown and g.body}
    trees = Counter(_root(model, i) for i in bare)
    trees.subtract(_root(model, i) for i in shown if i)
    hidden = [g for g in model.geometry if g.body in bare and trees[_root(model, g.body)] > 0]
    touching = {g.body for g in hidden if g.collision}
    return [*seen, *(g for g in hidden if g.collision or g.body not in touching)]


def _root(model, i):
    """Number of the root body on the base that carries body ``i``."""
    return model.support[i][0]


def drawn_pieces(model, shapes) -> tuple[list[Drawn], tuple[str, ...]]:
    """Coloured surfaces of shapes in body coordinates, and notices of undrawable ones.

    Args:
        model: the mechanism.
        shapes: those that are drawn, without planes.
    """
    drawn, notices = [], []
    for g in shapes:
        pose = g.placement.to_pose().astype(float)
        try:
            pieces = _surfaces_of(g.shape)
        except LoadError as error:
            notices.append(printable(f"{_shape_name(model, g)} is not drawn: {error}"))
            continue
        for surface, color in pieces:
            opacity = 1.0
            if g.color is not None:
                color, opacity = g.color[:3], g.color[3]
            elif color is None:
                color = COLORS[g.body % len(COLORS)] if g.body else BASE
            placed = surface.place(pose[:3, :3], pose[:3, 3])
            red, green, blue = (float(x) for x in color)
            look = ((red, green, blue), float(opacity))
            drawn.append(Drawn(_shape_name(model, g), g.body, placed, *look, g))
    return drawn, tuple(notices)


def _surfaces_of(shape) -> Iterable[Any]:
    """Surfaces of a shape with their colours, as a list."""
    if isinstance(shape, geometry.Mesh):
        return mesh_pieces(shape.path, shape.scale)
    return [(surface_of(shape), None)]


def _shape_name(model, g):
    """Name of a shape for messages, with its body."""
    body = model.body_names[g.body]
    return f"{g.name} of {body}" if g.name and g.name != body else body


def round_number(x) -> float:
    """Nearest of 1, 2 and 5 times a power of ten, on a logarithmic scale."""
    power = 10.0 ** math.floor(math.log10(x))
    return min((f * power for f in (1, 2, 5, 10)), key=lambda nice: abs(math.log(nice / x)))
