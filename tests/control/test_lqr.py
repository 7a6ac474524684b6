"""The linear-quadratic regulator: gains, and mechanisms that stay up."""

import warnings

import numpy as np
import pytest
import scipy.linalg
from support.closeness import assert_close
from support.motions import simulate

import kinetree as kt
from kinetree.control import LQR, equilibrium, lqr_gain


def test_a_double_integrator_by_hand():
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    K, P = lqr_gain(A, B, [1.0, 0.0], 1.0)
    assert_close(K, [[1.0, np.sqrt(2.0)]], ulps=100)
    assert_close(P, [[np.sqrt(2.0), 1.0], [1.0, np.sqrt(2.0)]], ulps=100)


def test_the_discrete_gain_of_short_steps_is_the_continuous_one(rng):
    m = kt.samples.cart_pole()
    q = np.array([0.0, np.pi])
    exact = LQR(m, q, Q=1.0, R=0.1, actuated=["rail"])
    for dt in (1e-3, 1e-4):
        sampled = LQR(m, q, Q=dt, R=0.1 * dt, actuated=["rail"], dt=dt)
        assert np.abs(sampled.K - exact.K).max() < 20 * dt * np.abs(exact.K).max()
        assert np.abs(np.log(sampled.poles) / dt).min() > 0.5


@pytest.mark.parametrize(("actuated", "R"), [(["rail"], 0.1), (None, [0.1, 10.0])])
def test_cart_pole_upright(actuated, R, rng):
    m = kt.samples.cart_pole()
    balance = LQR(m, [0.2, np.pi], Q=[1, 1, 1, 1], R=R, actuated=actuated)
    assert balance.poles.real.max() < 0
    starts = balance.q + 0.2 * rng.standard_normal((4, 2))
    q, qd = simulate(m, balance, starts, np.zeros((4, 2)), 12.0, 0.02)
    x0 = np.concatenate([q - balance.q, qd], axis=-1)
    assert np.abs(x0[-1]).max() < 1e-4 * np.abs(x0[0]).max()
    if actuated:
        assert np.all(balance(0.0, starts, np.ones(2))[:, 1] == 0)
    assert balance.full_gain.shape == (2, 4)
    x = np.array([*starts[0] - balance.q, 1.0, 1.0])
    assert_close(balance.tau - balance.full_gain @ x, balance(0.0, starts[0], np.ones(2)), ulps=50)


@pytest.mark.parametrize("joint", ["shoulder", "elbow"])
def test_double_pendulum_upright_with_one_motor(joint, rng):
    m = kt.samples.double_pendulum()
    q0, tau0 = equilibrium(m, [3.0, 0.2], actuated=[joint])
    balance = LQR(m, q0, Q=1.0, R=1.0, actuated=[joint], tau=tau0)
    q, _ = simulate(m, balance, q0 + np.array([0.002, -0.001]), np.zeros(2), 10.0, 0.01)
    assert np.abs(q[-1] - q0).max() < 1e-5
    free, _ = simulate(
        m, lambda t, q, qd: tau0, q0 + np.array([0.002, -0.001]), np.zeros(2), 3.0, 0.01
    )
    assert np.abs(free[-1] - q0).max() > 0.1  # it falls by itself


def test_a_sampled_controller_with_held_forces(rng):
    m = kt.samples.cart_pole()
    balance = LQR(m, [0.0, np.pi], Q=1.0, R=0.1, actuated=["rail"], dt=0.05)
    q, _ = simulate(m, balance, [0.1, np.pi + 0.1], np.zeros(2), 12.0, 0.05, hold=True)
    assert np.abs(q[-1] - balance.q).max() < 1e-4
    A, B = balance.A, balance.B
    S = scipy.linalg.solve_discrete_are(A, B, np.eye(4), 0.1 * np.eye(1))
    assert np.abs(balance.P - S).max() < 1e-8 * np.abs(S).max()


def test_a_continuous_gain_that_is_held_too_long_is_named():
    m = kt.samples.cart_pole()
    q = np.array([0.0, np.pi])
    fast = LQR(m, q, Q=1.0, R=1e-9, actuated=["rail"])
    fast(0.0, q, np.zeros(2))
    fast(0.002, q, np.zeros(2))
    with pytest.warns(kt.SimulationWarning, match=r"every 0.002 s: .* LQR\(\.\.\., dt=0.002\)"):
        fast(0.004, q, np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for balance in (LQR(m, q, Q=1.0, R=0.1, actuated=["rail"]), fast):
            for t in (0.0, 1e-6, 2e-6):
                balance(t, q, np.zeros(2))


def test_the_cost_is_that_of_the_motion():
    """``xᵀ P x`` is the integral of the cost, for a small deviation."""
    m = kt.samples.cart_pole()
    balance = LQR(m, [0.0, np.pi], Q=1.0, R=0.1, actuated=["rail"])
    dt, x0 = 0.01, np.array([1e-4, 2e-4, 0.0, 0.0])
    q, qd = simulate(m, balance, balance.q + x0[:2], x0[2:], 15.0, dt)
    x = np.concatenate([q - balance.q, qd], axis=-1)
    u = -x @ balance.K.T
    rate = (x * x).sum(-1) + 0.1 * (u * u).sum(-1)
    total = dt / 3 * (rate[0] + 4 * rate[1:-1:2].sum() + 2 * rate[2:-1:2].sum() + rate[-1])
    assert abs(total / (x0 @ balance.P @ x0) - 1) < 1e-5


def test_a_satellite_turns_to_its_place():
    """Unit quaternions: the difference is on the manifold."""
    builder = kt.ModelBuilder("satellite", gravity=(0, 0, 0))
    m = builder.body("bus", joint=kt.Spherical(), inertia=kt.shapes.box(1, 2, 3, mass=6)).build()
    point = LQR(m, m.neutral(), Q=1.0, R=1.0)
    start = m.integrate(m.neutral(), [1.0, -0.5, 0.8])
    q, _ = simulate(m, point, start, np.zeros(3), 40.0, 0.1)
    error = np.linalg.norm(m.difference(m.neutral(), q), axis=-1)
    assert error[-1] < 1e-4 * error[0]


def test_errors_name_what_is_wrong():
    m = kt.samples.cart_pole()
    with pytest.raises(
        kt.errors.EquilibriumError, match="does not stay at rest at q with the driven"
    ):
        LQR(m, [0.0, 1.0], Q=1.0, R=1.0, actuated=["rail"])
    with pytest.raises(kt.errors.EquilibriumError, match="does not stay at rest"):
        LQR(m, [0.0, np.pi], Q=1.0, R=1.0, tau=[1.0, 0.0])
    with pytest.raises(kt.ShapeError, match=r"Q must be a number, \(4,\) or \(\.\.\., 4, 4\), got"):
        LQR(m, [0.0, np.pi], Q=np.ones(3), R=1.0)
    with pytest.raises(kt.ShapeError, match="R must have positive eigenvalues"):
        LQR(m, [0.0, np.pi], Q=1.0, R=0.0)
    with pytest.raises(kt.ShapeError, match="Q must be symmetric, without negative"):
        LQR(m, [0.0, np.pi], Q=-1.0, R=1.0)
    with pytest.raises(kt.ShapeError, match="needs one equilibrium, got q of shape"):
        LQR(m, [[0.0, np.pi]], Q=1.0, R=1.0)
    with pytest.raises(kt.UnknownNameError, match="did you mean 'rail'"):
        LQR(m, [0.0, np.pi], Q=1.0, R=1.0, actuated=["rial"])
    with pytest.raises(kt.SingularError, match="cannot change the motion with eigenvalue 1"):
        lqr_gain(np.diag([1.0, -1.0]), np.array([[0.0], [1.0]]), 1.0, 1.0)
    with pytest.raises(kt.SingularError, match="costs nothing"):
        lqr_gain(np.zeros((1, 1)), np.ones((1, 1)), 0.0, 1.0)
    with pytest.raises(kt.ShapeError, match=r"B \(\.\.\., n, k\), got \(2, 2\) and \(3, 1\)"):
        lqr_gain(np.eye(2), np.ones((3, 1)), 1.0, 1.0)
