"""What a joint that follows others is among the variables of a model: nothing."""

from dataclasses import dataclass

from kinetree.errors import ModelError
from kinetree.joints.base import AbstractJoint
from kinetree.joints.fixed import Fixed

__all__ = ["Following"]


@dataclass(frozen=True)
class Following(Fixed):
    """The place of a joint that has no variables of its own, as another leads it.

    It stands in ``model.joint`` of a model with couplings and has no motion to compute: that is up
    to the joint itself, in ``model.uncoupled``.
    """

    joint: AbstractJoint

    def jcalc(self, q, qd):
        raise ModelError(
            "this joint follows others and its position is not among the variables of the model; "
            "algorithms for single joints take model.uncoupled and model.expand(q)"
        )
