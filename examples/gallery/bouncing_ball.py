"""A ball that bounces infinitely often, in finite time.

The time of each bounce is found to a hundred-billionth of a second. The bounces come faster and
faster and accumulate at an instant for which there is a formula. After that the ball is at rest.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
RADIUS, DROP, E, G = 0.1, 1.0, 0.8, 9.81

ball = (
    kt.ModelBuilder("ball")
    .body("ball", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(RADIUS, mass=0.5))
    .geometry(kt.geometry.Sphere(RADIUS), on="ball", name="ball")
    .build()
)
ball = kt.contact.with_ground(ball)
scene = kt.contact.Scene(ball, restitution=E)
contact = kt.contact.EventDriven(scene)
motion = kt.simulate(ball, [RADIUS + DROP], duration=4.5, dt=0.01, contact=contact)

# Theory: the first fall takes t0, the flight after bounce n takes 2 t0 eⁿ.
bounces = np.array([event.t for event in motion.events if "bounces" in event.name][:-1])
t0 = np.sqrt(2 * DROP / G)
n = np.arange(len(bounces))
exact = t0 * (1 + 2 * E * (1 - E**n) / (1 - E))
end = t0 * (1 + E) / (1 - E)
print(f"{len(bounces)} bounces; largest error of an instant {abs(bounces - exact).max():.0e} s")
print(f"at rest after {motion.events[-1].t:.4f} s; all of them together: {end:.4f} s")

fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2), width_ratios=[3, 2])
left.plot(motion.t, motion.q[:, 0] - RADIUS)
left.plot(bounces, 0 * bounces, "o", ms=3, color="C1")
left.axvline(end, color="0.5", lw=0.8, ls="--")
left.set(xlabel="time [s]", ylabel="height [m]")
right.semilogy(n, end - bounces, "o", ms=3, color="C1", label="simulated")
right.semilogy(n, end - exact, "k", lw=0.8, label="formula")
right.set(xlabel="bounce", ylabel="time left until rest [s]")
right.legend()
