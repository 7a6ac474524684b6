"""Chaos of a double pendulum.

Two hundred double pendulums start within a millionth of a radian of each other and are simulated
together. After a few seconds they have nothing in common.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
pendulum = kt.samples.double_pendulum()
start = np.array([2.5, 2.0]) + 1e-6 * np.linspace(-1, 1, 200)[:, None]
motion = kt.simulate(pendulum, start, duration=20.0, dt=2e-3, store_every=5)

spread = np.ptp(motion.q[..., 0], axis=1)
fig, (above, below) = plt.subplots(2, 1, figsize=(7, 5), sharex=True)
above.plot(motion.t, motion.q[:, ::10, 0], lw=0.6)
above.set_ylabel("first angle [rad]")
below.semilogy(motion.t, spread, "k")
below.set_ylabel("spread [rad]")
below.set_xlabel("time [s]")
print(f"energy error of the worst: {motion.report.energy_error:.1e}")
