"""The same model with other numbers: exact, symbolic, complex."""

from dataclasses import replace

import numpy as np

from kinetree.spatial import Inertia, Plucker

__all__ = ["map_numbers"]


def map_numbers(model, fn):
    """A copy of ``model`` whose inertias, placements, gravity and so on went through ``fn``.

    Positions stay floats: rest positions, couplings, postures; so do geometry and actuators.
    """
    bodies = [
        replace(
            b,
            placement=_transform(b.placement, fn),
            inertia=_inertia(b.inertia, fn),
            dynamics=b.dynamics and _dynamics(b.dynamics, fn),
        )
        for b in model.bodies
    ]
    frames = [replace(f, placement=_transform(f.placement, fn)) for f in model.frames]
    loops = [
        replace(
            loop,
            predecessor_placement=_transform(loop.predecessor_placement, fn),
            successor_placement=_transform(loop.successor_placement, fn),
            dynamics=loop.dynamics and _dynamics(loop.dynamics, fn),
        )
        for loop in model.loops
    ]
    return model.replace(
        bodies=bodies, frames=frames, loops=loops, gravity=_array(model.gravity, fn)
    )


def _transform(X, fn):
    return Plucker(_array(X.E, fn), _array(X.r, fn))


def _inertia(I, fn):
    mass = _array(np.asarray(I.mass), fn)[()]
    return Inertia(mass, _array(I.first_moment, fn), _array(I.rotational, fn))


def _dynamics(dynamics, fn):
    names = ("armature", "damping", "friction", "stiffness")
    return replace(dynamics, **{n: tuple(map(fn, getattr(dynamics, n))) for n in names})


def _array(a, fn):
    """``fn`` of every entry; an array of integers is structure and stays."""
    if np.issubdtype(a.dtype, np.integer):
        return a
    return np.array([fn(x) for x in a.ravel().tolist()]).reshape(a.shape)
