"""Geoms and sites of a compiled MuJoCo model as geometry and frames."""

import numpy as np

from kinetree.loaders.mjcf.names import names_of, unused
from kinetree.loaders.mjcf.numbers import placement
from kinetree.model import Frame
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    Mesh,
    Plane,
    Sphere,
)

__all__ = ["geometry_of", "sites_of"]

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)  # mjtGeom
_DEFAULT_COLOR = np.array([0.5, 0.5, 0.5, 1], dtype=np.float32)
_SHOWN_GROUPS = 3  # MuJoCo's viewers show groups 0, 1 and 2


def geometry_of(mj_model, tree, tell, paths=None):
    """Every geom that has a shape of ours; ``paths`` are those of mesh files by MuJoCo's name."""
    found = []
    for g, name in enumerate(names_of(mj_model, "geom")):
        X = placement(mj_model.geom_pos[g], mj_model.geom_quat[g])
        if mj_model.geom_type[g] == MESH:
            shape, X = _mesh(mj_model, mj_model.geom_dataid[g], X, paths or {})
        else:
            shape = _shape(int(mj_model.geom_type[g]), [float(x) for x in mj_model.geom_size[g]])
        if shape is None:
            tell("geom", name, "its shape, such as a height field, has no counterpart here")
            continue
        place = tree.places[mj_model.geom_bodyid[g]]
        collides = mj_model.geom_contype[g] or mj_model.geom_conaffinity[g]
        found.append(
            Geometry(
                place.body, shape, X @ place.X, name,
                visual=bool(mj_model.geom_group[g] < _SHOWN_GROUPS),
                collision=bool(collides),
                color=_color(mj_model, g),
            )
        )  # fmt: skip
    return tuple(found)


def _shape(kind, size):
    """Sizes of MuJoCo are half lengths."""
    if kind == PLANE:
        return Plane((2 * size[0] or 10.0, 2 * size[1] or 10.0))
    if kind == SPHERE:
        return Sphere(size[0])
    if kind == CAPSULE:
        return Capsule(size[0], 2 * size[1])
    if kind == ELLIPSOID:
        return Ellipsoid((size[0], size[1], size[2]))
    if kind == CYLINDER:
        return Cylinder(size[0], 2 * size[1])
    if kind == BOX:
        return Box((2 * size[0], 2 * size[1], 2 * size[2]))
    return None


def _mesh(mj_model, mesh, X, paths):
    """MuJoCo moves a mesh to its principal frame; the file has it where it was."""
    start = int(mj_model.mesh_pathadr[mesh]) if mesh >= 0 else -1
    if start < 0:
        return None, X
    text = bytes(mj_model.paths)
    file = text[start : text.index(b"\0", start)].decode("utf-8", "replace")
    moved = placement(mj_model.mesh_pos[mesh], mj_model.mesh_quat[mesh])
    x, y, z = (float(s) for s in mj_model.mesh_scale[mesh])
    return Mesh(paths.get(file, file), (x, y, z)), moved.inverse() @ X


def _color(mj_model, g):
    color, material = mj_model.geom_rgba[g], int(mj_model.geom_matid[g])
    if material >= 0 and np.array_equal(color, _DEFAULT_COLOR):
        color = mj_model.mat_rgba[material]
    red, green, blue, opacity = (float(str(c)) for c in np.asarray(color, dtype=np.float32))
    return red, green, blue, opacity


def sites_of(mj_model, tree):
    """Every site as a frame."""
    taken = {*tree.body_names, *(b.name for b in tree.bodies), *(f.name for f in tree.frames)}
    frames = []
    for s, given in enumerate(names_of(mj_model, "site")):
        place = tree.places[mj_model.site_bodyid[s]]
        X = placement(mj_model.site_pos[s], mj_model.site_quat[s]) @ place.X
        frames.append(Frame(unused(given or f"site_{s}", "site", taken), place.body, X))
    return tuple(frames)
