"""Parts of the solvers of complementarity problems, one by one."""

from types import SimpleNamespace

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.complementarity import cones, lcp, pivoting
from kinetree.contact.complementarity.residuals import residuals
from kinetree.contact.complementarity.rows import MixedRows, newton_matrix, obey


def test_steps_of_newtons_method_are_shared_between_attempts(monkeypatch):
    """Five in all: each attempt may take what those before have left, and then there is an end."""
    allowed, advanced = [], []

    def two_steps(problem, lam, tolerance, most):
        allowed.append(most)
        return lam, min(2, most)

    class Run:
        lam = np.zeros(3)

        def __init__(self, problem, lam):
            pass

        def advance(self, length):
            advanced.append(length)

    monkeypatch.setattr(cones, "newton_steps", two_steps)
    monkeypatch.setattr(cones, "Alternation", Run)
    problem = SimpleNamespace(error=lambda lam: 1.0, is_refuted=lambda lam: False)
    assert cones.newton_with_admm(problem, np.zeros(3), 1e-9, 5)[1] == 5
    assert allowed == [5, 3, 1]
    assert advanced == [20, 40]


def test_newtons_steps_are_shortened_until_the_error_shrinks():
    """Of ``arctan x = 0`` whole steps from 1.5 end ever farther away."""
    problem = SimpleNamespace(
        A=np.eye(1), b=np.zeros(1), rows=MixedRows(np.zeros(0), np.full(1, -np.inf), np.full(1,
        np.inf)),
    )  # fmt: skip
    problem.missing = lambda lam: np.arctan(lam) * (1 + lam @ lam)  # the step, as its matrix is 1
    problem.merit = lambda lam: float(np.arctan(lam) @ np.arctan(lam))
    problem.error = lambda lam: float(abs(np.arctan(lam[0])))
    lam, steps = cones.newton_steps(problem, np.array([1.5]), 1e-12, 20)
    assert abs(lam[0]) < 1e-12
    assert steps < 10


def test_ties_are_measured_by_the_least_ratio():
    """A ratio of 1e12 elsewhere makes no tie of 1 and 1.5; -1e6 has larger rounding errors."""
    table = np.column_stack([np.eye(3), np.zeros((3, 4)), [1.0, 1.5, 1e12]])
    column, basic, rows = np.ones(3), np.array([0, 6, 2]), np.arange(3)
    assert lcp._leaving_row(table, rows, column, basic, 3) == 0
    table[:, -1] = 1.0, 1.0 + 1e-12, 1e12
    assert lcp._leaving_row(table, rows, column, basic, 3) == 1
    table = np.array([[2.0, 0.0, -1e6], [1.0, 5.0, -1e6 + 1e-7]])
    assert lcp._least(table, np.arange(2), np.ones(2), 2) == 1
    table[1, -1] += 1.0
    assert lcp._least(table, np.arange(2), np.ones(2), 2) == 0


def test_sizes_of_terms_are_those_of_their_summands(rng):
    M, d, lam = rng.normal(size=(4, 4)), rng.normal(size=4), rng.normal(size=4)
    expected = [sum(abs(M[i, j] * lam[j]) for j in range(4)) + abs(d[i]) for i in range(4)]
    np.testing.assert_allclose(pivoting.Dense(M, d).terms(lam), expected, rtol=1e-14)


@pytest.mark.parametrize(("force", "motion"), [(-2.0, 3.0), (1.5, 3.0), (3.0, -4.0), (0.5, -4.0)])
def test_complementarity_counts_forces_on_either_side_of_their_bounds(force, motion):
    rows = MixedRows(np.zeros(0), np.zeros(1), np.ones(1))
    lam = np.array([force])
    found = residuals(rows, np.eye(1), np.array([motion - force]), lam)
    room = force if motion > 0 else 1 - force
    assert found.complementarity == pytest.approx(abs(room * motion), rel=1e-14)
    assert found.cone == pytest.approx(max(-force, force - 1, 0.0), rel=1e-14)
    assert found.dual == 0


@pytest.mark.parametrize("seed", [181, 212, 278])
def test_more_iterations_in_a_kernel_do_no_harm(seed):
    """Redundant contacts where Newton's steps go wrong: they count only if they beat all before."""
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(3 * int(rng.integers(2, 6)), int(rng.integers(2, 7))))
    A, b, mu = J @ J.T, J @ rng.normal(size=J.shape[1]), 2 * rng.uniform(0, 1, len(J) // 3)
    found = [float(cones.in_kernel(A, b, mu, n).residual) for n in range(1, 16)]
    least = np.minimum.accumulate(found)
    assert np.max(found[1:] / least[:-1]) < 1.5  # of largest errors; their squares only shrink


@pytest.mark.parametrize("traced", range(1, 16))
def test_laws_of_rows_of_which_only_some_are_traced(traced):
    """Rows of a mechanism fold to numbers where it cannot move them."""
    values, A, w = np.array([0.5, 0.4, -0.3, 0.2]), np.diag([1.0, 2.0, 3.0, 4.0]), np.zeros(4)
    rows = MixedRows(np.array([0.5]), np.array([-1.0]), np.array([1.0]), False)

    def laws(lam):
        return np.concatenate([obey(rows, lam, w), newton_matrix(rows, A, lam, w).ravel()])

    @kt.kernel
    def some(x):
        mixed = [x[k] if traced >> k & 1 else values[k] for k in range(4)]
        return laws(np.array(mixed, dtype=object))

    np.testing.assert_allclose(some(values), laws(values), atol=1e-15)
