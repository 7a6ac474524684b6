"""How the variables of one joint translate between kinetree and Pinocchio.

Every function takes and returns arrays over leading batch axes, variables last. The two sets of
velocity variables differ at most in their order, whatever the joint: both are the same rates, or
the same coordinates of the velocity in the child frame. So accelerations and forces translate
like velocities, and need neither the configuration nor the velocity.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["FREE", "PLANAR", "SAME", "SPHERICAL", "UNBOUNDED", "JointMap"]


@dataclass(frozen=True)
class JointMap:
    """The same variables, perhaps in another order.

    Attributes:
        position_order: for each position variable of Pinocchio, the index of kinetree's.
        velocity_order: the same for velocities, accelerations and forces.
        limited: indices of kinetree's position variables that a limit makes sense for.
    """

    position_order: tuple | None = None
    velocity_order: tuple | None = None
    limited: tuple | None = None

    def to_position(self, q):
        """Pinocchio's position variables."""
        return _take(q, self.position_order)

    def from_position(self, q):
        """Kinetree's position variables."""
        return _put(q, self.position_order)

    def to_velocity(self, qd):
        """Pinocchio's velocity variables; also accelerations and forces."""
        return _take(qd, self.velocity_order)

    def from_velocity(self, v):
        """Kinetree's velocity variables; also accelerations and forces."""
        return _put(v, self.velocity_order)

    def to_limit(self, limit, unlimited):
        """Pinocchio's position limit; ``unlimited`` stands where there is none."""
        return self.to_position(self._where_limited(limit, unlimited))

    def from_limit(self, limit, unlimited):
        """Kinetree's position limit."""
        return self._where_limited(self.from_position(limit), unlimited)

    def _where_limited(self, limit, unlimited):
        if self.limited is None:
            return limit
        return np.where(np.isin(np.arange(len(limit)), self.limited), limit, unlimited)


@dataclass(frozen=True)
class _Unbounded(JointMap):
    """An angle here, its cosine and sine there."""

    def to_position(self, q):
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1)

    def from_position(self, q):
        return np.arctan2(q[..., 1:], q[..., :1])

    def to_limit(self, limit, unlimited):
        return np.full(2, unlimited)

    def from_limit(self, limit, unlimited):
        return np.full(1, unlimited)


@dataclass(frozen=True)
class _Planar(JointMap):
    """(angle, x, y) here, (x, y, cosine, sine) there."""

    def to_position(self, q):
        return np.concatenate([q[..., 1:], UNBOUNDED.to_position(q[..., :1])], axis=-1)

    def from_position(self, q):
        return np.concatenate([UNBOUNDED.from_position(q[..., 2:]), q[..., :2]], axis=-1)

    def to_limit(self, limit, unlimited):
        return np.array([*limit[1:], unlimited, unlimited])

    def from_limit(self, limit, unlimited):
        return np.array([unlimited, *limit[:2]])


def _take(x, order):
    return x if order is None else x[..., list(order)]


def _put(x, order):
    return x if order is None else x[..., np.argsort(order)]


SAME = JointMap()
UNBOUNDED = _Unbounded()
PLANAR = _Planar(velocity_order=(1, 2, 0))
SPHERICAL = JointMap(position_order=(1, 2, 3, 0), limited=())
FREE = JointMap(
    position_order=(0, 1, 2, 4, 5, 6, 3), velocity_order=(3, 4, 5, 0, 1, 2), limited=(0, 1, 2)
)
