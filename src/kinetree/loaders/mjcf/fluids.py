"""Fluids around the bodies of a compiled MuJoCo model, each by one of its two models.

A body with geoms that have a ``fluidshape`` has the forces on their ellipsoids, any other those on
the box of its inertia.
"""

import math
from typing import Any

import numpy as np

from kinetree.joints import Free
from kinetree.loaders.mjcf.joints import is_disabled
from kinetree.loaders.mjcf.values import placement
from kinetree.model import FluidForce
from kinetree.model.fluid import momentum_force
from kinetree.model.geometry import Box, Ellipsoid
from kinetree.model.limits import has_dynamics

NONE = 1e-6
"""Radius of ellipsoids without coefficients that only say that there is no fluid [m]."""
_LEAST = 1e-15  # mjMINVAL
_SPHERE, _CAPSULE, _CYLINDER = 2, 3, 5  # mjtGeom


def fluid_forces_of(mj_model, tree) -> tuple[FluidForce, ...]:
    """Fluid forces on all moving bodies by the fluid of MuJoCo's ``<option>``."""
    option = mj_model.opt
    medium: dict[str, Any] = {
        "density": max(float(option.density), 0.0),
        "viscosity": max(float(option.viscosity), 0.0),
        "wind": tuple(np.array(option.wind).tolist()),
    }
    off = is_disabled(mj_model, "SPRING") and is_disabled(mj_model, "DAMPER")
    if off or not (medium["density"] or medium["viscosity"]):
        return ()
    found = []
    for b in np.flatnonzero(np.asarray(mj_model.body_mass) >= _LEAST):
        body, X = tree.places[b]
        if not body:
            continue
        first = int(mj_model.body_geomadr[b])
        geoms = range(first, first + int(mj_model.body_geomnum[b]))
        shaped = [g for g in geoms if mj_model.geom_fluid[g, 0] > 0]
        for g in shaped:
            numbers = np.array(mj_model.geom_fluid[g]).tolist()
            at = placement(mj_model.geom_pos[g], mj_model.geom_quat[g]) @ X
            more: dict[str, Any] = {"coefficients": tuple(numbers[1:6])}
            more |= {"added_mass": tuple(numbers[6:9]), "added_inertia": tuple(numbers[9:12])}
            shape = _ellipsoid(mj_model, g)
            if any(numbers[1:6]) or shape.reach > NONE:
                found.append(FluidForce(body, shape, at, **medium, **more))
        if not shaped:
            at = placement(mj_model.body_ipos[b], mj_model.body_iquat[b]) @ X
            found.append(FluidForce(body, _box(mj_model, b), at, **medium))
    return tuple(found)


def momenta_of(tree) -> tuple[FluidForce, ...]:
    """Velocity-product forces that make armature of free joints act as in MuJoCo.

    Ours acts on velocities in the body: they differ by armature times angular velocity x velocity.
    """
    return tuple(
        momentum_force(i, body.dynamics.armature[3])
        for i, body in enumerate(tree.bodies, start=1)
        if isinstance(body.joint, Free) and has_dynamics(body, "armature")
    )


def _box(mj_model, b):
    """Box with the inertia of a MuJoCo body."""
    moments = np.array(mj_model.body_inertia[b])
    squares = (moments.sum() - 2 * moments) * 6
    mass = float(mj_model.body_mass[b])
    x, y, z = (math.sqrt(max(_LEAST, s / 6) / mass * 6) for s in squares.tolist())
    return Box((x, y, z))


def _ellipsoid(mj_model, g):
    """Ellipsoid that stands for a geom in MuJoCo's fluid model."""
    x, y, z = np.array(mj_model.geom_size[g]).tolist()
    kind = int(mj_model.geom_type[g])
    if kind == _SPHERE:
        return Ellipsoid((x, x, x))
    if kind in (_CAPSULE, _CYLINDER):
        return Ellipsoid((x, x, y + x if kind == _CAPSULE else y))
    return Ellipsoid((x, y, z))
