"""Elements of a URDF file: numbers, origins, inertias, shapes."""

import math
import sys
from urllib.parse import quote

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import InteropError
from kinetree.model.geometry import Box, Capsule, Cylinder, Mesh, Sphere
from kinetree.spatial.rotation import euler_angles

__all__ = ["NAMESPACE", "add", "add_inertial", "add_look", "add_origin", "own"]

NAMESPACE = "urn:kinetree:urdf:1"


def own(tag: str) -> str:
    """A tag of ours, as lxml wants it."""
    return f"{{{NAMESPACE}}}{tag}"


def add(parent, tag: str, **attributes):
    """A new element; numbers are written so that they read back as the same floats."""
    element = etree.SubElement(parent, tag)
    for name, value in attributes.items():
        text = value if isinstance(value, str) else _numbers(value, f"{name} of <{tag}>")
        try:
            element.set(name, text)
        except ValueError:
            raise InteropError(
                f"{text!r} holds characters that XML cannot; rename it before writing URDF"
            ) from None
    return element


def _numbers(values, what):
    return " ".join(_number(x, what) for x in np.ravel(np.asarray(values)))


def _number(x, what):
    try:
        x = float(x)
    except (TypeError, ValueError):
        raise InteropError(
            f"{what} is {x!r}, and URDF only holds numbers; put values in place of symbols first"
        ) from None
    if math.isinf(x):
        return repr(math.copysign(sys.float_info.max, x))
    return str(int(x)) if x.is_integer() and abs(x) < 1e15 else repr(x)


def add_origin(parent, X):
    """Where something is; nothing is written for the same place."""
    E, r = np.asarray(X.E, dtype=float), np.asarray(X.r, dtype=float)
    if np.array_equal(E, np.eye(3)) and not np.any(r):
        return
    yaw, pitch, roll = euler_angles("zyx", E)
    add(parent, "origin", xyz=r, rpy=(roll, pitch, yaw))


def add_inertial(link, inertia, what):
    """Mass, mass centre and inertia about it; nothing for a massless body."""
    if not np.any(inertia.parameters()):
        return
    if inertia.mass == 0 and np.any(inertia.first_moment):
        raise InteropError(
            f"{what} has a first moment without a mass, which is impossible and which URDF cannot "
            f"express; change it with model.replace(inertia=...)"
        )
    inertial = etree.SubElement(link, "inertial")
    massless = inertia.mass == 0
    I = inertia.rotational if massless else inertia.rotational_at_center
    add(inertial, "origin", xyz=(0, 0, 0) if massless else inertia.center_of_mass, rpy=(0, 0, 0))
    add(inertial, "mass", value=inertia.mass)
    add(
        inertial, "inertia",
        ixx=I[0, 0], ixy=I[0, 1], ixz=I[0, 2], iyy=I[1, 1], iyz=I[1, 2], izz=I[2, 2],
    )  # fmt: skip


def add_look(link, geometry) -> bool:
    """The visual and the collision of a shape; False where URDF has no such shape."""
    if type(geometry.shape) not in _SHAPES:
        return False
    for kind in ("visual", "collision"):
        if getattr(geometry, kind):
            element = add(link, kind, **({"name": geometry.name} if geometry.name else {}))
            add_origin(element, geometry.placement)
            _SHAPES[type(geometry.shape)](etree.SubElement(element, "geometry"), geometry.shape)
            if kind == "visual" and geometry.color is not None:
                add(add(element, "material", name=""), "color", rgba=geometry.color)
    return True


def _mesh(parent, mesh):
    path = mesh.path if "://" in mesh.path else "file://" + quote(mesh.path)
    add(parent, "mesh", filename=path, scale=mesh.scale)


_SHAPES = {
    Box: lambda parent, s: add(parent, "box", size=s.size),
    Sphere: lambda parent, s: add(parent, "sphere", radius=s.radius),
    Cylinder: lambda parent, s: add(parent, "cylinder", radius=s.radius, length=s.length),
    Capsule: lambda parent, s: add(parent, "capsule", radius=s.radius, length=s.length),
    Mesh: _mesh,
}
