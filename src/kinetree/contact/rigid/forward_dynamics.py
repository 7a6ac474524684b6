"""``forward_dynamics``: accelerations and contact forces of a mechanism that touches something.

    motion = kt.contact.forward_dynamics(m, q, qd, tau, scene)
    motion.qdd, motion.forces, motion.zetadot, motion.modes, motion.residuals

Works for trees, floating bases, loops, gears, and prescribed joints — RBDA §11.1–11.5. Contacts
with friction stick or slide; see ``friction``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.complementarity import lcp
from kinetree.contact.contacts import Contacts
from kinetree.contact.finding.pairs import coefficients_of
from kinetree.contact.mobility import drive_forces, tree_force
from kinetree.contact.rigid.friction import directions, reduce_unknowns, require_method, solve
from kinetree.contact.rigid.problem import (
    HITTING,
    TOUCHING,
    contact_states,
    problem_at,
    require_solution,
)
from kinetree.contact.scene import Scene
from kinetree.errors import ContactError, ShapeError, UnknownNameError
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.model import Model
from kinetree.spatial import Force, Inertia, Motion, cross_force

_FINITE = float(np.finfo(float).max)
_STILL = 1e-9  # of the accelerations at hand: what counts as none


class ContactResiduals(NamedTuple):
    """Residuals of the laws of contact; all zero in exact arithmetic.

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
        tau: joint forces, (nv,), with those of the drives of prescribed joints.
        forces: on the successors, along normal and tangents [N], (n, 3).
        zetadot: accelerations at the contacts, along normal and tangents [m/s²], (n, 3); those
            along normals are the second derivatives of the gaps.
        states: of the contacts, as in RBDA Fig. 11.4: ``"1"``, ``"2b"`` or ``"3"``.
        modes: of the contacts: ``"apart"``, ``"separates"``, ``"touches"`` without
            friction, ``"sticks"`` or ``"slides"``.
        unique: whether the forces are unique. If not, they are those of a basic solution without
            friction, or the smallest.
        residuals: what is not exact.
        contacts: the contacts that were considered.
    """

    qdd: np.ndarray
    tau: np.ndarray
    forces: np.ndarray
    zetadot: np.ndarray
    states: tuple[str, ...]
    modes: tuple[str, ...]
    unique: bool
    residuals: ContactResiduals
    contacts: Contacts


@on_host
def forward_dynamics(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    contacts: Contacts | Scene,
    *,
    friction: ArrayLike | None = None,
    method: str = "auto",
    given: str | Sequence[str] = (),
    qdd: ArrayLike | None = None,
    gap_tolerance: float = 1e-6,
    velocity_tolerance: float = 1e-6,
) -> ContactMotion:
    """Accelerations and contact forces of a mechanism in rigid contact.

    Args:
        model: the mechanism; loops are kept.
        q: joint positions [m, rad], (nq,).
        qd: joint velocities [m/s, rad/s], (nv,); no contact may be closing.
        tau: joint forces [N, N·m], (nv,).
        contacts: ``Contacts``, or a ``Scene``, whose contacts at ``q`` count.
        friction: coefficients, a number or (n,); by default those of the contacts, or zero.
        method: for contacts without friction: ``"lcp"``, ``"lemke"``, ``"forces"`` or
            ``"accelerations"``, see ``friction``; they agree.
        given: names of joints with prescribed accelerations, whatever force it takes, as in
            ``kinetree.hybrid_dynamics``.
        qdd: joint accelerations, (nv,); only entries of the ``given`` joints are read.
        gap_tolerance: contacts with larger gaps [m] are open.
        velocity_tolerance: what counts as neither closing, opening nor sliding [m/s].

    Raises:
        ContactError: a contact is closing, which needs an impact.
        InfeasibleContactError: no contact forces keep all contacts from closing.
        PainleveError: friction leaves no motion, or several.
    """
    require_method(method)
    q, qd, tau = _arrays(model, q, qd, tau)
    given = (given,) if isinstance(given, str) else tuple(given)
    known = np.zeros(model.nv) if qdd is None else as_joint_vector(model, qdd, "qdd").astype(float)
    if isinstance(contacts, Scene):
        contacts = contacts.contacts(q, margin=gap_tolerance)
    mu = coefficients_of(friction, contacts.friction, contacts.size, "friction", _FINITE)
    if method != "auto" and np.any(mu > 0):
        raise UnknownNameError(
            f"method {method!r} is for contacts without friction: say friction=0, or leave the "
            f"method out"
        )
    problem = problem_at(model, q, qd, tau, contacts, mu, given, known)
    states = contact_states(
        np.asarray(contacts.gap), problem.zeta[:, 0], gap_tolerance, velocity_tolerance
    )
    _refuse_hitting(problem, states)
    current = np.array([s == TOUCHING for s in states], dtype=bool)
    lam = np.zeros((problem.size, 3))
    if current.any():
        lam[current] = solve(problem.select(current), velocity_tolerance, method)
    at = _Instant(model, q, qd, tau, contacts, given)
    return _finish(at, problem, lam, states, velocity_tolerance)


class _Instant(NamedTuple):
    """A mechanism in a state, under joint forces, with contacts and names of prescribed joints."""

    model: Model
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    contacts: Contacts
    given: tuple[str, ...]


def _refuse_hitting(problem, states):
    """Raise ContactError for contacts that are closing and need an impact first."""
    for name, state, zeta in zip(problem.names, states, problem.zeta, strict=True):
        if state == HITTING:
            raise ContactError(
                f"contact {name!r} closes at {-zeta[0]:.6g} m/s, which takes an impulse: go on "
                f"from kinetree.contact.impact(model, q, qd, contacts).qd"
            )


def _arrays(model, q, qd, tau):
    """Positions, velocities and forces of one state as float arrays."""
    q = as_configuration(as_model(model), q).astype(float)
    qd = as_joint_vector(model, qd, "qd").astype(float)
    tau = as_joint_vector(model, tau, "tau").astype(float)
    if not q.ndim == qd.ndim == tau.ndim == 1:
        raise ShapeError(
            f"contact forces are found for one sample at a time, got q {q.shape}, qd {qd.shape} "
            f"and tau {tau.shape}"
        )
    return q, qd, tau


def _finish(at, problem, lam, states, velocity_tolerance):
    """``ContactDynamics`` result of the forces ``lam`` (n, 3) of a problem's contacts."""
    qdd = problem.motion(lam)
    w = np.einsum("nav,v->na", problem.J, qdd) + problem.bias
    slip, slides = directions(problem.zeta, velocity_tolerance)
    small = _STILL * max(problem.scale, 1e-300)
    modes = tuple(_mode(*each, small) for each in zip(states, w, problem.mu, slides, strict=True))
    closed = np.array([s == TOUCHING for s in states], dtype=bool)
    unique = forces_are_unique(problem, lam, w, slip, slides, closed)
    tangential = _friction_errors(lam[:, 1:], problem.mu * lam[:, 0], w[:, 1:], slip, modes)
    residuals = _residuals(at, problem, qdd, lam, w, closed, tangential)
    tau = at.tau
    if at.given:
        push = problem.rows.T @ lam.ravel()
        tau = drive_forces(at.model, at.q, at.qd, tau, qdd, push, at.given)
    return ContactMotion(qdd, tau, lam, w, states, modes, unique, residuals, at.contacts)


def _mode(state, w, mu, slides, small):
    """Name of a contact's motion: apart, separates, touches, slides or sticks."""
    if state != TOUCHING:
        return "apart"
    if w[0] > small:
        return "separates"
    if not mu > 0:
        return "touches"
    return "slides" if slides or np.hypot(w[1], w[2]) > small else "sticks"


def forces_are_unique(problem, lam, w, slip, slides, closed) -> bool:
    """Whether no other admissible forces of the closed contacts have the same effect."""
    small = _STILL * max(problem.scale, 1e-300)
    on = np.flatnonzero(closed & (w[:, 0] <= small))
    if len(on) == 0:
        return True
    part, lam, w, slip, slides = problem.select(on), lam[on], w[on], slip[on], slides[on]
    push = np.hypot(lam[:, 1], lam[:, 2])[:, None]
    begins = ~slides & (np.hypot(w[:, 1], w[:, 2]) > small)  # sliding, against its friction
    start = np.where(push > 0, -lam[:, 1:] / np.where(push > 0, push, 1.0), 0.0)
    P = reduce_unknowns(part.mu, np.where(begins[:, None], start, slip), slides | begins).P
    effect = P.T @ part.M @ P
    size = np.sqrt(np.maximum(np.diagonal(effect), 1e-300))
    return bool(np.linalg.eigvalsh(effect / size / size[:, None])[0] > 1e-10)


def _residuals(at, problem, qdd, lam, w, closed, tangential):
    """Residuals of the equation of motion and of the contact laws."""
    missing = tree_force(at.model, at.q, at.qd, qdd) - at.tau - problem.rows.T @ lam.ravel()
    friction, most = np.hypot(lam[:, 1], lam[:, 2]), problem.mu * lam[:, 0]
    return ContactResiduals(
        motion=_largest(np.abs(problem.A @ missing)),
        closing=_largest(-w[closed, 0]),
        complementarity=_largest(np.abs(lam[:, 0] * w[:, 0])),
        cone=_largest(np.maximum(friction - most, -lam[:, 0])),
        friction=_largest(tangential),
    )


def _friction_errors(friction, most, w, slip, modes):
    """Friction-law errors (n,) of contacts that slide, begin to slide, or stick."""
    size, speed = np.hypot(*friction.T), np.hypot(*w.T)
    moves = np.any(slip != 0, axis=1)
    sliding = np.hypot(*(friction + most[:, None] * slip).T)
    beginning = np.abs(size * speed + np.einsum("ni,ni->n", friction, w))  # zero when opposed
    does = np.array(modes, dtype="<U9")
    errors = np.where(moves, sliding, beginning)
    return np.select([does == "slides", does == "sticks"], [errors, size * speed], 0.0)


def _largest(x):
    """Largest entry of an array, zero if it is empty."""
    return float(np.max(x, initial=0.0))


# --- One body in contact, without friction — RBDA §11.1, §11.2 -----------------------------------
# The textbook case, in spatial vectors: normals ``n`` through the points of contact, forces ``n
# λ`` with ``λ ≥ 0``, and separation accelerations ``n · a + ṅ · v ≥ 0``, one of the two zero. For
# mechanisms see ``forward_dynamics``.

_CLOSING = 1e-6  # [m/s] separation velocity that still counts as zero


class BodyContact(NamedTuple):
    """Motion of one body in contact.

    Attributes:
        lam: contact forces [N], (n,); one of many, where normals are dependent.
        a: spatial acceleration of the body, unique.
        zetadot: separation accelerations [m/s²], (n,), unique.
        M: separation accelerations per contact force [1/kg], (n, n) — RBDA (11.19).
        d: separation accelerations without contact forces [m/s²], (n,) — RBDA (11.20).
    """

    lam: np.ndarray
    a: Motion
    zetadot: np.ndarray
    M: np.ndarray
    d: np.ndarray


@on_host
def body_contact(
    inertia: Inertia,
    v: Motion,
    f: Force,
    normals: ArrayLike,
    normal_rates: ArrayLike | None = None,
) -> BodyContact:
    """Frictionless contact forces on one rigid body, and its spatial acceleration.

    Args:
        inertia: spatial inertia of the body.
        v: its spatial velocity; separation velocities ``n · v`` must be zero.
        f: all other forces on it, gravity among them.
        normals: unit forces along the normals through the points of contact, (n, 6); away from the
            surfaces.
        normal_rates: their rates, (n, 6); zero by default.

    Raises:
        ContactError: a contact is closing, which needs an impulse, or opening.
        InfeasibleContactError: no contact forces keep all contacts from closing.
    """
    N = np.asarray(normals, dtype=float)
    if N.ndim != 2 or N.shape[1] != 6:
        raise ShapeError(f"normals must be forces (n, 6), got shape {N.shape}")
    Ndot = np.zeros(N.shape) if normal_rates is None else np.asarray(normal_rates, dtype=float)
    zeta = N @ v.to_array()
    if np.any(np.abs(zeta) > _CLOSING):
        k = int(np.argmax(np.abs(zeta)))
        raise ContactError(
            f"contact {k} has the separation velocity {zeta[k]:.6g} m/s, and contact forces are "
            f"for velocities of zero: below it is a matter of impact, above it the contact is open"
        )
    I = inertia.to_matrix().astype(float)
    free = np.linalg.solve(I, (f - cross_force(v, inertia @ v)).to_array())
    I_inv_N = np.linalg.solve(I, N.T)
    M, d = N @ I_inv_N, N @ free + Ndot @ v.to_array()
    found = lcp.pivoting((M + M.T) / 2, d)  # of one contact, RBDA (11.10)
    require_solution(found, [str(k) for k in range(len(N))])
    lam = found.lam
    return BodyContact(lam, Motion.from_array(free + I_inv_N @ lam), M @ lam + d, M, d)
