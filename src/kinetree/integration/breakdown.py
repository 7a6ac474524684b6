"""Errors of a simulation that fails: what went wrong, when, and in which joint."""

import math

import numpy as np

from kinetree.algorithms import crba
from kinetree.algorithms.passive import spring_and_damper_force
from kinetree.errors import ShapeError, SimulationError, SingularError
from kinetree.model.dynamics import has_passive_forces

STIFF = ("rosenbrock", "implicit_midpoint", "variational", "generalized_alpha")
"""Integrators for stiff springs and dampers; the first two for any tree."""
_STIFF_STEP = 1.0  # of the time in which a damper acts; explicit steps are stable up to 2 to 4

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


def remedy(model, h, method="", otherwise="take a smaller dt") -> str:
    """Advice about steps of ``h`` seconds: names springs or dampers that are too stiff for them.

    Args:
        model: the mechanism.
        h: length of a step [s]; None if it is not known.
        method: name of the integrator that took it.
        otherwise: what to do where nothing is stiff.
    """
    found = None if not h or method in STIFF else _fastest_passive_motion(model)
    if found is None or found[0] * h < _STIFF_STEP:
        return otherwise
    rate, joint, what = found
    which = (
        "constraints='generalized_alpha' of kinetree.simulate"
        if model.is_constrained
        else " or ".join(f"integrator={name!r}" for name in STIFF[:2])
    )
    return (
        f"the {what} at joint {joint!r} acts within {1 / rate:.2g} s, and a step takes {h:.2g} s: "
        f"take a method for stiff systems, {which}, or a dt below {1 / rate:.2g} s"
    )


def _fastest_passive_motion(model):
    """Rate [1/s] at which springs and dampers move the mechanism at most, the joint, and which.

    At the neutral position and without loops, which only make motions slower; None without any.
    """
    if not has_passive_forces(model, "stiffness", "damping") or model.scalar_type().kind == "O":
        return None
    q, one = model.neutral(), np.eye(model.nv)
    H = crba.joint_space_inertia(model, q)
    force = spring_and_damper_force

    def derivative(of):
        return -np.array([of(e) - of(-e) for e in 1e-6 * one]).T / 2e-6

    D = derivative(lambda e: force(model, q, e))
    K = derivative(lambda e: force(model, model.integrate(q, e), 0 * e))
    inverse = np.linalg.pinv(H, hermitian=True)
    rates = []
    for matrix, what, power in ((D, "damper", 1.0), (K, "spring", 0.5)):
        values, vectors = np.linalg.eig(inverse @ matrix)
        k = int(np.argmax(np.abs(values)))
        joint = joint_of(model, matrix @ vectors[:, k])  # where the force acts
        rates.append((float(abs(values[k]) ** power), joint, what))
    return max(rates)


def check_finite_state(model, t, q, qd, h=None, method=""):
    """Raise SimulationError for a state that is not finite, after a step of ``h`` seconds."""
    if all_finite(qd) and all_finite(q):
        return
    bad = ~np.isfinite(qd)
    where = _sample(bad if np.any(bad) else ~np.isfinite(q))
    joint = f" joint {joint_of(model, qd)!r}" if model.nv else ""
    stiff = "an integrator for stiff systems such as 'rosenbrock'"
    if model.is_constrained:
        stiff = "constraints='generalized_alpha' for stiff springs and dampers"
    otherwise = f"take a smaller dt, {stiff}, or look at the forces"
    raise SimulationError(
        f"the simulation of {model.name!r} blew up at t = {t:.6g} s{where}:{joint} is at a speed "
        f"that is not a number any more; {remedy(model, h, method, otherwise)}"
    )


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
        otherwise = "take a smaller dt, or look at the forces, stops at limits included"
        raise SimulationError(
            f"the simulation of {self.model.name!r} stopped in the step from t = {self.t:.6g} s: "
            f"{error}{joint}; {remedy(self.model, self.h, self.method, otherwise)}"
        ) from error


def _sample(bad):
    if bad.ndim < 2:
        return ""
    index = tuple(int(k) for k in np.argwhere(bad)[0][:-1])
    return f" in sample {index}"
