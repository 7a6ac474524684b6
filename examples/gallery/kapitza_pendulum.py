"""A pendulum that stands on its head.

Shake the pivot of a pendulum up and down fast enough, and the upside-down position becomes stable
(Kapitza 1951). The motion of the pivot is prescribed; the simulation gives the motion of the
pendulum and the force of the drive.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
LENGTH, STROKE = 0.4, 0.03
pendulum = (
    kt.ModelBuilder("Kapitza's pendulum")
    .body("pivot", joint=kt.Prismatic("z"), joint_name="pivot")
    .body(
        "bob", on="pivot", joint=kt.Revolute("y"), joint_name="swing",
        inertia=kt.Inertia.from_particles([0.3], [(0, 0, LENGTH)]),
    )
    .build()
)  # fmt: skip


def shaken(frequency):
    """Position, velocity and acceleration of the pivot."""
    w = 2 * np.pi * frequency

    @kt.kernel
    def pivot(t):
        s, c = STROKE * np.sin(w * t), STROKE * np.cos(w * t)
        return c, -w * s, -w * w * c

    return pivot


# Theory: it stands if the pivot is faster than the fall from its height, w² a² > 2 g l.
critical = np.sqrt(2 * 9.81 * LENGTH) / STROKE / (2 * np.pi)
fig, ax = plt.subplots(figsize=(5.6, 3.4))
for factor, style in ((0.8, "C1"), (1.2, "C0"), (2.0, "C2")):
    frequency = factor * critical
    motion = kt.simulate(
        pendulum, [STROKE, 0.25], duration=3.0, dt=1e-3, prescribed={"pivot": shaken(frequency)}
    )
    angle = np.degrees(motion["swing"].q)
    ax.plot(motion.t, angle, style, lw=1.2, label=f"{frequency:.0f} Hz")
    print(f"{frequency:5.1f} Hz: largest angle {abs(angle).max():.0f}°")
ax.axhline(180, color="0.6", lw=0.8)
ax.text(3.0, 172, "hanging", ha="right", va="top", color="0.4")
ax.text(3.0, -35, "upside down", ha="right", va="top", color="0.4")
ax.set(xlabel="time [s]", ylabel="angle from upside down [°]", ylim=(-60, 260))
ax.legend(loc="upper left", title=f"theory: more than {critical:.1f} Hz")
