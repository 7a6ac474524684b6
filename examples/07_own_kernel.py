"""A function of your own: compiled, batched, differentiated."""

import numpy as np

import kinetree as kt

m = kt.samples.panda()
rng = np.random.default_rng(1)


@kt.kernel
def reach_cost(m, q, target):
    """Squared distance from the tool to a point, plus a little effort."""
    p = kt.pose(m, q, "tool")[:3, 3]
    return (p - target) @ (p - target) + 1e-3 * (q @ q)


# Written for one sample, called for any number of them: 1000 postures against one target.
q = np.stack([m.random_configuration(rng) for _ in range(1000)])
target = np.array([0.4, 0.2, 0.5])
cost = reach_cost(m, q, target)
print("best of 1000 random postures:", cost.min())

# Its gradient is a function like it.
gradient = kt.differentiate(reach_cost, wrt="q")
x = q[:8].copy()
for _ in range(300):
    x -= 0.2 * gradient(m, x, target)
print("after descent, 8 starts at once:", reach_cost(m, x, target).round(4))
assert np.all(reach_cost(m, x, target) < reach_cost(m, q[:8], target))


# A loop inside the kernel: the body is traced once, whatever the number of steps.
@kt.kernel
def swing(m, q, qd, dt: (), *, steps):
    """Where a pendulum is after ``steps`` steps of semi-implicit Euler."""

    def step(state):
        q, qd = state
        qd = qd + dt * kt.forward_dynamics(m, q, qd, -0.1 * qd)
        return m.integrate(q, dt * qd), qd

    return kt.repeat(step, (q, qd), steps)


pendulum = kt.samples.double_pendulum()
starts = rng.uniform(-1, 1, size=(100, 2))
q_end, qd_end = swing(pendulum, starts, np.zeros(2), 1e-3, steps=2000)
print("100 pendulums after 2 s:", q_end.shape, "first:", q_end[0].round(6))

# The function itself, without compiled code, is there to debug and to compare with.
assert np.allclose(reach_cost(m, q[0], target), reach_cost.reference(m, q[0], target))
