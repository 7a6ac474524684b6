"""Trajectory optimization: swing up a cart-pole within its limits, from 100 starts at once."""

import time

import numpy as np

import kinetree as kt

cart = kt.samples.cart_pole()
up = cart.posture("upright").q
problem = {
    "steps": 80, "dt": 0.025, "actuated": ["rail"], "goal": up,
    "running": kt.control.QuadraticCost(effort=0.01, velocity=0.01),
}  # fmt: skip

# --- one motion ----------------------------------------------------------------------------------
found = kt.control.optimize(cart, [0.0, 0.0], **problem)
print(found)
travel, force = np.abs(found.q[:, 0]).max(), np.abs(found.tau).max()
print(f"the cart moves {travel:.2f} m with up to {force:.1f} N; limits are 1 m and 20 N")
assert found.converged
assert np.abs(found.q[-1] - up).max() < 1e-5

# --- a hundred starts ----------------------------------------------------------------------------
starts = np.random.default_rng(0).uniform([-0.3, -0.5], [0.3, 0.5], (100, 2))
before = time.perf_counter()
many = kt.control.optimize(cart, starts, **problem)
spent = time.perf_counter() - before
print(f"{many.converged.sum()} of 100 motions in {spent:.1f} s")
assert many.converged.sum() >= 95

# --- balance by planning anew all the time -------------------------------------------------------
cost = kt.control.QuadraticCost(q=up, position=[1.0, 5.0], velocity=0.1, effort=0.01)
end = kt.control.QuadraticCost(q=up, position=[10.0, 50.0], velocity=5.0)
balance = kt.control.MPC(cart, steps=30, dt=0.04, actuated=["rail"], running=cost, terminal=end)
motion = kt.simulate(cart, [0.2, np.pi - 0.4], duration=5.0, dt=0.01, controller=balance)
print("predictive control ends at", motion.q[-1].round(3))
assert np.abs(motion.q[-1] - up).max() < 0.05
