"""Files of triangles, read through trimesh."""

import importlib
import os
from pathlib import Path

import numpy as np

from kinetree.errors import LoadError

__all__ = ["FORMATS", "LIMIT_BYTES", "read_triangles"]

FORMATS = (".stl", ".obj", ".ply", ".off")
LIMIT_BYTES = 256 * 2**20


def read_triangles(name, scale=(1.0, 1.0, 1.0), path=None):
    """The ``trimesh.Trimesh`` in a file, stretched by ``scale``.

    ``path`` is what to call the file in messages, if not by its name.
    """
    path = name if path is None else path
    kind = Path(name).suffix.lower()
    if kind not in FORMATS:
        raise LoadError(
            f"{path}: kinetree reads meshes from {', '.join(FORMATS)} files, not {kind!r}; "
            f"convert it first"
        )
    factors = np.broadcast_to(np.asarray(scale, dtype=float), 3)
    try:
        size = os.stat(name).st_size
        if size > LIMIT_BYTES:
            raise LoadError(f"{path}: the mesh has {size} bytes; at most {LIMIT_BYTES} are read")
        with open(name, "rb") as file:
            mesh = _parsed(file, kind, path)
    except OSError as error:
        raise LoadError(f"{path}: the mesh cannot be read: {error.strerror}") from None
    mesh.apply_transform(np.diag([*factors, 1.0]))
    return mesh


def _parsed(file, kind, path):
    trimesh = _trimesh()
    try:
        # A file object without a resolver: materials and textures elsewhere are not opened.
        mesh = trimesh.load_mesh(file, file_type=kind[1:], skip_materials=True)
    except Exception as error:  # trimesh raises whatever its parsers run into
        raise LoadError(f"{path}: this is no {kind[1:].upper()} mesh: {error}") from None
    if not isinstance(mesh, trimesh.Trimesh) or len(mesh.faces) == 0:
        raise LoadError(f"{path}: the mesh has no triangles")
    if not np.all(np.isfinite(mesh.vertices)):
        raise LoadError(f"{path}: the mesh has coordinates that are not finite")
    return mesh


def _trimesh():
    try:
        return importlib.import_module("trimesh")
    except ImportError as error:
        raise LoadError(
            f"reading meshes needs trimesh, which cannot be imported ({error}): "
            f'pip install "kinetree[mesh]"'
        ) from error
