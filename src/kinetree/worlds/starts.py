"""Checks of the states that worlds start from: bodies inside each other, joints beyond limits.

Whenever a state was set, the next step looks once for what a step cannot have led to.
"""

from typing import NamedTuple

import numpy as np

from kinetree.contact.engine.engine import Engine
from kinetree.errors import SimulationWarning, warn
from kinetree.loops.stepping.choice import closed_start

DEEP = 1e-3
"""Of the largest shape, from which on bodies count as inside each other; of joints in m or rad."""
OPEN = 1e-9
"""Error of a loop up to which it is closed [m or rad]."""
_NONE = np.zeros(0)
_LISTED = 3  # names in a message, at most


class Faults(NamedTuple):
    """Faults of a state."""

    joints: list[str]
    """Beyond their limits, with by how much."""
    pairs: list[str]
    """Of shapes inside each other, the deepest first."""
    depth: float
    """Of the deepest [m]."""

    @property
    def inside(self) -> str:
        """Description of the overlapping pairs, with the largest depth."""
        return f"{some(self.pairs)}, up to {self.depth:.3g} m"


class Reached(NamedTuple):
    """Parts of a state to which steps have led, as far as the next check is concerned."""

    shapes: set[int]
    """Pairs of these, by numbers in the tables of shapes, are not looked at."""
    q: np.ndarray
    """Positions whose limits are not looked at, (nq,) of bool."""


class StartCheck:
    """Finds what is wrong with a state of a world.

    Args:
        model: the world.
        limited: whether limits of joints are rigid.

    Attributes:
        reached: of a world that has changed, what the next check leaves out.
    """

    def __init__(self, model, limited: bool):
        self.model, self._low, self._high = model, *model.position_limits
        self._limited = limited and bool(np.any(np.isfinite([self._low, self._high])))
        self.reached: Reached | None = None

    def faults(self, engine: Engine, which: np.ndarray, q: np.ndarray) -> Faults:
        """``Faults``: joints beyond limits at ``q``, and pairs that overlap.

        Args:
            engine: which has found the contacts at ``q``.
            which: numbers of these.
            q: positions.
        """
        found = engine.found
        gap = found.gap[which]
        deep = np.flatnonzero(gap < -DEEP * engine.size)
        if not deep.size:
            return Faults(self._beyond(q), [], 0.0)
        deep = which[deep[np.argsort(gap[deep], kind="stable")]]
        ends = zip(found.first[deep].tolist(), found.second[deep].tolist(), strict=True)
        known = self.reached.shapes if self.reached is not None else set()
        new = [(k, both) for k, both in zip(deep, ends, strict=True) if not known.issuperset(both)]
        pairs = list(dict.fromkeys(repr(engine.pair_name(*both)) for _, both in new))
        return Faults(self._beyond(q), pairs, -float(found.gap[new[0][0]]) if new else 0.0)

    def _beyond(self, q):
        """Names of joints beyond their limits at ``q``, with the excess."""
        beyond = np.maximum(self._low - q, q - self._high) if self._limited else _NONE
        if self.reached is not None and self._limited:
            beyond = np.where(self.reached.q, 0.0, beyond)
        if not np.any(beyond > DEEP):
            return []
        model = self.model
        return [
            f"{model.joint_names[i - 1]!r} by {beyond[at].max():.3g}"
            for i, at in enumerate(model.q_slice)
            if i and at.start < at.stop and beyond[at].max() > DEEP
        ]

    def close_loops(
        self, engine: Engine, q: np.ndarray, qd: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """State with slightly open loops closed; unchanged if they are closed."""
        if engine.opening(q) <= OPEN:
            return q, qd
        return closed_start(self.model, q, qd, f"the start of world {self.model.name!r}")

    def check(self, engine: Engine, q: np.ndarray) -> None:
        """Warn of overlaps and exceeded limits at ``q``, except those that earlier steps led to."""
        found = self.faults(engine, engine.find(q), q)
        self.reached = None
        self.warn_of(found)

    def warn_of(self, found: Faults) -> None:
        """Warn of the overlaps and exceeded limits at the start of a world."""
        start = f"world {self.model.name!r}"
        if found.joints:
            warn_of_joints(f"{start} starts with joints beyond their limits: {some(found.joints)}")
        if found.pairs:
            warn_of_pairs(f"{start} starts with bodies inside each other: {found.inside}")

    def check_batch(self, faults: dict[int, Faults], n: int) -> None:
        """Warn of the overlaps and exceeded limits at the starts of a batch of ``n`` worlds."""
        of = f"of {n} worlds {self.model.name!r} start with"
        joints = [f"world {k}: {some(x.joints)}" for k, x in faults.items() if x.joints]
        if joints:
            listed = some(joints, "; ")
            warn_of_joints(f"{len(joints)} {of} joints beyond their limits: {listed}")
        pairs = [f"world {k}: {x.inside}" for k, x in faults.items() if x.pairs]
        if pairs:
            warn_of_pairs(f"{len(pairs)} {of} bodies inside each other: {some(pairs, '; ')}")


def some(names: list[str], between: str = ", ") -> str:
    """First few names joined as text, with "..." if there are more."""
    return between.join(names[:_LISTED]) + (f"{between}..." if len(names) > _LISTED else "")


def warn_of_joints(start: str) -> None:
    """Warn of a start with joints beyond their limits, with advice."""
    warn(
        f"{start}; they are pushed back slowly. Start elsewhere: world.add(..., q=...); or leave "
        f"limits out: kinetree.World(limits=None)",
        SimulationWarning,
    )


def warn_of_pairs(start: str) -> None:
    """Warn of a start with overlapping bodies, with advice."""
    warn(
        f"{start}; they are pushed apart slowly. To start apart: world.add(..., on='ground'), or "
        f"at=; to let links of a robot pass through each other: world.exclude_overlaps(), or "
        f"world.exclude(a, b)",
        SimulationWarning,
    )
