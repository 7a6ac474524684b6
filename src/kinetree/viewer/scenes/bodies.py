"""Bodies of a mechanism as coloured surfaces, from shapes and mesh files."""

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import LoadError
from kinetree.model import geometry
from kinetree.model.triangles import open_scene
from kinetree.spelling import printable
from kinetree.viewer.scenes.description import Part, Surface
from kinetree.viewer.scenes.places import along
from kinetree.viewer.scenes.surfaces import ball, coarser, creased, rod, surface_of

# Where nothing has a colour of its own: calm, and light enough to be shaded.
_COLORS = ((0.55, 0.64, 0.74), (0.86, 0.72, 0.50), (0.62, 0.73, 0.60), (0.78, 0.62, 0.62))
_BASE = (0.62, 0.62, 0.64)


def shapes_seen(model, *, collision=False):
    """The shapes that are drawn; where no body has one to be seen, those that can touch.

    Args:
        model: the mechanism.
        collision: the shapes that can touch instead of those to be seen.
    """
    seen = [g for g in model.geometry if (g.collision if collision else g.visual)]
    return seen if any(g.body for g in seen) else list(model.geometry)


def body_parts(model, shapes):
    """Parts of the layer ``bodies``, and what could not be drawn.

    Where no body has a shape, sticks between the joints are drawn; where only some have none,
    their axes, at the centre of mass.

    Args:
        model: the mechanism.
        shapes: those that are drawn.
    """
    parts, notices = [], []
    for g in shapes:
        pose = g.placement.to_pose().astype(float)
        try:
            pieces = _pieces(g.shape)
        except LoadError as error:
            notices.append(printable(f"{_name(model, g)} is not drawn: {error}"))
            continue
        for surface, color in pieces:
            opacity = 1.0
            if g.color is not None:
                color, opacity = g.color[:3], g.color[3]
            elif color is None:
                color = _COLORS[g.body % len(_COLORS)] if g.body else _BASE
            placed = surface.placed(pose[:3, :3], pose[:3, 3])
            red, green, blue = (float(x) for x in color)
            look = ((red, green, blue), float(opacity))
            parts.append(Part(_name(model, g), "bodies", g.body, placed, *look))
    if not any(part.node for part in parts):
        parts += _sticks(model)
    else:
        seen = {part.node for part in parts}
        parts += [
            p for i in range(1, model.body_count + 1) if i not in seen for p in _axes(model, i)
        ]
    return tuple(parts), tuple(notices)


def _pieces(shape) -> Iterable[Any]:
    if isinstance(shape, geometry.Mesh):
        return mesh_pieces(shape.path, shape.scale)
    return [(surface_of(shape), None)]


def _name(model, g):
    body = model.body_names[g.body]
    return f"{g.name} of {body}" if g.name and g.name != body else body


def scale_of(model) -> float:
    """A length that suits a mechanism without shapes [m]: how far its joints are apart."""
    lengths = [float(np.linalg.norm(_position(b.placement))) for b in model.bodies]
    lengths += [float(np.linalg.norm(center)) for center in map(_center, model.bodies)]
    return max([x for x in lengths if np.isfinite(x)], default=0.0) or 0.5


def _sticks(model):
    """Balls at joints and mass centres, rods between them."""
    thick = 0.03 * scale_of(model)
    for i, body in enumerate(model.bodies, start=1):
        color = _COLORS[i % len(_COLORS)]
        yield Part(body.joint_name, "bodies", i, ball(1.6 * thick, 16), color)
        ends = [_position(model.bodies[child - 1].placement) for child in model.children[i]]
        ends += [_position(f.placement) for f in model.frames if f.body == i]
        ends = ends or [_center(body)]
        for end in ends:
            if (length := float(np.linalg.norm(end))) > 1e-9:
                bar = rod(thick, 0.0, length, 12)
                yield Part(
                    body.name, "bodies", i, bar.placed(along(end / length), np.zeros(3)), color
                )


_AXES = ((0.85, 0.3, 0.3), (0.3, 0.7, 0.3), (0.3, 0.45, 0.9))


def _axes(model, i):
    """A ball with three axes at the centre of mass of a body without shapes, if it has mass."""
    body = model.bodies[i - 1]
    if not float(body.inertia.mass) > 0:
        return
    radii = np.sqrt(np.diag(np.asarray(body.inertia.rotational, dtype=float)) / body.inertia.mass)
    length = max(float(np.max(radii)), 0.02 * scale_of(model))
    yield Part(
        body.name, "bodies", i, ball(0.2 * length, 12).placed(np.eye(3), _center(body)), _BASE
    )
    for axis, color in zip(np.eye(3), _AXES, strict=True):
        bar = rod(0.06 * length, 0.0, length, 8).placed(along(axis), _center(body))
        yield Part(body.name, "bodies", i, bar, color)


def _position(placement):
    return np.asarray(placement.r, dtype=float)


def _center(body):
    mass = float(body.inertia.mass)
    return np.asarray(body.inertia.first_moment, dtype=float) / mass if mass > 0 else np.zeros(3)


# --- Mesh files ----------------------------------------------------------------------------------

MOST_FACES = 20_000
"""Of one mesh; finer ones are made coarser, which no screen shows."""

_GREY = (0.72, 0.73, 0.75)


class Piece(NamedTuple):
    """Part of a mesh with one colour, or None where the file has none."""

    surface: Surface
    color: tuple[float, float, float] | None


def mesh_pieces(path, scale=(1.0, 1.0, 1.0), most=MOST_FACES) -> tuple[Piece, ...]:
    """Pieces of a mesh file, stretched by ``scale``; LoadError if it cannot be read."""
    if not os.path.isfile(path):
        raise LoadError(f"there is no file {path!r}")
    return _stretched(os.fspath(path), os.stat(path).st_mtime, tuple(map(float, scale)), most)


@lru_cache(maxsize=256)
def _stretched(path, changed, scale, most):
    found = [piece for piece in _opened(path) if len(piece.surface.faces)]
    if not found:
        raise LoadError(f"{path}: the mesh has no triangles")
    total = sum(len(piece.surface.faces) for piece in found)
    stretched = []
    for surface, color in found:
        share = max(200, most * len(surface.faces) // total)
        surface = surface if total <= most else coarser(surface, share)
        faces = surface.faces if np.prod(scale) > 0 else surface.faces[:, ::-1]
        surface = Surface(surface.vertices * np.array(scale), faces)
        stretched.append(Piece(creased(surface), color))
    return tuple(stretched)


def _opened(path):
    for mesh, transform in open_scene(path):
        vertices = mesh.vertices @ transform[:3, :3].T + transform[:3, 3]
        faces = np.asarray(mesh.faces)
        if np.linalg.det(transform[:3, :3]) < 0:
            faces = faces[:, ::-1]
        yield Piece(Surface(np.asarray(vertices, dtype=float), faces), _color(mesh))


def _color(mesh):
    """The colour that a mesh has of its own, if any."""
    visual = mesh.visual
    if not visual.defined:
        return None
    material = getattr(visual, "material", None)
    given = visual.main_color if material is None else material.main_color
    red, green, blue = (float(x) / 255 for x in np.asarray(given)[:3])
    is_black = max(red, green, blue) < 0.02 and material is not None  # where a texture was
    return _GREY if is_black else (red, green, blue)
