"""Links of a URDF file: inertia, visuals, collisions, materials."""

import re
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kinetree.loaders.meshes import mesh_file
from kinetree.loaders.paths import Folders
from kinetree.loaders.urdf.elements import origin_in
from kinetree.loaders.xml import Node
from kinetree.model.geometry import Mesh, Surface, solids_of_format
from kinetree.model.validate import inertia_defect
from kinetree.spatial import Inertia, Plucker


class Look(NamedTuple):
    """A shape on a link."""

    shape: Any
    placement: Plucker
    name: str
    visual: bool
    color: tuple | None
    surface: Surface | None = None


class Link(NamedTuple):
    """A link of the file; ``possible`` says whether a rigid body can have its inertia."""

    name: str
    inertia: Inertia
    possible: bool
    looks: list[Look]
    node: Node


def read_links(robot: Node, folders: Folders) -> dict[str, Link]:
    """Links of a URDF robot by name, in the order of the file."""
    links: dict[str, Link] = {}
    materials, surfaces = Materials(robot), _surfaces(robot)
    for node in robot.all("link"):
        name = node.need("name")
        if name in links:
            first = links[name].node.line
            raise node.error(f"the name is taken by another link, on line {first}; rename one")
        for origin in node.all("origin"):
            _note_origin(origin)
        looks = looks_in(node, materials, folders)
        if name in surfaces:
            looks = [x if x.visual else x._replace(surface=surfaces[name]) for x in looks]
        links[name] = Link(name, *_inertia(node, name), looks, node)
    if not links:
        raise robot.error("the robot has no <link>")
    return links


def _note_origin(origin):
    """Add a notice about an ``<origin>`` in a link, unless it is zero."""
    given = " ".join(origin.get(key, "") or "" for key in ("xyz", "rpy"))
    stays = not any(map(_is_not_zero, given.split()))
    why = "a link has none in URDF, and other programs skip it, too; joints, inertias and shapes do"
    origin.ignore(why, effect="setting" if stays else "motion")


def _is_not_zero(text):
    """Whether a text is anything but zero."""
    return text.strip("+-0.") != ""


def _inertia(link, name):
    """Inertia of a URDF link, and whether the file has none."""
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


_NUMBER = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def _surfaces(robot):
    """Friction coefficients of links by name, from Gazebo's extension."""
    found = {}
    for node in robot.all("gazebo"):
        given = _friction_in(node)
        if given and node.get("reference"):
            found[node.get("reference")] = Surface(max(given))
    return found


def is_friction_alone(node: Node) -> bool:
    """Whether a Gazebo extension only contains a link's friction."""
    count = len(node.element.findall("*"))
    return node.get("reference") is not None and 0 < len(_friction_in(node)) == count


def _friction_in(node):
    """Valid friction coefficients ``<mu1>`` and ``<mu2>`` of a URDF element."""
    texts = [n.text() for n in node.all("mu1", "mu2")]
    return [float(x) for x in texts if _NUMBER.fullmatch(x)]


# --- Visuals, collisions, materials --------------------------------------------------------------


def looks_in(link: Node, materials: "Materials", folders: Folders) -> list[Look]:
    """Visual and collision shapes of a link."""
    looks = []
    for node in link.all("visual", "collision"):
        look = node.tolerate(partial(_look_in, node, materials, folders), None)
        if look is not None:
            looks.append(look)
    return looks


def _look_in(node, materials, folders):
    """Shape of a URDF visual or collision; None, with a notice, if it has none."""
    shape = _shape_in(node, folders)
    visual = node.tag == "visual"
    color = materials.color(node) if visual else None
    placement = origin_in(node)
    if shape is None:
        node.ignore("it has no shape that can be drawn, only an empty or unknown one")
        return None
    return Look(shape, placement, node.get("name") or "", visual, color)


def _shape_in(node, folders):
    """Shape of a URDF element, or None."""
    geometry = node.one("geometry")
    shapes = [] if geometry is None else geometry.all(*_SHAPES)
    for other in shapes[1:]:
        other.ignore("a second shape, where the first counts; give each its own <visual>")
    return _SHAPES[shapes[0].tag](shapes[0], folders) if shapes else None


def _solid(kind):
    """Reader function for one kind of solid."""

    def read(node, folders):
        given = {name: node.numbers(name, count) for name, count in kind.counts().items()}
        if not all(_positive(node, name, sizes) for name, sizes in given.items()):
            return None
        return kind.from_sizes([x for sizes in given.values() for x in sizes])

    return read


def _positive(node, what, sizes):
    """Whether sizes are positive; adds a notice if not."""
    if min(sizes) > 0:
        return True
    node.note(f"<{node.tag}>", f"a shape of {what} {min(sizes):g} cannot be seen or touched")
    return False


def _mesh(node, folders):
    """Mesh of a URDF element, or None where its file is missing."""
    name = node.need("filename")
    scale = node.numbers("scale", None, (1.0, 1.0, 1.0))
    if len(scale) in (0, 2):
        raise node.error(f"attribute 'scale' must be 3 numbers, got {len(scale)}")
    if len(scale) > 3:
        node.note("<mesh>", f"attribute 'scale' has {len(scale)} numbers: the first three count")
    scale = scale * 3 if len(scale) == 1 else scale[:3]
    path = mesh_file(name, folders, lambda why: node.note("<mesh>", why))
    return None if path is None else Mesh(path, scale)


_SHAPES = {tag: _solid(kind) for tag, kind in solids_of_format("urdf").items()} | {"mesh": _mesh}


class Materials:
    """Colours by name, from anywhere in the file: many files define one where it is first used."""

    def __init__(self, robot: Node):
        self._colors = {}
        visuals = [v for link in robot.all("link") for v in link.all("visual")]
        for node in [m for place in (robot, *visuals) for m in place.all("material")]:
            color = node.tolerate(partial(_color_in, node), None)
            if color is not None and node.get("name"):
                self._colors.setdefault(node.get("name"), color)

    def color(self, visual: Node) -> tuple | None:
        """RGBA colour of a URDF visual, its own or of a named material."""
        material = visual.one("material")
        if material is None:
            return None
        name, color = material.get("name"), material.tolerate(partial(_color_in, material), None)
        if color is None and name:
            color = self._colors.get(name)
            if color is None and not material.all():
                material.note(f"material {name!r}", "nothing in the file defines it")
        return color


def _color_in(material):
    """RGBA colour of a URDF material, or None."""
    color = material.one("color")
    if color is None:
        return None
    rgba = color.numbers("rgba", None)
    if len(rgba) == 3:
        rgba = (*rgba, 1.0)
    if len(rgba) != 4:
        raise color.error(f"attribute 'rgba' must be 4 numbers, got {len(rgba)}")
    return tuple(min(max(x, 0.0), 1.0) for x in rgba)
