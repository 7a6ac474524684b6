"""Forward dynamics of closed chains for a known rank, without branches — RBDA §8.5.

Which constraints are independent, and which variables can be solved for from them, is decided
once for a model (``plan``). What is left can be traced and compiled, in two ways:

- *null space* (8.40): the constraints are solved for the dependent variables,
  ``qdd = G ydd + g``, and the rest is an equation of motion of the independent ones;
- *range space* (8.37): constraint forces from ``K H⁻¹ Kᵀ``, with the sparse factors of ``H``.

A plan fits most configurations, not all. ``health`` measures this: at 1 or more the result is as
good as any; below 1, or not a number, a pivot is too small or a constraint that was left out as
redundant is not, and the sample must be solved otherwise, as by ``joint_space.forward_dynamics``.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.closed.elimination import is_zero, null_space, range_space
from kinetree.algorithms.closed.joint_space import CLOSURE_TOLERANCE
from kinetree.algorithms.closed.plan import (
    AXES,
    EliminationPlan,
    closure_error,
    holds_a_point,
    make_plan,
    stacked_rows,
)
from kinetree.algorithms.closed.rank import closed_configurations, rank_policy, scaling
from kinetree.algorithms.closed.samples import Rehearsal
from kinetree.errors import SingularError
from kinetree.model.memo import remember
from kinetree.model.views import condensed_view
from kinetree.spatial.ops import absolute, less, select

SMALLEST_PIVOT = 1e-3
"""Smallest pivot of a constraint, relative to its usual size; squared, of an inertia."""

AGREEMENT = 1e-6
"""Relative error up to which a redundant constraint counts as satisfied."""


class ClosedChainMotion(NamedTuple):
    """The motion of a closed chain, and whether it can be trusted."""

    qdd: Any
    """Joint accelerations, (nv,)."""
    health: Any
    """At least 1 where ``qdd`` is good, less or not a number where it is not."""
    constraints: Any
    """``LoopConstraints``; rows of closures that hold a point may be along other axes."""


class Way(NamedTuple):
    """One way to solve a model."""

    method: str
    """``"null space"`` or ``"range space"``."""
    plan: EliminationPlan
    """Order of elimination."""
    pivots: np.ndarray
    """Usual size of every pivot."""
    is_safe: bool
    """Whether no pivot came close to zero in the configurations that were tried."""
    cost: int
    """Number of operations."""


def constrained_acceleration(
    model, q, qd, tau, f_ext=None, *, stabilization=None, way=None
) -> ClosedChainMotion:
    """Joint accelerations of a mechanism with loops by a precomputed elimination plan; traceable.

    It can be traced, so it can be called inside ``@kinetree.kernel``:

        @kt.kernel
        def step(model, q, qd, tau):
            motion = constrained_acceleration(model, q, qd, tau, stabilization=0.05)
            return motion.qdd, motion.health

    and samples whose ``health`` is not ``>= 1`` are then solved outside the kernel. The state is
    not checked: loops that are open stay so, or close with ``stabilization``.

    Args:
        model: the mechanism, with loops.
        q: position variables, (nq,).
        qd: velocity variables, (nv,).
        tau: joint forces of the tree, (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.
        stabilization: time constant [s] with which errors decay; None for none.
        way: one of ``ways(model)``; the first by default.
    """
    way = next(ways(model)) if way is None else way
    qdd, sizes, c = _solve(model, q, qd, tau, f_ext, way.method, way.plan, stabilization)
    return ClosedChainMotion(qdd, health_of(way, sizes, c, qdd), c)


def health_of(way, sizes, c, qdd):
    """Health of a solution: smallest pivot over its limit; 0 if dropped constraints fail."""
    health = 1 / SMALLEST_PIVOT
    for size, usual, limit in zip(sizes, way.pivots, _limits(way), strict=True):
        ratio = absolute(size) * (1 / (limit * usual))
        health = select(less(ratio, health), ratio, health)
    for is_violated in violations(way.plan, c, qdd):
        health = select(is_violated, 0, health)
    return health


def _solve(model, q, qd, tau, f_ext, method, plan, stabilization=None):
    """Joint accelerations, pivots and constraints by the null-space or range-space method."""
    c = stacked_rows(condensed_view(model), q, qd, plan.axes)
    k = c.k if stabilization is None else c.with_stabilization(stabilization)
    b = tau - fewest.bias_force(model, q, qd, f_ext)
    if method == "null space":
        H = fewest.joint_space_inertia(model, q)
        qdd, sizes = null_space(H, b, c.K, k, plan.pivots)
    else:
        rows, L = list(plan.rows), fewest.inertia_factors(model, q)
        qdd, sizes = range_space(L, model.expanded_parent, b, c.K[rows], k[rows])
    return qdd, sizes, c._replace(k=k)


def _limits(way):
    """Smallest admissible relative size of every pivot: of constraints first, then of inertias."""
    n = len(way.plan.pivots) if way.method == "null space" else 0
    return np.array([SMALLEST_PIVOT] * n + [SMALLEST_PIVOT**2] * (len(way.pivots) - n))


def violations(plan, c, qdd):
    """For each dropped redundant constraint, whether the accelerations violate it."""
    moved = qdd / plan.column_size
    size = moved @ moved
    for i, row_size in zip(plan.redundant, plan.row_size, strict=True):
        row, k = c.K[i], c.k[i]
        if not all(is_zero(x) for x in (*row, k)):
            rest = sum((x * a for x, a in zip(row, qdd, strict=True) if not is_zero(x)), -k)
            agreement = AGREEMENT + 10 * plan.misalignment
            limit = agreement * row_size
            yield less(limit * limit * size + agreement * agreement * k * k, rest * rest)


def is_closed(model, q, qd, c):
    """Conditions that the loops are closed, in position and in velocity.

    Args:
        model: the mechanism.
        q: position variables, (nq,).
        qd: velocity variables, (nv,).
        c: its constraints in this state.

    Returns:
        A list of conditions. They are stricter than those of ``joint_space``, whose errors
        explain what is wrong.
    """
    closures = [closure_error(condensed_view(model), loop, q) for loop in model.loops]
    own = c.error[sum(len(e) for e, _ in closures) :]  # of user-defined constraints, not of loops
    error = np.concatenate([model.zero_velocity[:0], *(e for e, _ in closures), own])
    aligned = [less(0, alignment) for _, alignment in closures]
    pure = [x * scaling(model).rows for x in (error, c.rate)]
    tolerance = CLOSURE_TOLERANCE + rank_policy(model).slack
    return [*aligned, *(less(x @ x, tolerance * tolerance) for x in pure)]


def ways(model):
    """Iterator of solution methods with plans for a model: the cheapest, then one for its failures.

    Raises SingularError where there is none: the mechanism must be solved sample by sample.
    """
    model = model.numeric
    known = remember(model, "ways to solve loops", dict)
    known["samples"] = closed_configurations(model)  # known, too, after the first time
    if "null space" not in known:
        known["null space"] = _best_way(model, "null space", known["samples"])
    first = known["null space"]
    if first is not None and first.is_safe:
        yield first
    if "range space" not in known:
        known["range space"] = _best_way(model, "range space", known["samples"])
    second = known["range space"]
    if first is None and second is None:
        raise SingularError(
            f"model {model.name!r} has no order of elimination that suits its configurations: its "
            f"constraints or inertias are singular in all those that were tried"
        )
    if second is not None:
        yield second
    if first is not None and not first.is_safe:
        yield first


def way_for(model, independent) -> Way | None:
    """Null-space method with given independent variables.

    Args:
        model: the mechanism.
        independent: their numbers; None for the variables that suit elimination best.

    Returns:
        None where the variables do not determine the others in the configurations that were tried,
        or the mechanism has another number of degrees of freedom.
    """
    model = model.numeric
    try:
        next(ways(model))
    except SingularError:
        return None
    known = remember(model, "ways to solve loops", dict)
    best = known["null space"]
    if independent is None or best is None:
        return best
    columns = tuple(sorted(independent))
    if columns not in known:
        plan = make_plan(model, best.plan.axes, known["samples"], columns)
        fits = len(plan.pivots) + len(columns) == model.nv
        known[columns] = _way(model, "null space", plan) if fits else None
    return known[columns]


def _best_way(model, method, samples):
    """Method with the plan that takes the fewest operations, or None."""
    found = [_way(model, method, make_plan(model, a, samples)) for a in axes_to_try(model)]
    return min((way for way in found if way), key=lambda way: way.cost, default=None)


def axes_to_try(model):
    """Axes to which loop constraints of points may be turned to find pivots; None: unturned."""
    points = [holds_a_point(loop.joint) for loop in model.loops]
    small = model.nv <= 6  # for the others, turned rows always pay
    axes = AXES if any(points) else ()
    return (None, *axes) if small or not axes or not all(points) else axes


def _way(model, method, plan):
    """Method with a plan for a model; None where a pivot is zero in every configuration."""

    def rehearse(q, qd, tau):
        return _solve(model, q, qd, tau, None, method, plan)[:2]

    try:
        rehearsal = Rehearsal(rehearse, q=(model.nq,), qd=(model.nv,), tau=(model.nv,))
    except SingularError:
        return None
    samples = plan.samples
    state = np.zeros((len(samples), model.nv))
    sizes = np.abs(rehearsal.values(q=samples, qd=state, tau=state)[1])
    usual = np.max(sizes, axis=0, initial=0)
    if not np.all(usual > 0):  # nor if it is not a number
        return None
    way = Way(method, plan, usual, False, rehearsal.cost())
    is_safe = bool(np.all(sizes > 30 * usual * _limits(way)))
    return way._replace(is_safe=is_safe)
