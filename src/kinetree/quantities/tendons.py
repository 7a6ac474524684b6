"""Tendons of a model: lengths and moment arms, compiled as functions of the configuration."""

from kinetree.algorithms import tendons
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.model import Model
from kinetree.model.define import quantity

__all__ = ["tendon_jacobian", "tendon_lengths"]


def _count(model, options=None):
    """Number of tendons."""
    return len(model.tendons)


@quantity((_count,), tendons.tendon_lengths)
def tendon_lengths(model: Model, q: ArrayLike) -> Array:
    """Lengths of all tendons, in the order of ``model.tendons`` [m], (..., n).

    Of a tendon over joints the weighted sum of their positions, of one through space the length of
    its path around what is in its way: see ``Tendon``.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
    """


@quantity((_count, "nv"), tendons.tendon_jacobian)
def tendon_jacobian(model: Model, q: ArrayLike) -> Array:
    """Moment arms of all tendons, (..., n, nv): ``dL/dt = J qd``, and ``Jᵀ f`` are joint forces.

    ``f`` are forces along the tendons, positive where they push apart what the tendon connects.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
    """
