"""The quadratic programs of contact: optimality, SciPy, and one another."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

from kinetree.contact.complementarity import lcp, pivoting, quadratic
from kinetree.errors import ShapeError, SingularError

INF = np.inf


@pytest.mark.covers("RBDA 11.5", by=(quadratic.in_forces, quadratic.in_accelerations))
def test_both_programs_and_the_complementarity_problem_agree(rng):
    infeasible = 0
    for _ in range(80):
        nv, n = rng.integers(2, 7), rng.integers(1, 10)
        root = rng.normal(size=(nv, nv))
        H, J = root @ root.T + 0.1 * np.eye(nv), rng.normal(size=(n, nv))
        free, bias = rng.normal(size=nv), 0.3 * rng.normal(size=n)
        M = J @ np.linalg.solve(H, J.T)
        M, d = 0.5 * (M + M.T), J @ free + bias
        forces, motion = quadratic.in_forces(M, d), quadratic.in_accelerations(H, free, J, bias)
        assert forces.solved == lcp.lemke(M, d).solved == motion.forces.solved
        infeasible += not forces.solved
        if not forces.solved:
            assert motion.forces.certificate is not None
            continue
        assert motion.forces.residuals.scaled < 1e-10
        size = np.max(np.abs(motion.qdd))
        qdd = free + np.linalg.solve(H, J.T @ forces.lam)
        np.testing.assert_allclose(motion.qdd, qdd, atol=1e-8 * size)
        assert np.all(J @ motion.qdd + bias >= -1e-8 * size)
    assert 5 < infeasible < 60


def test_program_in_accelerations_matches_scipy(rng):
    root, J = rng.normal(size=(5, 5)), rng.normal(size=(4, 5))
    H, free, bias = root @ root.T + np.eye(5), rng.normal(size=5), rng.normal(size=4)
    found = quadratic.in_accelerations(H, free, J, bias)
    other = minimize(
        lambda a: 0.5 * (a - free) @ H @ (a - free),
        free,
        jac=lambda a: H @ (a - free),
        constraints={"type": "ineq", "fun": lambda a: J @ a + bias, "jac": lambda _: J},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(found.qdd, other.x, atol=1e-6)


@pytest.mark.parametrize("rank", [3, 8])
def test_bounded_program_matches_scipy(rng, rank):
    """Loops, limits and dry friction in one; any rank."""
    for _ in range(10):
        G, x = rng.normal(size=(8, rank)), rng.normal(size=rank)
        low = np.array([-INF, -INF, 0, 0, 0, -0.2, -0.2, -INF])
        high = np.array([INF, INF, INF, INF, INF, 0.2, 0.2, 0])
        found = quadratic.in_forces(G @ G.T, G @ x, low, high)
        assert found.solved
        assert found.residuals.scaled < 1e-10
        other = lsq_linear(G.T, -x, bounds=(low, high), tol=1e-14)
        np.testing.assert_allclose(G.T @ found.lam, G.T @ other.x, atol=1e-6)


def test_contradicting_loops_have_a_certificate():
    J = np.array([[1.0, 0.0], [1.0, 0.0]])
    found = quadratic.in_accelerations(np.eye(2), [0.0, 0.0], J, [0.0, 1.0], -INF, INF)
    assert not found.forces.solved
    y = found.forces.certificate.forces
    np.testing.assert_allclose(J.T @ y, 0, atol=1e-15)
    assert y @ [0.0, 1.0] < 0


def test_forces_that_move_nothing_stop_at_their_bounds():
    M = np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = quadratic.in_forces(M, [-1.0, 0.5], 0.0, 4.0)
    assert found.solved
    np.testing.assert_allclose(found.lam, [4, 3.5])
    np.testing.assert_allclose(found.w, [-0.5, 0], atol=1e-15)


def test_more_contacts_than_freedoms():
    """A body pressed on sixty tilted planes: only its program in accelerations stays small."""
    angle = np.linspace(-1, 1, 60)
    J = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    found = quadratic.in_accelerations(2 * np.eye(2), [0.0, -9.81], J, np.zeros(60))
    np.testing.assert_allclose(found.qdd, [0, 0], atol=1e-13)
    np.testing.assert_allclose(J.T @ found.forces.lam, [0, 2 * 9.81], atol=1e-12)
    assert len(found.forces.basis) <= 2


def test_wrong_programs_are_rejected():
    with pytest.raises(SingularError, match="H must be positive definite"):
        quadratic.in_accelerations(np.diag([1.0, 0.0]), [0, 0], [[1.0, 0.0]], [0.0])
    with pytest.raises(ShapeError, match=r"J must have shape \(1, 2\), got \(1, 3\)"):
        quadratic.in_accelerations(np.eye(2), [0, 0], [[1.0, 0.0, 0.0]], [0.0])
    with pytest.raises(ShapeError, match="low must not exceed high"):
        quadratic.in_forces(np.eye(2), [0, 0], [0, 1], [1, 0])
    with pytest.raises(ShapeError, match="high must be a number or 2 of them"):
        quadratic.in_forces(np.eye(2), [0, 0], 0, [1, 2, 3])


def test_what_pivoting_cannot_do_is_said(monkeypatch):
    with pytest.raises(SingularError, match="a force moves its own contact the wrong way"):
        quadratic.in_forces(np.array([[1.0, 2.0], [2.0, 1.0]]), [-2.0, -1.0], -INF)
    monkeypatch.setattr(pivoting, "_PER_ROW", 0)
    with pytest.raises(SingularError, match="did not end after 0 changes of the basis of 1 rows"):
        quadratic.in_forces([[1.0]], [-1.0])


def _at_bounds_or_balanced(M, d, low, high):
    """Motion under forces that obey, each row at a bound or balanced; None where there is none."""
    for places in product(("low", "high", "free"), repeat=len(d)):
        at = np.array(places)
        lam = np.where(at == "low", low, np.where(at == "high", high, 0.0))
        if not np.all(np.isfinite(lam)):
            continue
        free = np.flatnonzero(at == "free")
        if len(free) and np.linalg.cond(M[np.ix_(free, free)]) > 1e10:
            continue
        lam[free] = np.linalg.solve(M[np.ix_(free, free)], -(M @ lam + d)[free])
        w = M @ lam + d
        fits = np.all(lam >= low - 1e-10) and np.all(lam <= high + 1e-10)
        if fits and np.all(w[at == "low"] >= -1e-10) and np.all(w[at == "high"] <= 1e-10):
            return w
    return None


@pytest.mark.parametrize("units", [1.0, 1e-5, 1e4])
def test_bounded_forces_are_what_trying_all_bounds_finds(rng, units):
    """Bounds that differ from row to row, loops and limits among them, in several units."""
    ends = set()
    for _ in range(25):
        n = int(rng.integers(2, 5))
        G = rng.normal(size=(n, int(rng.integers(1, n + 1))))
        M, d = G @ G.T, rng.normal(size=n)
        low, high = -rng.uniform(0, 1, n), rng.uniform(0, 1, n)
        low[rng.random(n) < 0.4], high[rng.random(n) < 0.5] = -np.inf, np.inf
        expected = _at_bounds_or_balanced(M, d, low, high)
        found = quadratic.in_forces(units**2 * M, units * d, low / units, high / units)
        assert found.solved == (expected is not None)
        ends.add(found.solved)
        if found.solved:
            np.testing.assert_allclose(found.w / units, expected, atol=1e-9)
            assert found.residuals.cone <= 1e-12 / units
        else:
            assert found.certificate is not None
    assert ends == {True, False}
