"""Links: inertia, given or from the shapes that can touch."""

from typing import NamedTuple

import numpy as np

from kinetree.errors import ModelError
from kinetree.loaders.paths import Folders
from kinetree.loaders.sdf.poses import number_in, pose_in
from kinetree.loaders.sdf.shapes import Look, looks_in
from kinetree.loaders.xml import Node
from kinetree.model import geometry, shapes
from kinetree.model.validate import inertia_defect
from kinetree.spatial import Inertia, Plucker

__all__ = ["Link", "read_link"]

_DENSITY = 1000.0  # [kg/m³] where the file says nothing, as the standard has it


class Link(NamedTuple):
    """A link of the file."""

    inertia: Inertia
    looks: list[Look]
    node: Node


def read_link(node: Node, folders: Folders) -> Link:
    """A ``<link>``."""
    looks = looks_in(node, folders)
    inertia = _inertia(node, looks)
    if not np.all(np.isfinite(inertia.parameters())):
        raise node.error("the numbers are so large that the inertia is not finite")
    defect = inertia_defect(inertia)
    if defect:
        why = f"physically impossible, kept as it is: {defect}"
        node.note(f"inertia of link {node.get('name')!r}", why)
    return Link(inertia, looks, node)


def _inertia(link, looks):
    """Of mass 1 and unit moments where the file says nothing: the defaults of the standard."""
    inertial = link.one("inertial")
    if inertial is not None and inertial.get("auto", "false") in ("true", "1"):
        return _from_collisions(link, inertial, looks)
    mass = number_in(inertial, "mass", 1.0)
    X = Plucker.identity() if inertial is None else _center_in(inertial)
    entries = None if inertial is None else inertial.one("inertia")
    xx, yy, zz = (number_in(entries, tag, 1.0) for tag in ("ixx", "iyy", "izz"))
    xy, xz, yz = (number_in(entries, tag, 0.0) for tag in ("ixy", "ixz", "iyz"))
    I_C = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertia.from_mass_center(mass, X.r, X.E.T @ I_C @ X.E)


def _center_in(inertial):
    pose = pose_in(inertial)
    if pose.relative_to is not None:
        inertial.note("<inertial>: relative_to", "SDF has it relative to the link, as it is taken")
    return pose.placement


def _from_collisions(link, inertial, looks):
    """``<inertial auto="true">``: the collision shapes, of the densities that the file gives."""
    usual = number_in(inertial, "density", _DENSITY)
    total = Inertia.zero()
    for look in looks:
        if look.visual:
            continue
        solid = _solid(look.shape, number_in(look.node, "density", usual))
        if solid is None:
            look.node.note("<collision>", "its inertia is not computed: not a simple solid")
            continue
        if look.pose.relative_to not in (None, link.get("name")):
            raise look.node.error("inertia from shapes needs their poses relative to the link")
        total = total + solid.inverse_transformed(look.pose.placement)
    if total.mass == 0:
        raise inertial.error("auto='true', but no collision shape of the link has a mass")
    mass = number_in(inertial, "mass", float(total.mass))
    return total * (mass / total.mass)


def _solid(shape, density):
    match shape:
        case geometry.Box(size):
            sizes, make = size, shapes.box
        case geometry.Sphere(radius):
            sizes, make = (radius,), shapes.sphere
        case geometry.Cylinder(radius, length):
            sizes, make = (radius, length), shapes.cylinder
        case geometry.Capsule(radius, length):
            sizes, make = (radius, length), shapes.capsule
        case geometry.Ellipsoid(radii):
            sizes, make = radii, shapes.ellipsoid
        case _:
            return None
    try:
        return make(*sizes, density=density)
    except ModelError:
        return None
