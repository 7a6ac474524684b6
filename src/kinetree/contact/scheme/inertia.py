"""The inertia matrix of a step, factorised with the sparsity of the tree."""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import ltl
from kinetree.joints import AbstractJoint, Free, Planar
from kinetree.spatial.ops import less, select, stumpff
from kinetree.spatial.rotation import quaternion_exp, rotation_from_quaternion
from kinetree.spatial.vector3 import ZERO3, cross, identity3, skew


class EffectiveInertia:
    """``M = H + extra`` of a tree, ready to be divided by.

    Args:
        model: the mechanism.
        H: its inertia matrix, (nv, nv).
        extra: what springs, dampers and servos add, (nv, nv).
        free: 1 for variables that forces change, 0 for prescribed ones, (nv,): of these, ``solve``
            returns its argument, and the others do not feel it.
    """

    def __init__(self, model, H, extra, free):
        self.H, self.lam, self.free = H, model.expanded_parent, free
        M = (self.H + extra) * free * free[:, None] + np.diag(1 - free)
        self.L = self._factor(model, M)

    def _factor(self, model, M):
        """LTDL factors of an inertia matrix; the error names a joint that moves no inertia."""

        def message(k):
            i = next(i for i, at in enumerate(model.v_slice) if i and at.start <= k < at.stop)
            return (
                f"TimeStepping divides by the inertia that joints move with loops open, and joint "
                f"{model.joint_names[i - 1]!r} moves none: give body {model.body_names[i]!r}, or a "
                f"body beyond it, mass away from the joint axis, or the joint armature"
            )

        return ltl.ltdl(M, self.lam, message)

    def solve(self, b):
        """Velocities ``M⁻¹ b`` for a joint-space impulse ``b``."""
        return ltl.solve_ltdl(self.L, self.lam, b)

    def half(self, b):
        """Half solution ``z = L⁻ᵀ b``, from which ``M⁻¹ b = L⁻¹ D⁻¹ z``."""
        return ltl.solve_lt(self.L, self.lam, b, unit=True)

    def halves(self, G):
        """Half solutions ``Y`` of the rows of G (m, nv): ``G M⁻¹ Gᵀ = Y D⁻¹ Yᵀ``."""
        return [self.half(row) for row in G * self.free]

    def along(self, Y, z):
        """Row velocities ``G M⁻¹ b``, (m,), from ``halves(G)`` and ``half(b)``."""
        scaled = z / np.diagonal(self.L)
        return np.array([_product(scaled, y) for y in Y]) if Y else np.zeros(0)

    def mobility(self, Y):
        """Delassus matrix ``G M⁻¹ Gᵀ``, (m, m), from ``halves(G)``."""
        n, D = len(Y), np.diagonal(self.L)
        A = np.zeros((n, n), dtype=self.L.dtype)
        for i, row in enumerate(Y):
            weighted = [0 if is_zero(x) else x / d for x, d in zip(row, D, strict=True)]
            for j in range(i + 1):
                A[i, j] = A[j, i] = _product(weighted, Y[j])
        return A

    def half_of(self, Y, forces, z: Any = 0):
        """Half solution of ``Gᵀ forces + b``, (nv,), from ``halves(G)`` and ``half(b)``."""
        return z + sum(f * y for f, y in zip(forces, Y, strict=True))

    def response(self, Y, forces):
        """Velocity change ``M⁻¹ Gᵀ forces``, (nv,), from ``halves(G)``."""
        return self.whole(self.half_of(Y, forces))

    def whole(self, total):
        """Full solution ``M⁻¹ b``, (nv,), from its half ``half(b)``."""
        return ltl.solve_l(self.L, self.lam, total / np.diagonal(self.L), unit=True)


def _product(x, y):
    """Scalar product of two vectors that skips structural zeros."""
    return sum(a * b for a, b in zip(x, y, strict=True) if not (is_zero(a) or is_zero(b)))


def is_zero(x) -> bool:
    """Whether a number is a structural zero: a plain int or float equal to 0."""
    return isinstance(x, (int, float)) and x == 0


# --- Velocity variables in rotating frames: ``Free`` and ``Planar`` joints -----------------------
# Their velocities are along axes of the child, and so change when the body turns, though nothing
# acts on it. A step must not take that for an acceleration: it finds the velocities along the axes
# that the body has in the middle, moves it there and on as if nothing acted on it, the centre of
# mass ``c`` straight, and turns the axes. So free bodies keep their momentum in an impact, and
# those that are all of their tree their angular momentum and, to high order, their energy.


class Flying(NamedTuple):
    """Properties by which a body moves as long as nothing acts on it.

    Attributes:
        c: centre of mass in its coordinates, (3,); the origin where it has no mass.
        I: rotational inertia about it, (3, 3).
        alone: ``alone`` of the variables of its joint.
    """

    c: Any
    I: Any
    alone: Any


def quotient(A, b):
    """Solution ``A⁻¹ b`` of a 3 x 3 system by Cramer's rule, zero if singular."""
    x, y, z = np.transpose(A)
    u = cross(y, z)
    det = x @ u
    scale = select(less(0, det), 1, 0) / select(less(0, det), det, 1)
    return scale * np.array([u @ b, cross(z, x) @ b, cross(x, y) @ b])


def flying(inertia, alone) -> Flying:
    """``Flying`` inertia (centre of mass, central inertia, flag) of a body."""
    m = inertia.mass
    c = inertia.first_moment / select(less(0, m), m, 1)
    return Flying(c, inertia.rotational - m * (c @ c * identity3() - np.outer(c, c)), alone)


def alone(model):
    """Indicator (nv,): 1 for variables of free bodies that are a tree by themselves."""
    found, numbers = np.zeros(len(model.zero_velocity)), range(1, model.body_count + 1)
    carriers = {model.parent[i] for i in numbers}
    for i in numbers:
        if isinstance(model.joint[i], Free) and model.parent[i] == 0 and i not in carriers:
            found[model.v_slice[i]] = 1.0
    return found


def ballistic_motion(model, q, qd, x, h, alone):
    """Positions and velocities after free motion for a time, from positions ``q``.

    Args:
        model: the mechanism.
        q: joint positions, (nq,).
        qd: velocities along the axes at the start, (nv,).
        x: velocities with which positions go on, (nv,).
        h: how long [s], (1,).
        alone: ``alone`` of the model, (nv,).
    """
    after, turned = model.table(model.zero_velocity[:0]), model.table(model.zero_velocity[:0])
    for i in model.outward():
        joint, at = model.joint[i], model.v_slice[i]
        body = flying(model.inertia[i], alone[at])
        u = turn_part(joint, body, h[0] * x[at])
        after[i] = moved_part(joint, body, q[model.q_slice[i]], u)
        turned[i] = turned_part(joint, body, qd[at], u)
    return model.join_rows(after, "q"), model.join_rows(turned)


def straight_motion(model, q, qd, h):
    """State after ``h`` seconds of force-free motion, see ``ballistic_motion``."""
    return ballistic_motion(model, q, qd, qd, [h], alone(model))


def turning(model, qd):
    """Accelerations (nv,) that free joints have without any force, as gyroscopic terms."""
    return _join(model, turning_part, qd)


def turn_velocities(model, qd, move):
    """Velocities (nv,) along the body axes after a displacement ``move``, (nv,)."""
    return _join(model, turned_part, qd, move)


def _join(model, function, *vectors):
    """Concatenated results of a function of each joint and its body, (nv,)."""
    parts, flies = [model.zero_velocity[:0]], alone(model)
    for i in range(1, model.body_count + 1):
        at = model.v_slice[i]
        body = flying(model.inertia[i], flies[at])
        parts.append(function(model.joint[i], body, *(x[at] for x in vectors)))
    return np.concatenate(parts)


@singledispatch
def turning_part(joint: AbstractJoint, body, v):
    """Acceleration of one joint without any force: zero unless it is free or planar."""
    return 0 * v


@turning_part.register
def _turning_of_free(joint: Free, body, v):
    """Force-free acceleration of a free joint, (6,), gyroscopic if its body is alone."""
    w, a = v[:3], 0 * v[:3]
    if not is_zero(body.alone[0]):
        a = body.alone[0] * quotient(body.I, cross(body.I @ w, w))
    return np.concatenate([a, -cross(w, v[3:] + cross(w, body.c)) - cross(a, body.c)])


@turning_part.register
def _turning_of_planar(joint: Planar, body, v):
    """Force-free acceleration of a planar joint, (3,)."""
    w, x, y = v[0], v[1] - v[0] * body.c[1], v[2] + v[0] * body.c[0]
    return np.array([0 * w, w * y, -w * x])


@singledispatch
def turn_part(joint: AbstractJoint, body, u):
    """Force-free displacement of one joint that starts as ``u``, velocity times time.

    A free body turns about the mean of its angular velocities before and after that, by
    ``φ = (ω + ω⁺)/2``. Then its energy stays: ``2 ΔE = (ω + ω⁺) · (H⁺ - H)``, and its angular
    momenta along its axes differ by ``H⁺ - H = -(2 tan(θ/2) / θ) φ × (H + H⁺)/2``, so that
    ``I (φ - ω) + tan(θ/2) / θ φ × I φ = 0``, of which two steps of Newton's method are taken.
    """
    return u


@turn_part.register
def _turn_of_free(joint: Free, body, u):
    """Force-free displacement of a free joint that conserves energy, from ``u``."""
    if is_zero(body.alone[0]):
        return u
    w, I = u[:3], body.I
    H = I @ w
    phi = w + body.alone[0] / 2 * quotient(I, cross(H, w))
    for _ in range(2):
        x, L = phi @ phi, I @ phi
        k = body.alone[0] * (1 + x / 12 * (1 + x / 10 * (1 + 17 * x / 168))) / 2
        J = [row + k * c for row, c in zip(I, skew(phi) @ I - skew(L), strict=True)]
        phi = phi - quotient(J, L - H + k * cross(phi, L))
    return np.concatenate([phi, u[3:] - cross(phi - w, body.c)])


@singledispatch
def turned_part(joint: AbstractJoint, body, v, u):
    """Velocities of one joint, along its moved axes, after a displacement ``u``."""
    return v


@turned_part.register
def _turned_free(joint: Free, body, v, u):
    """Velocities of a free joint along its moved axes after a displacement ``u``."""
    E, w, after = _rotation(u[:3]), v[:3], v[:3]
    if not is_zero(body.alone[0]):
        H = body.I @ w
        after = w + body.alone[0] * quotient(body.I, E @ H - H)
    return np.concatenate([after, E @ (v[3:] + cross(w, body.c)) - cross(after, body.c)])


@turned_part.register
def _turned_planar(joint: Planar, body, v, u):
    """Velocities of a planar joint along its moved axes after a displacement ``u``."""
    w, x, y = v[0], v[1] - v[0] * body.c[1], v[2] + v[0] * body.c[0]
    cos, sin = np.cos(u[0]), np.sin(u[0])
    return np.array([w, cos * x + sin * y + w * body.c[1], cos * y - sin * x - w * body.c[0]])


def _rotation(phi):
    """Rotation matrix of the rotation vector ``phi``, by way of a quaternion."""
    return rotation_from_quaternion(quaternion_exp(phi))


@singledispatch
def moved_part(joint: AbstractJoint, body, q, u):
    """Positions of one joint after displacement ``u``, its centre of mass moving straight."""
    return joint.integrate(q, u)


@moved_part.register
def _moved_free(joint: Free, body, q, u):
    """Positions of a free joint after displacement ``u`` with a straight centre of mass."""
    E, c, turn = _rotation(u[:3]), body.c, u[:3]
    way = u[3:] + cross(turn, c) + c - E.T @ c  # of the origin, along the axes at the start
    way = E @ way if joint.translation == "child" else rotation_from_quaternion(q[3:]).T @ way
    there = joint.integrate(q, np.concatenate([turn, ZERO3]))
    return np.concatenate([there[:3] + way, there[3:]])


@moved_part.register
def _moved_planar(joint: Planar, body, q, u):
    """Positions of a planar joint after displacement ``u`` with a straight centre of mass."""
    c, w = body.c, u[0]
    x, y, s = u[1] - w * c[1], u[2] + w * c[0], stumpff(w * w)
    k = s[1] / (2 * s[2])
    way = k * x + w / 2 * y + w * c[1], k * y - w / 2 * x - w * c[0]
    return joint.integrate(q, np.array([w, *way]))
