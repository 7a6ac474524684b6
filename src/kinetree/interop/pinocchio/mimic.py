"""Joints that follow others: couplings here, mimic joints there.

A group of coupled joints has one variable. In Pinocchio it is that of the joint with the smallest
number, and what the others have of armature, damping and friction goes to it, seen through the
gear.
"""

from typing import NamedTuple

import numpy as np

from kinetree.errors import InteropError
from kinetree.interop.pinocchio.kinds import kind_of
from kinetree.joints import Helical
from kinetree.model import Coupling

__all__ = ["Follower", "add_mimic_joints", "couplings", "followers"]


class Follower(NamedTuple):
    """A joint without variables of its own in Pinocchio's model."""

    name: str
    leader: str
    scaling: float
    offset: float


def followers(pin_model):
    """The mimic joints of Pinocchio's model."""
    found = zip(pin_model.mimicking_joints, pin_model.mimicked_joints, strict=True)
    return [
        Follower(pin_model.names[i], pin_model.names[j], joint.scaling, joint.offset)
        for i, j in found
        if kind_of(joint := pin_model.joints[i].extract()) == "JointModelMimic"
    ]


def couplings(pin_model, joint_names):
    """The mimic joints as couplings of a model whose joints have these names."""
    number = {name: i for i, name in enumerate(joint_names, start=1)}
    return tuple(
        Coupling(f"{f.name}_mimic", number[f.name], number[f.leader], (f.offset, f.scaling))
        for f in followers(pin_model)
    )


def add_mimic_joints(pin, result, model):
    """``result``, a tree, with the couplings of ``model`` as mimic joints."""
    places = _places(model)
    groups = {}
    for i, (root, _, _) in places.items():
        groups.setdefault(root, {})[result.getJointId(model.joint_names[i - 1])] = i
    for numbers in groups.values():
        first, *others = sorted(numbers)
        _, a, b = places[numbers[first]]
        for k in others:
            _refuse_helical(model, numbers[k])
            _, offset, slope = places[numbers[k]]
            scaling = slope / b
            _hand_over(result, first, k, scaling)
            result = pin.transformJointIntoMimic(result, first, k, scaling, offset - scaling * a)
    return result


def _refuse_helical(model, i):
    """Pinocchio computes a helical mimic joint without its pitch, or crashes."""
    if isinstance(model.bodies[i - 1].joint, Helical):
        raise InteropError(
            f"joint {model.joint_names[i - 1]!r} is helical and follows another; Pinocchio cannot "
            f"compute with helical mimic joints, only with revolute and prismatic ones. Remove the "
            f"coupling with model.replace(couplings=...), or let the helical joint lead"
        )


def _hand_over(result, leader, follower, scaling):
    """Add what the follower has of its own to the leader."""
    i, j = result.idx_vs[leader], result.idx_vs[follower]
    result.armature[i] += scaling**2 * result.armature[j]
    result.damping[i] += scaling**2 * result.damping[j]
    result.upperDryFrictionLimit[i] += abs(scaling) * result.upperDryFrictionLimit[j]
    result.lowerDryFrictionLimit[i] += abs(scaling) * result.lowerDryFrictionLimit[j]


def _places(model):
    """For every coupled joint ``i`` the joint ``s`` that leads it all, and ``q_i = a + b q_s``."""
    coupling = {c.joint: c for c in model.couplings}

    def place(i):
        if i not in coupling:
            return i, 0.0, 1.0
        c = coupling[i]
        a, b, *rest = (*c.coefficients, 0.0)
        if c.source == 0 or b == 0 or np.any(rest) or c.function is not None:
            law = f"has coefficients {list(c.coefficients)}"
            law = (
                "follows a function" if c.function else "has several sources" if c.sources else law
            )
            raise InteropError(
                f"Pinocchio's mimic joints follow another by a factor and an offset; coupling "
                f"{c.name!r} {law}. Remove it with model.replace(couplings=...), or lock a joint "
                f"that is held"
            )
        root, offset, slope = place(c.source)
        return root, a + b * offset, b * slope

    coupled = {i for c in model.couplings for i in (c.joint, *c.leaders)}
    return {i: place(i) for i in sorted(coupled)}
