"""Checks of joints that close loops."""

from typing import NamedTuple

import numpy as np

from kinetree.errors import (
    JointError,
    ModelError,
)
from kinetree.joints import AbstractJoint
from kinetree.spatial import Plucker, log

_SAME_PLACE = 1e-9
"""Frames closer than this [m or rad] are one."""


def check_loops(model):
    """Raise ModelError for a loop joint within one body, or that repeats a tree joint.

    Two joints between the same two bodies are fine, as hinges of a door are. The same joint twice,
    in the same place, is a mistake: usually the joint that carries the body, listed once more.
    """
    tree = [
        _Joint(f"joint {b.joint_name!r} of the tree", b.parent, i, b.joint, b.placement)
        for i, b in enumerate(model.bodies, start=1)
    ]
    for loop in model.loops:
        what, p, s = f"loop joint {loop.name!r}", loop.predecessor, loop.successor
        if p == s:
            raise ModelError(f"{what} connects body {model.body_names[p]!r} to itself")
        if loop.dynamics is not None and any(x != 0 for x in loop.dynamics.armature):
            raise ModelError(
                f"{what} has armature, which would be inertia outside the inertia matrix; make it "
                f"a joint of the tree (MechanismGraph.to_model(tree_joints=...)) or add the rotor "
                f"as a body"
            )
        limit = loop.misalignment
        if limit is not None and not (_is_number(limit) and 0 <= limit < 1):
            raise ModelError(
                f"{what}: misalignment is an angle from 0 to less than 1 rad, or None for the "
                f"default, got {limit!r}"
            )
        placements = (loop.predecessor_placement, loop.successor_placement)
        this = _Joint(what, p, s, loop.joint, *placements)
        for other in tree:
            if {p, s} == {other.p, other.s} and _repeats(this, other):
                raise ModelError(
                    f"{what} duplicates {other.what}: both allow the same motion of "
                    f"{model.body_names[p]!r} and {model.body_names[s]!r} in the same place; "
                    f"remove one of them"
                )


def _is_number(x):
    """Whether a value is a real number, and not a bool."""
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)


class _Joint(NamedTuple):
    """Any joint between two bodies."""

    what: str
    p: int
    s: int
    joint: AbstractJoint
    X_P: Plucker
    X_S: Plucker = Plucker.identity()


def _repeats(one, other):
    """Whether two joints between the same bodies allow the same relative motion."""
    ends = (other.X_P, other.X_S) if one.p == other.p else (other.X_S, other.X_P)
    exact = any(a.dtype == object for X in (one.X_P, one.X_S, *ends) for a in (X.E, X.r))
    if exact or one.joint.nv != other.joint.nv:
        return False
    if any(_size(X.r - Y.r) > _SAME_PLACE for X, Y in zip((one.X_P, one.X_S), ends, strict=True)):
        return False
    rng = np.random.default_rng(0)
    positions = [other.joint.neutral(), *(other.joint.random(rng) for _ in range(2))]
    try:
        return all(_gap(one, other, q, 0.37 * t) < _SAME_PLACE for t, q in enumerate(positions))
    except JointError:  # a position that ``one`` is nowhere near
        return False


def _gap(one, other, q, t):
    """Distance of two joints' relative poses when ``other`` is at ``q`` [m or rad], at time t."""
    X = other.X_S.inverse() @ other.joint.at(t).transform(q) @ other.X_P
    X_J = one.X_S @ (X if one.p == other.p else X.inverse()) @ one.X_P.inverse()
    joint = one.joint.at(t)
    return _size(log(X_J @ joint.transform(joint.coordinates(X_J)).inverse()).to_array())


def _size(x):
    """Largest absolute value in an array, 0 if it is empty."""
    return float(np.max(np.abs(np.asarray(x, dtype=float))))
