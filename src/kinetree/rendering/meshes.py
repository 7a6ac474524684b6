"""Mesh files as coloured surfaces, coarse enough to be drawn."""

import hashlib
import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.contact.finding.shapes import kept_arrays
from kinetree.errors import LoadError
from kinetree.model.triangles import content_of, open_scene
from kinetree.rendering.surfaces import Surface, coarser, crease

MOST_FACES = 20_000
"""Of one mesh; finer ones are made coarser, which no screen shows."""

_GREY = (0.72, 0.73, 0.75)


class MeshPiece(NamedTuple):
    """Part of a mesh with one colour, or None where the file has none."""

    surface: Surface
    color: tuple[float, float, float] | None


def mesh_pieces(path, scale=(1.0, 1.0, 1.0), most=MOST_FACES) -> tuple[MeshPiece, ...]:
    """Coloured surfaces of a mesh file, scaled; LoadError if it cannot be read."""
    if not os.path.isfile(path):
        raise LoadError(f"there is no file {path!r}")
    return _scaled_pieces(os.fspath(path), os.stat(path).st_mtime, tuple(map(float, scale)), most)


@lru_cache(maxsize=256)
def _scaled_pieces(path, changed, scale, most):
    """Scaled surfaces of a mesh file, from the disk cache if the file is unchanged."""
    del changed  # a file that has changed is read again
    digest = hashlib.sha256(content_of(path, path)).hexdigest()
    key = "\n".join(["drawn 1", os.path.splitext(path)[1].lower(), digest, repr((scale, most))])
    kept = kept_arrays(key, lambda: _coarse_pieces(path, scale, most))
    pieces = zip(kept[::3], kept[1::3], kept[2::3], strict=True)
    return tuple(
        MeshPiece(Surface(v, f), tuple(c.tolist()) if len(c) else None) for v, f, c in pieces
    )


def _coarse_pieces(path, scale, most):
    """Vertices, faces and colour of a mesh file's pieces, simplified to ``most`` faces."""
    found = [piece for piece in _meshes_of(path) if len(piece.surface.faces)]
    if not found:
        raise LoadError(f"{path}: the mesh has no triangles")
    total = sum(len(piece.surface.faces) for piece in found)
    for surface, color in found:
        share = max(200, most * len(surface.faces) // total)
        surface = surface if total <= most else coarser(surface, share)
        faces = surface.faces if np.prod(scale) > 0 else surface.faces[:, ::-1]
        surface = crease(Surface(surface.vertices * np.array(scale), faces))
        yield from (surface.vertices, surface.faces, np.array(color or (), dtype=float))


def _meshes_of(path):
    """Meshes of a file in its coordinates, with their colours, one by one."""
    for mesh, transform in open_scene(path):
        vertices = mesh.vertices @ transform[:3, :3].T + transform[:3, 3]
        faces = np.asarray(mesh.faces)
        if np.linalg.det(transform[:3, :3]) < 0:
            faces = faces[:, ::-1]
        yield MeshPiece(Surface(np.asarray(vertices, dtype=float), faces), _color(mesh))


def _color(mesh):
    """Colour of a mesh, or None if it has none."""
    visual = mesh.visual
    if not visual.defined:
        return None
    material = getattr(visual, "material", None)
    given = visual.main_color if material is None else material.main_color
    red, green, blue = (float(x) / 255 for x in np.asarray(given)[:3])
    is_black = max(red, green, blue) < 0.02 and material is not None  # where a texture was
    return _GREY if is_black else (red, green, blue)
