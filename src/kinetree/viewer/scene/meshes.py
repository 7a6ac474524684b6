"""Files of triangles, with their colours, through trimesh."""

import io
import os
import xml.etree.ElementTree as ET
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.errors import LoadError
from kinetree.simulation.results.packages import need
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
    trimesh = need("trimesh", "drawing meshes", "view")
    kind = path.rpartition(".")[2].lower()
    if kind == "dae":
        need("collada", "drawing COLLADA meshes (.dae)", "view")
    try:
        with open(path, "rb") as file:  # no resolver: nothing else on the disk is opened
            file = io.BytesIO(_without_textures(file.read())) if kind == "dae" else file
            loaded = trimesh.load_scene(file, file_type=kind)
    except Exception as error:  # trimesh raises whatever its parsers run into
        raise LoadError(f"{path}: this mesh cannot be read: {error}") from None
    for node in loaded.graph.nodes_geometry:
        transform, name = loaded.graph[node]
        mesh = loaded.geometry[name]
        if not isinstance(mesh, trimesh.Trimesh) or not np.all(np.isfinite(mesh.vertices)):
            continue
        vertices = mesh.vertices @ transform[:3, :3].T + transform[:3, 3]
        faces = np.asarray(mesh.faces)
        if np.linalg.det(transform[:3, :3]) < 0:
            faces = faces[:, ::-1]
        yield Piece(Surface(np.asarray(vertices, dtype=float), faces), _color(mesh))


def _without_textures(collada):
    """A COLLADA text with grey in place of pictures: they are not read, and many are not there."""
    root = ET.fromstring(collada)
    for parent in root.iter():
        for k, child in reversed(list(enumerate(parent))):
            kind = child.tag.rpartition("}")[2]
            if kind == "texture":
                parent[k] = ET.Element(child.tag.replace("texture", "color"))
                parent[k].text = " ".join(map(str, (*_GREY, 1.0)))
            elif kind == "newparam":
                del parent[k]
    return ET.tostring(root)


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
