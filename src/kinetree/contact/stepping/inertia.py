"""The inertia matrix of a step, factorised with the sparsity of the tree."""

from functools import singledispatch
from typing import Any

import numpy as np

from kinetree.algorithms import ltl
from kinetree.joints import AbstractJoint, Free, Planar
from kinetree.spatial.lie import left_jacobian_inverse
from kinetree.spatial.ops import less, select, stumpff
from kinetree.spatial.rotation import rotation_exp
from kinetree.spatial.vector3 import cross


class Inertia:
    """``M = H + diag(extra)`` of a tree, ready to be divided by.

    Args:
        model: the mechanism.
        H: its inertia matrix, (nv, nv).
        extra: what springs and dampers add to the diagonal, (nv,).
        free: 1 for variables that forces change, 0 for prescribed ones, (nv,): of these, ``solve``
            returns its argument, and the others do not feel it.
    """

    def __init__(self, model, H, extra, free):
        self.H, self.lam, self.free = H, model.expanded_parent, free
        M = (self.H + np.diag(extra)) * free * free[:, None] + np.diag(1 - free)
        self.L = self._factor(model, M)

    def _factor(self, model, M):
        def message(k):
            i = next(i for i, at in enumerate(model.v_slice) if i and at.start <= k < at.stop)
            return (
                f"TimeStepping divides by the inertia that joints move with loops open, and joint "
                f"{model.joint_names[i - 1]!r} moves none: give body {model.body_names[i]!r}, or a "
                f"body beyond it, mass away from the joint axis, or the joint armature"
            )

        return ltl.ltdl(M, self.lam, message)

    def solve(self, b):
        """``M⁻¹ b``."""
        return ltl.solve_ltdl(self.L, self.lam, b)

    def half(self, b):
        """``z = L⁻ᵀ b``, half of ``M⁻¹ b = L⁻¹ D⁻¹ z``."""
        return ltl.solve_lt(self.L, self.lam, b, unit=True)

    def halves(self, G):
        """``Y``, the halves of all rows: ``G M⁻¹ Gᵀ = Y D⁻¹ Yᵀ``; G is (m, nv)."""
        return [self.half(row) for row in G * self.free]

    def along(self, Y, z):
        """``G M⁻¹ b``, (m,), from ``halves(G)`` and ``half(b)``."""
        scaled = z / np.diagonal(self.L)
        return np.array([_product(scaled, y) for y in Y]) if Y else np.zeros(0)

    def mobility(self, Y):
        """``G M⁻¹ Gᵀ``, (m, m), from ``halves(G)``."""
        n, D = len(Y), np.diagonal(self.L)
        A = np.zeros((n, n), dtype=self.L.dtype)
        for i, row in enumerate(Y):
            weighted = [0 if _is_zero(x) else x / d for x, d in zip(row, D, strict=True)]
            for j in range(i + 1):
                A[i, j] = A[j, i] = _product(weighted, Y[j])
        return A

    def half_of(self, Y, forces, z: Any = 0):
        """The half of ``Gᵀ forces + b``, (nv,), from ``halves(G)`` and ``half(b)``."""
        return z + sum(f * y for f, y in zip(forces, Y, strict=True))

    def response(self, Y, forces):
        """``M⁻¹ Gᵀ forces``, (nv,), from ``halves(G)``."""
        return self.whole(self.half_of(Y, forces))

    def whole(self, total):
        """``M⁻¹ b``, from ``half(b)``."""
        return ltl.solve_l(self.L, self.lam, total / np.diagonal(self.L), unit=True)


def _product(x, y):
    """``x · y`` without the products of zeros that are known beforehand."""
    return sum(a * b for a, b in zip(x, y, strict=True) if not (_is_zero(a) or _is_zero(b)))


def _is_zero(x):
    return isinstance(x, (int, float)) and x == 0


# --- Velocity variables in rotating frames: ``Free`` and ``Planar`` joints -----------------------
# Their linear velocities are those of the origin in child coordinates, and so change when the body
# turns, though nothing acts on it. A step must not take that for an acceleration: it finds the
# velocities along the axes that the body has in the middle, and moves the centre of mass ``c``
# straight on, so that free bodies keep their momentum in an impact; then it turns the axes.


def centre_of_mass(inertia):
    """Centre of mass of a body in its coordinates, (3,); the origin where it has no mass."""
    m = inertia.mass
    return inertia.first_moment / select(less(0, m), m, 1)


def turning(model, qd):
    """Part of the accelerations that comes from turning axes alone, (nv,)."""
    return _joined(model, turning_part, qd)


def straight_motion(model, qd, h):
    """What to integrate for a straight motion of ``h`` seconds, and ``qd`` along the new axes.

    Args:
        model: the mechanism.
        qd: velocities along the axes at the start, (nv,).
        h: how long [s].
    """
    return _joined(model, straight_part, h * qd), turned(model, qd, h * qd)


def turned(model, qd, move):
    """Velocities ``qd`` along the axes that bodies have after a displacement, (nv,) each."""
    return _joined(model, turned_part, qd, move)


def _joined(model, function, *vectors):
    parts = [model.zero_velocity[:0]]
    for i in range(1, model.body_count + 1):
        own = (x[model.v_slice[i]] for x in vectors)
        parts.append(function(model.joint[i], centre_of_mass(model.inertia[i]), *own))
    return np.concatenate(parts)


@singledispatch
def turning_part(joint: AbstractJoint, c, v):
    """``turning`` of one joint."""
    return 0 * v


@turning_part.register
def _(joint: Free, c, v):
    w = v[:3]
    return np.concatenate([0 * w, -cross(w, v[3:] + cross(w, c))])


@turning_part.register
def _(joint: Planar, c, v):
    w, x, y = v[0], v[1] - v[0] * c[1], v[2] + v[0] * c[0]
    return np.array([0 * w, w * y, -w * x])


@singledispatch
def turned_part(joint: AbstractJoint, c, v, u):
    """Velocities of one joint along the axes after a displacement ``u``."""
    return v


@turned_part.register
def _(joint: Free, c, v, u):
    w = cross(v[:3], c)
    return np.concatenate([v[:3], rotation_exp(u[:3]) @ (v[3:] + w) - w])


@turned_part.register
def _(joint: Planar, c, v, u):
    w, x, y = v[0], v[1] - v[0] * c[1], v[2] + v[0] * c[0]
    cos, sin = np.cos(u[0]), np.sin(u[0])
    return np.array([w, cos * x + sin * y + w * c[1], cos * y - sin * x - w * c[0]])


@singledispatch
def straight_part(joint: AbstractJoint, c, u):
    """What to integrate for a straight motion by ``u`` of one joint.

    It takes the origin by ``J u_o``, with the left Jacobian ``J`` of the rotation ``θ``; straight
    is ``u_c`` for the centre of mass, so that ``J u_o = u_c - (R - 1) c = u_c - J (θ × c)``.
    """
    return u


@straight_part.register
def _(joint: Free, c, u):
    w = cross(u[:3], c)
    return np.concatenate([u[:3], left_jacobian_inverse(u[:3]) @ (u[3:] + w) - w])


@straight_part.register
def _(joint: Planar, c, u):
    w, x, y = u[0], u[1] - u[0] * c[1], u[2] + u[0] * c[0]
    s = stumpff(w * w)
    k = s[1] / (2 * s[2])
    return np.array([w, k * x + w / 2 * y + w * c[1], k * y - w / 2 * x - w * c[0]])
