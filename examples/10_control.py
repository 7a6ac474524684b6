"""Control: follow a motion, move a tool, and balance what falls."""

import numpy as np

import kinetree as kt

# --- follow a motion with an arm -----------------------------------------------------------------
arm = kt.samples.arm()
center = np.array([0.3, -0.6, 0.9, 0.2, 0.7, -0.1])


def swing(t):
    one = np.ones(6)
    return center + 0.2 * np.sin(2 * t), 0.4 * np.cos(2 * t) * one, -0.8 * np.sin(2 * t) * one


follow = kt.control.ComputedTorque(arm, swing, kp=100.0)
q = kt.simulate(arm, swing(0.0)[0] + 0.3, duration=1.5, controller=follow).q
error = np.abs(q[-1] - swing(1.5)[0]).max()
print(f"computed torque: 0.3 rad off at first, {error:.4f} rad after 1.5 s")
assert error < 1e-3

# --- move the tool in space ----------------------------------------------------------------------
goal = kt.pose(arm, center, "tool")
goal[:3, 3] += [0.05, -0.1, 0.1]
reach = kt.control.OperationalSpaceControl(arm, "tool", goal, kp=64.0)
q = kt.simulate(arm, center, duration=1.5, controller=reach).q
distance = 1000 * np.linalg.norm(kt.pose(arm, q, "tool")[:, :3, 3] - goal[:3, 3], axis=-1)
print(
    f"operational space: tool {distance[0]:.0f} mm off at first, {distance[-1]:.2f} mm after 1.5 s"
)
assert distance[-1] < 1.0

# --- balance with one motor ----------------------------------------------------------------------
acrobot = kt.samples.double_pendulum()
q0, tau0 = kt.control.equilibrium(acrobot, [3.0, 0.3], actuated=["elbow"])
print("a posture that the elbow alone can hold:", q0.round(4), "with", tau0.round(4), "N m")

cart = kt.samples.cart_pole()
q0, _ = kt.control.equilibrium(cart, [0.0, 3.0], actuated=["rail"])  # upright
balance = kt.control.LQR(cart, q0, Q=1.0, R=0.1, actuated=["rail"])
print("poles of the closed loop [1/s]:", np.sort_complex(balance.poles).round(2))
starts = q0 + np.random.default_rng(0).uniform(-0.3, 0.3, (20, 2))  # twenty at once
q = kt.simulate(cart, starts, duration=10.0, dt=5e-3, controller=balance).q
first, last = np.abs(q[0] - q0).max(), np.abs(q[-1] - q0).max()
print(f"20 cart-poles: up to {first:.2f} off at first, {last:.1e} after 10 s")
assert last < 1e-3
