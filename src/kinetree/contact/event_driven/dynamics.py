"""Dynamics during a phase: closed contacts and loops as equations.

With rows ``R`` that must not accelerate, ``R qdd + Ṙ qd = 0``, and forces along columns ``C``,
which for contacts that slide lean against the sliding,

    qdd = a + A Cᵀ λ,      R A Cᵀ λ = -(R a + Ṙ qd)

Where the matrix is singular, contacts are redundant: of all solutions the one nearest to the forces
at the start of the phase counts. Prescribed joints have no part in ``A``, and their accelerations
are in ``a``. Arrays have any number of leading axes; NumPy only.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.rank import kept_rows
from kinetree.contact.event_driven.modes import SLIDES, ContactModes
from kinetree.contact.mobility import tree_force
from kinetree.loops.kinematics.constraint import constraint

_RANK = 1e-10
_SLOWEST = 1e-13  # [m/s] sliding below which its direction is not to be trusted


class ContactInstant(NamedTuple):
    """Contacts and equation of motion at one instant, or at many."""

    gap: Any
    """(..., n)."""
    J: Any
    """(..., n, 3, nv)."""
    bias: Any
    """(..., n, 3)."""
    q: Any
    """Joint positions, (..., nq)."""
    A: Any
    """Accelerations of the tree per joint force, (..., nv, nv)."""
    free: Any
    """Accelerations of the tree without contacts and loops, (..., nv)."""
    total: Any
    """Joint forces without those of drives, (..., nv)."""
    K: Any
    """Rows of loops, (..., c, nv)."""
    k: Any
    """Their right sides, (..., c)."""

    def with_loops(self):
        """Mobility (nv, nv) and free acceleration (nv,) at one instant, with loops closed."""
        if not len(self.k):
            return self.A, self.free
        AK = self.A @ self.K.T
        inverse = np.linalg.pinv(self.K @ AK, rcond=1e-12, hermitian=True)
        free = self.free + AK @ (inverse @ (self.k - self.K @ self.free))
        return self.A - AK @ inverse @ AK.T, free


class PhaseMotion(NamedTuple):
    """Motion in a mode."""

    qdd: Any
    """(..., nv)."""
    power: Any
    """Of joint forces, drives and contact forces [W], (...)."""
    force: Any
    """Of all contacts, along normal and tangents [N], (..., n, 3)."""
    softness: Any
    """Acceleration per force of each row, if that alone gave way, (..., m)."""
    regular: Any
    """Whether the forces are unique, (...)."""
    missing: Any
    """Largest acceleration of a row, which should be zero, (...)."""


@dataclass(frozen=True, eq=False)
class PhaseDynamics:
    """Equations of motion of a mechanism with closed contacts."""

    model: Any
    """The mechanism."""
    tree: Any
    """The same without loops."""
    scene: Any
    """What can touch, a ``Scene`` or ``Features``."""
    field: Any
    """All joint forces."""

    @property
    def mu(self):
        """Friction coefficients of the potential contacts, (n,)."""
        return self.scene.candidates.friction

    def instant(self, t, q, qd, tau) -> ContactInstant:
        """``ContactInstant`` (contact terms, mobility) at one time, or at many (n,) at once."""
        gap, J, bias = self.scene.candidate_terms(self.tree, q, qd)
        held = np.broadcast_to(tau, (*qd.shape[:-1], *np.shape(tau)[-1:]))
        total = self._joint_force(t, q, qd, held)
        A = self.field.mobility(self.tree, q)
        free = self._at(t, self.field.acceleration, self.tree, q, qd, total)
        if self.tree is self.model:
            K, k = np.zeros((*qd.shape[:-1], 0, qd.shape[-1])), np.zeros((*qd.shape[:-1], 0))
        else:
            c = _loop_constraint(self.model, q, qd)
            K, k = c.K, c.k
        return ContactInstant(gap, J, bias, q, A, free, total, K, k)

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the prescribed joints, () without prescription."""
        return self.field.prescription.names if self.field.prescription is not None else ()

    def at_time(self, t, q, qd):
        """State with prescribed joints set to their motion at a time, or at times (n,)."""
        prescription = self.field.prescription
        if prescription is None:
            return q, qd
        return (prescription.at if np.ndim(t) == 0 else prescription.each)(self.tree, t, q, qd)[:2]

    def _joint_force(self, t, q, qd, tau):
        """Joint forces of the field at a time and state, or at many."""
        return self._at(t, self.field.joint_force, self.model, q, qd, tau)

    def _at(self, t, function, model, *arrays):
        """Result of ``function(model, t, ...)`` at one time, or stacked over several times."""
        if np.ndim(t) == 0:
            return function(model, t, *arrays)
        if self.field.prescription is None and not self.field.forces:
            return function(model, t, *arrays)  # servos take several times
        return np.array([function(model, *one) for one in zip(t, *arrays, strict=True)])

    def motion(self, now: ContactInstant, qd, mode: ContactModes) -> PhaseMotion:
        """``PhaseMotion``: acceleration and contact forces in the modes of ``mode``."""
        contact, axis = mode.rows
        R, b = now.J[..., contact, axis, :], now.bias[..., contact, axis]
        C, slides = self.columns(now, qd, mode), mode.kind[contact] == SLIDES
        known = mode.force[contact, axis]
        if now.K.shape[-2]:
            R, C = (np.concatenate([x, now.K], axis=-2) for x in (R, C))
            b = np.concatenate([b, -now.k], axis=-1)
            known = np.concatenate([known, np.zeros(now.K.shape[-2])])
        AC = now.A @ np.swapaxes(C, -1, -2)
        W, d = R @ AC, np.einsum("...mv,...v->...m", R, now.free) + b
        inverse, regular = _inverse(W, np.einsum("...mv,...vw,...mw->...m", R, now.A, R))
        x = known
        for _ in range(2):  # the second removes what rounding left of the first
            rest = d + np.einsum("...ij,...j->...i", W, x)
            x = x - np.einsum("...ij,...j->...i", inverse, rest)
        qdd = now.free + np.einsum("...vm,...m->...v", AC, x)
        m = len(contact)
        pushing = np.einsum("...mv,...m->...v", C[..., :m, :], x[..., :m])
        force = np.zeros((*qd.shape[:-1], len(mode.kind), 3))
        force[..., contact, axis] = x[..., :m]
        at = np.flatnonzero(slides)
        lean = self._lean(now, qd, mode)
        force[..., contact[at], 1:] = -lean[..., at, :] * x[..., at, None]
        rest = np.einsum("...mv,...v->...m", R, qdd) + b
        diagonal = np.abs(np.diagonal(inverse, axis1=-2, axis2=-1))[..., :m]
        power = ((now.total + pushing) * qd).sum(-1)
        if self.field.prescription is not None:
            power = power + self._drive_power(now, qd, qdd, np.einsum("...mv,...m->...v", C, x))
        return PhaseMotion(
            qdd,
            power,
            force,
            1 / np.maximum(diagonal, 1e-300),
            regular,
            np.max(np.abs(rest), axis=-1, initial=0.0),
        )

    def columns(self, now: ContactInstant, qd, mode: ContactModes):
        """Joint forces per unit force of every equation of ``mode``, (..., m, nv)."""
        contact, axis = mode.rows
        R, across = now.J[..., contact, axis, :], now.J[..., contact, 1:, :]
        return R - np.einsum("...mi,...miv->...mv", self._lean(now, qd, mode), across)

    def _lean(self, now, qd, mode):
        """Friction per normal force of sliding contacts, (..., m, 2); zero for the others."""
        contact, _ = mode.rows
        slides = mode.kind[contact] == SLIDES
        return (slides * self.mu[contact])[:, None] * self.slip(now, qd, mode)[..., contact, :]

    def _drive_power(self, now, qd, qdd, pushes):
        """Power of the drives of prescribed joints at an instant [W], (...)."""
        missing = tree_force(self.tree, now.q, qd, qdd) - now.total - pushes
        return (missing * qd * (1 - self.field.prescription.others(self.tree))).sum(-1)

    def slip(self, now: ContactInstant, qd, mode: ContactModes):
        """Unit sliding directions (..., n, 2) of all contacts, limited in their rate of turning.

        How fast friction turns the direction is inversely proportional to the speed, without bound
        where sliding begins or ends. Below the speed ``mode.blur`` a step cannot follow, and the
        direction turns as it would at that speed. Beyond the point where sliding would reverse,
        friction stays as it is, so that events are found from either side.
        """
        v = np.einsum("...nav,...v->...na", now.J[..., 1:, :], qd)
        s = mode.slip
        speed = np.sqrt((v * v).sum(-1))
        across = v[..., 1] * s[..., 0] - v[..., 0] * s[..., 1]
        p = across / np.maximum(np.maximum(speed, mode.blur), _SLOWEST)
        along = np.sqrt(np.maximum(1 - p * p, 0.0))
        turned = np.stack([-s[..., 1], s[..., 0]], axis=-1)
        return along[..., None] * s + p[..., None] * turned

    def blurs(self, now: ContactInstant, mode: ContactModes, h):
        """Speeds (n,) below which sliding directions are smoothed for stable steps ``h``."""
        mobility = np.einsum("nav,vw,naw->n", now.J[:, 1:], now.A, now.J[:, 1:])
        load = np.sum(self.mu * np.abs(mode.force[:, 0]))
        return h * load * mobility / 2

    def resistance(self, now: ContactInstant, qd, mode: ContactModes):
        """Fraction of normal resistance left by sliding friction, (..., n); 1 if not sliding."""
        slip = self.slip(now, qd, mode)
        n = now.J[..., 0, :]
        nA = np.einsum("...nv,...vw->...nw", n, now.A)
        smooth = (nA * n).sum(-1)
        along = np.einsum("...ni,...niv,...nv->...n", slip, now.J[..., 1:, :], nA)
        ratio = 1 - self.mu * along / np.maximum(smooth, 1e-300)
        return np.where(mode.kind == SLIDES, ratio, 1.0)


def _inverse(W, sizes):
    """Scaled pseudo-inverses of matrices, and whether each matrix is regular."""
    if not W.shape[-1]:
        return W, np.ones(W.shape[:-2], dtype=bool)
    unit = 1 / np.sqrt(np.maximum(sizes, 1e-300))
    U, s, Vh = np.linalg.svd(unit[..., :, None] * W * unit[..., None, :])
    kept = s > _RANK * s[..., :1]
    one_over = np.where(kept, 1 / np.where(kept, s, 1.0), 0.0)
    inverse = np.swapaxes(Vh, -1, -2) @ (one_over[..., :, None] * np.swapaxes(U, -1, -2))
    return unit[..., :, None] * inverse * unit[..., None, :], kept.all(axis=-1)


# --- Projection onto the equations of a phase ----------------------------------------------------
# The nearest state in the metric of the inertia matrix: positions first, by Newton's method, then
# velocities, by one linear equation. The velocities never gain energy by it. Prescribed
# joints stay where they are.

_ROUNDS, _CLOSED = 5, 1e-15


def closed_positions(dynamics, q, contacts):
    """Positions corrected so that the gaps of ``contacts``, and all loops, are closed."""
    still = np.zeros(dynamics.model.nv)
    if not len(contacts) and dynamics.tree is dynamics.model:
        return q
    A = dynamics.field.mobility(dynamics.tree, q)
    for _ in range(_ROUNDS):
        gap, J, _ = dynamics.scene.candidate_terms(dynamics.tree, q, still)
        R, error = J[contacts, 0], gap[contacts]
        if dynamics.tree is not dynamics.model:
            c = _loop_constraint(dynamics.model, q, still)
            R, error = np.concatenate([R, c.K]), np.concatenate([error, c.error])
        if np.max(np.abs(error), initial=0.0) <= _CLOSED:
            break
        q = dynamics.model.integrate(q, -A @ (R.T @ _forces(R, A, error)))
    return q


def closed_velocities(dynamics, q, qd, rows):
    """Velocities corrected so that contact ``rows`` and loops do not move.

    Args:
        dynamics: ``PhaseDynamics``.
        q: joint positions, (nq,).
        qd: joint velocities, (nv,).
        rows: numbers of contacts and of axes, each (m,).
    """
    if not len(rows[0]) and dynamics.tree is dynamics.model:
        return qd
    _, J, _ = dynamics.scene.candidate_terms(dynamics.tree, q, qd)
    R = J[rows[0], rows[1]]
    rate = R @ qd
    if dynamics.tree is not dynamics.model:
        c = _loop_constraint(dynamics.model, q, qd)
        R, rate = np.concatenate([R, c.K]), np.concatenate([rate, c.rate])
    A = dynamics.field.mobility(dynamics.tree, q)
    for _ in range(2):  # the second removes what rounding left of the first
        qd = qd - A @ (R.T @ _forces(R, A, rate))
        rate = R @ qd
    return qd


def _loop_constraint(model, q, qd):
    """Loop constraint equations at a state, without nearly redundant rows."""
    c = constraint(model, q, qd)
    K = np.asarray(c.K)
    rows = kept_rows(model, K.reshape(-1, *K.shape[-2:])[0]) if K.size else None
    rows = slice(None) if rows is None else rows
    vectors = {name: np.asarray(getattr(c, name))[..., rows] for name in ("k", "error", "rate")}
    return c._replace(K=K[..., rows, :], **vectors)


def _forces(R, A, error):
    """Minimum-norm forces ``x`` with ``R A Rᵀ x = error``."""
    W = R @ A @ R.T
    unit = 1 / np.sqrt(np.maximum(np.diagonal(W), 1e-300))
    scaled = unit[:, None] * W * unit
    return unit * np.linalg.lstsq(scaled, unit * error, rcond=_RANK)[0]
