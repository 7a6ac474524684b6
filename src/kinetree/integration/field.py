"""Fields: accelerations of a mechanism, and the power of all joint forces, at one instant."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from kinetree.algorithms import ltl
from kinetree.algorithms.closed.elimination import is_zero
from kinetree.functional.kernel import UserKernel, select
from kinetree.integration.prescription import Prescription
from kinetree.model.limits import has_passive_forces
from kinetree.quantities import dynamics, hybrid


@dataclass(frozen=True)
class Field:
    """The right-hand side of the equation of motion of a tree.

    Written for numbers of any kind: traced into a step kernel, or called on arrays with leading
    batch axes.

    Attributes:
        forces: functions ``(model, t, q, qd)`` that return joint forces [N, N·m], (..., nv), on top
            of those that the caller holds during a step.
        passive: function ``(model, t, q, qd)``: springs, dampers, friction and limits. By default
            ``kt.passive_force``, whose dry friction jumps.
        drive: function ``(model, qd, tau)``: what motors make of the forces that a controller
            requests; by default just these.
        actuators: function ``(model, t, q, qd, inputs)`` from what is held during a step to joint
            forces, with ``inputs(model)`` zeros of that; by default joint forces are held.
    """

    forces: tuple = ()
    passive: Any = None
    drive: Any = None
    actuators: Any = None
    prescription: ClassVar[Any] = None  # of joints; see ``PrescribedField``

    def inputs(self, model):
        """Zero array in the shape of the inputs held in a step, (nv,) for joint forces."""
        return np.zeros(model.nv) if self.actuators is None else self.actuators.inputs(model)

    def driving_force(self, model, t, q, qd, tau):
        """Joint forces (..., nv) of the controller, or of actuators under its controls."""
        return tau if self.actuators is None else self.actuators(model, t, q, qd, tau)

    def joint_force(self, model, t, q, qd, tau):
        """All joint forces, (..., nv), from the inputs ``tau`` held in a step."""
        tau = self.driving_force(model, t, q, qd, tau)
        if self.drive is not None:
            tau = self.drive(model, qd, tau)
        if self.passive is not None:
            tau = tau + self.passive(model, t, q, qd)
        elif has_passive_forces(model):
            tau = tau + dynamics.passive_force(model, q, qd)
        for force in self.forces:
            tau = tau + force(model, t, q, qd)
        return tau

    def of(self, model) -> "Field":
        """Copy of the field for a model with other parameters."""
        return self if self.passive is None else replace(self, passive=self.passive.of(model))

    @property
    def for_steps(self) -> "Field":
        """Copy of the field for steps with rigid contact; see ``PassiveForces.for_steps``."""
        if self.passive is None:
            return self
        return replace(self, passive=self.passive.for_steps)

    @property
    def resists(self) -> bool:
        """Whether servos or stiff limits act, which are better integrated implicitly."""
        return self.actuators is not None or getattr(self.passive, "limits", None) is not None

    def resistance(self, model, t, q, qd, tau):
        """Stiffness and damping diagonals of servos and stiff limits, (nv,) each."""
        K = D = np.zeros(model.nv)
        if self.actuators is not None:
            K, D = self.actuators.resistance(model, t, q, qd, tau)
            if self.drive is not None:  # a motor at its limit pushes with a constant force
                wanted = self.driving_force(model, t, q, qd, tau)
                cut = abs(self.drive(model, qd, wanted) - wanted)
                K, D = (select(cut > 0, 0 * x, x) for x in (K, D))
        if getattr(self.passive, "limits", None) is not None:
            stops = self.passive.limits.resistance(model, q, qd)
            K, D = K + stops[0], D + stops[1]
        return K, D

    def acceleration(self, model, t, q, qd, total):
        """Joint accelerations (..., nv) under total joint forces."""
        return dynamics.forward_dynamics(model, q, qd, total)

    def mobility(self, model, q):
        """Joint accelerations per unit joint force, (..., nv, nv)."""
        return dynamics.inverse_mass_matrix(model, q)

    @property
    def of_joints(self) -> "Field":
        """Copy of the field with forces of the joints alone, without external forces."""
        return replace(self, forces=())

    def response(self, model, q, M):
        """Function ``(f, given)`` of accelerations (..., nv) with inertia matrix ``M``.

        ``f`` are joint forces, and ``given`` has the accelerations of prescribed joints, or others
        that satisfy the constraints.
        """
        if M.dtype != object:
            return lambda f, given: np.linalg.solve(M, f[..., None])[..., 0]
        lam = sparsity(model, M)
        L = ltl.ltdl(M, lam, too_stiff)
        return lambda f, given: ltl.solve_ltdl(L, lam, f)

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...)."""
        total = self.joint_force(model, t, q, qd, tau)
        power = (total * qd).sum(-1)
        return self.acceleration(model, t, q, qd, total), power


def _of_field(name):
    """Property that forwards to an attribute of the wrapped ``field``."""
    return property(lambda self: getattr(self.field, name), doc=f"See ``Field.{name}``.")


@dataclass(frozen=True)
class FieldAround:
    """A field with additional constraints: all but the accelerations are those of ``field``."""

    field: Any

    forces = _of_field("forces")
    drive = _of_field("drive")
    prescription = _of_field("prescription")  # of a ``PrescribedField``
    actuators = _of_field("actuators")
    inputs = _of_field("inputs")
    driving_force = _of_field("driving_force")
    joint_force = _of_field("joint_force")  # without the forces of the constraints
    resists = _of_field("resists")
    resistance = _of_field("resistance")
    of_joints = _of_field("of_joints")

    def of(self, model) -> "FieldAround":
        """Copy of the field, and of the one it wraps, for a model with other parameters."""
        return replace(self, field=self.field.of(model))


def masked_response(response, model, q, M, free):
    """``Field.response`` in which variables with ``free`` 0 accelerate as ``given``."""
    one = np.eye(model.nv, dtype=int)
    M = M * free[..., None] * free[..., None, :] + one * (1 - free)[..., None]
    solve = response(model, q, M)
    return lambda f, given: solve(f * free + given * (1 - free), given)


def times(A, x):
    """Matrix-vector product ``A x`` with batch axes, traceable."""
    return (A @ x[..., None])[..., 0]


def sparsity(model, M):
    """Parent array for sparse factors of ``M``: the tree's if its zeros fit, else dense."""
    lam = model.expanded_parent
    for k in range(model.nv):
        others = set(range(k)) - set(ltl.ancestors(lam, k))
        if not all(is_zero(M[k, j]) for j in others):
            return ltl.dense(model.nv)
    return lam


def too_stiff(k):
    """Error message for an implicit step's matrix that is not positive definite."""
    return (
        f"the linear system of an implicit step is not positive definite at velocity variable {k}: "
        f"forces there push along instead of back, take a smaller dt; or a joint moves no inertia"
    )


def is_traceable(force) -> bool:
    """Whether a force can be compiled: a ``@kernel``, or one marked ``traceable``."""
    return isinstance(force, UserKernel) or getattr(force, "traceable", False)


# --- prescribed joints: hybrid dynamics — RBDA §9.1 ----------------------------------------------


@dataclass(frozen=True)
class PrescribedField(Field):
    """A field with prescribed joints, whose drives exert whatever the motions take.

    Joint forces that a caller holds during a step are ignored for these joints: their drives take
    their place.
    Springs, dampers, friction and other forces act on them as on all joints.
    """

    prescription: Prescription = None  # pyright: ignore[reportAssignmentType]
    """The prescribed joints."""

    def driving_force(self, model, t, q, qd, tau):
        """Joint forces (..., nv) of controller or actuators, zero on prescribed joints."""
        return super().driving_force(model, t, q, qd, tau) * self.prescription.others(model)

    def acceleration(self, model, t, q, qd, total):
        """Joint accelerations (..., nv) with prescribed joints on their motion."""
        qdd = self.prescription.at(model, t, q, qd)[2]
        return self._hybrid(model, q, qd, total, qdd).qdd

    def response(self, model, q, M):
        """``Field.response`` in which prescribed joints accelerate as ``given``."""
        free = self.prescription.others(model)
        return masked_response(super().response, model, q, M, free)

    def mobility(self, model, q):
        """Accelerations per unit joint force, (..., nv, nv), zero for prescribed joints."""
        free = self.prescription.others(model)
        return hybrid.hybrid_response(model, q, self.prescription.names) * free * free[:, None]

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...)."""
        q, qd, qdd = self.prescription.at(model, t, q, qd)
        total = self.joint_force(model, t, q, qd, tau)
        total, qdd = self._hybrid(model, q, qd, total, qdd)
        return qdd, (total * qd).sum(-1)

    def drive_force(self, model, t, q, qd, tau):
        """Joint forces (..., nv) of controller, actuators and prescribed drives."""
        q, qd, _ = self.prescription.at(model, t, q, qd)
        qdd, _ = self(model, t, q, qd, tau)
        total, free = dynamics.inverse_dynamics(model, q, qd, qdd), self.prescription.others(model)
        own = (total - self.joint_force(model, t, q, qd, tau)) * (1 - free)
        return self.driving_force(model, t, q, qd, tau) + own

    def _hybrid(self, model, q, qd, tau, qdd):
        """Hybrid dynamics of the model with the prescribed accelerations."""
        return hybrid.hybrid_dynamics(model, q, qd, tau, qdd, given=self.prescription.names)
