"""Moving a crane without swinging the load.

A crane carries a load on a rope whose length is known only roughly. Which duration of the move
leaves the load hanging still, whatever the length? One rollout simulates eight thousand moves, each
with its own rope length and duration.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
WAY, TROLLEY, LOAD, G = 6.0, 2000.0, 50.0, 9.81


def hanging(mass, length):
    """The inertia of something small on a rope."""
    return kt.Inertia.from_particles([mass], [(0, 0, -length)])


crane = (
    kt.ModelBuilder("crane")
    .body("trolley", joint=kt.Prismatic("x"), inertia=hanging(TROLLEY, 0.0))
    .body("load", on="trolley", joint=kt.Revolute("y"), inertia=hanging(LOAD, 4.0))
    .build()
)


@kt.kernel
def drive(m, t, q, qd, duration: ()):
    """Forces that accelerate the trolley for half of the duration and brake it in the other."""
    push = 4 * WAY / duration**2 * (TROLLEY + LOAD)
    after = kt.select(t < duration, -push, 0.0)
    return np.array([kt.select(t < duration / 2, push, after), 0])


# Ropes of 4 m, give or take ten per cent; durations from 2 to 14 s.
rng = np.random.default_rng(0)
durations, ropes = np.linspace(2, 14, 80), rng.normal(4.0, 0.2, 100)
inertias = [hanging(LOAD, rope).parameters() for rope in ropes]
start = np.zeros((len(durations), len(ropes), 2))
motion = kt.rollout(
    crane, start, steps=750, dt=0.02, controller=drive, arguments={"duration": durations[:, None]},
    parameters={"inertia:load": np.array(inertias)}, store_every=750,
)  # fmt: skip

# How far the load swings afterwards, from the last state.
angle, rate = motion.q[-1, ..., 1], motion.qd[-1, ..., 1]
swing = np.degrees(np.hypot(angle, rate * np.sqrt(ropes / G)))
typical, worst = np.median(swing, axis=1), np.max(swing, axis=1)
best = np.argmin(worst[durations < 12])
print(f"best: {durations[best]:.1f} s, then no load swings by more than {worst[best]:.1f}°")
period = 2 * np.pi * np.sqrt(4.0 / G)

fig, ax = plt.subplots(figsize=(6.2, 3.4))
ax.fill_between(durations, swing.min(axis=1), worst, color="#cfe3f3", label="all ropes")
ax.plot(durations, typical, label="the middle one")
for k in (1, 2, 3):
    ax.axvline(2 * k * period, color="0.6", lw=0.8, ls="--")
ax.plot(durations[best], worst[best], "o", color="C1")
ax.set(xlabel="duration of the move [s]", ylabel="swing afterwards [°]", ylim=(0, 60), xlim=(2, 14))
ax.legend()
