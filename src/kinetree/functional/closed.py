"""Derivatives of forward dynamics with loops, on arrays.

Those of the spanning tree are general code, and the constraints ``K qdd = k`` of the plan of a
model two short kernels. With ``H qdd + Kᵀ μ = tau - C``, accelerations and forces change by

    [ H  Kᵀ ] [ ∂qdd ]   [ ∂tau - ∂ID - ∂(Kᵀ μ) ]
    [ K  0  ] [ ∂μ   ] = [ -∂(K qdd - k)         ]

with ``qdd`` and ``μ`` held on the right: the derivative of what the compiled code solves, in all
directions of ``q``, also those that open loops.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.forward_dynamics import (
    AGREEMENT,
    CLOSURE_TOLERANCE,
    SMALLEST_PIVOT,
    ways,
)
from kinetree.algorithms.closed.plan import closure_error, stacked_rows
from kinetree.algorithms.closed.rank import rank_policy, scaling
from kinetree.algorithms.crba import has_full_inertia
from kinetree.errors import SingularError
from kinetree.functional.kernel import kernel
from kinetree.model.define import FUNCTIONS, kernel_of
from kinetree.model.views import condensed_view

FEWEST = 8
"""Velocity variables from which on compiled derivatives take longer than their first answers may:
those of a five-bar take 0.1 s, of a delta robot 2.5 s."""


def derivative_on_arrays(derivative, rates_of, call) -> Callable[..., tuple] | None:
    """Function of batched arrays that computes a closed chain's derivatives; or None.

    Args:
        derivative: a ``Derivative`` of a public function.
        rates_of: ``jvp``.
        call: of it, with a model that has loops.
    """
    model, entries = call.model, derivative.entries()
    if not _are_served(model, derivative.function.__name__, entries):
        return None
    tree, terms = model.spanning_tree, rates_of(constraint_terms, wrt=("q", "qd"))
    groups = [("q", "qd")] if {"q", "qd"} & set(entries) else []
    groups += [(e,) for e in entries if e not in ("q", "qd", "tau")]
    by = {names: type(derivative)(FUNCTIONS["inverse_dynamics"], names) for names in groups}

    def of_arrays(*arrays):
        given = dict(zip(call.shapes, arrays, strict=True))
        q, qd, tau = given["q"], given["qd"], given["tau"]
        forces = (given["f_ext"],) if "f_ext" in given else ()
        at = _solve(model, q, qd, tau, forces)
        D = {}
        for names, d in by.items():
            D |= zip(names, d(tree, q, qd, at.qdd, *forces), strict=True)
        return tuple(_changes(model, at, (q, qd), terms, e, D.get(e)) for e in entries)

    return of_arrays


def _are_served(model, name, entries):
    """Whether batched derivatives of forward dynamics with loops cover a model and variables."""
    plain = name == "forward_dynamics" and len(set(entries)) == len(entries)
    plain = plain and all(e in ("q", "qd", "tau") or _is_inertia(e) for e in entries)
    plain = plain and model.nv >= FEWEST and not (model.is_rheonomic or model.couplings)
    plain = plain and model.scalar_type().kind in "fi"
    if not plain or not all(map(has_full_inertia, model.inertia[1:])):
        return False
    try:
        next(ways(model))
    except SingularError:
        return False
    return True


def _is_inertia(entry):
    """Whether a variable of a derivative consists of inertia parameters only."""
    names = getattr(entry, "names", (entry,))
    return all(name.partition(":")[0] == "inertia" for name in names)


class _Solution(NamedTuple):
    """Accelerations, forces of the loops, and the matrix of both."""

    qdd: Any
    mu: Any
    matrix: Any


@kernel
def plan_rows(m, q, qd):
    """Kernel: constraints ``K``, ``k`` of the elimination plan, dropped ones and errors."""
    plan = next(ways(m)).plan
    c = stacked_rows(condensed_view(m), q, qd, plan.axes)
    rows, left = list(plan.rows), list(plan.redundant)
    closures = [closure_error(condensed_view(m), loop, q) for loop in m.loops]
    own = c.error[sum(len(e) for e, _ in closures) :]
    error = np.concatenate([m.zero_velocity[:0], *(e for e, _ in closures), own])
    out = np.concatenate([c.K[left], c.k[left][:, None]], axis=1)
    aligned = np.array([1 + 0 * q[0], *(a for _, a in closures)])
    size = scaling(m).rows
    rest = np.concatenate([out.ravel(), error * size, c.rate * size, aligned])
    return c.K[rows], c.k[rows], rest


@kernel
def constraint_terms(m, q, qd, qdd, mu):
    """Kernel: ``K qdd - k`` and ``Kᵀ mu`` for the constraints of the elimination plan."""
    plan = next(ways(m)).plan
    c = stacked_rows(condensed_view(m), q, qd, plan.axes)
    K, k = c.K[list(plan.rows)], c.k[list(plan.rows)]
    return K @ qdd - k, K.T @ mu


def _solve(model, q, qd, tau, forces):
    """Accelerations and constraint forces of batched states; LinAlgError where the plan fails."""
    tree = model.spanning_tree
    K, k, rest = plan_rows(model, q, qd)
    H = kernel_of(tree, "mass_matrix").call(q)
    C = kernel_of(tree, "bias_force", ("f_ext",) if forces else ()).call(q, qd, *forces)
    Y = np.linalg.solve(np.linalg.cholesky(H), np.swapaxes(K, -1, -2))
    new = np.diagonal(np.linalg.qr(Y, mode="r"), axis1=-2, axis2=-1) ** 2
    usual = (Y * Y).sum((-2, -1)) / max(K.shape[-2], 1)
    if not np.all(np.min(new, axis=-1, initial=np.inf) > SMALLEST_PIVOT**2 * usual):
        raise np.linalg.LinAlgError("constraints that nearly depend on each other")
    zero = np.zeros((*K.shape[:-2], K.shape[-2], K.shape[-2]))
    H = np.broadcast_to(H, (*K.shape[:-2], *H.shape[-2:]))
    matrix = np.block([[H, np.swapaxes(K, -1, -2)], [K, zero]])
    force = tau - C
    right = np.concatenate([force, np.broadcast_to(k, (*force.shape[:-1], k.shape[-1]))], axis=-1)
    both = np.linalg.solve(matrix, right[..., None])[..., 0]
    qdd, mu = both[..., : model.nv], both[..., model.nv :]
    _check(model, rest, qdd)
    return _Solution(qdd, mu, matrix)


def _check(model, rest, qdd):
    """Raise LinAlgError where loops are open, or dropped constraints are violated."""
    plan, nv = next(ways(model)).plan, model.nv
    n, loops = len(plan.redundant), len(model.loops) + 1
    left = rest[..., : n * (nv + 1)].reshape(*rest.shape[:-1], n, nv + 1)
    errors = rest[..., n * (nv + 1) : -loops]
    error, rate = np.split(errors, 2, axis=-1)
    limit = (CLOSURE_TOLERANCE + rank_policy(model).slack) ** 2
    fine = np.all(rest[..., -loops:] > 0, axis=-1)
    fine = fine & ((error * error).sum(-1) < limit) & ((rate * rate).sum(-1) < limit)
    agreement = AGREEMENT + 10 * plan.misalignment
    size = ((qdd / plan.column_size) ** 2).sum(-1)[..., None]
    off = (left[..., :-1] * qdd[..., None, :]).sum(-1) - left[..., -1]
    most = (agreement * plan.row_size) ** 2 * size + (agreement * left[..., -1]) ** 2
    if not np.all(fine & np.all(off * off <= most, axis=-1)):
        raise np.linalg.LinAlgError("loops that are open, or constraints that are violated")


def _changes(model, at, state, terms, name, D):
    """Derivative of the accelerations with respect to one array, (..., nv, n)."""
    nv, rows, lead = model.nv, at.mu.shape[-1], at.qdd.shape[:-1]
    if name == "tau":
        D = -np.broadcast_to(np.eye(nv), (*lead, nv, nv))
    right = np.zeros((*lead, nv + rows, D.shape[-1]))
    right[..., :nv, :] = -D
    if name in ("q", "qd"):
        unit = np.eye(nv).reshape(nv, *(1,) * len(lead), nv)
        tangents = (unit, 0 * unit) if name == "q" else (0 * unit, unit)
        rate, force = terms(model, *state, at.qdd, at.mu, tangents=tangents)
        right[..., :nv, :] -= np.moveaxis(force, 0, -1)
        right[..., nv:, :] = -np.moveaxis(rate, 0, -1)
    return np.linalg.solve(at.matrix, right)[..., :nv, :]
