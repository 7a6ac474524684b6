"""How far a balanced pole may fall.

A linear controller balances a pole on a cart. It is designed for small angles, and its motor is
limited. From which states does it still save the pole? We try four thousand of them at once.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
cart = kt.samples.cart_pole()
upright = cart.posture("upright").q
balance = kt.control.LQR(cart, upright, Q=[1, 10, 0.1, 1], R=0.1, actuated=["rail"])
print("poles:", np.sort_complex(balance.poles).round(2))


def limited(t, q, qd):
    """Limit of the motor: 20 N."""
    return np.clip(balance(t, q, qd), -20, 20)


# A grid of angles and angular velocities.
angles, speeds = np.linspace(-1.6, 1.6, 65), np.linspace(-12, 12, 61)
start = np.zeros((len(speeds), len(angles), 2, 2))
start[..., 0, 1] = upright[1] + angles
start[..., 1, 1] = speeds[:, None]
motion = kt.simulate(
    cart, start[..., 0, :], start[..., 1, :], duration=4.0, dt=0.01, controller=limited,
    limits=None, store_every=5,
)  # fmt: skip
off = np.max(abs(motion.q[-10:, ..., 1] - upright[1]), axis=0)
saved = off < 0.05
print(f"saved: {saved.mean():.0%} of them")

fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3), width_ratios=[3, 2])
left.contourf(angles, speeds, saved, levels=[0.5, 1.5], colors=["#cfe3f3"])
left.contour(angles, speeds, saved, levels=[0.5], colors=["C0"])
left.set(xlabel="angle at the start [rad]", ylabel="angular velocity [rad/s]")
left.text(0, 0, "saved", ha="center", va="center", color="C0", fontsize=11)
for k, style in ((40, "C2"), (48, "C0"), (54, "C1")):
    right.plot(motion.t, motion.q[:, 30, k, 1] - upright[1], style, label=f"{angles[k]:.1f} rad")
right.set(xlabel="time [s]", ylabel="angle [rad]", ylim=(-2, 4))
right.legend(title="at the start")
