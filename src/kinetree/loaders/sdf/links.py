"""Links of an SDF file: inertia, given or from collision shapes; visuals and collisions."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import ModelError
from kinetree.joints.axis import as_axis, completed_basis
from kinetree.loaders.meshes import mesh_file
from kinetree.loaders.paths import Folders
from kinetree.loaders.sdf.frames import Pose, number_in, pose_in
from kinetree.loaders.xml import Node
from kinetree.model.geometry import Mesh, Plane, Solid, Surface, solids_of_format
from kinetree.model.validate import inertia_defect
from kinetree.spatial import Inertia, Plucker
from kinetree.spatial.vector3 import ZERO3

_DENSITY = 1000.0  # [kg/m³] where the file says nothing, as the standard has it


class Look(NamedTuple):
    """A shape on a link; ``turn`` takes the frame of the pose to that of the shape."""

    shape: Any
    pose: Pose
    turn: Plucker
    name: str
    visual: bool
    color: tuple | None
    node: Node
    surface: Surface | None = None


class Link(NamedTuple):
    """A link of the file."""

    inertia: Inertia
    looks: list[Look]
    node: Node


def read_link(node: Node, folders: Folders) -> Link:
    """Link data of a ``<link>`` element."""
    inertial = node.one("inertial")
    looks = looks_in(node, folders, strict=_is_automatic(inertial))
    inertia = _inertia(node, inertial, looks)
    if not np.all(np.isfinite(inertia.parameters())):
        raise node.error("the numbers are so large that the inertia is not finite")
    defect = inertia_defect(inertia)
    if defect:
        why = f"physically impossible, kept as it is: {defect}"
        node.note(f"inertia of link {node.get('name')!r}", why)
    return Link(inertia, looks, node)


def _is_automatic(inertial):
    """Whether the inertia is to be computed from collision shapes."""
    return inertial is not None and inertial.get("auto", "false") in ("true", "1")


def _inertia(link, inertial, looks):
    """Inertia of an SDF link; SDF's default (mass 1, unit moments) if the file has none."""
    if _is_automatic(inertial):
        return _from_collisions(link, inertial, looks)
    mass = number_in(inertial, "mass", 1.0)
    X = Plucker.identity() if inertial is None else _center_in(inertial)
    entries = None if inertial is None else inertial.one("inertia")
    xx, yy, zz = (number_in(entries, tag, 1.0) for tag in ("ixx", "iyy", "izz"))
    xy, xz, yz = (number_in(entries, tag, 0.0) for tag in ("ixy", "ixz", "iyz"))
    I_C = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertia.from_mass_center(mass, X.r, X.E.T @ I_C @ X.E)


def _center_in(inertial):
    """Placement of the centre of mass in a link."""
    pose = pose_in(inertial)
    if pose.relative_to is not None:
        inertial.note("<inertial>: relative_to", "SDF has it relative to the link, as it is taken")
    return pose.placement


def _from_collisions(link, inertial, looks):
    """Inertia of an SDF link from its collision shapes and their densities."""
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
    """Inertia of a solid of uniform density, or None for other shapes."""
    try:
        return shape.inertia(density) if isinstance(shape, Solid) else None
    except ModelError:
        return None


# --- Visuals, collisions, materials --------------------------------------------------------------


def looks_in(link: Node, folders: Folders, *, strict=False) -> list[Look]:
    """Visual and collision shapes of a link that kinetree supports.

    What is wrong with one of them is a notice; with ``strict`` it is an error where the shape is
    one for collisions.
    """
    looks = []
    for node in link.all("visual", "collision"):
        read = partial(_look_in, node, folders)
        needed = strict and node.tag == "collision"
        look = read() if needed else node.tolerate(read, None)
        if look is not None:
            looks.append(look)
    return looks


def _look_in(node, folders):
    """Shape of a ``<visual>`` or ``<collision>``, or None."""
    name, pose, visual = node.get("name") or "", pose_in(node), node.tag == "visual"
    shape, turn = _shape_in(node, folders)
    if shape is None:
        return None
    color = _color_in(node) if visual else None
    surface = None if visual else _surface_in(node)
    return Look(shape, pose, turn, name, visual, color, node, surface)


_ALL_BITS = 0xFFFF


def _surface_in(collision):
    """Contact surface of a collision: friction, restitution and collide mask."""
    node = collision.one("surface")
    return None if node is None else node.tolerate(partial(_surface_of, node), None)


def _surface_of(node):
    """Contact surface and collide bits from a ``<surface>``."""
    ode = _inside(node, "friction", "ode")
    mu = [number_in(ode, tag, -1.0) for tag in ("mu", "mu2")]
    if min(mu) >= 0 and mu[0] != mu[1]:
        node.note("<friction>", "it differs in two directions; the larger holds in both")
    restitution = number_in(_inside(node, "bounce"), "restitution_coefficient", -1.0)
    bitmask = _inside(node, "contact", "collide_bitmask")
    bits = _ALL_BITS if bitmask is None else _whole(bitmask)
    if bitmask is None and max(*mu, restitution) < 0:
        return None
    friction, restitution = (x if x >= 0 else None for x in (max(mu), restitution))
    return Surface(friction, restitution=restitution, contype=bits, conaffinity=bits)


def _whole(node):
    """Integer value of an SDF element's text."""
    try:
        return int(node.text(), 0)
    except ValueError:
        raise node.error(f"must be an integer, got {node.text()!r}") from None


def _inside(node, *tags):
    """Nested element by a path of tags, or None."""
    for tag in tags:
        node = None if node is None else node.one(tag)
    return node


def _shape_in(node, folders):
    """Shape of an SDF element and its rotation; None without one."""
    geometry = node.one("geometry")
    shapes = [] if geometry is None else geometry.all()
    turn = Plucker.identity()
    if not shapes or shapes[0].tag == "empty":
        return None, turn
    for other in shapes[1:]:
        other.ignore("a second shape, where the first counts; give each its own element")
    shape = shapes[0]
    if shape.tag == "plane":
        turn = _turn_to(shape)
    if shape.tag not in _SHAPES:
        shape.ignore(f"kinetree has no such shape, only {', '.join(_SHAPES)}")
        return None, turn
    return _SHAPES[shape.tag](shape, folders), turn


def _sizes(node, tag, count, default, *, positive=True) -> Any:
    """Sizes of a shape; a notice if they are not positive."""
    child = node.one(tag)
    values = default if child is None else child.text_numbers(count)
    if positive and min(values) <= 0:
        node.note(f"<{node.tag}>", f"a shape of {tag} {min(values):g} cannot be seen or touched")
        return None
    return values


def _reader(kind):
    """Reader function for one kind of solid."""

    def read(node, folders):
        counts, given, first = kind.counts(), [], 0
        usual = kind.usual or (1.0,) * sum(counts.values())
        for name, count in counts.items():
            given.append(_sizes(node, name, count, usual[first : first + count]))
            first += count
        return kind.from_sizes([x for sizes in given for x in sizes]) if all(given) else None

    return read


def _plane(node, folders):
    """Plane shape of an SDF element."""
    return Plane(_sizes(node, "size", 2, (1.0, 1.0), positive=False))


def _turn_to(node):
    """Rotation from a plane's pose frame to one whose z axis is the normal."""
    child = node.one("normal")
    normal = (0.0, 0.0, 1.0) if child is None else child.text_numbers(3)
    if not any(normal):
        raise node.error("the normal must not be zero")
    axis = as_axis(normal)
    return Plucker(np.array([*completed_basis(axis), axis]), ZERO3)


def _mesh(node, folders):
    """Mesh of an SDF element, or None where its file is missing."""
    uri, scale = node.need_one("uri").text(), _sizes(node, "scale", 3, (1.0,) * 3, positive=False)
    path = mesh_file(uri, folders, lambda why: node.note("<mesh>", why))
    convex = node.get("optimization") != "convex_decomposition"
    return None if path is None else Mesh(path, scale, convex)


_SHAPES = {tag: _reader(kind) for tag, kind in solids_of_format("sdf").items()}
_SHAPES |= {"plane": _plane, "mesh": _mesh}


def _color_in(visual):
    """RGBA colour of an SDF visual: diffuse or ambient, with its transparency."""
    material, opacity = visual.one("material"), 1.0 - _transparency(visual.one("transparency"))
    rgba = None if material is None else material.tolerate(partial(_rgba_in, material), None)
    if rgba is None:
        return None if opacity == 1.0 else (0.7, 0.7, 0.7, _unit(opacity))
    r, g, b, a = (*rgba, 1.0)[:4]
    return _unit(r), _unit(g), _unit(b), _unit(a * opacity)


def _transparency(node):
    """Transparency of a visual, zero by default."""
    return 0.0 if node is None else node.tolerate(lambda: node.text_numbers(1)[0], 0.0)


def _rgba_in(material):
    """RGBA colour of an SDF material, or None."""
    colors = [material.one(tag) for tag in ("diffuse", "ambient")]
    color = next((c for c in colors if c is not None), None)
    if color is None:
        return None
    rgba = color.text_numbers(None)
    if len(rgba) not in (3, 4):
        raise color.error(f"a colour is 3 or 4 numbers, got {len(rgba)}")
    return rgba


def _unit(x):
    """Number clipped to the range from 0 to 1."""
    return min(max(x, 0.0), 1.0)
