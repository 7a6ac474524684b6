"""Controllers in joint space: gravity compensation, computed torque, PD with feedforward.

With loops, a controller chooses the accelerations of independent coordinates; those of the other
joints follow, ``qdd = G ydd + g``, and the forces are the smallest of the driven joints that
produce them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from kinetree.algorithms.closed.independent import named_variables
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.control.equilibria import holding_forces, motor_forces
from kinetree.control.motors import joint_names, pushed_variables
from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.functional.kernel import kernel
from kinetree.loops.kinematics.constraint import null_space
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.quantities.dynamics import gravity_force, inverse_dynamics, passive_force
from kinetree.quantities.loops import require_no_choice
from kinetree.spelling import explains_itself

_DRIVEN = 1e-6  # singular value, relative to the largest, below which motors do not drive a motion

# --- References and gains ------------------------------------------------------------------------


Reference: TypeAlias = Callable[[float], Any] | ArrayLike
"""A function of time that returns positions, velocities and accelerations, or a fixed target."""


@kernel
def configuration_error(m, q, target):
    """Velocity that brings ``q`` to ``target`` in unit time, (..., nv)."""
    return m.difference(q, target)


@kernel
def _computed_torque(m, q, qd, q_r, qd_r, qdd_r, kp, kd):
    """Computed-torque motor forces of a tree, with gains per variable, (..., nv)."""
    wanted = qdd_r + kd * (qd_r - qd) + kp * m.difference(q, q_r)
    return inverse_dynamics(m, q, qd, wanted) - passive_force(m, q, qd)


def parts_of_reference(found: Any, count: int, t: float, demand: str) -> Any:
    """Tuple that a reference returned for a time; ShapeError for a wrong length."""
    if not isinstance(found, (tuple, list)) or len(found) != count:
        raise ShapeError(f"{demand} for a time, got {type(found).__name__} at t = {t:g}")
    return found


def as_reference(model, reference, *, may_rest=False) -> Callable[[float], Any]:
    """Reference as a function of time that returns ``q, qd, qdd``.

    Args:
        model: the mechanism.
        reference: such a function, or a configuration (..., nq) to stay at.
        may_rest: whether the function may return None.
    """
    zero = np.zeros(as_model(model).nv)
    if not callable(reference):
        q = as_configuration(model, reference, "reference")
        return lambda t: (q, zero, zero)

    def read_reference(t):
        found = reference(t)
        if found is None and may_rest:
            return None
        q, qd, qdd = parts_of_reference(found, 3, t, "the reference must return (q, qd, qdd)")
        return (
            as_configuration(model, q, "reference q"),
            as_joint_vector(model, qd, "reference qd"),
            as_joint_vector(model, qdd, "reference qdd"),
        )

    return read_reference


class Freedoms:
    """Coordinates that a controller chooses: all joints, or with loops the independent ones.

    Args:
        model: the mechanism.
        independent: of a mechanism with loops, names of the joints whose variables are the
            coordinates; ``kinetree.loops.independent(model)`` if left out.

    Attributes:
        columns: numbers of the velocity variables that are the coordinates, (p,).
        driven: which velocity variables may be driven, (nv,): with loops those of joints with
            actuators, or all if there are none; without loops those of ``pushed_variables``.
    """

    def __init__(self, model, independent=None, actuated=None):
        self.model, self.independent = as_model(model), independent
        self.columns = np.arange(model.nv)
        self.driven = np.ones(model.nv)
        if not model.is_constrained:
            require_no_choice(model, independent)
            self.driven = np.isin(self.columns, pushed_variables(model, actuated)).astype(float)
            return
        self.columns = np.array(named_variables(model, independent), dtype=int)
        if model.actuators:
            joints = {a.joint for a in model.actuators if a.joint}
            owners = [
                i for i, at in enumerate(model.v_slice) if i for _ in range(at.start, at.stop)
            ]
            self.driven = np.isin(owners, sorted(joints)).astype(float)

    def require_motors(self, controller):
        """Raise ModelError if a tree has velocity variables without motors."""
        if self.model.is_constrained or np.all(self.driven):
            return
        idle = joint_names(self.model, self.driven == 0)
        raise ModelError(
            f"{controller} needs a motor for every velocity variable, and joints {idle} of model "
            f"{self.model.name!r} have none. kinetree.control.WholeBody controls robots with "
            f"floating bases and passive joints. If motors drive them, add actuators to the "
            f"model, or pass actuated=[...] to ComputedTorque and its like"
        )

    def allowed_acceleration(self, q, qd, qdd):
        """Acceleration that loops allow, with the given coordinates of ``qdd``, (..., nv)."""
        return self._project_acceleration(q, qd, qdd)[0]

    def _project_acceleration(self, q, qd, qdd):
        """Acceleration that loops allow, and their velocity basis ``G``; None for a tree."""
        if not self.model.is_constrained:
            return qdd, None
        along = null_space(self.model, q, qd, independent=self.independent)
        return (along.G @ qdd[..., self.columns, None])[..., 0] + along.g, along.G

    def motor_forces(self, q, qd, qdd):
        """Motor forces for the coordinates of ``qdd``, (..., nv).

        The smallest, by a few small products where that is easy: loops do not change the inverse
        dynamics of the tree, and ``Gᵀ tau`` is all that counts.
        """
        qdd, G = self._project_acceleration(q, qd, qdd)
        tree, columns = self._easy
        if G is None or G.ndim != 2 or tree is None:
            return motor_forces(self.model, q, qd, qdd)
        wanted = G.T @ (inverse_dynamics(tree, q, qd, qdd) - passive_force(self.model, q, qd))
        u, _, rank, s = np.linalg.lstsq(G[columns].T, wanted, rcond=None)
        if rank < len(wanted) or s[-1] < _DRIVEN * s[0]:  # who cannot be driven is named there
            return motor_forces(self.model, q, qd, qdd)
        tau = np.zeros(self.model.nv)
        tau[columns] = u
        return tau

    @cached_property
    def _easy(self):
        """Spanning tree and driven variables of a mechanism with simple loops; else None twice."""
        model = self.model
        driven = {a.joint for a in model.actuators}
        plain = not model.couplings and all(p.dynamics is None for p in model.loops)
        if not (plain and model.is_constrained and 0 not in driven):
            return None, None
        joints = sorted(driven) or range(1, model.body_count + 1)
        at = [np.arange(model.v_slice[i].start, model.v_slice[i].stop) for i in joints]
        return model.spanning_tree, np.concatenate(at)


def without_springs(model):
    """Model without springs, dampers, friction and tendons."""
    bodies = [replace(body, dynamics=None) for body in model.bodies]
    loops = [replace(p, dynamics=None) for p in model.loops]
    return model.replace(bodies=bodies, loops=loops, tendons=())


class Gain:
    """A factor for vectors with ``size`` entries: one number, one for each entry, or a matrix."""

    def __init__(self, value, size, name):
        self.value, self.size = np.asarray(value, dtype=float), size
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
    """Damping gain ``kd``; critical damping ``2 √kp`` of a unit mass if it is None."""
    if kd is not None:
        return kd
    kp = np.asarray(kp, dtype=float)
    if kp.ndim == 2 or np.any(kp < 0):
        raise ShapeError(
            f"give {name}: critical damping is known for gains of one or two axes only"
        )
    return 2 * np.sqrt(kp)


@explains_itself
class ComputedTorque:
    """Inverse dynamics of the reference acceleration plus feedback.

        tau = inverse_dynamics(q, qd, qdd_r + kd (qd_r - qd) + kp (q_r - q)) - passive_force(q, qd)

    With an exact model the error ``e`` of every joint obeys ``ë + kd ė + kp e = 0``, whatever the
    mechanism; with loops, that of every independent coordinate does. Differences of configurations
    are ``model.difference``; velocities of spherical joints are compared as numbers, each in its
    own frame, which keeps the error dynamics stable.

        follow = kt.control.ComputedTorque(m, lambda t: (q_r(t), qd_r(t), qdd_r(t)), kp=100)
        tau = follow(t, q, qd)

    Args:
        model: the mechanism, fully actuated; with loops, a motor per degree of freedom or more.
        reference: a function of time that returns ``(q, qd, qdd)``, or a configuration to go to.
            With loops, only the independent coordinates are used.
        kp: stiffness per inertia [1/s²], a number, (nv,) or (nv, nv).
        kd: damping per inertia [1/s]; critical if left out.
        independent: of a mechanism with loops, names of the joints whose variables are the
            coordinates; ``kinetree.loops.independent(model)`` if left out.
        actuated: names of the driven joints. By default those with actuators; of a model without
            any, all but free joints.

    Raises:
        ModelError: there are joints without motors.
    """

    def __init__(
        self,
        model: Model,
        reference: Reference,
        kp: ArrayLike,
        kd: ArrayLike | None = None,
        *,
        independent: str | Sequence[str] | None = None,
        actuated: Sequence[str] | None = None,
    ):
        self.model, self.reference = model, as_reference(model, reference)
        self.freedoms = Freedoms(model, independent, actuated)
        self.freedoms.require_motors("ComputedTorque")
        self.kp = Gain(kp, model.nv, "kp")
        self.kd = Gain(damping_for(kp, kd), model.nv, "kd")
        simple = not model.is_constrained and self.kp.value.ndim < 2 and self.kd.value.ndim < 2
        gains = [np.broadcast_to(g.value, (model.nv,)).copy() for g in (self.kp, self.kd) if simple]
        self._gains = gains or None

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        q_r, qd_r, qdd_r = self.reference(t)
        if self._gains is not None:
            return _computed_torque(self.model, q, qd, q_r, qd_r, qdd_r, *self._gains)
        e = configuration_error(self.model, q, q_r)
        wanted = qdd_r + self.kd(qd_r - qd) + self.kp(e)
        return self.freedoms.motor_forces(q, qd, wanted)


@explains_itself
class GravityCompensation:
    """Gravity compensation with damping: ``tau = g(q) - damping qd``.

        hold = kt.control.GravityCompensation(m, damping=0.5)
        tau = hold(t, q, qd)

    The mechanism can be moved by hand as if it had no weight, and with damping stays where it is
    released. Springs are not compensated, nor is weight that the model's ``gravity_compensation``
    balances. With loops, the forces are the smallest ones of the driven joints.

    Args:
        model: the mechanism, fully actuated; with loops, a motor per degree of freedom or more.
        damping: of the joints, a number, (nv,) or (nv, nv).
        actuated: names of the driven joints. By default those with actuators; of a model without
            any, all but free joints.

    Raises:
        ModelError: there are joints without motors.
    """

    def __init__(
        self,
        model: Model,
        damping: ArrayLike = 0.0,
        *,
        actuated: Sequence[str] | None = None,
    ):
        self.model = as_model(model)
        self.damping = Gain(damping, model.nv, "damping")
        self.freedoms = Freedoms(model, None, actuated)
        self.freedoms.require_motors("GravityCompensation")
        carried = model.is_constrained or model.gravity_compensation
        self._bare = without_springs(model) if carried else model

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        tau = gravity_force(self._bare, q) - self.freedoms.driven * self.damping(qd)
        if self.model.gravity_compensation and not self.model.is_constrained:
            tau = tau - passive_force(self._bare, q, 0 * qd)
        return tau


@explains_itself
class PDWithFeedforward:
    """PD control of the joints with feedforward forces from the model.

        tau = feedforward + kp (q_r - q) + kd (qd_r - qd)

    Unlike with ``ComputedTorque`` the gains are those of real springs, the same in every
    configuration, and the feedforward may be computed before the motion starts.

    Args:
        model: the mechanism, fully actuated; with loops, a motor per degree of freedom or more:
            springs and dampers are then at the driven joints.
        reference: a function of time that returns ``(q, qd, qdd)``, or a configuration to go to;
            with loops, one that closes them.
        kp: stiffness [N·m/rad, N/m], a number, (nv,) or (nv, nv).
        kd: damping [N·m·s/rad, N·s/m], likewise.
        feedforward: ``"reference"``: what the motors need for the reference; ``"gravity"``: what
            holds the mechanism where it is, its springs included, which brings it to rest at a
            constant reference from anywhere; None: nothing, and joints without motors are left
            alone.
        actuated: names of the driven joints. By default those with actuators; of a model without
            any, all but free joints.

    Raises:
        ModelError: there are joints without motors, for which there is no feedforward.
    """

    def __init__(
        self,
        model: Model,
        reference: Reference,
        kp: ArrayLike,
        kd: ArrayLike,
        *,
        feedforward: Literal["reference", "gravity"] | None = "reference",
        actuated: Sequence[str] | None = None,
    ):
        if feedforward not in ("reference", "gravity", None):
            raise UnknownNameError(
                f"feedforward must be 'reference', 'gravity' or None, got {feedforward!r}"
            )
        self.model, self.reference = model, as_reference(model, reference)
        self.kp, self.kd = Gain(kp, model.nv, "kp"), Gain(kd, model.nv, "kd")
        self.feedforward, self.freedoms = feedforward, Freedoms(model, None, actuated)
        if feedforward is not None:
            self.freedoms.require_motors(f"PDWithFeedforward(feedforward={feedforward!r})")

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        q_r, qd_r, qdd_r = self.reference(t)
        tau = self.kp(configuration_error(self.model, q, q_r)) + self.kd(qd_r - qd)
        tau = self.freedoms.driven * tau
        if self.feedforward == "reference":
            qdd_r = self.freedoms.allowed_acceleration(q_r, qd_r, qdd_r)
            tau = tau + motor_forces(self.model, q_r, qd_r, qdd_r)
        elif self.feedforward == "gravity":
            tau = tau + holding_forces(self.model, q)
        return tau
