"""Hybrid dynamics: accelerations of some joints are given, forces at the others.

    tau, qdd = kt.hybrid_dynamics(m, q, qd, tau, qdd, given=["shoulder"])

Forward dynamics is the case in which no acceleration is given, inverse dynamics that in which all
are.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from kinetree.algorithms import hybrid
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import UnknownNameError
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.model.define import composed, quantity
from kinetree.model.gearing import require_leader
from kinetree.quantities.dynamics import FORCES, Forces

__all__ = ["hybrid_dynamics", "hybrid_response"]


class HybridDynamics(NamedTuple):
    """Forces and accelerations of all joints: those that were given, and those that follow."""

    tau: Any
    """Joint forces [N, N·m], (..., nv)."""
    qdd: Any
    """Joint accelerations [m/s², rad/s²], (..., nv)."""


def _both(*algorithms):
    """``tau`` and ``qdd`` of all joints, one above the other."""
    return quantity(
        (2, "nv"), *algorithms, tree=True, read=FORCES, called="hybrid_dynamics", public=False
    )


@_both(hybrid.hybrid_dynamics_by_articulated_bodies, hybrid.hybrid_dynamics)
def _hybrid(model, q, qd, tau, qdd, f_ext=None, *, free) -> Any:
    """By the text with the fewest operations."""


@_both(hybrid.hybrid_dynamics_by_articulated_bodies)
def _hybrid_aba(model, q, qd, tau, qdd, f_ext=None, *, free) -> Any:
    """By articulated bodies."""


@_both(hybrid.hybrid_dynamics)
def _hybrid_crba(model, q, qd, tau, qdd, f_ext=None, *, free) -> Any:
    """By the inertia matrix of the joints that are free."""


_METHODS = {None: _hybrid, "aba": _hybrid_aba, "crba": _hybrid_crba}


@composed
def hybrid_dynamics(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    qdd: ArrayLike,
    given: str | Sequence[str] = (),
    f_ext: Forces = None,
    method: Literal["aba", "crba"] | None = None,
) -> HybridDynamics:
    """Forces of the joints whose accelerations are given, and accelerations of all others.

    Args:
        model: the mechanism, without loops.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        tau: joint forces [N, N·m], (..., nv); entries of the ``given`` joints are not read.
        qdd: joint accelerations [m/s², rad/s²], (..., nv); only entries of the ``given`` joints
            are read.
        given: names of the joints whose accelerations are given, each with all of its variables;
            a joint that follows others has none, name its leader.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        method: ``"aba"``, by articulated bodies; ``"crba"``, by the inertia matrix of the joints
            that are free. By default the one with fewer operations.
    """
    if method not in _METHODS:
        raise UnknownNameError(
            f"hybrid_dynamics has no method {method!r}; use one of ['aba', 'crba']"
        )
    free = free_joints(model, given)
    both = _METHODS[method](model, q, qd, tau, qdd, f_ext, free=free)
    return HybridDynamics(both[..., 0, :], both[..., 1, :])


@quantity(("nv", "nv"), hybrid.response, tree=True, called="hybrid_response", public=False)
def _hybrid_response(model, q, *, free) -> Any:
    """``hybrid_response`` by numbers of joints."""


@composed
def hybrid_response(model: Model, q: ArrayLike, given: str | Sequence[str] = ()) -> Array:
    """How what follows depends on what is given, at one instant, (..., nv, nv).

    Row and column ``k`` stand for variable ``k``: a row is its acceleration if the joint is free
    and its force if not, a column the other of the two. Joints that are all free give the inverse
    of the inertia matrix, joints that are all prescribed give the inertia matrix.
    """
    return _hybrid_response(model, q, free=free_joints(model, given))


def free_joints(model, given):
    """Numbers of the joints that are not ``given``, as a tuple.

    Raises:
        ModelError: for a ``given`` joint that follows others, which no array has a place for.
    """
    if isinstance(given, str):
        given = (given,)
    prescribed = {as_model(model).joint_index(name) for name in given}
    for i in prescribed:
        require_leader(model, i, "be given an acceleration")
    return tuple(i for i in range(1, model.body_count + 1) if i not in prescribed)
