"""Linear equations of motion against the motion itself."""

import numpy as np
import pytest
import scipy.linalg
from support.closeness import assert_close
from support.mechanisms import chain_of
from support.motions import step
from support.states import random_external_forces, random_state

import kinetree as kt
from kinetree.control import linearize


def derivatives(m, advance, q, qd, tau, h=1e-5):
    """Derivatives of a step in the tangent spaces of its ends, by central differences."""
    q1, qd1 = advance(q, qd, tau)

    def change(dq, dqd, dtau):
        a, b = advance(m.integrate(q, dq), qd + dqd, tau + dtau)
        return np.concatenate([m.difference(q1, a), b - qd1])

    columns = []
    for e in np.eye(3 * m.nv):
        d = np.split(h * e, 3)
        columns.append((change(*d) - change(*(-x for x in d))) / (2 * h))
    both = np.stack(columns, axis=-1)
    return both[:, : 2 * m.nv], both[:, 2 * m.nv :]


@pytest.mark.parametrize(
    "joint",
    [
        kt.Universal("xy"), kt.Spherical(), kt.Planar("z"), kt.Planar("z", translation="child"),
        kt.Free(), kt.Free(translation="child"), kt.joints.Reversed(kt.Spherical()),
    ],
    ids=str,
)  # fmt: skip
def test_the_rate_of_the_flow(joint, rng):
    """``(Φ(h) - Φ(-h)) / 2h`` of the derivative ``Φ`` of the motion tends to ``A``."""
    m, h = chain_of(rng, joint), 1e-3
    q, qd, tau = random_state(m, rng)
    A, B = linearize(m, q, qd, tau)
    ahead, back = (
        derivatives(m, lambda q, v, u, s=s: step(m, lambda *_: u, 0.0, q, v, s), q, qd, tau)
        for s in (h, -h)
    )
    for exact, a, b in zip((A, B), ahead, back, strict=True):
        error = np.abs(exact - (a - b) / (2 * h)).max()
        assert error < h * h * max(np.abs(A).max(), np.abs(qd).max(), 1.0) ** 3


def test_axes_that_turn_with_the_body(rng):
    """A free body: ``d(dq)/dt = dqd + dq × qd`` for the rotation."""
    m = chain_of(rng, kt.Spherical())
    q, qd, tau = random_state(m, rng)
    A, B = linearize(m, q, qd, tau)
    expected = np.stack([np.cross(e, qd) for e in np.eye(3)], axis=-1)
    assert_close(A[:3, :3], expected, ulps=100)
    assert np.array_equal(A[:3, 3:], np.eye(3))
    assert not np.any(linearize(m, q, 0 * qd, tau).A[:3, :3])
    assert_close(B[3:], kt.inverse_mass_matrix(m, q), ulps=100)


@pytest.mark.parametrize("joint", [kt.Revolute("x"), kt.Spherical(), kt.Planar("z")], ids=str)
def test_a_step_of_semi_implicit_euler(joint, rng):
    m = chain_of(rng, joint, kt.Revolute((1.0, 2.0, 2.0)))
    q, qd, tau = random_state(m, rng)
    dt = 0.02

    def advance(q, qd, tau):
        qd = qd + dt * kt.forward_dynamics(m, q, qd, tau)
        return m.integrate(q, dt * qd), qd

    exact = derivatives(m, advance, q, qd, tau)
    for found, expected in zip(linearize(m, q, qd, tau, dt=dt, method="euler"), exact, strict=True):
        assert np.abs(found - expected).max() < 1e-7 * max(np.abs(expected).max(), 1.0)


def test_holding_the_input_is_exact_at_an_equilibrium():
    m = kt.samples.double_pendulum()
    q, tau = kt.control.equilibrium(m, [2.9, 0.4], actuated=["elbow"])
    zero, dt = np.zeros(2), 0.1
    A = linearize(m, q, zero, tau).A
    A_d, B_d = linearize(m, q, zero, tau, dt=dt)
    assert_close(A_d, scipy.linalg.expm(dt * A), ulps=100)

    def advance(q, qd, tau):
        for _ in range(20):
            q, qd = step(m, lambda *_: tau, 0.0, q, qd, dt / 20)
        return q, qd

    for found, expected in zip((A_d, B_d), derivatives(m, advance, q, zero, tau), strict=True):
        assert np.abs(found - expected).max() < 1e-6


def test_batches_and_external_forces(rng):
    m = chain_of(rng, kt.Spherical(), kt.Prismatic("z"))
    states = [random_state(m, rng) for _ in range(4)]
    q, qd, tau = (np.stack(x) for x in zip(*states, strict=True))
    forces = np.stack([f.to_array() for f in random_external_forces(m, rng)[1:]])
    for options in ({}, {"dt": 0.01}, {"dt": 0.01, "method": "euler"}):
        A, B = linearize(m, q, qd, tau, forces, **options)
        assert A.shape == (4, 8, 8)
        assert B.shape == (4, 8, 4)
        one = linearize(m, *states[2], forces, **options)
        assert_close(A[2], one.A, ulps=1000)
        assert_close(B[2], one.B, ulps=1000)
    named = linearize(m, *states[0], {"b1": forces[1]})
    alone = np.zeros_like(forces)
    alone[1] = forces[1]
    assert_close(named.A, linearize(m, *states[0], alone).A, ulps=100)
    assert np.abs(named.A - linearize(m, *states[0]).A).max() > 1e-3


def test_errors_name_what_is_wrong(rng):
    m = kt.samples.double_pendulum()
    q = np.zeros(2)
    with pytest.raises(kt.UnknownNameError, match="no method 'tustin'; use 'zoh' or 'euler'"):
        kt.linearize(m, q, q, q, dt=0.1, method="tustin")
    with pytest.raises(ValueError, match="is about discrete time: give the time step dt"):
        kt.linearize(m, q, q, q, method="euler")
    with pytest.raises(ValueError, match=r"dt must be a positive time in seconds, got -0\.1"):
        kt.linearize(m, q, q, q, dt=-0.1)
    with pytest.raises(kt.ShapeError, match="qd must have shape"):
        kt.linearize(m, q, np.zeros(3), q)
