"""Modes of contacts during a phase, and contact forces where they are not unique."""

from dataclasses import dataclass

import numpy as np

OPEN, TOUCHES, STICKS, SLIDES = range(4)
MODES = ("apart", "touches", "sticks", "slides")
"""Names of the modes; contacts that touch have no friction."""


@dataclass
class ContactModes:
    """Modes of all contacts."""

    kind: np.ndarray
    """One of the numbers above, (n,)."""
    slip: np.ndarray
    """Directions along the tangents in which contacts slide, unit vectors or zero, (n, 2)."""
    force: np.ndarray
    """Contact forces at the start of the phase, which tell how those that are not unique are shared
    out, (n, 3)."""
    blur: np.ndarray
    """Speeds of sliding up to which a step is too long to follow how its direction turns [m/s],
    (n,)."""

    @classmethod
    def apart(cls, n):
        """``ContactModes`` of ``n`` contacts that are all open."""
        return cls(np.zeros(n, dtype=int), np.zeros((n, 2)), np.zeros((n, 3)), np.zeros(n))

    @property
    def closed(self):
        """Indices of the closed contacts, each of which adds equations."""
        return np.flatnonzero(self.kind != OPEN)

    @property
    def rows(self):
        """Contact and axis (0 normal, 1 and 2 tangents) of every equation, each (m,)."""
        pairs = [(k, a) for k in self.closed for a in range(3 if self.kind[k] == STICKS else 1)]
        return tuple(np.array(pairs, dtype=int).reshape(-1, 2).T)

    @property
    def names(self):
        """Names of the modes of all contacts, such as "open" or "sticks"."""
        return tuple(MODES[k] for k in self.kind)


# --- Distribution of loads over redundant contacts -----------------------------------------------
# Solutions of contact problems tend to be extreme, with contacts that bear nothing. From there
# the next shift of the load, however small, would have to make one pull. Forces in the middle of
# what is admissible are good for a long time.

_RANK = 1e-10
_NOISE = 1e-9  # of all forces: by how much those that solvers find may miss
_SWEEPS, _HALVINGS = 3, 20


def centre(dynamics, now, qd, mode, force):
    """Contact forces (n, 3) of equal effect as ``force``, but away from their limits.

    Contacts do not brace themselves against each other more than they must: of all tangential
    forces the least. Along each way of shifting normal forces that moves nothing, in turn, they go
    to the middle between the ends of what is admissible, the size of all forces at most. Tangents
    of contacts that slide, which follow from their normal forces, are left as they are.

    Args:
        dynamics: ``PhaseDynamics``.
        now: an ``Instant``.
        qd: joint velocities, (nv,).
        mode: of the contacts.
        force: admissible forces along normals and tangents, (n, 3).
    """
    pushed = now.with_loops()[0] @ dynamics.columns(now, qd, mode).T
    shifts, of_normals = (_shifts(pushed, mode, last_axis) for last_axis in (2, 0))
    size = np.abs(force).sum()
    if size == 0 or not len(shifts):
        return force
    tangents = shifts[..., 1:].reshape(len(shifts), -1)
    for _ in range(_SWEEPS):
        braced = np.linalg.lstsq(tangents.T, force[:, 1:].ravel())[0]
        change = -np.tensordot(braced, shifts, 1)
        force = force + _reach(force, change, dynamics.mu, mode) * change
        for change in size * of_normals:
            ahead, behind = (_reach(force, sign * change, dynamics.mu, mode) for sign in (1, -1))
            force = force + (ahead - behind) / 2 * change
    return force


def _shifts(pushed, mode, last_axis):
    """Basis (k, n, 3) of contact-force changes without effect on the motion.

    Args:
        pushed: accelerations per force of every row of the mode, (nv, m).
        mode: of the contacts.
        last_axis: of those that have a part in it: 0 for normals alone, 2 for all.
    """
    contact, axis = (rows[mode.rows[1] <= last_axis] for rows in mode.rows)
    columns = pushed[:, mode.rows[1] <= last_axis]
    unit = np.linalg.norm(columns, axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    _, s, Vh = np.linalg.svd(columns / unit)
    null = Vh[np.sum(s > _RANK * s.max(initial=0.0)) :] / unit
    shifts = np.zeros((len(null), len(mode.kind), 3))
    shifts[:, contact, axis] = null / np.abs(null).max(axis=1, initial=0.0, keepdims=True)
    return shifts


def _reach(force, change, mu, mode):
    """Largest fraction of a force change, at most 1, that stays admissible."""
    near, far = 0.0, 1.0
    if _admissible(force + change, mu, mode):
        return far
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        inside = _admissible(force + middle * change, mu, mode)
        near, far = (middle, far) if inside else (near, middle)
    return near


def _admissible(force, mu, mode):
    """Whether no contact pulls and sticking friction is within its cone, up to rounding."""
    near = _NOISE * np.abs(force).sum()
    friction = np.where(mode.kind == STICKS, np.hypot(force[:, 1], force[:, 2]), 0.0)
    return np.all(force[:, 0] >= -near) and np.all(friction <= mu * force[:, 0] + near)
