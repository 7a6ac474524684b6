"""Derivatives at work: linear systems, natural frequencies, and products without matrices."""

import numpy as np

import kinetree as kt

m = kt.samples.double_pendulum()
still = np.zeros(m.nv)

# About the hanging rest the eigenvalues are ±iω: two natural frequencies.
A, B = kt.linearize(m, m.neutral(), still, still)
frequencies = np.unique(np.abs(np.linalg.eigvals(A).imag).round(9))
print("natural frequencies [rad/s]", frequencies)
K = kt.differentiate(kt.gravity_force, wrt="q")(m, m.neutral())
by_hand = np.sqrt(np.linalg.eigvals(np.linalg.solve(kt.mass_matrix(m, m.neutral()), K)))
assert np.allclose(np.sort(by_hand), frequencies)

# Upright, two of them are real: it falls, and how fast.
A, B = kt.linearize(m, np.array([np.pi, 0.0]), still, still)
print("it falls with exponents [1/s]", np.sort(np.linalg.eigvals(A).real).round(3))

# In discrete time: the motion over 50 ms, forces held. Compare with the real thing.
dt = 0.05
A, B = kt.linearize(m, m.neutral(), still, still, dt=dt)
q, qd, tau = np.array([1e-3, -2e-3]), np.array([2e-3, 1e-3]), np.array([1e-2, 0.0])
predicted = A @ np.concatenate([q, qd]) + B @ tau
for _ in range(1000):  # many small steps
    qd = qd + dt / 1000 * kt.forward_dynamics(m, q, qd, tau)
    q = m.integrate(q, dt / 1000 * qd)
print("predicted", predicted, "simulated", np.concatenate([q, qd]))
assert np.allclose(predicted, np.concatenate([q, qd]), atol=1e-5)

# A thousand states of a walking robot at once, along one direction each: no matrix is formed.
robot = kt.samples.quadruped()
rng = np.random.default_rng(0)
q = np.stack([robot.random_configuration(rng) for _ in range(1000)])
qd, qdd, dq, w = rng.standard_normal((4, 1000, robot.nv))
push = kt.jvp(kt.inverse_dynamics, wrt="q")
pull = kt.vjp(kt.inverse_dynamics, wrt="q")
dtau = push(robot, q, qd, qdd, tangents=dq)
gradient = pull(robot, q, qd, qdd, cotangent=w)
print("products of 1000 states:", dtau.shape, gradient.shape)
assert np.allclose((w * dtau).sum(-1), (gradient * dq).sum(-1))  # wᵀ (J dq) = (wᵀ J) dq
