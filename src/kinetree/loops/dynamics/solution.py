"""Forward dynamics of mechanisms with loops, by any method, with the forces of the loop joints.

The methods are those of RBDA chapter 8, and differ in what they factorise. The first is in use, the
others are texts of ``kinetree.textbook``:

    null_space    GᵀHG, (n - r) by (n - r)      §8.5, method 3; allows massless bodies; §8.9,
                                                one cluster of loops at a time
    kkt           the whole of (8.36)           §8.5, method 1; allows massless bodies
    range_space   H, then K H⁻¹ Kᵀ              §8.5, method 2
    articulated   pairs of articulated bodies   §7.5; no couplings, no armature
    sparse        bodies and joints, by blocks  §8.13; O(n) on trees and ladders
    closure       GᵀHG with G = dγ/dy           §8.11; for a loop-closure function

Redundant constraints need no setting: the accelerations are unique all the same, and the report
says which parts of the loop forces are not. One sample at a time, on the CPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from kinetree.algorithms.closed.forces import forces_on_bodies
from kinetree.algorithms.closed.independent import velocity_columns
from kinetree.algorithms.closed.joint_space import CLOSURE_TOLERANCE, check_constraints_hold
from kinetree.algorithms.closed.scaling import rows_of
from kinetree.algorithms.propagation import require_regular_variables
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import LoopError, ShapeError, UnknownNameError
from kinetree.loops.dynamics import clusters, methods
from kinetree.loops.dynamics.loop_forces import LoopForce, loop_forces, smallest, uniqueness
from kinetree.loops.dynamics.methods import ConstrainedEquations
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model, as_numbers
from kinetree.quantities.dynamics import external_forces
from kinetree.spatial import Force
from kinetree.spelling import did_you_mean, from_textbook

if TYPE_CHECKING:
    from kinetree.textbook.closure_functions import LoopClosure

METHODS = ("null_space", "kkt", "range_space", "articulated", "sparse", "closure")
"""Names of the methods; ``"auto"`` is the first."""
_IN_TEXTBOOK = {
    "kkt": ("loop_methods", "solve_kkt"),
    "range_space": ("loop_methods", "solve_range_space"),
    "articulated": ("loop_methods", "solve_articulated"),
    "sparse": ("sparse_maximal", "solve"),
}
"""Text and function of the methods that only the literature asks for; ``"closure"`` is a method of
a ``LoopClosure``."""


@dataclass(frozen=True, eq=False)
class ConstrainedMotion:
    """Accelerations of a mechanism with loops, and the forces of its loop joints.

    Attributes:
        qdd: accelerations of the tree joints [m/s² or rad/s²], (nv,); unique.
        loop_forces: ``LoopForce`` of each loop joint, by name.
        lam: constraint forces of the loop joints along ``T``, (nc,); the smallest, where they are
            not unique.
        tau_c: the same in joint space, ``Kᵀ lam``, (nv,); unique.
        rank: number of independent constraints.
        redundancy: number of redundant constraints, and dimension of the set of possible ``lam``.
        unique: which entries of ``lam`` are the same for all of them, (nc,).
        residual: ``K qdd - k``, (nc,): by how much constraints contradict one another, as those of
            loops do that are redundant and not quite closed.
        method: name of the method.
    """

    qdd: np.ndarray
    loop_forces: dict[str, LoopForce]
    lam: np.ndarray
    tau_c: np.ndarray
    rank: int
    redundancy: int
    unique: np.ndarray
    residual: np.ndarray
    method: str


@on_host
def solve(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    f_ext: ArrayLike | dict | None = None,
    *,
    method: str = "auto",
    independent: Sequence[str] | Sequence[int] | None = None,
    rank: int | None = None,
    rows: Sequence[int] | None = None,
    stabilization: float | None = None,
    loop_tau: dict | None = None,
    closure: "LoopClosure | None" = None,
    closure_tolerance: float = CLOSURE_TOLERANCE,
) -> ConstrainedMotion:
    """Accelerations and loop forces under the joint forces ``tau``, by a choice of methods.

    Args:
        model: the mechanism, with loops or without.
        q: positions of the tree joints [m, rad], (nq,), at which the loops are closed.
        qd: velocities of the tree joints [m/s, rad/s], (nv,), which the loops allow.
        tau: joint forces of the tree joints [N, N·m], (nv,): those of the actuators plus
            ``passive_force``.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        method: one of ``METHODS``, see above; ``"auto"`` for the first.
        independent: names of the joints, or numbers of the velocity variables, whose accelerations
            come first, for ``null_space``; by default those that determine the others best.
        rank: number of independent constraints, if known, for ``null_space``, ``kkt`` and
            ``range_space``; by default it is found from ``K``.
        rows: numbers of the rows of ``K`` that are solved, for all methods but ``closure``: the
            others are known to follow from them, in every configuration, and their entries of
            ``lam`` are zero. By default all independent rows — RBDA §8.5.
        stabilization: time constant [s] with which position and velocity errors of the loops decay;
            None for no stabilisation — RBDA (8.22).
        loop_tau: joint forces of loop joints [N, N·m], by name; none by default.
        closure: a ``LoopClosure`` of the model, for ``closure``.
        closure_tolerance: loop error [rad, or fraction of the size of the loop] above which the
            state is rejected.
    """
    name = METHODS[0] if method == "auto" else method
    state = _state(model, q, qd, tau)
    forces = _forces(model, state[0], f_ext, loop_tau)
    instant = _instant(model, state, forces, stabilization, rank)
    instant = instant if rows is None else _with_rows(instant, rows)
    check_constraints_hold(model, instant.constraint, closure_tolerance)
    require_regular_variables(model, instant.q)
    found = _method(name, instant, independent, rank, rows, closure)

    K, lam = instant.K, found.lam if rows is not None else smallest(instant, found.lam)
    return ConstrainedMotion(
        qdd=found.qdd,
        loop_forces=loop_forces(instant, lam, _by_loop(model, loop_tau)),
        lam=lam,
        tau_c=K.T @ lam,
        rank=instant.rank,
        redundancy=len(K) - instant.rank,
        unique=uniqueness(instant),
        residual=K @ found.qdd - instant.k,
        method=name,
    )


def _state(model, q, qd, tau):
    """Positions, velocities and joint forces of one sample as float arrays, checked."""
    q = as_configuration(as_model(model), q)
    qd, tau = as_joint_vector(model, qd, "qd"), as_joint_vector(model, tau, "tau")
    for what, x in (("q", q), ("qd", qd), ("tau", tau)):
        if x.ndim != 1 or x.dtype == object:
            raise ShapeError(
                f"loops.solve takes one sample of numbers, got {what} of shape {x.shape}; "
                f"forward_dynamics takes batches"
            )
    return q, qd, tau


def _forces(model, q, f_ext, loop_tau):
    """External forces by body plus those of loop joints; None without any."""
    forces = None
    if f_ext is not None:
        forces = [None, *(Force.from_array(f) for f in external_forces(model, f_ext))]
    if loop_tau:
        along = np.concatenate([np.zeros(0), *_by_loop(model, loop_tau)])
        active = forces_on_bodies(model, q, along)
        forces = active if forces is None else [None, *map(add, active[1:], forces[1:])]
    return forces


def _instant(model, state, forces, stabilization, rank):
    """``ConstrainedEquations`` of a state, with checked options."""
    if rank is not None:
        rank = _checked_rank(model, rank)
    if stabilization is not None and not stabilization > 0:
        raise ShapeError(
            f"stabilization must be a time constant above 0 s, or None, got {stabilization!r}"
        )
    q, qd, tau = state
    return ConstrainedEquations(model, q, qd, tau, forces, stabilization, rank)


def _with_rows(instant, rows):
    """``ConstrainedEquations`` with only the given rows, if they imply all others."""
    count, model = len(instant.K), instant.model
    given = np.atleast_1d(np.asarray(rows))
    numbers = given.astype(int) if given.dtype.kind in "iu" else np.array([-1])
    if given.ndim != 1 or len(set(numbers)) < len(given) or not set(numbers) <= set(range(count)):
        raise ShapeError(
            f"rows must be different numbers from 0 to {count - 1}, of constraints of model "
            f"{model.name!r} that are kept, got {rows!r}"
        )
    chosen = replace(instant, chosen_rows=numbers)
    if chosen.rank < instant.rank and instant.known_rank is None:
        raise LoopError(
            f"rows {numbers.tolist()} of the constraints of model {model.name!r} do not imply the "
            f"others here: their rank is {chosen.rank}, that of all rows {instant.rank}; "
            f"kinetree.loops.independent_rows finds rows that do"
        )
    return chosen


def _by_loop(model, loop_tau):
    """Joint force vectors of all loop joints in order, zero for passive ones."""
    loop_tau = {} if loop_tau is None else loop_tau
    names = [loop.name for loop in model.loops]
    for name in loop_tau:
        if name not in names:
            hint = did_you_mean(name, names, f"there are {', '.join(names) or 'none'}")
            raise UnknownNameError(f"model {model.name!r} has no loop joint {name!r}; {hint}")
    forces = []
    for loop in model.loops:
        given = loop_tau.get(loop.name, np.zeros(loop.joint.nv))
        forces.append(np.atleast_1d(as_numbers(given, f"loop_tau[{loop.name!r}]")))
        if forces[-1].shape != (loop.joint.nv,):
            raise ShapeError(
                f"loop_tau[{loop.name!r}] must have shape ({loop.joint.nv},), got {np.shape(given)}"
            )
    return forces


def _checked_rank(model, rank):
    """Rank given by the caller; ShapeError if the model cannot have it."""
    rows = len(rows_of(model))
    if rank not in range(min(rows, model.nv) + 1):
        raise ShapeError(
            f"rank must be an integer from 0 to {min(rows, model.nv)}, as model {model.name!r} "
            f"has {rows} constraints on {model.nv} variables; got {rank!r}"
        )
    return int(rank)


def _method(name, instant, independent, rank, rows, closure):
    """Result of a solution method called by name with the options that it accepts."""
    given = {"independent": independent, "rank": rank, "rows": rows, "closure": closure}
    taken = {"null_space": ("independent", "rank", "rows"), "kkt": ("rank", "rows")}
    taken |= {"range_space": ("rank", "rows"), "articulated": ("rows",), "sparse": ("rows",)}
    taken["closure"] = ("closure",)
    if name not in taken:
        hint = did_you_mean(name, METHODS, f"there are {', '.join(METHODS)}")
        raise UnknownNameError(f"loops.solve has no method {name!r}; {hint}")
    for option, value in given.items():
        if value is not None and option not in taken[name]:
            users = ", ".join(repr(m) for m in METHODS if option in taken[m])
            raise LoopError(f"method {name!r} does not take {option}; {users} does")
    if instant.model.constraints and name in ("articulated", "closure"):
        own = instant.model.constraints[0].name
        raise LoopError(
            f"method {name!r} joins bodies by joints and does not support constraint {own!r} "
            f"of model {instant.model.name!r}; 'null_space', 'kkt', 'range_space' and 'sparse' do"
        )
    if name == "null_space":
        by_clusters = independent is None and rank is None and instant.rows is None
        if by_clusters and len(clusters.clusters(instant.model)) > 1:
            return clusters.solve_by_clusters(instant)
        return methods.solve_null_space(instant, independent=_columns(instant.model, independent))
    if name == "closure":
        if closure is None:
            raise LoopError("method 'closure' needs a loop-closure function: closure=...")
        return closure.solve(instant)
    return from_textbook(*_IN_TEXTBOOK[name])(instant)


def _columns(model, independent):
    """Indices of velocity variables from joint names or numbers; None for None."""
    if independent is None:
        return None
    if not isinstance(independent, str) and all(
        isinstance(i, (int, np.integer)) for i in independent
    ):
        for i in independent:
            if not 0 <= i < model.nv:
                raise UnknownNameError(
                    f"independent variables are numbered 0 to {model.nv - 1}, got {i}"
                )
        return np.unique(np.asarray(independent, dtype=int))
    return velocity_columns(model, independent, "independent")
