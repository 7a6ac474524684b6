"""Loop joints that impose fewer constraints on an over-constrained mechanism — RBDA §8.10."""

from dataclasses import dataclass, replace

import numpy as np

from kinetree.joints import Cylindrical, Revolute, SphereInCylinder, Spherical
from kinetree.joints.base import AbstractJoint
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.rank import rank, rank_policy, scaling

__all__ = ["Replacement", "fewer_constraints"]


@dataclass(frozen=True)
class Replacement:
    """A joint that may take the place of a loop joint: it closes the loop with fewer constraints.

    The mechanism moves as before; the constraint forces that are left are those that are unique.
    """

    loop: str
    joint: AbstractJoint
    saved: int

    def __str__(self):
        kind = type(self.joint).__name__
        axis = getattr(self.joint, "axis", None)
        about = "" if axis is None else f" along {_axis(axis)}"
        return f"close loop {self.loop!r} by a {kind}{about}: {self.saved} constraints fewer"


def fewer_constraints(model, places) -> tuple[Replacement, ...]:
    """For each loop in turn, the joint with the fewest constraints that leaves all ranks as is.

    Args:
        model: the mechanism.
        places: closed configurations, (nq,) each, in which the ranks are compared.
    """
    known = rank_policy(model)
    tolerance = max(1e-6, 10 * known.misalignment if known.is_known else 0.0)
    ranks, found = _ranks(model, places, tolerance), []
    for k, loop in enumerate(model.loops):
        for joint in _candidates(loop.joint):
            freer = replace(loop, joint=joint, limits=None, dynamics=None)  # fit for the old one
            loops = [*model.loops[:k], freer, *model.loops[k + 1 :]]
            other = model.replace(loops=loops)
            if _ranks(other, places, tolerance) == ranks:
                found.append(Replacement(loop.name, joint, joint.nv - loop.joint.nv))
                model = other
                break
    return tuple(found)


def _candidates(joint):
    """Joints that allow what this one does and more, those with the fewest constraints first."""
    if isinstance(joint, (Revolute, Cylindrical)):
        axis = joint.axis
        every = (SphereInCylinder(axis), Spherical(), Cylindrical(axis))
        every = [c for c in every if isinstance(joint, Revolute) or not isinstance(c, Spherical)]
    elif isinstance(joint, Spherical):
        every = [SphereInCylinder(a) for a in "xyz"]
    elif joint.nv == 0:
        every = [
            *(SphereInCylinder(a) for a in "xyz"), Spherical(),
            *(Cylindrical(a) for a in "xyz"), *(Revolute(a) for a in "xyz"),
        ]  # fmt: skip
    else:
        every = []
    return [c for c in every if c.nv > joint.nv]


def _ranks(model, places, tolerance):
    rest, units = np.zeros(model.nv), scaling(model)
    return [rank(constraint(model, q, rest).K, units, tolerance=tolerance) for q in places]


def _axis(axis):
    aligned = np.flatnonzero(axis)
    return "xyz"[aligned[0]] if len(aligned) == 1 else f"({', '.join(f'{x:.3g}' for x in axis)})"
