"""Fluids as options of MJCF, and the shapes that they flow around as geoms."""

import numpy as np

from kinetree.joints import Free
from kinetree.loaders.mjcf.fluids import NONE
from kinetree.model.geometry import Box
from kinetree.model.limits import has_dynamics
from kinetree.writers.mjcf.elements import element, numbers, pose_attributes

_NO_FLUID = [0.0] * 5  # ``fluidcoef``, with which nothing acts but the fluid that is carried along


def write_fluid_forces(model, elements, root, left_out):
    """Write fluid forces by inertia boxes or ellipsoids of bodies.

    MuJoCo has one fluid, which is around every body: those without one get a tiny shape.
    """
    forces = [f for f in model.fluid_forces if not _is_of_armature(model, f)]
    if not forces:
        return
    medium = {(f.density, f.viscosity, f.wind) for f in forces}
    if len(medium) > 1:
        left_out.append("fluid forces of more than one fluid")
        return
    ((density, viscosity, wind),) = medium
    option = root.find("option")
    option.set("density", numbers([density]))
    option.set("viscosity", numbers([viscosity]))
    if any(wind):
        option.set("wind", numbers(wind))
    for i, name in enumerate(model.body_names[1:], start=1):
        if not model.inertia[i].mass:
            continue
        parts = [f for f in forces if f.body == i]
        boxes = [f for f in parts if isinstance(f.shape, Box)]
        if len(parts) == len(boxes) == 1 and _is_own(boxes[0], model.inertia[i]):
            _align(elements[i].find("inertial"), boxes[0], model.inertia[i])
            continue
        if boxes:
            left_out.append(
                f"the fluid around body {name!r}, whose box is not that of its inertia (load files "
                f"with lump=False to keep bodies apart)"
            )
        ellipsoids = [f for f in parts if f not in boxes]
        for f in ellipsoids:
            _shape(elements[i], f.shape.radii, f.coefficients, pose_attributes(f.placement))
        if not ellipsoids:
            _shape(elements[i], [NONE] * 3, _NO_FLUID, {})


def _is_of_armature(model, f):
    """Whether MuJoCo has a fluid force already, as part of a free joint's armature."""
    body = model.bodies[f.body - 1]
    armed = isinstance(body.joint, Free) and has_dynamics(body, "armature")
    return armed and f.is_momentum and set(body.dynamics.armature) == {f.density}


def _is_own(f, inertia):
    """Whether a fluid box is the inertia box of its body."""
    I, (x, y, z) = _along(f, inertia), f.shape.size
    m, size = inertia.mass, max(f.shape.size)
    own = m / 12 * np.diag([y * y + z * z, z * z + x * x, x * x + y * y])
    there = np.allclose(f.placement.r, inertia.center_of_mass, rtol=0, atol=1e-9 * size)
    return there and np.allclose(I, own, rtol=0, atol=1e-7 * m * size**2)


def _along(f, inertia):
    """Rotational inertia about the mass centre, in the axes of a fluid box."""
    E = np.asarray(f.placement.E, dtype=float)
    return E @ inertia.rotational_at_center @ E.T


def _align(inertial, f, inertia):
    """Write the inertia in the fluid box's axes, which equal moments leave open."""
    for name in ("pos", "quat", "diaginertia", "fullinertia"):
        inertial.attrib.pop(name, None)
    inertial.set("pos", "0 0 0")
    inertial.attrib.update(pose_attributes(f.placement))
    inertial.set("diaginertia", numbers(np.diag(_along(f, inertia))))


def _shape(parent, radii, coefficients, pose):
    """Write the invisible ellipsoid on which the fluid acts in MJCF."""
    element(
        parent,
        "geom",
        type="ellipsoid",
        size=radii,
        mass="0",
        contype="0",
        conaffinity="0",
        group="5",
        rgba=[0.0] * 4,
        fluidshape="ellipsoid",
        fluidcoef=coefficients,
        **pose,
    )
