"""Forces that act all the time: springs, dampers, external forces, functions of the user's.

A force is a function ``(model, t, q, qd)`` that returns joint forces [N, N·m], (..., nv). Those
that are made of traceable arithmetic are compiled into the step; a plain Python function runs on
the host, once per stage of a step, and the step with it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.algorithms.passive import spring_and_damper_force
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.functional.kernel import UserKernel, kernel
from kinetree.integration.field import is_traceable
from kinetree.model.arrays import as_joint_vector, as_numbers, check_finite
from kinetree.model.dynamics import joints_with
from kinetree.quantities import kinematics

__all__ = ["ExternalForce", "HostForce", "PassiveForces", "as_force"]


def as_force(force):
    """A force of the user's as one that can be added up: kernels as they are, others checked."""
    if is_traceable(force) or isinstance(force, HostForce):
        return force
    if not callable(force):
        raise TypeError(
            f"a force must be a function (model, t, q, qd) that returns joint forces, or an "
            f"ExternalForce; got {type(force).__name__}"
        )
    return HostForce(force)


@dataclass(frozen=True)
class HostForce:
    """A plain Python function ``(model, t, q, qd)``: called on the host, its results checked."""

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
    """What a callable is called, in messages."""
    return getattr(function, "__name__", type(function).__name__)


@kernel
def _springs_and_dampers(model, q, qd):
    return spring_and_damper_force(model, q, qd)


@dataclass(frozen=True)
class PassiveForces:
    """What joints exert of their own accord: springs, dampers, smooth friction, stiff limits.

    Attributes:
        friction: a smooth ``Friction`` with the numbers of the model, or None.
        limits: ``StiffLimits`` with the numbers of the model, or None.
        loops: ``LoopJointForces``, or None.
    """

    friction: Any = None
    limits: Any = None
    loops: Any = None
    traceable = True

    def __call__(self, model, t, q, qd):
        """Joint forces, (..., nv)."""
        tau = 0 * qd
        if joints_with(model, "stiffness", "damping"):
            traced = np.asarray(qd).dtype == object
            exert = spring_and_damper_force if traced else _springs_and_dampers
            tau = tau + exert(model, q, qd)
        for law in (self.friction, self.limits, self.loops):
            if law is not None:
                tau = tau + law(model, t, q, qd)
        return tau


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
        """Whether it can be compiled into a step."""
        return not callable(self.force) or isinstance(self.force, UserKernel)

    def __call__(self, model, t, q, qd):
        """Joint forces ``Jᵀ f``, (..., nv)."""
        given = self.force
        f = self._six(given(t)) if callable(given) else np.array(given)
        reference = "aligned" if self.coordinates == "base" else "body"
        J = kinematics.jacobian(model, q, self.frame, frame=reference)
        return (J * f[..., :, None]).sum(-2)

    def _six(self, force):
        name = f"the force on {self.frame!r}"
        f = check_finite(as_numbers(force, name), name)
        if f.ndim == 0 or f.shape[-1] not in (3, 6):
            raise ShapeError(
                f"{name} must have 3 numbers, or 6 with the moment first; got shape {f.shape}"
            )
        if f.shape[-1] == 3:
            f = np.concatenate([np.zeros(f.shape, dtype=f.dtype), f], axis=-1)
        return f
