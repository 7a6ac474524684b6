"""Configurations with closed loops, all over the manifold, and functions of many of them at once.

For decisions made before anything is compiled: ``Rehearsal`` traces a text once on symbols,
says what it costs, and evaluates it for many samples at once. CPU only.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed.constraints import loop_constraints, velocity_rows
from kinetree.algorithms.closed.scaling import units_of
from kinetree.algorithms.closed.subspace import RANK_TOLERANCE
from kinetree.expr.counting import cost
from kinetree.expr.interpret import evaluate
from kinetree.expr.node import Graph
from kinetree.expr.refusals import explain_trace_errors

SAMPLES = 10
CLOSED = 1e-11
"""Error of a closed configuration, in pure numbers."""

_ROUNDING = 3e-13  # error that does not count as misalignment
_FAR = 0.1  # distance of configurations of which it is said that they lie all over the manifold


class Manifold(NamedTuple):
    """Configurations of a model in which its loops are closed."""

    q: np.ndarray
    """(n, nq); where ``matrices`` is None, configurations in which the loops are open."""
    matrices: np.ndarray | None
    """Scaled constraint matrices there, (n, nc, nv); None if no closed configuration was found, or
    none that says anything about others."""
    errors: np.ndarray
    """Scaled closure errors there, (n, nc)."""
    misalignment: float
    """Largest singular value or error that was taken for zero; 0 where these are rounding."""


def sampled_manifold(model, near, count=SAMPLES) -> Manifold:
    """Random closed configurations; loops that cannot close exactly may miss by ``near``."""
    space = _Space(model)
    q = _scatter(model, space, 0.0, count)
    K, errors = space.at(q)
    if len(q):
        s = np.linalg.svd(K, compute_uv=False)
        levels = (10 * RANK_TOLERANCE, near)
        most, least = (np.max(np.sum(s > level, axis=-1), initial=0) for level in levels)
        if near == 0 or most == least:
            return Manifold(q, K, errors, _misalignment(np.max(np.abs(errors), initial=0.0)))
    if near > 0:
        found = _scatter(model, space, near, count, seeds=q)
        K_near, errors_near = space.at(found)
        if len(found) and _is_spread(model, found):
            s = np.linalg.svd(K_near, compute_uv=False)
            rank = int(np.max(np.sum(s > near, axis=-1)))
            size = max(np.max(s[:, rank:], initial=0.0), np.max(np.abs(errors_near), initial=0.0))
            return Manifold(found, K_near, errors_near, _misalignment(size))
    if len(q):
        return Manifold(q, None, errors, 0.0)
    rng = np.random.default_rng(7)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return Manifold(q, None, space.at(q)[1], 0.0)


def _misalignment(size):
    """Misalignment as a float, zero if it is below rounding."""
    return float(size) if size > _ROUNDING else 0.0


class _Space:
    """Scaled constraint matrices and errors of many configurations at once."""

    def __init__(self, model):
        self.model, self.units = model, units_of(model)
        self._rehearsal = Rehearsal(partial(_matrix_and_error, model), q=(model.nq,))

    def at(self, q):
        """Scaled constraint matrices (n, nc, nv) and errors (n, nc) of configurations ``q``."""
        K, error = self._rehearsal.values(q=q)
        return self.units.apply(K.astype(float)), error.astype(float) * self.units.rows

    def where_defined(self, q):
        """Configurations and matrices without samples where a user function is undefined."""
        if not len(q):
            nc = len(self.units.rows)
            return q, np.zeros((0, nc, self.model.nv)), np.zeros((0, nc))
        with np.errstate(all="ignore"):
            K, error = self.at(q)
        good = np.isfinite(K).all(axis=(1, 2)) & np.isfinite(error).all(axis=1)
        return q[good], K[good], error[good]


def _matrix_and_error(model, q):
    """Constraint matrix ``K`` and closure error at a configuration."""
    c = loop_constraints(model, q, model.zero_velocity)
    return c.K, c.error


def _scatter(model, space, near, count, seeds=()):
    """Up to ``count`` closed configurations: near the postures first, then random ones."""
    rng = np.random.default_rng(7)
    starts = [model.neutral(), *(posture.q for posture in model.postures), *seeds[:1]]
    found = _close(space, np.array(starts, dtype=float), near)
    for spread in (0.3, 0.8, None, None):
        if len(found) >= count:
            break
        q = [
            model.integrate(
                found[n % len(found)], spread * rng.normal(size=model.nv) * space.units.columns
            )
            if spread and len(found)
            else model.random_configuration(rng)
            for n in range(count)
        ]
        found = np.concatenate([found, _close(space, np.array(q), near)])
    return found[:count]


def _close(space, q, near):
    """Closed configurations that Newton's method reaches from ``q``; others are dropped.

    Constraints with singular values up to ``near`` are left alone, and may miss by as much.
    """
    model, polished, velocities = space.model, False, velocity_rows(space.model)
    for _ in range(30):
        q, K, e = space.where_defined(q)
        K[:, velocities] = 0
        U, s, Vt = np.linalg.svd(K, full_matrices=False)
        counts = s > max(near, 1e-8) * np.maximum(s[:, :1] if not near else 1.0, 1e-300)
        along = np.einsum("nij,ni->nj", U, e) * counts
        if not near:  # what no motion changes has to vanish as well
            is_open = np.max(np.abs(e), axis=1, initial=0) > CLOSED
        else:
            is_open = np.max(np.abs(along), axis=1, initial=0) > CLOSED
        if not np.any(is_open) and polished:
            break
        polished = not np.any(is_open)  # one more step
        steps = -np.einsum("nji,nj->ni", Vt, along / np.where(counts, s, 1.0))
        steps /= np.maximum(1.0, np.linalg.norm(steps, axis=1, keepdims=True))
        moved = zip(q, steps * space.units.columns, strict=True)
        q = np.array([model.normalize(model.integrate(*pair)) for pair in moved]).reshape(q.shape)
    q, K, e = space.where_defined(q)
    good = np.max(np.abs(e), axis=1, initial=0) <= max(near, CLOSED)
    if near:
        U, s, _ = np.linalg.svd(K, full_matrices=False)
        along = np.einsum("nij,ni->nj", U, e) * (s > near)
        good &= np.max(np.abs(along), axis=1, initial=0) <= CLOSED
    return q[good]


def _is_spread(model, q):
    """Whether configurations are far from one another, not all near one singular one."""
    columns = units_of(model).columns
    away = [np.max(np.abs(model.difference(q[0], other) / columns), initial=0) for other in q]
    return max(away) > _FAR


# --- functions of symbols -------------------------------------------------------------------------


class Rehearsal:
    """A function of arrays, traced.

    Args:
        function: takes one array per shape and returns a tuple of arrays.
        shapes: shape of every argument, by name.
    """

    def __init__(self, function, **shapes):
        self.graph, symbols = Graph(), []
        for name, shape in shapes.items():
            array = np.empty(shape, dtype=object)
            for index in np.ndindex(array.shape):
                array[index] = self.graph.input(name, index)
            symbols.append(array)
        with explain_trace_errors():
            results = function(*symbols)
        self.results = [np.asarray(r, dtype=object) for r in results]

    def cost(self) -> int:
        """Weighted number of operations of the traced function."""
        return cost(self.graph, self._roots(self.results))

    def values(self, **arrays):
        """Results of the traced function for arrays with one leading axis of samples."""
        count = len(next(iter(arrays.values())))
        axes = {name: np.ndim(x) - 1 for name, x in arrays.items()}
        roots = self._roots(self.results)
        different = list(dict.fromkeys(roots))  # most elements of a matrix are zero: one node
        if not different:
            return [np.empty((count, *r.shape)) for r in self.results]
        column = {root: k for k, root in enumerate(different)}
        found = np.stack(evaluate(self.graph, different, arrays, axes=axes), axis=-1)
        flat = found[:, [column[root] for root in roots]]
        ends = np.cumsum([r.size for r in self.results])[:-1]
        parts = zip(np.split(flat, ends, axis=1), self.results, strict=True)
        return [part.reshape(count, *r.shape) for part, r in parts]

    def _roots(self, arrays):
        """Graph nodes of all numbers in arrays."""
        return [self.graph.number(x) for a in arrays for x in a.ravel()]
