"""Naming what went wrong in a simulation, when, and in which joint."""

import math

import numpy as np

from kinetree.errors import ShapeError, SimulationError, SingularError

__all__ = ["NamingTime", "all_finite", "check_finite_state", "joint_of", "largest_size"]

_FEW = 100  # numbers that Python goes through in less time than NumPy takes to begin


def all_finite(x) -> bool:
    """Whether all numbers are finite; for the few of one state in the fastest way."""
    few = x.ndim == 1 and len(x) < _FEW
    return (few and math.isfinite(sum(x.tolist()))) or bool(np.isfinite(x).all())


def largest_size(x) -> float:
    """The largest absolute value, 0 if there is none; likewise."""
    if x.ndim == 1 and len(x) < _FEW:
        return max(map(abs, x.tolist()), default=0.0)
    return np.abs(x).max(initial=0.0)


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
    if all_finite(qd) and all_finite(q):
        return
    bad = ~np.isfinite(qd)
    where = _sample(bad if np.any(bad) else ~np.isfinite(q))
    joint = f" joint {joint_of(model, qd)!r}" if model.nv else ""
    raise SimulationError(
        f"the simulation of {model.name!r} blew up at t = {t:.6g} s{where}:{joint} is at a speed "
        f"that is not a number any more; take a smaller dt, an integrator for stiff systems such "
        f"as 'rosenbrock', or look at the forces"
    )


class NamingTime:
    """Turn errors of dynamics into SimulationError with the time and the fastest joint.

    Args:
        model: the mechanism.
        t: time at the start of a step [s].
        qd: joint velocities there, (..., nv).
    """

    __slots__ = ("model", "qd", "t")

    def __init__(self, model, t, qd):
        self.model, self.t, self.qd = model, t, qd

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if not isinstance(error, (ShapeError, SingularError)):
            return
        joint, speed = "", np.max(np.abs(self.qd), initial=0.0)
        if self.model.nv:
            fastest = joint_of(self.model, self.qd)
            joint = f"; the fastest joint is {fastest!r} with {speed:.3g} m/s or rad/s"
        raise SimulationError(
            f"the simulation of {self.model.name!r} stopped in the step from t = {self.t:.6g} s: "
            f"{error}{joint}; take a smaller dt, or look at the forces, stops at limits included"
        ) from error


def _sample(bad):
    if bad.ndim < 2:
        return ""
    index = tuple(int(k) for k in np.argwhere(bad)[0][:-1])
    return f" in sample {index}"
