"""What changes the mode of a contact, as functions that cross zero.

All functions are positive as long as nothing happens, and one where nothing can.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.event_driven.mode import OPEN, SLIDES, STICKS

__all__ = ["Loads", "Touches", "loads"]

_TINY = 1e-15  # [m] stands for the gap of a contact that is about to open
_NOISE = 1e-3  # of the tolerance of velocities: sliding back that is none
_KINDS = ("arrive", "stop", "give_way", "lock")


class _Watch:
    """One contact and one kind of event, as a ``Watcher`` sees it; crossings downward count."""

    direction = -1
    terminal = False
    tolerance = 1e-12
    remedy = (
        "forces that switch with the motion do that; let them change smoothly, ask the controller "
        "less often (kinetree.Sampled), or take equal steps (kinetree.contact.TimeStepping)"
    )

    def __init__(self, group, contact, kind):
        self.group, self.contact, self.kind = group, contact, kind
        self.name = f"{group.machine.of.names[contact]}: {kind}"

    def values(self, t, q, qd, tau, stepper):
        """Of the function, for times (n,) and states (n, nq), (n, nv): (n,)."""
        part = self.group.of_motion if self.kind in _KINDS[:2] else self.group.of_forces
        return part(t, q, qd, tau)[_KINDS.index(self.kind) % 2][..., self.contact]

    def act(self, t, q, qd):
        """State after the event; says what happened in ``name``."""
        q, qd, self.name = getattr(self.group.machine, self.kind)(self.contact, t, q, qd)
        return q, qd


class Touches:
    """All that can happen to contacts.

    Args:
        machine: what decides.
    """

    def __init__(self, machine):
        self.machine = machine
        self.watches = [_Watch(self, k, kind) for kind in _KINDS for k in range(machine.of.size)]

    def values(self, t, q, qd, tau, stepper):
        """Of all functions, for times (n,) and states (n, nq), (n, nv): (n, 4 contacts)."""
        parts = *self.of_motion(t, q, qd, tau), *self.of_forces(t, q, qd, tau)
        return np.concatenate(parts, axis=-1)

    def of_motion(self, t, q, qd, tau):
        """Gaps of open contacts, and how fast others slide ahead, each (n, contacts).

        A contact that is closed and about to open counts as open.
        """
        held, mode = self.machine.held, self.machine.mode
        q, qd = held.placed(t, q, qd)
        gap, zeta = held.scene.candidate_velocities(held.tree, q, qd)
        opening = (gap <= 0) & (zeta[..., 0] >= -self.machine.settings.velocity_tolerance)
        arrive = np.where(mode.kind == OPEN, np.where(opening, _TINY, gap), 1.0)
        along = np.einsum("...ni,ni->...n", zeta[..., 1:], mode.slip)
        along = along + _NOISE * self.machine.settings.velocity_tolerance
        return arrive, np.where(mode.kind == SLIDES, along, 1.0)

    def of_forces(self, t, q, qd, tau):
        """Margins of closed contacts, and resistances of those that slide, each (n, contacts)."""
        held, mode = self.machine.held, self.machine.mode
        if not len(mode.closed):
            return tuple(np.ones((2, len(qd), len(mode.kind))))
        q, qd = held.placed(t, q, qd)
        now = held.instant(np.asarray(t, dtype=float), q, qd, tau)
        return loads(self.machine, now, t, qd).margin, held.resistance(now, qd, mode)


class Loads(NamedTuple):
    """How closed contacts bear their loads.

    Attributes:
        answer: motion and forces in the present mode.
        margin: with which acceleration contacts would have to be driven before they give way
            [m/s²], (..., n); one for open ones.
        shared: of forces that are not unique, where those nearest to the last are not admissible,
            others that are: by index, (closed contacts, 3).
    """

    answer: Any
    margin: Any
    shared: dict


def loads(machine, now, t, qd) -> Loads:
    """Loads of the contacts at an ``Instant``, or at many.

    Where forces are not unique, and those nearest to the last are not admissible, a contact problem
    says whether others are.
    """
    held, mode, tolerance = machine.held, machine.mode, machine.settings.acceleration_tolerance
    answer = held.answer(now, qd, mode)
    contact, axis = mode.rows
    first, second = np.flatnonzero(axis == 0), np.flatnonzero(axis == 1)
    margin = np.ones(answer.force.shape[:-1])
    force, soft = answer.force, answer.softness
    margin[..., contact[first]] = force[..., contact[first], 0] * soft[..., first]
    at = contact[second]
    excess = held.mu[at] * force[..., at, 0] - np.hypot(force[..., at, 1], force[..., at, 2])
    compliance = np.minimum(soft[..., second], soft[..., second + 1])
    margin[..., at] = np.minimum(margin[..., at], excess * compliance)
    margin[..., mode.closed] += tolerance
    shared = {}
    for index in map(tuple, np.argwhere(~answer.regular & np.any(margin <= 0, axis=-1))):
        one = type(now)(*(x[index] for x in now))
        time = float(np.asarray(t)[index] if np.ndim(t) else t)
        shared[index], margin[index] = _shared_out(machine, one, time, qd[index])
    return Loads(answer, margin, shared)


def _shared_out(machine, now, t, qd):
    """Forces of closed contacts by a contact problem, and the margins that they leave, (n,)."""
    mode, closed = machine.mode, machine.mode.closed
    zeta = np.zeros((len(mode.kind), 3))
    zeta[:, 1:] = np.where((mode.kind == SLIDES)[:, None], machine.held.slip(now, qd, mode), 0.0)
    lam, w = machine.solved(machine.problem(now, zeta, closed), t, thorough=False)
    margin, tolerance = np.ones(len(mode.kind)), machine.settings.acceleration_tolerance
    sideways = np.where(mode.kind[closed] == STICKS, np.hypot(w[:, 1], w[:, 2]), 0.0)
    rest = tolerance - np.maximum(w[:, 0], sideways)
    margin[closed] = np.where(rest > tolerance / 2, 1.0, rest)
    return lam, margin
