"""A cost of your own, compiled, with its gradient: the posture that needs least force."""

from pathlib import Path

import numpy as np

import kinetree as kt

m = kt.load(Path(__file__).parent / "arm.urdf")


@kt.kernel
def effort(m, q, target):
    """Squared forces that hold the arm, and the squared distance of its tool from a target."""
    tau = kt.gravity_force(m, q)
    error = kt.pose(m, q, "tool")[:3, 3] - target
    return 1e-3 * tau @ tau + 100 * error @ error


gradient = kt.differentiate(effort, wrt="q")
hessian = kt.differentiate(effort, wrt="q", order=2)
target = np.array([0.4, 0.1, 0.5])
q = np.random.default_rng(0).uniform(-1, 1, (1000, m.nq))  # a thousand starts at once
for _ in range(30):  # Newton's method, with steps of at most half a radian
    values, axes = np.linalg.eigh(hessian(m, q, target))
    along = np.einsum("kji,kj->ki", axes, gradient(m, q, target)) / np.maximum(np.abs(values), 1e-3)
    q -= np.einsum("kij,kj->ki", axes, np.clip(along, -0.5, 0.5))
cost = effort(m, q, target)  # (1000,)
best = q[np.argmin(cost)]
print(f"least cost {cost.min():.4f}")
print("gradient is zero there:", np.abs(gradient(m, best, target)).max() < 1e-6)
print("the tool is at", kt.pose(m, best, "tool")[:3, 3].round(3))

dtau_dq, dtau_dmass = kt.differentiate(kt.inverse_dynamics, wrt=("q", "mass:hand"))(
    m, best, np.zeros(4), np.zeros(4)
)
print("one more kilogram in the hand takes", dtau_dmass.round(3), "N m")
