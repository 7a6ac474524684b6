"""Conversion of the variables of one joint between kinetree and MuJoCo.

Arrays are over leading batch axes, variables last. Most joints have the same variables in both.
MuJoCo's velocities of a free joint are linear in the world, then angular in the body; ours are
angular, then linear, both in the body. A planar joint is two sliders and a hinge there, with the
same difference. So their accelerations, the rates of these, differ by more than a rotation.

Position variables count from the reference position here, ``qpos - qpos0`` for hinges and sliders.
"""

import numpy as np

from kinetree.joints import AbstractJoint, Free, Planar
from kinetree.spatial.rotation import rotation_from_quaternion


class JointMap:
    """The same variables in both."""

    def to_position(self, q):
        """MuJoCo's position variables."""
        return q

    def from_position(self, p):
        """Ours from MuJoCo's."""
        return p

    def to_velocity(self, q, qd):
        """MuJoCo's velocity variables; also forces. ``q`` is ours, here and below."""
        return qd

    def from_velocity(self, q, v):
        """Ours from MuJoCo's; also forces."""
        return v

    def to_acceleration(self, q, qd, qdd):
        """MuJoCo's acceleration variables."""
        return qdd

    def from_acceleration(self, q, v, a):
        """Ours from MuJoCo's."""
        return a


class _Moving(JointMap):
    """Our velocity is (angular, linear) in the body; theirs is linear in the parent, angular.

    Args:
        turns: number of angular variables.
        rotation: of ``q``, from parent to body coordinates, (i, j, ...), the batch axes last.
        cross: angular times linear velocity.
        order: for each position variable of MuJoCo, the index of ours.
    """

    def __init__(self, turns, rotation, cross, order):
        self.turns, self.rotation, self.cross, self.order = turns, rotation, cross, order

    def to_position(self, q):
        return q[..., self.order]

    def from_position(self, p):
        return p[..., np.argsort(self.order)]

    def to_velocity(self, q, qd):
        w, v = qd[..., : self.turns], qd[..., self.turns :]
        return _joined(np.einsum("ji...,...j->...i", self.rotation(q), v), w)

    def from_velocity(self, q, v):
        w, v = v[..., -self.turns :], v[..., : -self.turns]
        return _joined(w, np.einsum("ij...,...j->...i", self.rotation(q), v))

    def to_acceleration(self, q, qd, qdd):
        """``d(R v)/dt = R (dv/dt + ω × v)``."""
        w, v = qd[..., : self.turns], qd[..., self.turns :]
        rate = _joined(qdd[..., : self.turns], qdd[..., self.turns :] + self.cross(w, v))
        return self.to_velocity(q, rate)

    def from_acceleration(self, q, v, a):
        qd, rate = self.from_velocity(q, v), self.from_velocity(q, a)
        turning = self.cross(qd[..., : self.turns], qd[..., self.turns :])
        return _joined(rate[..., : self.turns], rate[..., self.turns :] - turning)


def _free_rotation(q):
    return rotation_from_quaternion(np.moveaxis(q[..., 3:7], -1, 0))


def _planar_rotation(q):
    c, s = np.cos(q[..., 0]), np.sin(q[..., 0])
    return np.array([[c, s], [-s, c]])


def _planar_cross(w, v):
    return w * np.stack([-v[..., 1], v[..., 0]], axis=-1)


def _joined(*parts):
    batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate([np.broadcast_to(p, (*batch, p.shape[-1])) for p in parts], axis=-1)


SAME = JointMap()
FREE = _Moving(3, _free_rotation, np.cross, [0, 1, 2, 3, 4, 5, 6])
PLANAR = _Moving(1, _planar_rotation, _planar_cross, [1, 2, 0])


def map_of(joint: AbstractJoint) -> JointMap:
    """The conversion for a joint."""
    if isinstance(joint, Free):
        return FREE
    return PLANAR if isinstance(joint, Planar) else SAME
