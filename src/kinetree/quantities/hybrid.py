"""Some joints move as told, the others as they are pushed: hybrid dynamics.

    tau, qdd = kt.hybrid_dynamics(m, q, qd, tau, qdd, given=["shoulder"])

Forward dynamics is the case in which no acceleration is given, inverse dynamics that in which all
are.
"""

from typing import Any, NamedTuple

from kinetree.errors import UnknownNameError
from kinetree.model.arrays import as_model
from kinetree.model.gearing import require_leader
from kinetree.quantities.dynamics import external_forces
from kinetree.quantities.functions import quantity

__all__ = ["HybridDynamics", "free_joints", "hybrid_dynamics", "hybrid_response"]


class HybridDynamics(NamedTuple):
    """Forces and accelerations of all joints: those that were given, and those that follow."""

    tau: Any
    """Joint forces [N, N·m], (..., nv)."""
    qdd: Any
    """Joint accelerations [m/s², rad/s²], (..., nv)."""


def hybrid_dynamics(model, q, qd, tau, qdd, given=(), f_ext=None, method=None) -> HybridDynamics:
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
    names = {None: "hybrid", "aba": "hybrid_aba", "crba": "hybrid_crba"}
    if method not in names:
        raise UnknownNameError(
            f"hybrid_dynamics has no method {method!r}; use one of ['aba', 'crba']"
        )
    free = free_joints(model, given)
    if f_ext is None:
        both = quantity(model, names[method], free=free).call(q, qd, tau, qdd)
    else:
        kernel = quantity(model, names[method], ("f_ext",), free=free)
        both = kernel.call(q, qd, tau, qdd, external_forces(model, f_ext))
    return HybridDynamics(both[..., 0, :], both[..., 1, :])


def hybrid_response(model, q, given=()):
    """How what follows depends on what is given, at one instant, (..., nv, nv).

    Row and column ``k`` stand for variable ``k``: a row is its acceleration if the joint is free
    and its force if not, a column the other of the two. Joints that are all free give the inverse
    of the inertia matrix, joints that all move as told give the inertia matrix.
    """
    return quantity(model, "hybrid_response", free=free_joints(model, given)).call(q)


def free_joints(model, given):
    """Numbers of the joints that are not ``given``, as a tuple.

    Raises:
        ModelError: for a ``given`` joint that follows others, which no array has a place for.
    """
    if isinstance(given, str):
        given = (given,)
    told = {as_model(model).joint_index(name) for name in given}
    for i in told:
        require_leader(model, i, "be given an acceleration")
    return tuple(i for i in range(1, model.body_count + 1) if i not in told)
