"""Joints of the kinds that the library does not need and the theory must handle."""

from dataclasses import dataclass

import numpy as np

from kinetree.joints import AbstractJoint
from kinetree.joints.axis import forces
from kinetree.joints.base import unit_forces, unit_motions
from kinetree.spatial import Motion, Plucker, rotz, rz, xlt
from kinetree.spatial.ops import cos, sin


@dataclass(frozen=True)
class Slot(AbstractJoint):
    """A pin on the parabola y = q²/2 that turns by ``turn * q``: S and T both vary."""

    turn: float = 0.7
    nq = nv = 1
    constant_subspace = False

    def _tangent(self, q):
        return rz(self.turn * q[0]) @ np.array([1, q[0], 0])

    def jcalc(self, q, qd):
        E, u, k = rz(self.turn * q[0]), self._tangent(q), self.turn
        X_J = Plucker(E, np.array([q[0], q[0] * q[0] / 2, 0 * q[0]]))
        S = Motion(np.array([[0], [0], [k]]), u[:, None])
        rate = np.array([k * u[1], -k * u[0], 0]) + E @ np.array([0, 1, 0])
        return X_J, S, S @ qd, Motion(np.zeros(3, dtype=int), rate * qd[0] * qd[0])

    def constraint_subspace(self, q):
        u, o = self._tangent(q), np.zeros(3, dtype=int)
        x, y, z = np.eye(3, dtype=int)
        normal, k = np.array([-u[1], u[0], 0 * u[0]]), self.turn
        return forces((x, o), (y, o), (o, z), (o, normal), (-(u @ u) * z, k * u))

    def coordinates(self, X):
        return np.array([X.r[0]])


@dataclass(frozen=True)
class Driven(AbstractJoint):
    """No freedom, prescribed motion: turns about z and shifts along x as functions of time."""

    t: float = 0.3
    nq = nv = 0

    def jcalc(self, q, qd):
        t = self.t
        angle, shift = sin(2 * t), t * t
        w, v = 2 * cos(2 * t), 2 * t
        w_d, v_d = -4 * sin(2 * t), 2
        c, s = cos(angle), sin(angle)
        X_J = rotz(angle) @ xlt(shift, 0, 0)
        sigma = Motion(np.array([0, 0, w]), np.array([c * v, -s * v, 0]))
        linear = np.array([c * v_d - s * w * v, -s * v_d - c * w * v, 0])
        return X_J, unit_motions(), sigma, Motion(np.array([0, 0, w_d]), linear)

    def constraint_subspace(self, q):
        return unit_forces(1, 2, 3, 4, 5, 6)

    def coordinates(self, X):
        return np.zeros(0)


@dataclass(frozen=True)
class DrivenCylinder(AbstractJoint):
    """A cylindrical joint whose rotation is prescribed, 2 rad/s and 3 rad/s²; it still slides."""

    angle: float = 0.4
    nq = nv = 1

    def jcalc(self, q, qd):
        S = unit_motions(6)
        X_J = rotz(self.angle) @ xlt(np.array([0, 0, q[0]]))
        o = np.zeros(3, dtype=int)
        spin = np.array([0, 0, 1])
        return X_J, S, S @ qd + Motion(2 * spin, o), Motion(3 * spin, o)

    def constraint_subspace(self, q):
        return unit_forces(1, 2, 3, 4, 5)

    def coordinates(self, X):
        return X.r[2:]


@dataclass(frozen=True)
class Geared(AbstractJoint):
    """A joint driven through another active-force subspace — RBDA Example 3.2."""

    joint: AbstractJoint
    T_a: object

    @property
    def nq(self):
        return self.joint.nq

    @property
    def nv(self):
        return self.joint.nv

    def jcalc(self, q, qd):
        return self.joint.jcalc(q, qd)

    def constraint_subspace(self, q):
        return self.joint.constraint_subspace(q)

    def coordinates(self, X):
        return self.joint.coordinates(X)

    def active_subspace(self, q):
        return self.T_a


SPECIAL_JOINTS = (Slot(), Slot(-0.4), Driven(), DrivenCylinder())
