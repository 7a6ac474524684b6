"""Naming what went wrong in a simulation, when, and in which joint."""

from contextlib import contextmanager

import numpy as np

from kinetree.errors import ShapeError, SimulationError, SingularError

__all__ = ["check_finite_state", "joint_of", "naming_time"]


def joint_of(model, values):
    """Name of the joint with the largest of ``values``, (..., nv); not a number is larger still."""
    size = np.where(np.isfinite(values), np.abs(values), np.inf).reshape(-1, model.nv).max(axis=0)
    k = int(np.argmax(size))
    return next(
        name
        for name, at in zip(model.joint_names, model.v_slice[1:], strict=True)
        if at.start <= k < at.stop
    )


def check_finite_state(model, t, q, qd):
    """Raise SimulationError for a state that is not finite."""
    if np.isfinite(qd).all() and np.isfinite(q).all():
        return
    bad = ~np.isfinite(qd)
    where = _sample(bad if np.any(bad) else ~np.isfinite(q))
    joint = f" joint {joint_of(model, qd)!r}" if model.nv else ""
    raise SimulationError(
        f"the simulation of {model.name!r} blew up at t = {t:.6g} s{where}:{joint} is at a speed "
        f"that is not a number any more; take a smaller dt, an integrator for stiff systems such "
        f"as 'rosenbrock', or look at the forces"
    )


@contextmanager
def naming_time(model, t, qd):
    """Turn errors of dynamics into SimulationError with the time and the fastest joint."""
    try:
        yield
    except (ShapeError, SingularError) as error:
        joint, speed = "", np.max(np.abs(qd), initial=0.0)
        if model.nv:
            joint = f"; the fastest joint is {joint_of(model, qd)!r} with {speed:.3g} m/s or rad/s"
        raise SimulationError(
            f"the simulation of {model.name!r} stopped in the step from t = {t:.6g} s: "
            f"{error}{joint}; take a smaller dt, or look at the forces, stops at limits included"
        ) from error


def _sample(bad):
    if bad.ndim < 2:
        return ""
    index = tuple(int(k) for k in np.argwhere(bad)[0][:-1])
    return f" in sample {index}"
