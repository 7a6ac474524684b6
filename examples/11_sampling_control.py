"""Sampling control: swing up a pole by trying a thousand plans at every step.

    python examples/11_sampling_control.py                     # on the CPU
    python examples/11_sampling_control.py cupy 65536          # on a GPU, with more plans

All motions of all plans are one compiled function, each with a pole of its own mass: the
controller does not know which one is true.
"""

import sys
import time

import numpy as np

import kinetree as kt

m = kt.samples.cart_pole()
HORIZON, STEP = 40, 0.025  # a plan of one second


@kt.kernel
def cost(model, q, qd, forces: (HORIZON, 1)):
    """Cost of a plan: a pole that is not up, a cart far out, speed at the end."""
    total = 0
    for k in range(HORIZON):
        tau = np.array([forces[k, 0], 0])
        qd = qd + STEP * kt.forward_dynamics(model, q, qd, tau)
        q = q + STEP * qd
        total = total + 5 * (1 + np.cos(q[1])) + 0.5 * q[0] ** 2 + 0.001 * tau[0] ** 2
        total = total + 0.02 * qd[0] ** 2 + 0.02 * qd[1] ** 2
    return total + 20 * (1 + np.cos(q[1])) + 0.5 * qd[1] ** 2


def control(arrays="numpy", samples=1024, steps=120):
    """Angles of the pole over time, and calls of the controller per second."""
    masses = np.random.default_rng(1).uniform(0.08, 0.12, samples)
    plan = kt.control.PathIntegral(
        kt.compile(cost, m, parameters="mass:pole"), horizon=HORIZON, size=1, samples=samples,
        noise=8.0, lower=-20.0, upper=20.0, others=(masses,), arrays=arrays, dtype="float32",
    )  # fmt: skip
    q, qd = np.zeros(2), np.zeros(2)
    plan(q, qd)  # compiles
    angles, spent = [0.0], 0.0
    for _ in range(steps):
        before = time.perf_counter()
        force = plan(q, qd)
        spent += time.perf_counter() - before
        start = (plan.xp.asarray(x) for x in (q, qd, [force[0], 0.0]))
        motion = kt.rollout(m, *start, steps=5, dt=STEP / 5, store_every=5)
        q, qd = motion.q[-1], motion.qd[-1]
        angles.append(float(q[1]))
    return np.array(angles), steps / spent


if __name__ == "__main__":
    given = sys.argv[1:] if sys.argv[1:2] in (["numpy"], ["cupy"]) else ["numpy", "1024"]
    arrays, samples = given[0], int(given[1])
    angles, rate = control(arrays, samples)
    off = np.abs(np.cos(angles[-20:]) + 1).max()
    print(f"{samples} plans of {HORIZON} steps: {rate:.0f} decisions per second")
    degrees = np.degrees(np.sqrt(2 * off))
    print(f"after {len(angles) * STEP:.0f} s the pole is up: within {degrees:.1f}°")
    assert off < 0.05
