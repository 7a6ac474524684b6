"""Linear complementarity: against enumeration, with proofs where there is no solution."""

import numpy as np
import pytest
from scipy.optimize import linprog

from kinetree.contact.complementarity import lcp
from kinetree.errors import ShapeError

SOLVERS = [lcp.pivoting, lcp.lemke]


def random_problem(rng):
    """A semidefinite matrix of any rank, in mixed units; whole numbers, for ties, at times."""
    n = rng.integers(1, 9)
    G = rng.normal(size=(n, rng.integers(1, n + 1))) * 10 ** rng.uniform(-2, 2, size=(n, 1))
    d = rng.normal(size=n) if rng.random() < 0.6 else G @ rng.normal(size=G.shape[1])
    if rng.random() < 0.3:
        G, d = np.round(G), np.round(3 * d)
    return G @ G.T, d


@pytest.mark.covers("RBDA 11.5", by=(lcp.pivoting, lcp.lemke))
def test_solvers_agree_with_enumeration_of_all_bases(rng):
    proved = 0
    for _ in range(100):
        M, d = random_problem(rng)
        every = lcp.enumerated(M, d)
        for solve in SOLVERS:
            found = solve(M, d)
            assert found.solved == bool(every)
            if found.solved:
                assert found.residuals.scaled < 1e-9
                assert min(found.lam) >= -1e-10 * max(found.lam)
                size = np.max(np.abs(d)) + np.max(np.abs(M)) * np.max(found.lam)
                np.testing.assert_allclose(found.w, every[0].w, atol=1e-9 * size)
            else:
                proved += 1
                y = found.certificate.forces
                assert min(y) >= 0
                assert np.max(np.abs(M @ y)) <= 1e-9 * np.max(np.abs(M))
                assert d @ y < 0
    assert proved > 20


@pytest.mark.covers("RBDA Example 11.1", "RBDA 11.2", by=lcp.pivoting)
@pytest.mark.parametrize("solve", SOLVERS)
def test_disc_in_a_narrowing_slot(solve):
    M = 3.0 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    stuck = solve(M, [-1.0, 0.5])
    assert not stuck.solved
    np.testing.assert_allclose(stuck.certificate.forces, np.sqrt([0.5, 0.5]), rtol=1e-15)
    assert stuck.certificate.closing < 0 <= stuck.certificate.motion < 1e-15
    np.testing.assert_allclose(solve(M, [-1.0, 2.0]).lam, [1 / 3, 0], rtol=1e-15)
    family = solve(M, [-1.0, 1.0])  # (1/3 + s, s) for any s: the basic one
    np.testing.assert_allclose(family.lam, [1 / 3, 0], rtol=1e-15)
    np.testing.assert_allclose(family.w, [0, 0], atol=1e-15)


def test_contradiction_within_rounding_is_none():
    M = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for solve in SOLVERS:
        assert solve(M, [-1.0, 1.0 - 1e-15]).solved


def test_pivoting_gives_basic_solutions(rng):
    for _ in range(50):
        G = rng.normal(size=(8, 3))
        found = lcp.pivoting(G @ G.T, G @ rng.normal(size=3))
        assert found.solved
        positive = np.flatnonzero(found.lam > 0)
        assert np.linalg.matrix_rank(G[positive]) == len(positive) <= 3
        assert set(positive) <= set(found.basis)


def test_ties_do_not_cycle():
    """Four legs of a square table: all ratios equal, three legs carry it or two on a diagonal."""
    corners = np.array([[1, x, y] for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
    M, d = corners @ corners.T, -np.ones(4)
    for solve in SOLVERS:
        found = solve(M, d)
        assert found.solved
        np.testing.assert_allclose(corners.T @ found.lam, [1, 0, 0], atol=1e-14)
        assert np.count_nonzero(found.lam) <= 3


def test_lemke_takes_matrices_without_symmetry(rng):
    for _ in range(60):
        n = rng.integers(2, 7)
        G, K = rng.normal(size=(n, n)), rng.normal(size=(n, n))
        M, d = G @ G.T + K - K.T, rng.normal(size=n)
        found = lcp.lemke(M, d)
        assert found.solved
        assert found.residuals.complementarity < 1e-9
        np.testing.assert_allclose(found.lam, lcp.enumerated(M, d)[0].lam, atol=1e-8)


def test_lemke_reports_when_it_has_no_solution():
    found = lcp.lemke([[-1.0]], [-1.0])
    assert not found.solved
    assert lcp.lemke([[0.0, 1.0], [-1.0, 0.0]], [1.0, -1.0]).certificate is not None


def test_enumeration_finds_several_solutions():
    found = lcp.enumerated([[0.0, 1.0], [1.0, 0.0]], [-1.0, -1.0])
    np.testing.assert_allclose([each.lam for each in found], [[1, 1]])
    several = lcp.enumerated([[1.0, 2.0], [2.0, 1.0]], [-1.0, -1.0])
    np.testing.assert_allclose(
        sorted(tuple(each.lam) for each in several), [[0, 1], [1 / 3, 1 / 3], [1, 0]]
    )


def test_without_rows_there_is_nothing_to_do():
    for solve in SOLVERS:
        assert solve(np.zeros((0, 0)), []).solved


@pytest.mark.parametrize(
    ("M", "d", "message"),
    [
        (np.eye(2), [1.0], "M must be a square matrix for d of length 1, got (2, 2)"),
        ([[1.0, 0.5], [0.0, 1.0]], [1.0, 1.0], "M must be symmetric, but differs from its"),
        ([[np.inf]], [1.0], "M must hold finite real numbers"),
        ([[1.0]], [np.inf], "d must be finite, got [inf]"),
        ([[1.0]], [np.nan], "d must be a vector of real numbers"),
    ],
)
def test_wrong_problems_are_rejected(M, d, message):
    with pytest.raises(ShapeError) as raised:
        lcp.pivoting(M, d)
    assert message in str(raised.value)


def test_enumeration_rejects_large_problems():
    with pytest.raises(ShapeError, match=r"takes n up to 14, got 15; use lcp\.lemke"):
        lcp.enumerated(np.eye(15), np.ones(15))


# --- units, proofs --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-14, 1e10])
def test_solutions_follow_the_units_of_rows_and_forces(rng, size):
    """``U M U`` and ``c U d`` have the solution ``c U⁻¹ lam``; so do their proofs."""
    for _ in range(40):
        M, d = random_problem(rng)
        units = 10 ** rng.uniform(-5, 5, size=len(d))
        scaled = units[:, None] * M * units, size * units * d
        for solve in SOLVERS:
            one, other = solve(M, d), solve(*scaled)
            assert one.solved == other.solved
            if one.solved:
                w = other.w / units / size
                np.testing.assert_allclose(w, one.w, atol=1e-7 * np.max(np.abs(d)))
            else:
                assert other.certificate is not None


def test_proofs_are_proofs_whatever_the_matrix(rng):
    """Against linear programming: a proof is given only where ``M lam + d ≥ 0`` has no solution."""
    ends = {"solved": 0, "proved": 0, "unknown": 0}
    for _ in range(120):
        n = int(rng.integers(1, 5))
        M, d = rng.normal(size=(n, n)), rng.normal(size=n)
        found = lcp.lemke(M, d)
        possible = linprog(np.zeros(n), A_ub=-M, b_ub=d).status == 0
        assert (
            set(np.flatnonzero(found.lam))
            <= set(found.basis)
            <= set(range(n if found.solved else 0))
        )
        if found.solved:
            assert possible
            assert found.residuals.scaled < 1e-9
            assert found.pivots > 0 or np.all(d >= 0)
        elif found.certificate is not None:
            y = found.certificate.forces
            assert not possible
            assert np.max(M.T @ y) <= 1e-9 * np.max(np.abs(M))
            assert d @ y < 0
            assert np.min(y) >= 0
            assert found.certificate.closing < 0 <= found.certificate.motion < 1e-9
            np.testing.assert_allclose(np.linalg.norm(y), 1)
        ends["solved" if found.solved else "proved" if found.certificate else "unknown"] += 1
    assert min(ends.values()) > 3
    assert all(each.pivots == 0 for each in lcp.enumerated(np.eye(2), [-1.0, 1.0]))
