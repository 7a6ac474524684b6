"""Least squares by priority in compiled code: against DAQP, and by the conditions of optimality."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import nnls

from kinetree.control.active_set import FOUND, INFEASIBLE
from kinetree.control.levels import CONTRADICTION, solve_levels, workspace
from kinetree.control.lexicographic import Constraints, minimize


def problem(rng, n, equations, bounds, sizes):
    """Random levels with a point inside; every third time the equations repeat themselves."""
    E, A = rng.standard_normal((equations, n)), rng.standard_normal((sum(sizes), n))
    G, inside = rng.standard_normal((bounds, n)), rng.standard_normal(n)
    if equations > 2 and rng.random() < 0.3:
        E[-1] = E[0] + E[1]
    low, high = (G @ inside + s * rng.uniform(0, 2, bounds) for s in (-1, 1))
    low[rng.random(bounds) < 0.3] = -np.inf
    return E, E @ inside, A, 5 * rng.standard_normal(len(A)), G, low, high


def solved(E, e, A, b, G, low, high, sizes, damping):
    """The code of the result, and the workspace."""
    w = workspace(A.shape[1], len(E), len(A), len(G))
    w.E[:], w.A[:], w.b[:] = np.column_stack([E, e]).ravel(), A.ravel(), b
    w.G[:], w.low[:], w.high[:] = G.ravel(), low, high
    w.root[:], w.damping[:] = 1.0, damping
    w.level[:], w.levels = np.repeat(np.arange(len(sizes)), sizes), len(sizes)
    return solve_levels(w), w


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_solution_is_that_of_daqp(count):
    rng, pressed = np.random.default_rng(count), 0
    for _ in range(60):
        n = int(rng.integers(4, 40))
        sizes = rng.integers(1, max(2, n // 3), count)
        equations, bounds = int(rng.integers(0, n // 2 + 1)), int(rng.integers(0, 2 * n))
        given = problem(rng, n, equations, bounds, sizes)
        code, w = solved(*given, sizes, 1e-6)
        E, e, A, b, G, low, high = given
        ends = np.cumsum([0, *sizes])
        levels = [(A[i:j], b[i:j]) for i, j in pairwise(ends)]
        x, _ = minimize(levels, Constraints(E, e, G, low, high), np.full(n, 1e-6))
        assert code == FOUND
        assert w.accuracy < 1e-10
        costs = [np.sum((a @ x - c) ** 2) for a, c in levels]
        ours = [np.sum((a @ w.x - c) ** 2) for a, c in levels]
        assert np.allclose(ours, costs, rtol=1e-4, atol=1e-6)
        if count == 1:
            assert np.abs(w.x - x).max() < 1e-6 * np.abs(x).max()
        pressed += w.program.count
    assert pressed > 30  # or nothing was tested


def test_conditions_of_optimality(rng):
    """The gradient is a combination of equations and of active bounds that press the right way."""
    for _ in range(20):
        E, e, A, b, G, low, high = problem(rng, 20, 6, 30, [8])
        code, w = solved(E, e, A, b, G, low, high, [8], 1e-4)
        assert code == FOUND
        assert np.abs(E @ w.x - e).max() < 1e-10
        value = G @ w.x
        assert np.all(value >= low - 1e-8)
        assert np.all(value <= high + 1e-8)
        gradient = A.T @ (A @ w.x - b) + 1e-4 * w.x
        normals = [*E, *-E, *G[value < low + 1e-7], *-G[value > high - 1e-7]]
        _, left = nnls(np.array(normals).T, gradient, maxiter=2000)
        assert left < 1e-7 * np.linalg.norm(A.T @ b)


def test_what_has_no_solution():
    one, none = np.ones((1, 2)), np.zeros((0, 2))
    empty = np.zeros(0)
    twice = np.ones((2, 2))
    code, _ = solved(twice, np.array([1.0, 2.0]), one, np.ones(1), none, empty, empty, [1], 1e-3)
    assert code == CONTRADICTION
    bounds = np.array([[1.0, 0.0], [0.0, 1.0]]), np.full(2, 2.0), np.full(2, 3.0)
    code, _ = solved(one, np.array([1.0]), one, np.ones(1), *bounds, [1], 1e-3)
    assert code == INFEASIBLE


def test_python_and_machine_code_agree(rng):
    given = problem(rng, 8, 2, 10, [3, 2])
    _, w = solved(*given, [3, 2], 1e-6)
    E, e, A, b, G, low, high = given
    again = workspace(8, 2, 5, 10)
    again.E[:], again.A[:], again.b[:] = np.column_stack([E, e]).ravel(), A.ravel(), b
    again.G[:], again.low[:], again.high[:] = G.ravel(), low, high
    again.root[:], again.damping[:], again.level[:], again.levels = 1.0, 1e-6, [0, 0, 0, 1, 1], 2
    assert solve_levels.python(again) == FOUND
    assert np.abs(again.x - w.x).max() < 1e-9 * np.abs(w.x).max()
