"""Elimination in an order chosen beforehand."""

from fractions import Fraction

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms.closed.elimination import (
    is_zero,
    null_space,
    positive_solution,
    range_space,
    solve_for,
    sparse_rows,
)
from kinetree.algorithms.ltl import dense, ltdl
from kinetree.errors import SingularError


def positive(rng, n):
    A = rng.normal(size=(n, n))
    return A @ A.T + np.eye(n)


def test_only_plain_zeros_are_zero():
    assert is_zero(0)
    assert is_zero(0.0)
    assert is_zero(np.int64(0))
    assert is_zero(np.float64(0))
    assert not is_zero(1e-300)
    assert not is_zero(object())
    assert sparse_rows(np.array([[0, 2, 0], [1, 0, 3]])) == [{1: 2}, {0: 1, 2: 3}]


@pytest.mark.covers("RBDA 8.9", by=solve_for)
def test_equations_are_solved_for_the_unknowns_of_the_pivots(rng):
    K = rng.normal(size=(3, 5))
    solved, sizes = solve_for(dict(enumerate(sparse_rows(K))), [(1, 0), (0, 3), (2, 2)])
    assert set(solved) == {0, 2, 3}
    assert len(sizes) == 3
    for free in (1, 4):
        x = np.zeros(5)
        x[free] = 1
        for j, terms in solved.items():
            x[j] = terms[free]
        assert_close(K @ x, np.zeros(3), scale=10.0, ulps=1e3)


def test_zeros_stay_out_and_fractions_exact():
    rows = {0: {0: Fraction(2), 2: Fraction(1)}, 1: {1: Fraction(3), 2: Fraction(1)}}
    solved, sizes = solve_for(rows, [(0, 0), (1, 1)])
    assert solved == {0: {2: Fraction(-1, 2)}, 1: {2: Fraction(-1, 3)}}
    assert sizes == [2, 3]


@pytest.mark.parametrize("n", [1, 2, 6])
def test_positive_definite_systems(n, rng):
    A, b = positive(rng, n), rng.normal(size=n)
    x, pivots = positive_solution(np.tril(A), b)
    assert_close(np.array(x), np.linalg.solve(A, b), ulps=1e4)
    assert_close(np.prod(pivots), np.linalg.det(A), ulps=1e4)


def test_a_pivot_that_is_zero_is_an_error():
    with pytest.raises(SingularError, match="pivot that was chosen beforehand is zero"):
        solve_for({0: {1: 1.0}}, [(0, 0)])
    with pytest.raises(SingularError, match="needs others"):
        positive_solution([[0]], [1.0])


@pytest.mark.covers("RBDA 8.5", by=(null_space, range_space))
def test_both_solve_the_constrained_equation_of_motion(rng):
    H, b, K, k = positive(rng, 5), rng.normal(size=5), rng.normal(size=(2, 5)), rng.normal(size=2)
    kkt = np.block([[H, K.T], [K, np.zeros((2, 2))]])
    expected = np.linalg.solve(kkt, [*b, *k])[:5]
    assert_close(null_space(H, b, K, k, [(0, 1), (1, 4)])[0], expected, ulps=1e5)
    lam = dense(5)
    assert_close(range_space(ltdl(H, lam), lam, b, K, k)[0], expected, ulps=1e5)
