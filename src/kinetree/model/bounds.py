"""Limits of all joints as arrays over the variables of a model, infinite where there is none."""

from typing import NamedTuple

import numpy as np

from kinetree.errors import ModelError

__all__ = [
    "Bounds", "effort_limits", "position_bounds", "position_index", "position_limits",
    "velocity_limits",
]  # fmt: skip


class Bounds(NamedTuple):
    """Smallest and largest positions [m or rad], each (nq,)."""

    lower: np.ndarray
    upper: np.ndarray


def position_limits(model) -> Bounds:
    """Bounds of the position variables, with those that joints which follow set to their leader."""
    return Bounds(
        _collected(model, "lower", model.q_slice, model.nq, -np.inf),
        _collected(model, "upper", model.q_slice, model.nq, np.inf),
    )


def position_index(model) -> np.ndarray:
    """Number of the position variable of every velocity variable; -1 where there is none."""
    index = np.full(model.nv, -1)
    for joint, q, v in zip(model.joint[1:], model.q_slice[1:], model.v_slice[1:], strict=True):
        if joint.rates_are_velocities:
            index[v] = np.arange(q.start, q.stop)
    return index


def position_bounds(model):
    """Lower and upper bounds of all velocity variables, infinite where there is none, (nv,) each.

    Bounds are on position variables; they count where these are the integrals of velocities.
    """
    for i, body in enumerate(model.bodies, start=1):
        if body.joint.rates_are_velocities:
            continue
        for given, values in model.position_limits._asdict().items():
            if np.any(np.isfinite(values[model.q_slice[i]])):
                raise ModelError(
                    f"joint {body.joint_name!r} ({type(body.joint).__name__}) has a finite {given} "
                    f"limit, but its velocities are not the rates of its position variables, so "
                    f"that no stop can be put there: leave the limit out, or pass limits=None"
                )
    at, (lower, upper) = position_index(model), model.position_limits
    return np.where(at < 0, -np.inf, lower[at]), np.where(at < 0, np.inf, upper[at])


def velocity_limits(model):
    """Largest speeds, (nv,), with those that joints which follow set to their leader."""
    return _collected(model, "velocity", model.v_slice, model.nv, np.inf)


def effort_limits(model):
    """Largest joint forces, (nv,)."""
    return _collected(model, "effort", model.v_slice, model.nv, np.inf)


def _collected(model, name, slices, size, none):
    values = np.full(size, none)
    for at, limits in zip(slices, model.travel, strict=True):
        given = () if limits is None else getattr(limits, name)
        if given:
            values[at] = given
    values.flags.writeable = False
    return values
