"""Meshes: mass, inertia and size of the solid that a file of triangles encloses, through trimesh.

Loading a robot only looks up where its meshes are; these functions open them.
"""

import os

import numpy as np

from kinetree.errors import LoadError
from kinetree.loaders.paths import Folders
from kinetree.model.triangles import FORMATS, convex_hull, read_triangles
from kinetree.spatial import Inertia

__all__ = ["FORMATS", "mesh_bounds", "mesh_file", "mesh_inertia"]


def mesh_inertia(
    path, *, density=None, mass=None, scale=(1.0, 1.0, 1.0), hull=False, folders=None
) -> Inertia:
    """Inertia of the homogeneous solid that a mesh encloses, in mesh coordinates.

    Args:
        path: an STL, OBJ, PLY or OFF file, or a name such as ``package://...`` with ``folders``.
        density: [kg/m³]; either this or ``mass``.
        mass: [kg].
        scale: along x, y and z, such as 0.001 for a mesh in millimetres.
        hull: take the convex hull, for meshes that are not closed.
        folders: the only folders that may be read, if given.
    """
    if (density is None) == (mass is None):
        raise LoadError(f"mesh_inertia needs either density or mass, got {density=}, {mass=}")
    mesh = _open(path, scale, folders)
    mesh = convex_hull(mesh, path) if hull else mesh
    if not mesh.is_watertight:
        raise LoadError(
            f"{path}: the mesh is not closed and encloses no volume; pass hull=True to take its "
            f"convex hull"
        )
    volume = abs(float(mesh.volume))
    if not np.isfinite(volume) or volume == 0:
        raise LoadError(f"{path}: the volume of the mesh is {volume:g} m³; it must be positive")
    if mass is None:
        mass = density * volume  # type: ignore[operator]
    # A mesh turned inside out has a negative volume, and an inertia of the same sign.
    about_center = np.array(mesh.moment_inertia) / float(mesh.volume) * mass
    return Inertia.from_mass_center(mass, np.array(mesh.center_mass), about_center)


def mesh_bounds(path, *, scale=(1.0, 1.0, 1.0), folders=None):
    """Smallest and largest coordinates of a mesh along x, y, z [m], (2, 3)."""
    return np.array(_open(path, scale, folders).bounds)


def _open(path, scale, folders):
    """Triangles of a mesh file, searched in folders."""
    name = os.fspath(path)
    if folders is not None:
        name = Folders(None, folders).resolve(name)
    return read_triangles(name, scale, path)


# --- Files of meshes -----------------------------------------------------------------------------


def mesh_file(name: str, folders: Folders, note) -> str | None:
    """Path of a mesh file, or None; ``note(why)`` is called if it cannot be used.

    A file that is missing keeps its path, and a package that is missing its name. What lies outside
    the allowed folders is left out, so that it is not opened later.
    """
    try:
        path = folders.locate(name)
    except LoadError as error:
        note(str(error))
        harmless = name.startswith(("package://", "model://")) and ".." not in name
        return name if harmless else None
    if not os.path.isfile(path):
        note(f"there is no file {path!r}")
    return path
