"""Schedules of contacts: phases with named contacts, as legged optimal control is written.

In a phase the frames of its contacts do not move, and forces act there within friction cones. What
touches down at the beginning of a phase stops at once, by an inelastic impact. What is in the air
follows a path of heights, from the ground to the ground, at a cost.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.control.whole_body_tasks import Contact
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.model.arrays import as_seconds, whole_number
from kinetree.spelling import explains_itself

SOON = 1e-9  # of time: rounding [s]


@explains_itself
@dataclass(frozen=True)
class Phase:
    """A time during which the same contacts are closed.

        kt.control.Phase(0.3, ["front_left_foot", "rear_right_foot"])
        kt.control.Phase(0.3, [], targets={"foot": [0.5, 0.0, 0.0]})  # in the air

    Args:
        duration: [s].
        contacts: what is closed: names of frames or bodies, or a ``Contact`` with its points,
            friction and damping. A frame has the same ``Contact`` wherever it is named.
        targets: where contacts that are open in this phase and close at its end should touch down,
            by name, (3,) [m].
        lift: height that open contacts reach half-way of their time in the air [m].
    """

    duration: float
    contacts: Sequence[str | Contact] = ()
    targets: Mapping[str, ArrayLike] = field(default_factory=dict)
    lift: float = 0.06

    def __post_init__(self):
        object.__setattr__(
            self, "duration", as_seconds(self.duration, "duration of a phase", least=0.0)
        )
        if isinstance(self.contacts, (str, Contact)):
            raise ShapeError(
                f"contacts of a phase are a list of names or contacts, got {self.contacts!r}"
            )
        object.__setattr__(self, "contacts", tuple(self.contacts))
        for name, place in self.targets.items():
            if np.shape(place) != (3,):
                raise ShapeError(f"target of {name!r} must be a point (3,), got {place!r}")
            if name in self.names:
                raise ShapeError(f"target of {name!r}, which is closed in this phase: it stays")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the closed contacts."""
        return tuple(c if isinstance(c, str) else c.frame for c in self.contacts)


@explains_itself
@dataclass(frozen=True)
class Schedule:
    """Phases that follow one another, the first of which begins at time zero.

    Args:
        phases: in their order.
        repeat: number of the phase with which they begin again after the last; None: the last one
            goes on.
        ground: height of the (first) points of contacts where they stand [m], or a dict of heights
            by name of the contact.
        swing_weight: of squared errors of the heights of open contacts, in the cost of a step.
        landing_weight: of squared errors of heights and targets where they touch down.
    """

    phases: Sequence[Phase]
    repeat: int | None = None
    ground: float | Mapping[str, float] = 0.0
    swing_weight: float = 1e4
    landing_weight: float = 1e6

    def __post_init__(self):
        phases = tuple(self.phases)
        if not phases or not all(isinstance(p, Phase) for p in phases):
            raise ShapeError(f"a schedule needs a list of phases, got {self.phases!r}")
        object.__setattr__(self, "phases", phases)
        if self.repeat is not None and not 0 <= self.repeat < len(phases):
            raise ShapeError(
                f"repeat must be the number of a phase, from 0 to {len(phases) - 1}, or None, got "
                f"{self.repeat!r}"
            )
        if not (self.swing_weight >= 0 and self.landing_weight >= 0):
            raise ShapeError(
                f"weights must be at least 0, got {self.swing_weight} and {self.landing_weight}"
            )
        known = self.contacts
        named = {n for p in phases for n in p.targets}
        named |= set(self.ground) if isinstance(self.ground, Mapping) else set()
        for name in named - set(known):
            raise UnknownNameError(
                f"{name!r} is not a contact of any phase; contacts are {', '.join(known)}"
            )

    @property
    def duration(self) -> float:
        """Total duration of all phases [s]."""
        return float(sum(p.duration for p in self.phases))

    @cached_property
    def contacts(self) -> dict[str, Contact]:
        """All contacts of the phases, by name."""
        found: dict[str, Contact] = {}
        for c in (c for p in self.phases for c in p.contacts):
            if isinstance(c, Contact) and found.setdefault(c.frame, c) is not c:
                raise ShapeError(f"two phases have different contacts of {c.frame!r}")
        for name in (n for p in self.phases for n in p.names):
            found.setdefault(name, Contact(name))
        return found

    @cached_property
    def key(self) -> tuple:
        """Hashable key of the contacts' compiled tables."""
        return tuple(
            (c.key, c.friction, c.normal.tobytes(), c.sides, c.least, c.most, c.damping)
            for c in self.contacts.values()
        )

    def height(self, name: str) -> float:
        """Height at which a contact stands [m]."""
        return float(
            self.ground.get(name, 0.0) if isinstance(self.ground, Mapping) else self.ground
        )

    def closed(self, t: float) -> tuple[str, ...]:
        """Names of the contacts that are closed at a time [s]."""
        t = as_seconds(t, "t of a schedule")
        again, last = self.repeat or 0, len(self.phases) - 1
        lead = self._ends[again] - self.phases[again].duration
        if self.repeat is not None and t > lead:
            t = lead + (t - lead) % self._turn(t)
        k = bisect_right(self._ends, t + SOON)
        return self._names[k if k <= last else again if self.repeat is not None else last]

    @cached_property
    def _ends(self) -> list[float]:
        """End times of the phases [s]."""
        return list(accumulate(p.duration for p in self.phases))

    @cached_property
    def _names(self) -> list[tuple[str, ...]]:
        """Names of the closed contacts of all phases."""
        return [p.names for p in self.phases]

    def _turn(self, *times: float) -> float:
        """Period of the repeating phases [s]; ShapeError for times beyond float resolution."""
        turn = sum(p.duration for p in self.phases[self.repeat or 0 :])
        if max(map(abs, times)) * np.finfo(float).eps > 1e-3 * turn:
            raise ShapeError(
                f"times from {min(times):g} to {max(times):g} s are too late for phases that "
                f"repeat every {turn:g} s: double precision does not resolve them"
            )
        return turn

    def pieces(self, first: float, end: float) -> list[tuple[Phase, float, float]]:
        """Phases with start and end times that cover the interval from ``first`` to ``end``.

        More than the longest time between two touch-downs before and after, if there is that.
        """
        first, end = as_seconds(first, "first"), as_seconds(end, "end")
        whole = self.duration
        found, start, k, again = [], 0.0, 0, self.repeat or 0
        if self.repeat is not None:
            lead, turn = sum(p.duration for p in self.phases[:again]), self._turn(first, end)
            turns = int((first - lead) / turn) - 2
            if turns > 0:
                start, k = lead + turns * turn, again
        while True:
            phase, last = self.phases[k], k + 1 == len(self.phases)
            stop = np.inf if last and self.repeat is None else start + phase.duration
            found.append((phase, start, stop))
            if start > end + whole or stop == np.inf:
                return found
            start, k = stop, k + 1 if not last else again


class Timetable(NamedTuple):
    """Contacts, touch-downs and goals at the knots of a motion, by its schedule.

    Attributes:
        active: contacts that are closed, by step, (steps, contacts).
        landing: those that touch down at its beginning.
        goal: places of their points at knots, (steps + 1, contacts, 3).
        weight: weights of squared deviations from them.
    """

    active: np.ndarray
    landing: np.ndarray
    goal: np.ndarray
    weight: np.ndarray


def timetable(schedule: Schedule, times: np.ndarray) -> Timetable:
    """Schedule at knots: contacts of each step by the phase at its middle."""
    names, h = list(schedule.contacts), float(times[1] - times[0])
    pieces = schedule.pieces(times[0] - h, times[-1] + h)
    ends = np.array([stop for *_, stop in pieces])
    middles = np.concatenate([[times[0] - h / 2], (times[:-1] + times[1:]) / 2])
    at = np.minimum(np.searchsorted(ends, middles + SOON, side="right"), len(pieces) - 1)
    inside = {id(p): p.names for p in schedule.phases}
    closed = {k: [name in own for name in names] for k, own in inside.items()}
    rows = [closed[id(phase)] for phase, *_ in pieces]
    on = np.array(rows, bool).reshape(len(pieces), len(names))[at]
    if times[0] < h / 2:
        on[0] = on[1]  # nothing touches down when the motion begins
    first, last = times[0] - h, times[-1] + h
    swings = [
        (c, *swing)
        for c, name in enumerate(names)
        for swing in _swings(pieces, [row[c] for row in rows], name)
        if swing[0] < last and swing[1] > first
    ]
    goal, weight = _follow(schedule, times, swings)
    return Timetable(on[1:], on[1:] & ~on[:-1], goal, weight)


def _swings(pieces, closed, name):
    """Swings of a contact: start, end, lift height and touch-down target of each."""
    found, start, lift, target = [], None, 0.0, None
    for k, (phase, begin, _) in enumerate(pieces):
        if not closed[k]:
            if start is None:
                start, lift = begin if k else -np.inf, phase.lift
            target = phase.targets.get(name)
        elif start is not None:
            found.append((start, begin, lift, target))
            start = None
    return found if start is None else [*found, (start, np.inf, lift, target)]


def _follow(schedule, times, swings):
    """Target positions and weights of swinging contacts at all knots."""
    names, h = list(schedule.contacts), times[1] - times[0]
    goal, weight = np.zeros((2, len(times), len(names), 3))
    if not swings:
        return goal, weight
    contact, start, stop, lift, targets = zip(*swings, strict=True)
    starts, stops = np.array([start, stop], float)
    ground = [schedule.height(names[c]) for c in contact]
    first = np.searchsorted(times, starts + h / 2, side="right").tolist()
    last = np.searchsorted(times, stops - h / 2, side="left").tolist()
    near = np.abs(times - stops[:, None]) <= h / 2 + SOON
    lands, down = near.any(axis=1).tolist(), near.argmax(axis=1).tolist()
    with np.errstate(invalid="ignore"):  # of times in the air that have no beginning or no end
        s = (times - starts[:, None]) / (stops - starts)[:, None]
        rise = np.sin(np.pi * s) ** 2
    arcs = np.isfinite(stops - starts).tolist()
    for k, c in enumerate(contact):
        inside = slice(first[k], last[k])
        goal[inside, c, 2] = ground[k] + lift[k] * (rise[k, inside] if arcs[k] else 1.0)
        weight[inside, c, 2] = schedule.swing_weight
        if lands[k]:
            goal[down[k], c, 2], weight[down[k], c, 2] = ground[k], schedule.landing_weight
            if targets[k] is not None:
                goal[down[k], c], weight[down[k], c] = targets[k], schedule.landing_weight
    return goal, weight


def gait(
    groups: Sequence[Sequence[str | Contact]],
    *,
    swing: float = 0.25,
    stand: float = 0.05,
    steps: int | None = None,
    lift: float = 0.06,
    **more: Any,
) -> Schedule:
    """Schedule of a gait in which groups of feet swing in turn, while all others stand.

        kt.control.gait([["left"], ["right"]], swing=0.5, stand=0.1, steps=4)

    Args:
        groups: feet that swing together, in the order of their swings.
        swing: duration of a swing [s].
        stand: time for which all feet stand before every swing, and at the end [s].
        steps: number of swings; by default it goes on forever.
        lift: height of feet half-way of their swing [m].
        **more: further arguments of ``Schedule``.
    """
    feet = [foot for group in groups for foot in group]
    if not groups or not all(groups) or len(set(map(_name, feet))) < len(feet):
        raise ShapeError(f"groups must be lists of feet, each of which is in one, got {groups!r}")
    count = len(groups) if steps is None else whole_number(steps, "steps", 1)
    phases = []
    for k in range(count):
        away = [_name(foot) for foot in groups[k % len(groups)]]
        phases += [Phase(stand, feet)] if stand > 0 else []
        phases.append(Phase(swing, [f for f in feet if _name(f) not in away], lift=lift))
    if steps is not None:
        phases.append(Phase(max(stand, swing), feet))
    return Schedule(phases, repeat=0 if steps is None else None, **more)


def trot(feet: Sequence[str | Contact], **options: Any) -> Schedule:
    """Schedule of a trot: diagonal pairs of four feet swing in turn.

        kt.control.trot(["front_left", "front_right", "rear_left", "rear_right"], steps=6)

    Args:
        feet: front left, front right, rear left, rear right.
        **options: as for ``gait``.
    """
    if len(feet) != 4:
        raise ShapeError(f"a trot needs four feet, the two in front first, got {len(feet)}")
    return gait([[feet[0], feet[3]], [feet[1], feet[2]]], **options)


def as_schedule(given) -> Schedule | None:
    """Schedule from a user's ``phases``."""
    return given if given is None or isinstance(given, Schedule) else Schedule(given)


def _name(contact):
    """Name of a contact, or of the frame it is on."""
    return contact if isinstance(contact, str) else contact.frame
