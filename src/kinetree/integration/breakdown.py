"""Errors of a simulation that fails: what went wrong, when, and in which joint."""

import math
import re

import numpy as np

from kinetree.errors import ShapeError, SimulationError, SingularError
from kinetree.integration.explicit import RK4, ExplicitRungeKutta
from kinetree.integration.stiffness import SAFE, fastest_motion, seconds

_USUAL = ExplicitRungeKutta(RK4)
_IMPLICIT = (
    "rosenbrock", "rosenbrock_w", "implicit_midpoint", "variational", "generalized_alpha",
)  # fmt: skip

_FEW = 100  # numbers that Python goes through in less time than NumPy takes to begin


def all_finite(x) -> bool:
    """Whether all numbers of an array are finite, with a fast path for short vectors."""
    few = x.ndim == 1 and len(x) < _FEW
    return (few and math.isfinite(sum(x.tolist()))) or bool(np.isfinite(x).all())


def largest_size(x) -> float:
    """Largest absolute value of an array, 0 if it is empty; fast for short vectors."""
    if x.ndim == 1 and len(x) < _FEW:
        return max(map(abs, x.tolist()), default=0.0)
    return np.abs(x).max(initial=0.0)


def joint_of(model, values):
    """Name of the joint with the largest of ``values`` (..., nv), non-finite ones being largest."""
    size = np.where(np.isfinite(values), np.abs(values), np.inf).reshape(-1, model.nv).max(axis=0)
    k = int(np.argmax(size))
    return next(
        name
        for name, at in zip(model.joint_names, model.v_slice[1:], strict=True)
        if at.start <= k < at.stop
    )


def remedy(model, h, method="", otherwise="take a smaller dt") -> str:
    """Advice about steps of ``h`` seconds that names too stiff springs or dampers.

    Args:
        model: the mechanism.
        h: length of a step [s]; None if it is not known.
        method: name of the integrator that took it.
        otherwise: what to do where nothing is stiff.
    """
    found = None if not h or method in _IMPLICIT else fastest_motion(model, _USUAL)
    if found is None or h < SAFE * found.step:
        return otherwise
    return (
        f"{found}, and a step takes {seconds(h)}: take integrator='auto' or 'rosenbrock_w', which "
        f"are for stiff systems, or a dt below {seconds(SAFE * found.step)}"
    )


def check_finite_state(model, t, q, qd, h=None, method=""):
    """Raise SimulationError for a state that is not finite, after a step of ``h`` seconds."""
    if all_finite(qd) and all_finite(q):
        return
    bad = ~np.isfinite(qd)
    where = _sample(bad if np.any(bad) else ~np.isfinite(q))
    joint = f" joint {joint_of(model, qd)!r}" if model.nv else ""
    stiff = "an integrator for stiff systems such as 'rosenbrock_w'"
    otherwise = f"take a smaller dt, {stiff}, or look at the forces"
    raise SimulationError(
        f"the simulation of {model.name!r} blew up at t = {t:.6g} s{where}:{joint} is at a speed "
        f"that is not a number any more; {remedy(model, h, method, otherwise)}"
    )


_INSIDE = re.compile(r"^((_\w+|rollout): )+")
"""Names of kernels that take steps, before a message of what they call."""


class NamingTime:
    """Turn errors of dynamics into SimulationError with the time and the fastest joint.

    Args:
        model: the mechanism.
        t: time at the start of a step [s].
        qd: joint velocities there, (..., nv).
        h: length of the step [s], if it is known.
        method: name of the integrator.
    """

    __slots__ = ("h", "method", "model", "qd", "t")

    def __init__(self, model, t, qd, h=None, method=""):
        self.model, self.t, self.qd, self.h, self.method = model, t, qd, h, method

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if not isinstance(error, (ShapeError, SingularError)):
            return
        joint, speed = "", np.max(np.abs(self.qd), initial=0.0)
        if self.model.nv:
            fastest = joint_of(self.model, self.qd)
            joint = f"; the fastest joint is {fastest!r} with {speed:.3g} m/s or rad/s"
        otherwise = (
            "take a smaller dt, or look at the forces: gains of a controller that are too high for "
            "its steps, stops at limits"
        )
        what = _INSIDE.sub("", str(error))
        raise SimulationError(
            f"the simulation of {self.model.name!r} stopped in the step from t = {self.t:.6g} s: "
            f"{what}{joint}; {remedy(self.model, self.h, self.method, otherwise)}"
        ) from None  # the message has all of it; the rest is calls inside kernels


def _sample(bad):
    """Description " in sample ..." of the first bad sample of a batch; "" without a batch."""
    if bad.ndim < 2:
        return ""
    index = tuple(int(k) for k in np.argwhere(bad)[0][:-1])
    return f" in sample {index}"
