"""Twenty minutes of a pendulum.

What happens to the energy in a long simulation? The method that is most accurate at first loses
energy little by little; others oscillate from the start but never drift. Here are four methods on
the same pendulum with the same long steps.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
pendulum = kt.samples.pendulum()
methods = ("semi_implicit_euler", "rk4", "implicit_midpoint", "variational")

fig, ax = plt.subplots(figsize=(6.4, 3.6))
for method in methods:
    with warnings.catch_warnings():  # it would warn of the energy, and rightly so
        warnings.simplefilter("ignore", kt.SimulationWarning)
        motion = kt.simulate(
            pendulum, [2.0], duration=1200.0, dt=0.05, integrator=method, store_every=3
        )
    error = abs(motion.energy - motion.energy[0]) / np.ptp(kt.potential_energy(pendulum, motion.q))
    # The worst of every twenty seconds.
    blocks = len(error) // 60
    worst = error[: 60 * blocks].reshape(blocks, 60).max(axis=1)
    t = motion.t[: 60 * blocks : 60] / 60
    ax.semilogy(t, worst, label=method.replace("_", " "))
    print(f"{method:20s} {worst[0]:.0e} at the start, {worst[-1]:.0e} at the end")
ax.set(xlabel="time [min]", ylabel="error of the energy, relative", ylim=(1e-6, 2))
ax.legend(ncols=2, loc="upper right")
