"""Tracking by inverse dynamics: the error obeys a linear equation."""

import numpy as np
from support.motions import simulate

import kinetree as kt
from kinetree.control import ComputedTorque


def sway(m, center, amplitude):
    def reference(t):
        s, c = np.sin(2 * t), np.cos(2 * t)
        return center + amplitude * s, 2 * amplitude * c, -4 * amplitude * s

    return reference


def test_the_error_is_that_of_critical_damping(rng):
    """``e(t) = e₀ (1 + ω t) exp(-ω t)`` for every joint, whatever the arm does meanwhile."""
    m = kt.samples.scara()
    reference = sway(m, np.array([0.3, 0.5, 0.1, 0.0]), 0.2 * rng.standard_normal(4))
    follow = ComputedTorque(m, reference, kp=64.0)
    q_r, qd_r, _ = reference(0.0)
    offset = np.array([0.3, -0.2, 0.05, 0.4])
    q, _ = simulate(m, follow, q_r + offset, qd_r, 1.0, 0.005)
    t = 0.005 * np.arange(len(q))[:, None]
    error = q - np.stack([reference(x)[0] for x in t[:, 0]])
    assert np.abs(error - offset * (1 + 8 * t) * np.exp(-8 * t)).max() < 1e-6


def test_a_constant_reference_in_batches(rng):
    m = kt.samples.double_pendulum()
    goal = np.array([2.0, 0.5])
    q, qd = simulate(m, ComputedTorque(m, goal, kp=25.0, kd=10.0), rng.standard_normal((5, 2)),
                     np.zeros((5, 2)), 3.0, 0.02)  # fmt: skip
    assert np.abs(q[-1] - goal).max() < 1e-4
    assert np.abs(qd[-1]).max() < 1e-3


def test_a_ball_joint_follows_a_turning_reference(rng):
    """The error is on the manifold; ``½ kp e² + ½ (qd_r - qd)²`` never grows."""
    body = kt.shapes.box(0.1, 0.3, 0.5, mass=4, at=(0, 0.1, -0.3))
    m = kt.ModelBuilder("ball").body("body", joint=kt.Spherical(), inertia=body).build()
    rate = np.array([0.3, -0.8, 0.5])

    def reference(t):
        return m.integrate(m.neutral(), t * rate), rate, np.zeros(3)

    follow = ComputedTorque(m, reference, kp=16.0, kd=6.0)
    start = m.integrate(m.neutral(), [1.2, 1.0, -1.0])
    q, qd = simulate(m, follow, start, np.zeros(3), 4.0, 0.02)
    target = np.stack([reference(0.02 * k)[0] for k in range(len(q))])
    e = m.difference(q, target)
    function = 8 * (e * e).sum(-1) + 0.5 * ((rate - qd) ** 2).sum(-1)
    assert np.all(np.diff(function) < 1e-9)
    assert np.linalg.norm(e[-1]) < 1e-2 * np.linalg.norm(e[0])
