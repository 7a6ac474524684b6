"""A mechanism in an impact: ``H Δqd = Jᵀ λ + Kᵀ κ`` with ``K Δqd = 0`` — RBDA (11.57).

Loops respond in the same instant, with their own impulses ``κ``. NumPy only.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.rank import kept_rows, scaling
from kinetree.contact.contacts import jacobian, velocity
from kinetree.contact.mobility import free_variables, loop_forces, mobility
from kinetree.errors import ImpactError, LoopError
from kinetree.joints.prescribed import PrescribedInstant
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.space import tree_inertia
from kinetree.quantities import dynamics

VELOCITY_TOLERANCE = 1e-6
"""Velocity error of loops [rad/s, or lengths of the mechanism per second], relative to ``qd``,
above which a state is rejected."""


@dataclass(frozen=True)
class Collision:
    """A mechanism at the instant of an impact."""

    model: Any
    """The mechanism."""
    q: np.ndarray
    """Joint positions, (nq,)."""
    qd: np.ndarray
    """Joint velocities before, (nv,)."""
    contacts: Any
    """Of the impact; ``Contacts``."""
    given: tuple[str, ...] = ()
    """Names of prescribed joints, whose velocities no impulse changes."""

    def __post_init__(self):
        """Reject velocities that loops do not allow: the impulse would have to undo them, too."""
        if not self.model.is_constrained:
            return
        found, units = constraint(self.model, self.q, self.qd), scaling(self.model)
        rows = kept_rows(self.model, found.K)
        rate = np.asarray(found.rate) * units.rows
        worst = np.max(np.abs(rate if rows is None else rate[rows]), initial=0.0)
        if worst > VELOCITY_TOLERANCE * (1 + np.max(np.abs(self.qd), initial=0.0)):
            raise LoopError(
                f"qd opens the loops of model {self.model.name!r} at {worst:.3g} per second, which "
                f"an impact cannot start from: use kinetree.loops.project_velocity"
            )

    def require_yielding(self):
        """Raise ImpactError for a closing contact whose two sides are both prescribed."""
        yields = np.einsum("nv,vw,nw->n", self.J[:, 0], self.A, self.J[:, 0])
        stiff = np.flatnonzero((self.zeta[:, 0] < 0) & (yields <= 0))
        if len(stiff):
            k = int(stiff[0])
            name = self.contacts.names[k] if self.contacts.names else str(k)
            raise ImpactError(
                f"contact {name!r} closes at {-self.zeta[k, 0]:.6g} m/s, and no impulse stops it: "
                f"nothing on either side is free to move"
            )

    @cached_property
    def J(self):
        """Contact Jacobian with rows (normal, tangent 1, tangent 2), (n, 3, nv)."""
        return jacobian(self.model, self.q, self.contacts)

    @cached_property
    def A(self):
        """Joint velocity changes per joint-space impulse, (nv, nv)."""
        return mobility(self.model, self.q, self.given)

    @cached_property
    def W(self):
        """Contact velocity changes per contact impulse, (n, 3, n, 3)."""
        return np.einsum("nav,vw,mbw->namb", self.J, self.A, self.J)

    @cached_property
    def zeta(self):
        """Relative contact velocities before the impact, (n, 3), positive when separating."""
        return velocity(self.model, self.q, self.qd, self.contacts)

    @cached_property
    def free(self):
        """Mask (nv,) of the velocity variables that impulses can change."""
        return free_variables(self.model, self.given)

    def loop_impulse(self, u):
        """Loop impulses ``κ`` (nc,) for the joint-space impulse ``u``, and ``Kᵀκ``.

        Args:
            u: joint-space impulse of the contacts, (nv,).
        """
        missing = tree_inertia(self.model, self.q) @ (self.A @ u) - u
        return loop_forces(self.model, self.q, missing, self.free)


# --- Results -------------------------------------------------------------------------------------

_CREATED = 1e-9  # of the energy that the impulses can reach: more is not rounding


class ImpactResiduals(NamedTuple):
    """Residuals of an impact; all zero in exact arithmetic.

    Attributes:
        momentum: ``H Δqd - Jᵀλ - Kᵀκ`` of joints that are free, relative to ``H Δqd``.
        approach: fastest approach that is left at a contact [m/s].
        cone: largest excess of an impulse over its cone of friction [N·s].
        loops: fastest opening of a loop [m/s or rad/s].
        solver: error of the complementarity problem, where there was one; has no unit.
    """

    momentum: float
    approach: float
    cone: float
    loops: float
    solver: float


@dataclass(frozen=True, eq=False)
class Impact:
    """Result of an impact: velocities, impulses and energies.

    Attributes:
        qd: joint velocities after, (nv,).
        impulse: on the successors, along normal and two tangents [N·s], (n, 3).
        couple: impulsive couples about the normal, or about normal and tangents [N·m·s], (n, 1)
            or (n, 3), of patches and welds; else None.
        contact_work: of the impulses at the contacts [J]; never positive.
        energy_change: of the mechanism [J]: the same, and the work of drives of prescribed
            joints.
        velocity: relative velocities at the contacts after, along normal and tangents, (n, 3).
        loop_impulse: of loops [N·m·s, N·s], (nc,); the smallest, if not unique.
        contacts: the contacts that took part.
        law: name of the law of restitution.
        residuals: what is not exact.
    """

    qd: np.ndarray
    impulse: np.ndarray
    couple: np.ndarray | None
    contact_work: float
    energy_change: float
    velocity: np.ndarray
    loop_impulse: np.ndarray
    contacts: object
    law: str
    residuals: ImpactResiduals


def finish(collision, rows, impulse, friction, *, couple=None, law, solver=0.0) -> Impact:
    """``ImpactResult`` of contact impulses; ImpactError if they created energy.

    Args:
        collision: the mechanism before.
        rows: Jacobians of the contacts, (n, 3, nv), with more rows where there are couples, and the
            velocities before, (n, 3).
        impulse: (n, 3).
        friction: coefficients (n,); None where impulses have no cone.
        couple: impulsive couples, or None.
        law: name of the law.
        solver: error of the complementarity problem.
    """
    model, q, before, (J, before_there) = collision.model, collision.q, collision.qd, rows
    lam = impulse if couple is None else np.concatenate([impulse, couple], axis=1)
    u = np.einsum("nav,na->v", J, lam)
    dqd, H = collision.A @ u, tree_inertia(model, q)
    qd = before + dqd
    work = float(np.sum(lam * (before_there + J @ dqd / 2)))
    within_reach = float(np.abs(dqd) @ np.abs(H) @ (np.abs(before) + np.abs(qd)) / 2)
    if work > _CREATED * within_reach:
        raise ImpactError(
            f"the law {law!r} would create {work:.6g} J in this impact: sliding stops or "
            f"reverses while it lasts, and restitution of velocities ignores that; use "
            f"law='energetic'"
        )
    zeta = collision.zeta + collision.J @ dqd
    loop_impulse, of_loops = collision.loop_impulse(u)
    gained = H @ dqd
    opening = constraint(model, q, dqd).rate if model.is_constrained else np.zeros(0)
    residuals = ImpactResiduals(
        momentum=_norm((gained - u - of_loops)[collision.free])
        / max(_norm(gained), np.finfo(float).tiny),
        approach=float(np.max(-zeta[:, 0], initial=0.0)),
        cone=0.0 if friction is None else _excess(impulse, friction),
        loops=float(np.max(np.abs(opening), initial=0.0)),
        solver=solver,
    )
    change = float(dqd @ H @ (before + qd) / 2) + _prescribed_energy(model, q, dqd)
    return Impact(
        qd, impulse, couple, work, change, zeta, loop_impulse, collision.contacts, law, residuals
    )


def _prescribed_energy(model, q, dqd):
    """Kinetic energy change due to the velocities of joints of prescribed motion [J]."""
    if not any(isinstance(joint, PrescribedInstant) for joint in model.joint):
        return 0.0
    there, back = (dynamics.kinetic_energy(model, q, v) for v in (dqd, -dqd))
    return float(there - back) / 2


def _norm(x):
    """Euclidean norm of an array as a float."""
    return float(np.linalg.norm(x))


def _excess(impulse, friction):
    """Largest excess of contact impulses over their friction cones [N·s]."""
    sideways = np.hypot(impulse[:, 1], impulse[:, 2])
    with np.errstate(invalid="ignore"):
        limit = np.where(impulse[:, 0] > 0, friction * impulse[:, 0], 0.0)
    return float(np.max(np.maximum(sideways - limit, -impulse[:, 0]), initial=0.0))
