"""Forces that act all the time: external forces, functions of the user's.

A force is a function ``(model, t, q, qd)`` that returns joint forces [N, N·m], (..., nv). Those
that are made of traceable arithmetic are compiled into the step; a plain Python function is
called once per stage of a step, which is then not compiled.
"""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.algorithms.minv import inverse_mass_matrix
from kinetree.errors import ShapeError, SingularError, TraceError, UnknownNameError
from kinetree.functional.kernel import UserKernel, select
from kinetree.integration.field import is_traceable
from kinetree.integration.refusals import VARYING_RATIO
from kinetree.model.arrays import as_joint_vector, as_numbers, check_finite
from kinetree.model.gearing import Gearing
from kinetree.model.limits import ratio_to_leader
from kinetree.model.memo import remember
from kinetree.quantities import kinematics


def as_force(force):
    """User's force as a traceable kernel or a checked Python function."""
    if is_traceable(force) or isinstance(force, PythonForce):
        return force
    if not callable(force):
        raise TraceError(
            f"a force must be a function (model, t, q, qd) that returns joint forces, or an "
            f"ExternalForce; got {type(force).__name__}"
        )
    try:
        inspect.signature(force).bind(None, 0.0, None, None)
    except TypeError:
        raise TraceError(
            f"force {name_of(force)!r} is called as {name_of(force)}(model, t, q, qd), and takes "
            f"{inspect.signature(force)}"
        ) from None
    except ValueError:  # of a function without a signature, such as a built-in one
        pass
    return PythonForce(force)


@dataclass(frozen=True)
class PythonForce:
    """A plain Python function ``(model, t, q, qd)``: called in Python, its results checked."""

    function: Any
    traceable = False

    def __call__(self, model, t, q, qd):
        """Joint forces, (..., nv)."""
        name = f"force {name_of(self.function)!r}"
        tau = self.function(model, t, q, qd)
        if tau is None:
            raise ShapeError(f"{name} returned None; it must return joint forces (..., nv)")
        return as_joint_vector(model, tau, f"what {name} returned")


def name_of(function) -> str:
    """Name of a callable for messages, looking through wrappers."""
    inner = getattr(function, "function", getattr(function, "force", None))
    if callable(inner):
        return name_of(inner)
    return getattr(function, "__name__", type(function).__name__)


@dataclass(frozen=True)
class ExternalForce:
    """A force on a frame or body, constant or a function of time.

    Args:
        frame: name of the frame or body.
        force: three numbers, a force through the frame's origin [N]; or six, a moment about the
            origin [N·m] and a force; or a function of time [s] that returns either. A function
            under ``@kinetree.kernel`` is compiled into the step.
        coordinates: ``"base"``: along the axes of the base; ``"frame"``: along those of the frame,
            turning with it.
    """

    frame: str
    force: Any
    coordinates: str = "base"

    def __post_init__(self):
        if self.coordinates not in ("base", "frame"):
            raise UnknownNameError(
                f"coordinates of the force on {self.frame!r} must be 'base' or 'frame', got "
                f"{self.coordinates!r}"
            )
        if not callable(self.force):
            object.__setattr__(self, "force", tuple(self._six(self.force).tolist()))

    @property
    def traceable(self) -> bool:
        """Whether the force can be compiled into a step."""
        return not callable(self.force) or isinstance(self.force, UserKernel)

    def at(self, t: Any) -> Any:
        """Wrench (moment, force) at time ``t`` [s], (6,)."""
        return self._six(self.force(t)) if callable(self.force) else np.array(self.force)

    def __call__(self, model, t, q, qd):
        """Joint forces ``Jᵀ f``, (..., nv)."""
        f = self.at(t)
        reference = "aligned" if self.coordinates == "base" else "body"
        J = kinematics.jacobian(model, q, self.frame, frame=reference)
        return (J * f[..., :, None]).sum(-2)

    def _six(self, force):
        """Force (..., 3) or wrench (..., 6) as a wrench, moment zero by default."""
        name = f"the force on {self.frame!r}"
        f = check_finite(as_numbers(force, name), name)
        if f.ndim == 0 or f.shape[-1] not in (3, 6):
            raise ShapeError(
                f"{name} must have 3 numbers, or 6 with the moment first; got shape {f.shape}"
            )
        if f.shape[-1] == 3:
            f = np.concatenate([np.zeros(f.shape, dtype=f.dtype), f], axis=-1)
        return f


# --- Forces in all joints, also those that follow others, as forces on the variables of a model --


def on_variables(model, q, qd, force):
    """Joint forces (..., nv) in independent variables of a force in uncoupled variables."""
    if not model.couplings:
        return force(model, q, qd)
    q, qd = np.asarray(q), np.asarray(qd)
    if q.ndim == qd.ndim == 1:
        at = Gearing(model, q, qd)
        return at.G.T @ force(model.uncoupled, at.q, at.qd)
    batch = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1])
    q, qd = (np.broadcast_to(a, (*batch, a.shape[-1])) for a in (q, qd))
    result = np.zeros((*batch, model.nv), np.result_type(q, qd))
    for n in np.ndindex(batch):
        result[n] = on_variables(model, q[n], qd[n], force)
    return result


def leading_levels(model, levels):
    """Dry friction (nv,) of independent variables, including that of their followers.

    Joints that follow one other by a constant ratio slide when it slides, and rub that much more.
    """
    levels, full = np.array(levels), model.uncoupled
    if not model.couplings:
        return levels
    found = levels[model.independent_variables[1]]
    for c in model.couplings:
        level = levels[full.v_slice[c.joint].start]
        if is_none(level) or not c.leaders:
            continue
        driven = ratio_to_leader(model, c.joint)
        if driven is None:
            raise VARYING_RATIO.of(
                f"exact friction of joint {model.joint_names[c.joint - 1]!r}",
                f"coupling {c.name!r}, in which no joint leads it by a constant ratio",
            )
        found[model.v_slice[driven[0]].start] += abs(driven[1]) * level
    return found


def is_none(level) -> bool:
    """Whether a coefficient is the plain number zero; symbols and traced numbers are not."""
    return isinstance(level, (int, float)) and level == 0


# --- How easily joints move: numbers to choose stiffnesses by ------------------------------------


def nominal_mobility(model) -> np.ndarray:
    """Acceleration per unit force of each velocity variable at neutral, (nv,), loops open.

    The diagonal of ``H⁻¹``, without loops, which only make it smaller.
    """
    tree = model.spanning_tree
    try:
        return np.diagonal(neutral_mobility(tree))
    except SingularError:  # massless joints: forward dynamics will name them
        return np.ones(model.nv)


def neutral_mobility(tree) -> np.ndarray:
    """Inverse mass matrix at the neutral position, (nv, nv), computed once per model."""

    def make():
        found = inverse_mass_matrix(tree, tree.neutral())
        plain = all(isinstance(x, (int, float)) for x in found.ravel())
        return found.astype(float) if plain else found

    return remember(tree, ("neutral_mobility",), make)


def at_least(least, x) -> Any:
    """Elementwise maximum of a bound and an array, traceable."""
    if np.asarray(x).dtype != object:
        return np.maximum(least, x)
    return _larger(least, x)


_larger = np.frompyfunc(lambda least, x: select(x > least, x, least), 2, 1)
