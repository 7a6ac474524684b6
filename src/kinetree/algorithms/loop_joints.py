"""What a loop joint asks of the motion across it — RBDA §8.2, §8.3, for joints of every kind.

A loop joint confines the relative velocity of its frames, ``Tᵀ (v_J - σ) = 0``. The derivative,
with everything in coordinates of its successor frame ``s``, is

    Tᵀ (a_J - v_s × v_J - σ°) + T°ᵀ (v_J - σ) = 0

where ``a_J = a_s - a_p`` and ``°`` is the rate of coordinates. The book drops ``σ`` (8.9) and, in
(8.47), ``T°``; both matter for joints that time moves, for universal joints and for those that
slide along a turning axis. The variables of a loop joint are no part of ``q``: ``T`` and ``σ`` are
functions of the relative pose ``X_J``, and their rates are those along the relative motion, also
for bodies that are not where, or do not move as, the joint has it.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.dual import Dual, rate_of, value_of
from kinetree.spatial import Force, Motion, Plucker
from kinetree.spatial.vector3 import cross

__all__ = ["LoopJoint", "is_steady", "loop_joint"]


class LoopJoint(NamedTuple):
    """A loop joint at one instant, in coordinates of its successor frame."""

    T: Force
    """Constraint forces, n_c columns."""
    bias: np.ndarray
    """``Tᵀ σ° - T°ᵀ (v_J - σ)``, (n_c,): zero for a constant ``T`` and a joint that waits."""
    rate: np.ndarray
    """Velocity error ``Tᵀ (v_J - σ)``, (n_c,)."""


def loop_joint(joint, X_J, v_J) -> LoopJoint:
    """What ``joint`` asks, from the pose and the velocity across it.

    Args:
        joint: the loop joint, of any kind.
        X_J: transform from its predecessor to its successor frame.
        v_J: velocity of the successor relative to the predecessor, in successor coordinates.
    """
    if is_steady(joint):
        T = joint.constraint_subspace(joint.neutral())
        rate = T.T @ v_J
        return LoopJoint(T, np.zeros(len(rate), dtype=int), rate)

    moving = _moving(X_J, v_J)
    T_and_rate = joint.loop_subspace(moving).to_array()
    T, T_ring = Force.from_array(value_of(T_and_rate)), Force.from_array(rate_of(T_and_rate))
    if not _kind(joint).moves:
        return LoopJoint(T, -(T_ring.T @ v_J), T.T @ v_J)

    at_rest = np.zeros(joint.nv, dtype=int)
    _, _, sigma, drift = joint.jcalc(joint.coordinates(moving), at_rest)
    sigma_ring = Motion.from_array(rate_of(sigma.to_array()) + value_of(drift.to_array()))
    sigma = Motion.from_array(value_of(sigma.to_array()))
    e = v_J - sigma
    return LoopJoint(T, T.T @ sigma_ring - T_ring.T @ e, T.T @ e)


def is_steady(joint) -> bool:
    """Whether ``T`` is the same in every configuration and time does not move the joint."""
    kind = _kind(joint)
    return kind.is_constant and not kind.moves


def _moving(X, v):
    """``X`` with its rate of change: ``dE/dt = -ω × E``, ``dr/dt = Eᵀ v``."""
    E_rate, r_rate = -cross(v.angular, X.E), X.E.T @ v.linear
    return Plucker(_duals(X.E, E_rate), _duals(X.r, r_rate))


def _duals(values, rates):
    pairs = zip(np.ravel(values), np.ravel(rates), strict=True)
    return np.array([Dual(a, b) for a, b in pairs], dtype=object).reshape(np.shape(values))


class _Kind(NamedTuple):
    is_constant: bool
    """Whether ``T`` is the same in every configuration."""
    moves: bool
    """Whether time itself moves the joint."""


def _kind(joint):
    try:
        return _kind_of(joint)
    except TypeError:  # not hashable
        return _kind_of.__wrapped__(joint)


@lru_cache(maxsize=256)
def _kind_of(joint):
    """What can be told from a few random positions; what is traced counts as variable."""
    rng = np.random.default_rng(1)
    at_rest = np.zeros(joint.nv, dtype=int)
    T, sigma = [], []
    for q in (joint.neutral(), joint.random(rng), joint.random(rng)):
        T.append(joint.constraint_subspace(q).to_array())
        _, _, v_J, c_J = joint.jcalc(q, at_rest)
        sigma += [v_J.to_array(), c_J.to_array()]
    numbers = all(np.asarray(a).dtype != object for a in (*T, *sigma))
    return _Kind(
        is_constant=numbers and all(np.array_equal(T[0], a) for a in T),
        moves=not numbers or any(np.any(s) for s in sigma),
    )
