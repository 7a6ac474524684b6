"""Links: inertia and geometry."""

from typing import NamedTuple

import numpy as np

from kinetree.loaders.paths import Folders
from kinetree.loaders.urdf.elements import origin_in
from kinetree.loaders.urdf.shapes import Look, Materials, looks_in
from kinetree.loaders.xml import Node
from kinetree.model.validate import inertia_defect
from kinetree.spatial import Inertia

__all__ = ["Link", "read_links"]


class Link(NamedTuple):
    """A link of the file; ``possible`` says whether a rigid body can have its inertia."""

    name: str
    inertia: Inertia
    possible: bool
    looks: list[Look]
    node: Node


def read_links(robot: Node, folders: Folders) -> dict[str, Link]:
    """All links by name, in the order of the file."""
    links: dict[str, Link] = {}
    materials = Materials(robot)
    for node in robot.all("link"):
        name = node.need("name")
        if name in links:
            first = links[name].node.line
            raise node.error(f"the name is taken by another link, on line {first}; rename one")
        links[name] = Link(name, *_inertia(node, name), looks_in(node, materials, folders), node)
    if not links:
        raise robot.error("the robot has no <link>")
    return links


def _inertia(link, name):
    inertial = link.one("inertial")
    if inertial is None:
        return Inertia.zero(), True
    X = origin_in(inertial)
    mass = inertial.need_one("mass").number("value")
    entries = inertial.need_one("inertia")
    xx, yy, zz = (entries.number(key) for key in ("ixx", "iyy", "izz"))
    xy, xz, yz = (entries.number(key, 0.0) for key in ("ixy", "ixz", "iyz"))
    I_C = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    inertia = Inertia.from_mass_center(mass, X.r, X.E.T @ I_C @ X.E)
    defect = inertia_defect(inertia)
    if defect:
        why = f"physically impossible, kept as it is: {defect}"
        inertial.note(f"inertia of link {name!r}", why)
    return inertia, not defect
