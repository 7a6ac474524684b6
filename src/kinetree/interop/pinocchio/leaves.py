"""The joints of a Pinocchio model one by one, composite ones taken apart."""

from typing import Any, NamedTuple

from kinetree.errors import InteropError
from kinetree.interop.pinocchio.kinds import kind_of, universal_letters
from kinetree.interop.pinocchio.library import pinocchio
from kinetree.interop.pinocchio.placement import from_se3
from kinetree.spatial import Plucker

__all__ = ["Leaf", "leaves"]


class Leaf(NamedTuple):
    """A joint that is a whole joint of Pinocchio's model, or part of one."""

    name: str
    joint: Any
    placement: Plucker
    """From the coordinates of the parent body, or of the part before, to its own."""
    number: int
    """Number in Pinocchio's model of the whole joint."""
    first: bool
    """Whether it is the first part, which sits on the parent."""
    last: bool
    """Whether it is the last part, which carries the body."""
    q: slice
    """Where its position variables are in Pinocchio's vectors."""
    v: slice


def leaves(pin_model):
    """Every joint of ``pin_model`` in order; part ``k`` of joint ``j`` is called ``j_k``."""
    result = []
    q = v = 0
    for number in range(1, pin_model.njoints):
        placement = from_se3(pin_model.jointPlacements[number])
        joint = pin_model.joints[number].extract()
        parts = list(_parts(pin_model.names[number], joint, placement))
        for k, (name, part, X) in enumerate(parts):
            at_q, at_v = slice(q, q + part.nq), slice(v, v + part.nv)
            q, v = at_q.stop, at_v.stop
            ends = {"first": k == 0, "last": k == len(parts) - 1}
            result.append(Leaf(name, part, X, number, **ends, q=at_q, v=at_v))
    return result


def _parts(name, joint, placement):
    """(name, joint, placement) of each part; a universal joint about general axes has two."""
    if kind_of(joint) == "JointModelComposite":
        if joint.njoints == 0:
            raise InteropError(f"composite joint {name!r} has no parts; add at least one joint")
        parts = zip(joint.joints, map(from_se3, joint.jointPlacements), strict=True)
        for k, (part, X) in enumerate(parts, start=1):
            yield from _parts(f"{name}_{k}", part.extract(), X @ placement if k == 1 else X)
    elif kind_of(joint) == "JointModelUniversal" and not universal_letters(joint):
        for k, axis in enumerate((joint.axis1, joint.axis2), start=1):
            part = pinocchio().JointModelRevoluteUnaligned(axis)
            part.setIndexes(1, 0, 0)
            yield f"{name}_{k}", part, placement if k == 1 else Plucker.identity()
    else:
        yield name, joint, placement
