"""Files of triangles, with their colours, as surfaces to draw."""

import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.errors import LoadError
from kinetree.model.triangles import open_scene
from kinetree.viewer.scene.creases import coarser, creased
from kinetree.viewer.scene.description import Surface

__all__ = ["MOST_FACES", "Piece", "mesh_pieces"]

MOST_FACES = 20_000
"""Of one mesh; finer ones are made coarser, which no screen shows."""

_GREY = (0.72, 0.73, 0.75)


class Piece(NamedTuple):
    """Part of a mesh with one colour, or None where the file has none."""

    surface: Surface
    color: tuple[float, float, float] | None


def mesh_pieces(path, scale=(1.0, 1.0, 1.0), most=MOST_FACES) -> tuple[Piece, ...]:
    """What is in a mesh file, stretched by ``scale``; LoadError says why there is nothing."""
    if not os.path.isfile(path):
        raise LoadError(f"there is no file {path!r}")
    return _pieces(os.fspath(path), os.stat(path).st_mtime, tuple(map(float, scale)), most)


@lru_cache(maxsize=256)
def _pieces(path, changed, scale, most):
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
