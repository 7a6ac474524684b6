"""What the rigid contact problem returns, and what it says about itself."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.mobility import drive_forces, tree_force
from kinetree.contact.rigid.friction import directions, reduced
from kinetree.contact.rigid.states import TOUCHING

__all__ = ["ContactMotion", "ContactResiduals", "finished", "forces_are_unique"]

_STILL = 1e-9  # of the accelerations at hand: what counts as none


class ContactResiduals(NamedTuple):
    """By how much the laws are missed; all zero in exact arithmetic.

    Attributes:
        motion: ``A (H qdd + C - tau - Jᵀλ)``, what the equation of motion misses [m/s², rad/s²].
        closing: largest separation acceleration below zero [m/s²].
        complementarity: largest product of normal force and separation acceleration [W/s].
        cone: largest excess of friction over its cone, or of a pull [N].
        friction: largest error of sliding friction, and of the acceleration of contacts that
            stick, times their friction [N, W/s].
    """

    motion: float
    closing: float
    complementarity: float
    cone: float
    friction: float


@dataclass(frozen=True, eq=False)
class ContactMotion:
    """Motion of a mechanism in contact.

    Attributes:
        qdd: joint accelerations, (nv,).
        tau: joint forces, (nv,), with those of drives for joints that move as told.
        forces: on the successors, along normal and tangents [N], (n, 3).
        zetadot: accelerations at the contacts, along normal and tangents [m/s²], (n, 3); those
            along normals are the second derivatives of the gaps.
        states: of the contacts, as RBDA Fig. 11.4 has them: ``"1"``, ``"2b"`` or ``"3"``.
        modes: what every contact does next: ``"apart"``, ``"separates"``, ``"touches"`` without
            friction, ``"sticks"`` or ``"slides"``.
        unique: whether the forces are the only ones. Where not, they are those of a basic solution
            without friction, or the nearest to zero.
        residuals: what is not exact.
        contacts: those that were looked at.
    """

    qdd: np.ndarray
    tau: np.ndarray
    forces: np.ndarray
    zetadot: np.ndarray
    states: tuple[str, ...]
    modes: tuple[str, ...]
    unique: bool
    residuals: ContactResiduals
    contacts: Any


def finished(model, q, qd, tau, contacts, problem, lam, states, velocity_tolerance, given=()):
    """The result of forces ``lam``, (n, 3), of all contacts of a problem."""
    qdd = problem.motion(lam)
    w = np.einsum("nav,v->na", problem.J, qdd) + problem.bias
    slip, slides = directions(problem.zeta, velocity_tolerance)
    small = _STILL * max(problem.scale, 1e-300)
    modes = tuple(_mode(*each, small) for each in zip(states, w, problem.mu, slides, strict=True))
    closed = np.array([s == TOUCHING for s in states], dtype=bool)
    unique = forces_are_unique(problem, lam, w, slip, slides, closed)
    residuals = _residuals(model, q, qd, tau, problem, qdd, lam, w, slip, modes, closed)
    if given:
        tau = drive_forces(model, q, qd, tau, qdd, problem.rows.T @ lam.ravel(), given)
    return ContactMotion(qdd, tau, lam, w, states, modes, unique, residuals, contacts)


def _mode(state, w, mu, slides, small):
    if state != TOUCHING:
        return "apart"
    if w[0] > small:
        return "separates"
    if not mu > 0:
        return "touches"
    return "slides" if slides or np.hypot(w[1], w[2]) > small else "sticks"


def forces_are_unique(problem, lam, w, slip, slides, closed) -> bool:
    """Whether no other forces of the contacts that stay closed have the same effect."""
    small = _STILL * max(problem.scale, 1e-300)
    on = np.flatnonzero(closed & (w[:, 0] <= small))
    if len(on) == 0:
        return True
    part, lam, w, slip, slides = problem.chosen(on), lam[on], w[on], slip[on], slides[on]
    push = np.hypot(lam[:, 1], lam[:, 2])[:, None]
    begins = ~slides & (np.hypot(w[:, 1], w[:, 2]) > small)  # sliding, against its friction
    start = np.where(push > 0, -lam[:, 1:] / np.where(push > 0, push, 1.0), 0.0)
    P = reduced(part.mu, np.where(begins[:, None], start, slip), slides | begins).P
    effect = P.T @ part.M @ P
    size = np.sqrt(np.maximum(np.diagonal(effect), 1e-300))
    return bool(np.linalg.eigvalsh(effect / size / size[:, None])[0] > 1e-10)


def _residuals(model, q, qd, tau, problem, qdd, lam, w, slip, modes, closed):
    missing = tree_force(model, q, qd, qdd) - tau - problem.rows.T @ lam.ravel()
    friction, most = np.hypot(lam[:, 1], lam[:, 2]), problem.mu * lam[:, 0]
    return ContactResiduals(
        motion=_largest(np.abs(problem.A @ missing)),
        closing=_largest(-w[closed, 0]),
        complementarity=_largest(np.abs(lam[:, 0] * w[:, 0])),
        cone=_largest(np.maximum(friction - most, -lam[:, 0])),
        friction=_largest(_friction_errors(lam[:, 1:], most, w[:, 1:], slip, modes)),
    )


def _friction_errors(friction, most, w, slip, modes):
    """By how much friction misses its law, (n,): contacts that slide, begin to, or stick."""
    size, speed = np.hypot(*friction.T), np.hypot(*w.T)
    moves = np.any(slip != 0, axis=1)
    sliding = np.hypot(*(friction + most[:, None] * slip).T)
    beginning = np.abs(size * speed + np.einsum("ni,ni->n", friction, w))  # zero when opposed
    does = np.array(modes, dtype="<U9")
    errors = np.where(moves, sliding, beginning)
    return np.select([does == "slides", does == "sticks"], [errors, size * speed], 0.0)


def _largest(x):
    return float(np.max(x, initial=0.0))
