"""Velocity variables in frames that turn: those of ``Free`` and ``Planar`` joints.

Their linear velocities are in child coordinates, and so change when the body turns, though nothing
acts on it. A first-order step must not take that for an acceleration: it finds the velocities along
the axes that the body has at the start, moves the body straight on, and then turns the axes.
"""

from functools import singledispatch

import numpy as np

from kinetree.joints import AbstractJoint, Free, Planar
from kinetree.spatial.exponential import left_jacobian_inverse
from kinetree.spatial.rotation import rotation_exp
from kinetree.spatial.stumpff import stumpff
from kinetree.spatial.vector3 import cross

__all__ = ["carried", "turning"]


def turning(model, qd):
    """Part of the accelerations that comes from turning axes alone, (nv,)."""
    return _joined(model, lambda joint, v: _turning(joint, v), qd)


def carried(model, qd, h):
    """What to integrate for a straight motion of ``h`` seconds, and ``qd`` along the new axes.

    Args:
        model: the mechanism.
        qd: velocities along the axes at the start, (nv,).
        h: how long [s].
    """
    step = _joined(model, lambda joint, v: _straight(joint, h * v), qd)
    return step, _joined(model, lambda joint, v: _turned(joint, v, h), qd)


def _joined(model, function, qd):
    parts = [model.zero_velocity[:0]]
    for i in range(1, model.body_count + 1):
        parts.append(function(model.joint[i], qd[model.v_slice[i]]))
    return np.concatenate(parts)


@singledispatch
def _turning(joint: AbstractJoint, v):
    return 0 * v


@_turning.register
def _(joint: Free, v):
    return np.concatenate([0 * v[:3], -cross(v[:3], v[3:])])


@_turning.register
def _(joint: Planar, v):
    return np.array([0 * v[0], v[0] * v[2], -v[0] * v[1]])


@singledispatch
def _turned(joint: AbstractJoint, v, h):
    return v


@_turned.register
def _(joint: Free, v, h):
    return np.concatenate([v[:3], rotation_exp(h * v[:3]) @ v[3:]])


@_turned.register
def _(joint: Planar, v, h):
    c, s = np.cos(h * v[0]), np.sin(h * v[0])
    return np.array([v[0], c * v[1] + s * v[2], c * v[2] - s * v[1]])


@singledispatch
def _straight(joint: AbstractJoint, u):
    return u


@_straight.register
def _(joint: Free, u):
    return np.concatenate([u[:3], left_jacobian_inverse(u[:3]) @ u[3:]])


@_straight.register
def _(joint: Planar, u):
    c = stumpff(u[0] * u[0])
    k = c[1] / (2 * c[2])
    return np.array([u[0], k * u[1] + u[0] / 2 * u[2], k * u[2] - u[0] / 2 * u[1]])
