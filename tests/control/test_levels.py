"""Least squares by priority in compiled code: against DAQP, and by the conditions of optimality."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import nnls

from kinetree.control.active_set import FOUND, INFEASIBLE, minimum
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


def solved(E, e, A, b, G, low, high, sizes, damping, hopeful=True):
    """The code of the result, and the workspace."""
    w = workspace(A.shape[1], len(E), len(A), len(G))
    w.hopeful = hopeful
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


def first_level_is_easy(rng, n=24):
    """Two levels, the first of which few rows and wide bounds leave a solution."""
    E, e, A, b, G, low, high = problem(rng, n, 5, 40, [3, n])
    inside = np.linalg.lstsq(np.vstack([E, A[:3]]), np.r_[e, b[:3]], rcond=None)[0]
    low, high = np.minimum(low, G @ inside - 0.1), np.maximum(high, G @ inside + 0.1)
    return E, e, A, b, G, low, high


def test_what_can_be_met_exactly_is_met(rng):
    """Without a program for the first level, and with one: the same solution."""
    active = 0
    for _ in range(20):
        given = first_level_is_easy(rng)
        E, _, A, b, *_ = given
        code, w = solved(*given, [3, 24], 1e-6)
        assert code == FOUND
        assert np.abs(A[:3] @ w.x - b[:3]).max() < 1e-10 * np.abs(b).max()
        assert np.abs(w.Ax[:3]).max() < 1e-10 * np.abs(b).max()
        careful = solved(*given, [3, 24], 1e-6, hopeful=False)[1]
        assert np.abs(careful.x - w.x).max() < 1e-5 * np.abs(w.x).max()
        assert w.program.n == 24 - np.linalg.matrix_rank(E) - 3
        active += w.program.count
    assert active > 20


def test_tasks_that_depend_on_others_need_no_luck(rng):
    """A first level that contradicts equations or itself, or repeats itself, is met best."""
    for row, value in ((0, 0.0), (0, 1.0), (1, 1.0)):
        E, e, A, b, G, low, high = first_level_is_easy(rng)
        A[2], b[2] = (E[0], e[0] + value) if row == 0 else (A[0], b[0] + value)
        code, w = solved(E, e, A, b, G, low, high, [3, 24], 1e-6)
        careful = solved(E, e, A, b, G, low, high, [3, 24], 1e-6, hopeful=False)[1]
        assert code == FOUND
        assert np.abs(careful.x - w.x).max() < 1e-9 * np.abs(w.x).max()


def test_a_guess_of_active_rows_does_not_change_the_minimum(rng):
    """Right ones, wrong ones, and at the wrong bound."""
    for _ in range(20):
        given = problem(rng, 16, 3, 30, [16])
        _, w = solved(*given, [16], 1e-6)
        q, expected = w.program, w.program.x.copy()
        right = list(zip(q.active[: q.count], q.side[: q.count], strict=True))
        some = [(int(k), 1.0) for k in rng.choice(30, 4, replace=False) if np.isfinite(q.low[k])]
        wrong = [(k, -s) for k, s in right[:1] if np.isfinite(q.low[k] + q.high[k])]
        for guess in (right, some, [*wrong, *right[1:]], right[::2]):
            again = solved(*given, [16], 1e-6)[1].program
            again.H[:], again.guess = hessian(w, given), len(guess)
            for k, (row, side) in enumerate(guess):
                again.active[k], again.side[k] = row, side
            assert minimum(again) == FOUND
            assert np.abs(again.x - expected).max() < 1e-8 * np.abs(expected).max()
            assert again.u[: again.count].min(initial=0.0) >= 0.0


def hessian(w, given):
    """The matrix of a program of one level, whose factor is what is left of it."""
    n, wide, A = w.program.n, w.program.wide, given[2]
    Z = w.Z.reshape(w.n, wide)
    H = (A @ Z).T @ (A @ Z) + 1e-6 * Z.T @ Z
    assert np.abs(H[n:]).max(initial=0.0) == 0.0
    return np.r_[H[:n].ravel(), np.zeros(len(w.program.H) - n * wide)]


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
