"""Riccati and Lyapunov equations: what they say, and SciPy's solutions."""

import numpy as np
import pytest
import scipy.linalg
from support.closeness import assert_close

from kinetree.control.lqr import (
    continuous_lyapunov,
    continuous_riccati,
    discrete_lyapunov,
    discrete_riccati,
)
from kinetree.errors import SingularError


def system(rng, n, k, scale):
    q, r = rng.standard_normal((n, n)), rng.standard_normal((k, k))
    R = r @ r.T + 0.1 * np.eye(k)
    return scale * rng.standard_normal((n, n)), rng.standard_normal((n, k)), q @ q.T, R


SIZES = [(1, 1), (2, 1), (4, 2), (12, 6), (30, 15)]


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("n", "k"), SIZES)
def test_continuous_riccati(n, k, scale, rng):
    A, B, Q, R = system(rng, n, k, scale)
    P = continuous_riccati(A, B, Q, R)
    S = scipy.linalg.solve_continuous_are(A, B, Q, R)
    G = B @ np.linalg.solve(R, B.T)
    size = np.abs(P).max() * (np.abs(A).sum(1).max() + np.abs(G @ P).sum(1).max())
    assert_close(A.T @ P + P @ A - P @ G @ P + Q, np.zeros((n, n)), ulps=20 * n, scale=size)
    assert np.array_equal(P, P.T)
    assert np.linalg.eigvals(A - G @ P).real.max() < 0
    assert np.abs(P - S).max() <= 1e-8 * np.abs(S).max()


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("n", "k"), SIZES)
def test_discrete_riccati(n, k, scale, rng):
    A, B, Q, R = system(rng, n, k, scale)
    P = discrete_riccati(A, B, Q, R)
    S = scipy.linalg.solve_discrete_are(A, B, Q, R)
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    size = np.abs(P).max() * max(np.abs(A).sum(1).max(), 1.0) ** 2
    assert_close(A.T @ P @ (A - B @ K) + Q, P, ulps=100 * n, scale=size)
    assert np.array_equal(P, P.T)
    assert np.abs(np.linalg.eigvals(A - B @ K)).max() < 1
    assert np.abs(P - S).max() <= 1e-8 * np.abs(S).max()


def test_lyapunov_equations(rng):
    A = rng.standard_normal((5, 5))
    Q = A @ A.T
    stable = A - (np.linalg.eigvals(A).real.max() + 0.3) * np.eye(5)
    P = continuous_lyapunov(stable, Q)
    assert_close(P, scipy.linalg.solve_continuous_lyapunov(stable.T, -Q), ulps=1e4)
    stable = 0.9 * A / np.abs(np.linalg.eigvals(A)).max()
    P = discrete_lyapunov(stable, Q)
    assert_close(P, scipy.linalg.solve_discrete_lyapunov(stable.T, Q), ulps=1e4)


def test_batches(rng):
    systems = [system(rng, 4, 2, s) for s in (0.3, 1.0, 3.0)]
    A, B, Q, R = (np.stack(x) for x in zip(*systems, strict=True))
    for P, one in zip(continuous_riccati(A, B, Q, R), systems, strict=True):
        alone = continuous_riccati(*one)
        assert np.abs(P - alone).max() <= 1e-9 * np.abs(alone).max()


def test_a_motion_out_of_reach_is_rejected():
    A, B = np.diag([1.0, -1.0]), np.array([[0.0], [1.0]])
    with pytest.raises(SingularError, match="has no stabilising solution"):
        continuous_riccati(A, B, np.eye(2), np.eye(1))
    with pytest.raises(SingularError, match="has no stabilising solution"):
        discrete_riccati(np.diag([1.5, 0.5]), B, np.eye(2), np.eye(1))
