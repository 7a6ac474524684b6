"""Hybrid dynamics: accelerations of some joints are given, forces at the others.

    tau, qdd = kt.hybrid_dynamics(m, q, qd, tau, qdd, given=["shoulder"])

Forward dynamics is the case in which no acceleration is given, inverse dynamics that in which all
are.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from kinetree.algorithms import hybrid
from kinetree.algorithms.closed.independent import allowed_motion_at, variable_names
from kinetree.arrays.batch import over_batch
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import LoopError, SingularError, UnknownNameError, calling
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.model.define import quantity, register
from kinetree.model.gearing import require_leader
from kinetree.quantities.dynamics import FORCES, Forces
from kinetree.quantities.external_forces import external_forces
from kinetree.quantities.loops import with_loops
from kinetree.spatial import Force

__all__ = ["hybrid_dynamics", "hybrid_response"]


class HybridDynamics(NamedTuple):
    """Forces and accelerations of all joints: those that were given, and those that follow."""

    tau: Any
    """Joint forces [N, N·m], (..., nv)."""
    qdd: Any
    """Joint accelerations [m/s², rad/s²], (..., nv)."""


def _given_variables(model, options):
    """Indices of the velocity variables of the joints with given accelerations."""
    rest = [i for i in range(1, model.body_count + 1) if i not in options["free"]]
    return tuple(map(int, hybrid.variables(model, rest)))


def _both(*algorithms, loops=None, general=True):
    """Joint forces and accelerations stacked, (2, nv)."""
    return quantity(
        (2, "nv"),
        *algorithms,
        tree=True,
        read=FORCES,
        called="hybrid_dynamics",
        public=False,
        serve=loops and with_loops(loops, _given_variables),
        general=general,
    )


@_both(
    hybrid.hybrid_dynamics_by_articulated_bodies,
    hybrid.hybrid_dynamics,
    loops=hybrid.closed_hybrid_dynamics,
)
def _hybrid(model, q, qd, tau, qdd, f_ext=None, *, free) -> Any:
    """Forces and accelerations by the algorithm with the fewest operations."""


@_both(hybrid.hybrid_dynamics_by_articulated_bodies)
def _hybrid_aba(model, q, qd, tau, qdd, f_ext=None, *, free) -> Any:
    """Forces and accelerations by articulated bodies."""


@_both(hybrid.hybrid_dynamics, general=False)
def _hybrid_crba(model, q, qd, tau, qdd, f_ext=None, *, free) -> Any:
    """Forces and accelerations by the inertia matrix of the free joints."""


_METHODS = {None: _hybrid, "aba": _hybrid_aba, "crba": _hybrid_crba}


@register
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
        model: the mechanism. Where loops tie accelerations that are given to each other, these must
            agree, and the forces are not unique: the smallest are returned, computed on the CPU.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        tau: joint forces [N, N·m], (..., nv); entries of the ``given`` joints are not read.
        qdd: joint accelerations [m/s², rad/s²], (..., nv); only entries of the ``given`` joints
            are read.
        given: names of the joints whose accelerations are given, each with all of its variables;
            a joint that follows others has none, name its leader.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        method: ``"aba"``, by articulated bodies; ``"crba"``, by the inertia matrix of the joints
            that are free; both for trees. By default the one with fewer operations.

    Raises:
        SingularError: the loops tie accelerations that are given, and these do not agree.
    """
    if method not in _METHODS:
        raise UnknownNameError(
            f"hybrid_dynamics has no method {method!r}; use one of ['aba', 'crba']"
        )
    free = free_joints(model, given)
    if method is not None and model.is_constrained:
        raise LoopError(
            f"hybrid_dynamics by method {method!r} is for trees, and model {model.name!r} has a "
            f"loop or a constraint: leave out the method"
        )
    with calling("hybrid_dynamics"):
        try:
            both = _METHODS[method](model, q, qd, tau, qdd, f_ext, free=free)
        except SingularError as error:
            if not model.is_constrained:
                raise
            both = _solve_tied(model, (q, qd, tau, qdd), f_ext, free, error)
    return HybridDynamics(both[..., 0, :], both[..., 1, :])


_ARRAYS = ("q", "qd", "tau", "qdd")


@on_host
def _solve_tied(model, arrays, f_ext, free, error):
    """Hybrid dynamics where loops tie given accelerations, sample by sample; or the error."""
    named: dict[str, Any] = {n: np.asarray(a) for n, a in zip(_ARRAYS, arrays, strict=True)}
    if f_ext is not None:
        named["f_ext"] = external_forces(model, f_ext)
    if any(a.dtype.kind in "cO" for a in named.values()):
        raise error

    def one(q, qd, tau, qdd, forces=None):
        forces = None if forces is None else [None, *map(Force.from_array, forces)]
        allowed = allowed_motion_at(model, q, qd)
        both, off = hybrid.tied_hybrid_dynamics(allowed, tau, qdd, forces, free=free)
        worst = int(np.argmax(np.abs(off)))
        if not abs(off[worst]) <= hybrid.TIED * max(1.0, np.max(np.abs(both[1]))):
            raise SingularError(
                f"{error}; given accelerations differ from those that the loops allow by "
                f"{abs(off[worst]):.3g} at {variable_names(model)[worst]!r}"
            )
        return both

    core = [1, 1, 1, 1, 2][: len(named)]
    return over_batch(one, named, core=core, shape=(2, model.nv))


@quantity(
    ("nv", "nv"),
    hybrid.response,
    tree=True,
    called="hybrid_response",
    public=False,
    general=lambda options: hybrid.response_by_articulated_bodies,
    serve=with_loops(hybrid.closed_response, _given_variables),
)
def _hybrid_response(model, q, *, free) -> Any:
    """Response of hybrid dynamics, with free joints given by number."""


@register
def hybrid_response(model: Model, q: ArrayLike, given: str | Sequence[str] = ()) -> Array:
    """Derivatives of ``hybrid_dynamics`` by its given forces and accelerations, (..., nv, nv).

    Row and column ``k`` stand for variable ``k``: a row is its acceleration if the joint is free
    and its force otherwise; a column is the opposite. If all joints are free, this is the inverse
    of the inertia matrix; if all are prescribed, the inertia matrix. Loops are
    supported, as in ``hybrid_dynamics``.
    """
    with calling("hybrid_response"):
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
