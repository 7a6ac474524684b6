"""Controllers in joint space: gravity compensation, computed torque, PD with feedforward."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.control.equilibria import holding_forces, motor_forces
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.functional.kernel import kernel
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.quantities.dynamics import gravity_force

# --- References and gains ------------------------------------------------------------------------


Reference: TypeAlias = Callable[[float], Any] | ArrayLike
"""A function of time that returns positions, velocities and accelerations, or a fixed target."""


@kernel
def configuration_error(m, q, target):
    """The velocity that brings ``q`` to ``target`` in one second, (..., nv)."""
    return m.difference(q, target)


def as_reference(model, reference):
    """A function of time that returns ``q, qd, qdd``.

    Args:
        model: the mechanism.
        reference: such a function, or a configuration (..., nq) to stay at.
    """
    zero = np.zeros(as_model(model).nv)
    if not callable(reference):
        q = as_configuration(model, reference, "reference")
        return lambda t: (q, zero, zero)

    def checked(t):
        found = reference(t)
        if not isinstance(found, (tuple, list)) or len(found) != 3:
            raise ShapeError(
                f"the reference must return (q, qd, qdd) for a time, got "
                f"{type(found).__name__} at t = {t:g}"
            )
        q, qd, qdd = found
        return (
            as_configuration(model, q, "reference q"),
            as_joint_vector(model, qd, "reference qd"),
            as_joint_vector(model, qdd, "reference qdd"),
        )

    return checked


class Gain:
    """A factor for vectors with ``size`` entries: one number, one for each entry, or a matrix."""

    def __init__(self, value, size, name):
        self.value = np.asarray(value, dtype=float)
        if self.value.shape not in ((), (size,), (size, size)):
            raise ShapeError(
                f"{name} must be a number, ({size},) or ({size}, {size}), got shape "
                f"{self.value.shape}"
            )
        if not np.all(np.isfinite(self.value)):
            raise ShapeError(f"{name} must be finite")

    def __call__(self, x):
        """The product with vectors, (..., size)."""
        return x @ self.value.T if self.value.ndim == 2 else self.value * x

    def __repr__(self):
        return f"Gain({self.value.tolist()})"


def damping_for(kp, kd, name="kd"):
    """``kd``, or the critical damping ``2 √kp`` of a unit mass where it is left out."""
    if kd is not None:
        return kd
    kp = np.asarray(kp, dtype=float)
    if kp.ndim == 2 or np.any(kp < 0):
        raise ShapeError(
            f"give {name}: critical damping is known for gains of one or two axes only"
        )
    return 2 * np.sqrt(kp)


class ComputedTorque:
    """Inverse dynamics of the wanted acceleration plus corrections.

        tau = inverse_dynamics(q, qd, qdd_r + kd (qd_r - qd) + kp (q_r - q)) - passive_force(q, qd)

    With an exact model the error ``e`` of every joint obeys ``ë + kd ė + kp e = 0``, whatever the
    mechanism. Differences of configurations are ``model.difference``; velocities of spherical
    joints are compared as numbers, each in its own frame, which keeps the error dynamics stable.

        follow = kt.control.ComputedTorque(m, lambda t: (q_r(t), qd_r(t), qdd_r(t)), kp=100)
        tau = follow(t, q, qd)

    Args:
        model: the mechanism without loops, every joint driven.
        reference: a function of time that returns ``(q, qd, qdd)``, or a configuration to go to.
        kp: stiffness per inertia [1/s²], a number, (nv,) or (nv, nv).
        kd: damping per inertia [1/s]; critical if left out.
    """

    def __init__(
        self, model: Model, reference: Reference, kp: ArrayLike, kd: ArrayLike | None = None
    ):
        self.model, self.reference = model, as_reference(model, reference)
        self.kp = Gain(kp, model.nv, "kp")
        self.kd = Gain(damping_for(kp, kd), model.nv, "kd")

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        q_r, qd_r, qdd_r = self.reference(t)
        e = configuration_error(self.model, q, q_r)
        return motor_forces(self.model, q, qd, qdd_r + self.kd(qd_r - qd) + self.kp(e))


class GravityCompensation:
    """Joint forces that carry the weight: ``tau = g(q) - damping qd``.

        hold = kt.control.GravityCompensation(m, damping=0.5)
        tau = hold(t, q, qd)

    Pushed by hand, the mechanism moves as in space, and with damping comes to rest where it is let
    go. Springs of the joints are not compensated.

    Args:
        model: the mechanism, every joint driven.
        damping: of the joints, a number, (nv,) or (nv, nv).
    """

    def __init__(self, model: Model, damping: ArrayLike = 0.0):
        self.model = as_model(model)
        self.damping = Gain(damping, model.nv, "damping")

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        return gravity_force(self.model, q) - self.damping(qd)


class PDWithFeedforward:
    """Springs and dampers at the joints, on top of forces from the model.

        tau = feedforward + kp (q_r - q) + kd (qd_r - qd)

    Unlike with ``ComputedTorque`` the gains are those of real springs, the same in every
    configuration, and what is computed ahead may be computed before the motion starts.

    Args:
        model: the mechanism without loops, every joint driven.
        reference: a function of time that returns ``(q, qd, qdd)``, or a configuration to go to.
        kp: stiffness [N·m/rad, N/m], a number, (nv,) or (nv, nv).
        kd: damping [N·m·s/rad, N·s/m], likewise.
        feedforward: ``"reference"``: what the motors need for the reference; ``"gravity"``: what
            holds the mechanism where it is, its springs included, which brings it to rest at a
            constant reference from anywhere; None: nothing.
    """

    def __init__(
        self,
        model: Model,
        reference: Reference,
        kp: ArrayLike,
        kd: ArrayLike,
        *,
        feedforward: Literal["reference", "gravity"] | None = "reference",
    ):
        if feedforward not in ("reference", "gravity", None):
            raise UnknownNameError(
                f"feedforward must be 'reference', 'gravity' or None, got {feedforward!r}"
            )
        self.model, self.reference = model, as_reference(model, reference)
        self.kp, self.kd = Gain(kp, model.nv, "kp"), Gain(kd, model.nv, "kd")
        self.feedforward = feedforward

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        q_r, qd_r, qdd_r = self.reference(t)
        tau = self.kp(configuration_error(self.model, q, q_r)) + self.kd(qd_r - qd)
        if self.feedforward == "reference":
            tau = tau + motor_forces(self.model, q_r, qd_r, qdd_r)
        elif self.feedforward == "gravity":
            tau = tau + holding_forces(self.model, q)
        return tau
