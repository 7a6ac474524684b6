"""Riccati and Lyapunov equations: what they say, and SciPy's solutions."""

import mpmath
import numpy as np
import pytest
import scipy.linalg
from support.closeness import assert_close

import kinetree as kt
from kinetree.control.algebraic_riccati import (
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


def _gain_to_forty_digits(A, B, Q, R, P, discrete):
    """The gain by Newton's method from ``P``, with Lyapunov equations as one linear system."""
    n = len(A)
    with mpmath.workdps(60):
        A, B, Q, R, P = (mpmath.matrix(x.tolist()) for x in (A, B, Q, R, P))
        for _ in range(8):
            W = R + B.T * P * B if discrete else R
            K = mpmath.inverse(W) * (B.T * P * A if discrete else B.T * P)
            C = A - B * K
            residual = (A.T * P * A - P if discrete else A.T * P + P * A) - K.T * W * K + Q
            M = mpmath.zeros(n * n)
            for i, j, k in np.ndindex(n, n, n):
                if discrete:
                    for p in range(n):
                        M[i * n + j, k * n + p] += C[k, i] * C[p, j]
                else:
                    M[i * n + j, k * n + j] += C[k, i]
                    M[i * n + j, i * n + k] += C[k, j]
            if discrete:
                M -= mpmath.eye(n * n)
            X = mpmath.lu_solve(M, mpmath.matrix([-x for x in residual]))
            P = (
                P
                + mpmath.matrix(n, n)
                + mpmath.matrix([[X[i * n + j] for j in range(n)] for i in range(n)])
            )
        assert mpmath.norm(X) < mpmath.mpf(10) ** -40 * mpmath.norm(P)
        return np.array(K.tolist(), dtype=float)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("cost", [1e-6, 1e-12])
def test_cheap_control_keeps_its_digits(cost, discrete):
    m = kt.samples.double_pendulum()
    q, tau = kt.control.equilibrium(m, [3.1, 0.0], actuated=["elbow"])
    A, B, *_ = kt.linearize(m, q, np.zeros(2), tau, dt=0.01 if discrete else None)
    K, P = kt.control.lqr_gain(A, B[:, 1:], 1.0, cost, discrete=discrete)
    exact = _gain_to_forty_digits(A, B[:, 1:], np.eye(4), cost * np.eye(1), P, discrete)
    assert_close(K, exact, ulps=8)


def test_units_do_not_matter(rng):
    """States in units that differ by ten decades, and inputs whose costs do."""
    for _ in range(10):
        A, B, Q, R = system(rng, 5, 2, 1.0)
        K = kt.control.lqr_gain(A, B, Q, R).K
        d, e = 10.0 ** rng.uniform(-5, 5, 5), 10.0 ** rng.uniform(-4, 4, 2)
        scaled = A * d[:, None] / d, B * d[:, None] / e, Q / d[:, None] / d, R / e[:, None] / e
        found = kt.control.lqr_gain(*scaled).K
        assert_close(found / e[:, None] * d, K, ulps=1e4)
        # nor with costs that are far from those units
        kt.control.lqr_gain(*scaled[:2], 1.0, 1.0)


def test_batches_of_costs_and_lists(rng):
    A, B, _, R = system(rng, 3, 2, 1.0)
    Q = np.array([c * np.eye(3) for c in (0.1, 1.0, 1e6)])
    K, P = kt.control.lqr_gain(A.tolist(), B.tolist(), Q, R)
    for k, one in enumerate(Q):
        assert_close(K[k], kt.control.lqr_gain(A, B, one, R).K, ulps=4)
        assert_close(P[k], continuous_riccati(A.tolist(), B.tolist(), one.tolist(), R), ulps=4)
    with pytest.raises(kt.ShapeError, match=r"B must have shape \(\.\.\., 3, 2\), got \(2, 2\)"):
        continuous_riccati(A, np.eye(2), Q, R)


def test_reasons_why_there_is_no_solution():
    with pytest.raises(SingularError, match=r"cannot change the motion with eigenvalue 1"):
        discrete_riccati(np.eye(2), np.zeros((2, 1)), np.eye(2), np.eye(1))
    with pytest.raises(SingularError, match="A has motions that do not die out"):
        continuous_lyapunov(np.eye(2), np.eye(2))


def test_motions_out_of_reach_that_die_out_need_no_control():
    """By hand: the second variable decays without control, the first is hardly moved by it."""
    A, q = np.diag([1.0, -1.0]), np.eye(2)
    for b in (1.0, 1e-6):
        P = continuous_riccati(A, np.array([[b], [0.0]]), q, np.eye(1))
        first = (1 + np.sqrt(1 + b * b)) / b**2
        np.testing.assert_allclose(P, np.diag([first, 0.5]), rtol=1e-12, atol=1e-12)
