"""Accelerations of a closed mechanism to first order along motions that keep it closed, compiled.

With the independent variables ``y`` of a plan of elimination, ``qd = G yd``, deviations are

    dq = G dy     dqd = V dy + G dyd     dqdd = W dy + U dyd + G B dtau

The forces ``f = ID(q, qd, qdd) - passive(q, qd) - Kᵀ lam`` and the rows ``r = K qd``,
``a = K qdd - k`` are differentiated along these columns alone, never with respect to all variables
one by one, with ``lam`` and ``qdd`` held at their values; the plan, its pivots and the factors of
``GᵀHG`` are those of forward dynamics (``algorithms.closed.forward_dynamics``):

    K V = -dr          K c = -da          dqdd = c + G dydd          GᵀHG dydd = -Gᵀ (df + H c)

This is Spencer (B.1)–(B.5) for joints of any kind, as compiled code that decides nothing. Where its
plan does not fit, ``health`` is less than 1 and ``loops.linear.derivatives``, in Python, decides on
ranks and takes its place.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms import passive
from kinetree.algorithms.closed.elimination import (
    is_zero,
    null_space_basis,
    positive_solution,
    project_matrix,
    solve_for,
    sparse_rows,
    transposed_product,
)
from kinetree.algorithms.closed.forward_dynamics import health_of, is_closed, way_for
from kinetree.algorithms.closed.plan import stacked_rows
from kinetree.algorithms.dual import duals, rate_of
from kinetree.codegen.program import Argument, trace
from kinetree.errors import SingularError, TraceError
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.products import brackets, is_vector_space, jvp
from kinetree.model.array_arguments import argument_shape, validate
from kinetree.model.arrays import require_unit_parts
from kinetree.model.kernels import kernel_for
from kinetree.model.views import condensed_view
from kinetree.quantities.dynamics import forward_dynamics, passive_force
from kinetree.spatial import Force
from kinetree.spatial.ops import select


class TangentDynamics(NamedTuple):
    """Derivatives of the motion by independent variables of the tree; any leading batch axes."""

    G: Any
    """``∂q/∂y`` and ``∂qd/∂yd``, (..., nv, p)."""
    V: Any
    """``∂qd/∂y``, (..., nv, p)."""
    W: Any
    """``∂qdd/∂y`` at constant forces of the motors, (..., nv, p)."""
    U: Any
    """``∂qdd/∂yd``, (..., nv, p)."""
    B: Any
    """``∂ydd/∂tau``, (..., p, nv)."""
    qdd: Any
    """(..., nv)"""
    columns: tuple
    """Numbers of the variables ``y``."""
    turning: Any
    """``[G dy, qd]`` of axes that turn with their bodies, (..., nv, p); 0 where there are none."""
    health: Any
    """At least 1 where all this is good, less or not a number where the plan does not fit."""


class PlanBlocks(NamedTuple):
    """The linear model in variables of the tree, assembled; any leading batch axes."""

    A: Any
    """(..., 2 p, 2 p)"""
    B: Any
    """(..., 2 p, nv)"""
    rate: Any
    """(..., 2 p)"""
    G: Any
    """(..., nv, p)"""
    qdd: Any
    """(..., nv)"""
    health: Any
    """As in ``TangentDynamics``."""


def tangent_dynamics(model, columns, q, qd, tau, f_ext=None) -> TangentDynamics | None:
    """``TangentDynamics``: derivatives of the closed motion; None without a plan.

    Args:
        model: the mechanism; without loops all variables are independent.
        columns: numbers of the independent variables; None for those that suit elimination best.
        q: joint positions, (..., nq), real numbers like the others.
        qd: joint velocities, (..., nv).
        tau: forces of the motors, (..., nv).
        f_ext: forces on the bodies, (..., body_count, 6), or None.
    """
    arrays = (q, qd, tau) if f_ext is None else (q, qd, tau, f_ext)
    if not model.is_constrained:
        return _of_tree(model, *arrays)
    found = _call_kernel(model, columns, arrays)
    if found is None:
        return None
    (G, V, W, U, B, qdd, *turning, health), free = found
    return TangentDynamics(G, V, W, U, B, qdd, free, turning[0] if turning else 0.0, health)


def plan_blocks(model, at, q, qd, tau, f_ext=None) -> PlanBlocks | None:
    """``PlanBlocks`` of the linear model of a mechanism with loops; None without a plan.

    Args:
        model: the mechanism.
        at: numbers of the independent variables, in the order of the coordinates.
        q: joint positions, (..., nq), real numbers like the others.
        qd: joint velocities, (..., nv).
        tau: forces of the motors, (..., nv).
        f_ext: forces on the bodies, (..., body_count, 6), or None.
    """
    arrays = (q, qd, tau) if f_ext is None else (q, qd, tau, f_ext)
    found = _call_kernel(model, tuple(sorted(at)), arrays, at)
    return None if found is None else PlanBlocks(*found[0])


def _call_kernel(model, columns, arrays, at=None):
    """Results of the linearisation kernel and its variables; None if it cannot be called."""
    key = ("linear model", columns, at, len(arrays))
    found = model.memo.get(key)
    if found is None:
        found = model.memo[key] = kernel_and_columns(model, columns, len(arrays), at)
    kernel, free = found
    if kernel is None:
        return None
    try:
        return kernel.call(*arrays), free
    except (TraceError, SingularError):  # a joint that cannot be compiled, or no pivot at all
        return None


# --- mechanisms without loops --------------------------------------------------------------------

_accelerations = differentiate(forward_dynamics, wrt=("q", "qd", "tau"))
_passive = differentiate(passive_force, wrt=("q", "qd"))


def acceleration_derivatives(model, q, qd, tau, f_ext=None):
    """Derivatives of tree accelerations by ``q``, ``qd`` and motor forces, (..., nv, nv)."""
    forces = () if f_ext is None else (f_ext,)
    by_q, by_qd, by_tau = _accelerations(model, q, qd, tau + passive_force(model, q, qd), *forces)
    passive_q, passive_qd = _passive(model, q, qd)
    return by_q + by_tau @ passive_q, by_qd + by_tau @ passive_qd, by_tau


def _of_tree(model, q, qd, tau, *forces):
    """``TangentDynamics`` of a tree, all of whose variables are independent."""
    W, U, B = acceleration_derivatives(model, q, qd, tau, *forces)
    qdd = forward_dynamics(model, q, qd, tau + passive_force(model, q, qd), *forces)
    G = np.broadcast_to(np.eye(model.nv), B.shape)
    every = tuple(range(model.nv))
    turning = brackets(model, q, qd)
    return TangentDynamics(G, np.zeros_like(B), W, U, B, qdd, every, turning, np.ones(()))


# --- mechanisms with loops -----------------------------------------------------------------------


@kernel
def _forces(m, q, qd, qdd, lam, f_ext=None, *, axes=None):
    """Kernel of joint force and constraint acceleration residuals, concatenated."""
    forces = None if f_ext is None else [None, *map(Force.from_array, f_ext)]
    c = stacked_rows(condensed_view(m), q, qd, axes)
    load = fewest.inverse_dynamics(m, q, qd, qdd, forces) - passive.passive_force(m, q, qd)
    return np.concatenate([load - c.K.T @ lam, c.K @ qdd - c.k])


@kernel
def _rate(m, q, qd, *, axes=None):
    """Kernel of the constraint rates ``K qd`` less what moves with time."""
    return stacked_rows(condensed_view(m), q, qd, axes).rate


_forces_along = jvp(_forces, wrt=("q", "qd"))
_rate_along = jvp(_rate, wrt="q")


_NAMES = ("q", "qd", "tau", "f_ext")


def kernel_and_columns(model, columns, count, at=None):
    """Compiled kernel of ``TangentDynamics``, and numbers of its variables; None, () without plan.

    With ``at``, these numbers in the order of the coordinates, it returns ``PlanBlocks``.
    """
    way = way_for(model, columns)
    n, names = model.nv, _NAMES[:count]
    p = 0 if way is None else n - len(way.plan.pivots)
    if way is None or p == 0:
        return None, ()
    inputs = [Argument(name, argument_shape(model, name)) for name in names]
    if at is not None:
        shapes = ((2 * p, 2 * p), (2 * p, n), (2 * p,), (n, p), (n,), ())
    else:
        turning = () if is_vector_space(model) else ((n, p),)
        shapes = ((n, p), (n, p), (n, p), (n, p), (p, n), (n,), *turning, ())

    def text(q, *arrays):
        require_unit_parts(model, q)
        found = _text(model, way, q, *arrays)
        return found if at is None else _assemble_blocks(model, at, arrays[0], found)

    kernel = kernel_for(
        model,
        "linear_model",
        inputs,
        [Argument(f"out{k}", shape) for k, shape in enumerate(shapes)],
        lambda: trace(text, inputs, "linear_model"),
        reference=_refuse,
        validate=lambda arrays: validate(model, dict(zip(names, arrays, strict=True))),
        key=("loops.linear_model", columns, at, count),
    )
    dependent = {j for _, j in way.plan.pivots}
    return kernel, tuple(j for j in range(n) if j not in dependent)


def _refuse(arrays):
    """Raise TraceError about arrays that are not real numbers."""
    raise TraceError("a linear model of a closed mechanism takes real numbers")


def _text(m, way, q, qd, tau, f_ext=None):
    """Tangent dynamics ``G, V, W, U, B, qdd`` and health, by one elimination plan."""
    axes, pivots = way.plan.axes, way.plan.pivots
    forces = None if f_ext is None else [None, *map(Force.from_array, f_ext)]
    c, n = stacked_rows(condensed_view(m), q, qd, axes), m.nv
    H = fewest.joint_space_inertia(m, q)
    total = tau + passive.passive_force(m, q, qd)
    b = total - fewest.bias_force(m, q, qd, forces)
    basis, g, free, sizes = null_space_basis(c.K, c.k, pivots)
    inertia = project_matrix(H, basis, free)
    G = _dense(basis, free)
    ydd, more = positive_solution(inertia, list(G.T @ (b - H @ np.array(g))))
    qdd = np.array(g) + G @ np.array(ydd)

    lam = _multipliers(c.K, H @ qdd - b, pivots)
    r = [_rate_along(m, q, qd, tangents=column, axes=axes) for column in G.T]
    V = _particular(c.K, -np.stack(r, axis=-1), pivots)
    rest = () if f_ext is None else (f_ext,)
    along = [*zip(G.T, V.T, strict=True), *((0 * column, column) for column in G.T)]
    d = [_forces_along(m, q, qd, qdd, lam, *rest, tangents=pair, axes=axes) for pair in along]
    d = np.stack(d, axis=-1)
    products = _particular(c.K, -d[n:], pivots)
    right = [d[:n], H @ products, np.eye(n, dtype=int)]
    right = np.concatenate([-(right[0] + right[1]), right[2]], axis=1)
    found = np.stack(positive_solution(inertia, transposed_product(basis, free, right))[0])
    p = len(free)
    motion = products + G @ found[:, : 2 * p]

    health = health_of(way, [*sizes, *more], c, qdd)
    for condition in is_closed(m, q, qd, c):
        health = select(condition, health, 0)
    turning = () if is_vector_space(m) else (np.stack([_bracket(m, q, u, qd) for u in G.T], -1),)
    return G, V, motion[:, :p], motion[:, p:], found[:, 2 * p :], qdd, *turning, health


def _assemble_blocks(m, at, qd, found):
    """``PlanBlocks`` from the results of ``_text``, coordinates in the order of ``at``."""
    G, _, W, U, B, qdd, *turning, health = found
    order = [sorted(at).index(k) for k in at]
    at, p = list(at), len(at)
    A, B_all = np.zeros((2 * p, 2 * p), dtype=object), np.zeros((2 * p, m.nv), dtype=object)
    if turning:
        A[:p, :p] = turning[0][at][:, order]
    A[range(p), range(p, 2 * p)] = 1
    A[p:, :p], A[p:, p:], B_all[p:] = W[at][:, order], U[at][:, order], B[order]
    return A, B_all, np.concatenate([qd[at], qdd[at]]), G[:, order], qdd, health


def _bracket(m, q, u, v):
    """Lie bracket ``[u, v]`` of two velocities, (nv,), zero for joints whose rates commute."""
    found = []
    for i in range(1, m.body_count + 1):
        joint, at, q_i = m.joint[i], m.v_slice[i], q[m.q_slice[i]]
        if joint.rates_are_velocities:
            found.append(np.zeros(joint.nv, dtype=int))
            continue
        Q = joint.rate_matrix(q_i)
        along_u, along_v = (rate_of(joint.rate_matrix(duals(q_i, Q @ w[at]))) for w in (u, v))
        bracket = along_u @ v[at] - along_v @ u[at]
        found.append(np.array(positive_solution(Q.T @ Q, list(Q.T @ bracket))[0]))
    return np.concatenate(found)


def _dense(basis, free):
    """Dense array (nv, p) of a sparse null-space basis ``G``."""
    G = np.zeros((len(basis), len(free)), dtype=object)
    for i, row in enumerate(basis):
        for j, x in row.items():
            G[i, free.index(j)] = x
    return G


def _particular(K, right, pivots):
    """Solution of ``K x = right`` with zero independent rows, (n, columns)."""
    x = null_space_basis(K, right, pivots).g
    return np.stack([np.zeros(right.shape[1], dtype=int) + row for row in x])


def _multipliers(K, force, pivots):
    """Multipliers with ``Kᵀ lam = force``, zero for redundant rows, by the same pivots."""
    n = len(K)
    columns = {j: {**row} for j, row in enumerate(sparse_rows(np.asarray(K).T))}
    kept_rows = {i for i, _ in pivots}
    rows = {j: {i: x for i, x in columns[j].items() if i in kept_rows} for _, j in pivots}
    for j, row in rows.items():
        if not is_zero(force[j]):
            row[n] = -force[j]
    solved, _ = solve_for(rows, [(j, i) for i, j in pivots])
    return np.array([solved[i].get(n, 0) if i in solved else 0 for i in range(n)])
