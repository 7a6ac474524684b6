"""Ground: planes, which have no end, height fields and walls."""

import numpy as np

from kinetree.model.geometry import HeightField, Plane
from kinetree.viewer.scenes.description import Part, Surface, round_number
from kinetree.viewer.scenes.surfaces import surface_of

_SHEET, _LINES, _HILLS = (0.78, 0.81, 0.85), (0.52, 0.56, 0.62), (0.70, 0.69, 0.65)


def is_terrain(g) -> bool:
    """Whether a shape is something to stand on, rather than a part of the mechanism."""
    return isinstance(g.shape, Plane) or (isinstance(g.shape, HeightField) and not g.body)


def ground_height(terrain, up, size) -> float | None:
    """Height of the ground along ``up`` [m]: of a level plane that is fixed to the base, if any.

    Args:
        terrain: shapes of the ground, as ``kinetree.geometry.Geometry``.
        up: away from the ground, (3,).
        size: of the mechanism [m]; a plane that is not much larger is a table.
    """
    heights = [float(_pose(g)[:3, 3] @ up) for g in terrain if _is_ground(g, up, size)]
    return max(heights, default=None)


def terrain_parts(terrain, up, box, size):
    """All but level ground: hills, and sheets that can be seen through, with lines on them.

    Args:
        terrain: shapes of the ground.
        up: away from the ground, (3,).
        box: what the bodies pass through [m], (2, 3); a sheet is a little larger.
        size: of the mechanism [m].
    """
    for g in terrain:
        if isinstance(g.shape, HeightField):
            color, opacity = (_HILLS, 1.0) if g.color is None else (g.color[:3], g.color[3])
            hills = surface_of(g.shape)
            yield Part(g.name or "hills", "bodies", 0, _placed(g, hills), color, opacity)
        elif not _is_ground(g, up, size):
            name, (low, high) = g.name or "plane", _extent(g, box, size)
            color, opacity = (_SHEET, 0.5) if g.color is None else (g.color[:3], 0.5 * g.color[3])
            sheet = _placed(g, _rectangles([(*low, *high)], 0.0))
            yield Part(name, "bodies", g.body, sheet, color, opacity)
            lines = _placed(g, _lines(low, high, size))
            yield Part(f"lines on {name}", "bodies", g.body, lines, _LINES, 0.6)


def _extent(g, box, size):
    """Least and largest coordinates of what is drawn of a plane, (2,) each."""
    pose, half = _pose(g), _sides(g.shape) / 2
    middle, reach = np.zeros(2), np.full(2, size)
    if not g.body:
        middle = ((box[0] + box[1]) / 2 - pose[:3, 3]) @ pose[:3, :2]
        reach += 0.5 * np.linalg.norm(box[1] - box[0]) - 0.5 * size
    middle = np.clip(middle, -half, half)
    return np.maximum(middle - reach, -half), np.minimum(middle + reach, half)


def _is_ground(g, up, size):
    if not isinstance(g.shape, Plane) or g.body:
        return False
    return _pose(g)[:3, 2] @ up > 1 - 1e-6 and np.all(_sides(g.shape) > 2 * size)


def _sides(plane):
    """Of the part that is there [m], (2,); formats write 0 for a plane without end."""
    sides = np.array(plane.size, dtype=float)
    return np.where(sides > 0, sides, np.inf)


def _pose(g):
    return g.placement.to_pose().astype(float)


def _placed(g, surface):
    pose = _pose(g)
    return surface.placed(pose[:3, :3], pose[:3, 3])


def _lines(low, high, size):
    """Lines at round distances, just above the plane."""
    step, thick = round_number(size / 6), 0.002 * size
    bars = []
    for axis in (0, 1):
        for k in np.arange(np.ceil(low[axis] / step), np.floor(high[axis] / step) + 1):
            bar = np.array([low, high])
            bar[:, axis] = k * step - thick, k * step + thick
            bars.append(bar.ravel())
    return _rectangles(bars, 1e-3 * size)


def _rectangles(bars, z):
    """Of (x, y) to (x, y) each, at a height."""
    corners = [[(a, b, z), (c, b, z), (c, d, z), (a, d, z)] for a, b, c, d in bars]
    faces = [np.array([[0, 1, 2], [0, 2, 3]]) + 4 * k for k in range(len(bars))]
    return Surface(
        np.reshape(np.array(corners, dtype=float), (-1, 3)),
        np.concatenate([np.zeros((0, 3), dtype=int), *faces]),
    )
