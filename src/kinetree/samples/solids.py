"""Solids: one description for the inertia of a body and for what is seen of it.

``add_body`` and ``add_scenery`` put them on a builder, ``with_looks`` on a finished model. A solid
without mass is decoration: it is drawn and touches nothing, unless it is listed as touching.
"""

from dataclasses import dataclass

import numpy as np

from kinetree.model import Actuator, Posture, geometry, shapes
from kinetree.model.geometry import Geometry
from kinetree.model.parts import as_placement
from kinetree.spatial import Inertia, Plucker, rot

STEEL, DARK = (0.72, 0.75, 0.78, 1.0), (0.26, 0.28, 0.31, 1.0)
WHITE, GOLD = (0.92, 0.92, 0.90, 1.0), (0.90, 0.72, 0.25, 1.0)
BLUE, GREEN = (0.20, 0.45, 0.75, 1.0), (0.30, 0.62, 0.38, 1.0)
ORANGE, RED = (0.93, 0.50, 0.13, 1.0), (0.78, 0.22, 0.20, 1.0)

# Rows: axes of the shape in body coordinates, with z of the shape along the axis named.
_ALONG = {
    "x": np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    "y": np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]]),
}


@dataclass(frozen=True, eq=False)
class UniformSolid:
    """A shape of uniform density, fixed to a body."""

    shape: geometry.Shape
    inertia: Inertia
    placement: Plucker
    color: tuple[float, float, float, float]


def box(x, y, z, *, mass=0.0, at=None, color=STEEL):
    """Cuboid solid with mass, placement and colour."""
    inertia = shapes.box(x, y, z, mass=mass, at=at)
    return UniformSolid(geometry.Box((x, y, z)), inertia, as_placement(at), color)


def sphere(radius, *, mass=0.0, at=None, color=STEEL):
    """Ball solid with mass, placement and colour."""
    inertia = shapes.sphere(radius, mass=mass, at=at)
    return UniformSolid(geometry.Sphere(radius), inertia, as_placement(at), color)


def ellipsoid(a, b, c, *, mass=0.0, at=None, color=STEEL):
    """Ellipsoid solid by semi-axes, with mass, placement and colour."""
    inertia = shapes.ellipsoid(a, b, c, mass=mass, at=at)
    return UniformSolid(geometry.Ellipsoid((a, b, c)), inertia, as_placement(at), color)


def cylinder(radius, length, *, mass=0.0, at=None, axis="z", color=STEEL):
    """Cylinder solid along an axis, with mass, placement and colour."""
    inertia = shapes.cylinder(radius, length, mass=mass, at=at, axis=axis)
    return UniformSolid(geometry.Cylinder(radius, length), inertia, _along(axis, at), color)


def capsule(radius, length, *, mass=0.0, at=None, axis="z", color=STEEL):
    """Capsule solid along an axis, with mass, placement and colour."""
    inertia = shapes.capsule(radius, length, mass=mass, at=at, axis=axis)
    return UniformSolid(geometry.Capsule(radius, length), inertia, _along(axis, at), color)


def _along(axis, at):
    """Placement whose z axis is along the given axis."""
    return as_placement(at) if axis == "z" else rot(_ALONG[axis]) @ as_placement(at)


def inertia_of(solids):
    """Inertia of several solids as one body."""
    first, *others = (s.inertia for s in solids if s.inertia.mass > 0)
    return sum(others, start=first)


def add_body(builder, name, *solids, inertia=None, touches=True, **options):
    """Add a body with the looks of solids, and their inertia unless one is given.

    With ``touches=False`` the solids are drawn and touch nothing: housings of joints, which are
    inside the bodies that they connect.
    """
    builder.body(name, inertia=inertia_of(solids) if inertia is None else inertia, **options)
    return add_scenery(builder, *solids, on=name, touches=touches)


def add_scenery(builder, *solids, on=None, touches=True):
    """Add the looks of solids to a body or the base, without inertia."""
    for s in solids:
        collision = touches and _touches(s)
        builder.geometry(s.shape, on=on, at=s.placement, color=s.color, collision=collision)
    return builder


def with_looks(model, solids, touching=None):
    """Model with the looks of solids, listed by body or frame name.

    What is ``touching``, listed alike, is not drawn and touches in place of the looks.
    """
    pieces = []
    for listed, visual in ((solids, True), (touching or {}, False)):
        for name, s in ((name, s) for name, several in listed.items() for s in several):
            frame = model.frame(name)
            hit = _touches(s) and name not in (touching or {}) if visual else True
            looks = {"visual": visual, "collision": hit, "color": s.color}
            place = s.placement @ frame.placement
            pieces.append(Geometry(frame.body, s.shape, place, **looks))
    return model.replace(geometry=(*model.geometry, *pieces))


def _touches(solid):
    """Whether a solid has mass, and therefore contact."""
    return solid.inertia.mass > 0


def with_motors(model, joints=None):
    """Model with a motor on each named joint, or on all joints of one freedom."""
    chosen = [b.joint_name for b in model.bodies if b.joint.nv == 1] if joints is None else joints
    motors = []
    for name in chosen:
        i = model.joint_index(name)
        most = model.bodies[i - 1].limits.effort[0]
        bounds = (-most, most)
        motors.append(Actuator(f"{name}_motor", i, control=bounds, effort=bounds))
    return model.replace(actuators=(*model.actuators, *motors))


def with_posture(model, name, q):
    """Model with one more posture; joints not named are neutral.

    Args:
        model: the model.
        name: of the posture.
        q: position variables by the name of the joint.
    """
    positions, velocities = model.neutral(), model.zero_velocity.astype(float)
    for joint, value in q.items():
        positions[model.q_slice[model.joint_index(joint)]] = value
    posture = Posture(name, tuple(positions.tolist()), tuple(velocities.tolist()))
    return model.replace(postures=(*model.postures, posture))
