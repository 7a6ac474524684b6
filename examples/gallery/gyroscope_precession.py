"""Why a gyroscope does not fall.

A weight pulls at one side of a gimbal, but the gimbal does not tip: it turns sideways, more slowly
the faster the disc spins. The formula Ω = m g l / (I ω) holds for a disc that spins fast; the
simulation needs no such approximation.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
gyro = kt.samples.gyroscope()  # joints: outer gimbal, inner gimbal, spin

# Thirty gyroscopes at once, each with its own spin.
speeds = np.geomspace(15, 250, 30)
start = np.zeros((30, 3))
start[:, 2] = speeds
motion = kt.simulate(gyro, np.zeros((30, 3)), start, duration=3.0, dt=1e-3, store_every=4)

# How fast it precesses on average, and what the textbook says.
measured = motion.q[-1, :, 0] / motion.t[-1]
moment = kt.gravity_force(gyro, np.zeros(3))[1]
spinning = kt.mass_matrix(gyro, np.zeros(3))[2, 2]
textbook = moment / (spinning * speeds)

fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
left.loglog(speeds, abs(measured), "o", ms=4, label="simulated")
left.loglog(speeds, abs(textbook), "k-", lw=1, label="$m g l / (I\\omega)$")
left.set(xlabel="spin [rad/s]", ylabel="precession [rad/s]")
left.set_xticks([20, 50, 100, 200], ["20", "50", "100", "200"], minor=False)
left.set_yticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"], minor=False)
left.minorticks_off()
left.legend()

# The tip of the axis on the sphere: loops of nutation, smaller with more spin.
for k in (0, 5, 10):
    turned, tipped = np.degrees(motion.q[:250, k, :2]).T
    right.plot(abs(turned), -abs(tipped), lw=1.2, label=f"{speeds[k]:.0f} rad/s")
right.set(xlabel="turned in a second [°]", ylabel="tipped [°]")
right.legend(loc="lower center", ncols=3, columnspacing=1.0)
right.set_ylim(-14, 0.5)
print(f"error of the formula at 250 rad/s: {abs(measured / textbook)[-1] - 1:+.2%}")
