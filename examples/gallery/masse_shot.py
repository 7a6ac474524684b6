"""A billiard ball that curves: the massé shot.

A ball that is struck from above slides while spinning in another direction. While it slides, the
direction of friction stays the same, so the path is a parabola; then the ball rolls straight on.
Coriolis wrote a book about it in 1835.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
RADIUS, MU, G = 0.0286, 0.2, 9.81

ball = (
    kt.ModelBuilder("ball")
    .body("ball", joint=kt.Free(), inertia=kt.shapes.sphere(RADIUS, mass=0.17))
    .geometry(kt.geometry.Sphere(RADIUS), on="ball", name="ball")
    .build()
)
ball = kt.contact.with_ground(ball)
contact = kt.contact.EventDriven(kt.contact.Scene(ball, friction=MU))
start = ball.neutral()
start[2] = RADIUS

fig, ax = plt.subplots(figsize=(6.4, 3.4))
for side in (0.0, 35.0, 70.0):
    # Angular velocity first: backspin about y, and a spin about x that pulls sideways.
    strike = np.array([side, -40.0, 0.0, 1.6, 0.0, 0.0])
    motion = kt.simulate(ball, start, strike, duration=1.0, dt=0.01, contact=contact)
    rolls = motion.events[0].t
    # In theory sliding ends after 2/7 of the first slip velocity over mu g.
    slip = strike[3:] + np.cross(strike[:3], [0, 0, -RADIUS])
    print(f"rolls after {rolls:.3f} s; in theory {2 / 7 * np.linalg.norm(slip) / (MU * G):.3f} s")
    (line,) = ax.plot(motion.q[:, 0], motion.q[:, 1], label=f"{side:.0f} rad/s")
    k = np.searchsorted(motion.t, rolls)
    ax.plot(*motion.q[k, :2], "o", ms=5, color=line.get_color())
ax.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
ax.legend(title="side spin", loc="best")
ax.set_title("dots: from here on it rolls", loc="left")
