"""Meshes of a model that are not where it says, or not what it says."""

import os
from functools import lru_cache
from importlib.util import find_spec

import numpy as np

from kinetree.doctor.finding import found, named
from kinetree.doctor.units import LONGEST
from kinetree.errors import LoadError
from kinetree.model.geometry import Mesh
from kinetree.model.triangles import FORMATS, read_triangles

__all__ = ["missing", "opened"]


def missing(model):
    """Every mesh whose file does not exist."""
    for part, mesh in _meshes(model):
        if not os.path.isfile(mesh.path):
            yield found("mesh-missing", part, f"there is no file {mesh.path!r}")


def opened(model):
    """Meshes that cannot be read, and those of dozens of metres."""
    there = [
        (part, mesh) for part, mesh in _meshes(model)
        if os.path.isfile(mesh.path) and mesh.path.lower().endswith(FORMATS)
    ]  # fmt: skip
    if there and find_spec("trimesh") is None:
        text = f"its {len(there)} meshes were not opened, since trimesh is not installed"
        yield found("mesh-unseen", named("model", model.name), text)
        return
    for part, mesh in dict.fromkeys(there):
        try:
            size = _size(mesh.path, os.stat(mesh.path).st_mtime_ns, *mesh.scale)
        except (LoadError, OSError) as error:
            yield found("mesh-broken", part, str(error))
            continue
        if size > LONGEST:
            text = f"the mesh {os.path.basename(mesh.path)!r} measures {size:.4g} m across"
            yield found("unit-length", part, text)


def _meshes(model):
    for geometry in model.geometry:
        if isinstance(geometry.shape, Mesh):
            yield named("body", model.body_names[geometry.body]), geometry.shape


@lru_cache(maxsize=1024)
def _size(path, changed, *scale):
    del changed  # a file that has changed is read again
    return float(np.linalg.norm(np.ptp(read_triangles(path, scale).bounds, axis=0)))
