"""A four-bar and an excavator.

Mechanisms whose bodies form loops: how to build them, close them, count their degrees of freedom,
drive them, and find the force of a hydraulic cylinder.
"""

# %%
# A tree of bodies cannot describe a four-bar, because its last bar is pinned to the ground again.
# The model of a mechanism with loops is a tree plus joints that close the loops. Here the chain of
# crank, coupler and rocker starts at one pivot; the loop joint pins its end to the other.

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
CRANK, COUPLER, ROCKER, GROUND = 0.2, 0.5, 0.4, 0.6


def bar(length):
    """A rod along x that starts at its hinge."""
    return kt.shapes.rod(length, mass=length, axis="x", at=(length / 2, 0, 0))


four_bar = (
    kt.ModelBuilder("four-bar")
    .body("crank", joint=kt.Revolute("-y"), inertia=bar(CRANK))
    .body("coupler", on="crank", joint=kt.Revolute("-y"), at=(CRANK, 0, 0), inertia=bar(COUPLER))
    .body("rocker", joint=kt.Revolute("-y"), at=(GROUND, 0, 0), inertia=bar(ROCKER))
    .loop(
        "pin", joint=kt.Revolute("-y"), predecessor="coupler", successor="rocker",
        at=(COUPLER, 0, 0), successor_at=(ROCKER, 0, 0),
    )
    .build()
)  # fmt: skip

# %%
# At `q = 0` all bars lie along x and the pin is open. `assemble` finds angles that close it, near a
# guess, with the crank held where we want it. There are two answers, elbow up and elbow down;
# `assemblies` looks for all.

both = kt.loops.assemblies(four_bar, {"crank_joint": 1.0})
print("assemblies [°]:", np.degrees(both).round(1).tolist())
q = kt.loops.assemble(four_bar, [1.0, -0.5, 1.5], hold={"crank_joint": 1.0})
print(kt.loops.mobility(four_bar, q))

# %%
# Three constraints are redundant: four parallel hinges keep the mechanism in its plane several
# times over. This does no harm; dynamics and simulation handle it. Turn the crank once and stay on
# the branch:

turn = np.linspace(1.0, 1.0 + 2 * np.pi, 91)
branch = kt.loops.follow(four_bar, q, {"crank_joint": turn}).q
crank = kt.pose(four_bar, branch, "coupler")[:, [0, 2], 3]
pin = (kt.pose(four_bar, branch, "coupler") @ [COUPLER, 0, 0, 1])[:, [0, 2]]
middle = (kt.pose(four_bar, branch, "coupler") @ [COUPLER / 2, 0, 0.2, 1])[:, [0, 2]]

fig, ax = plt.subplots(figsize=(5.6, 3.6))
for k in range(0, 90, 10):
    ax.plot(*np.array([(0, 0), crank[k], pin[k], (GROUND, 0)]).T, "o-", color="0.8", lw=1, ms=3)
ax.plot(*np.array([(0, 0), crank[0], pin[0], (GROUND, 0)]).T, "o-k", lw=2)
ax.plot(*middle.T, "C1", lw=2)
ax.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")

# %%
# Velocities must satisfy the loop, too. `project_velocity` returns the nearest velocities that do.
# Then let it swing: the loop is closed after every step, and energy is conserved.

qd = kt.loops.project_velocity(four_bar, q, [15.0, 0, 0])
motion = kt.simulate(four_bar, q, qd, duration=2.0, dt=2e-3)
print(f"loop error {motion.report.loop_error:.0e} m, energy {motion.report.energy_error:.0e}")

# %%
# Now a real machine. The boom of an excavator is lifted by a cylinder: barrel and piston are two
# bodies, and the eye of the rod closes the loop. There are two degrees of freedom, the boom and the
# stick.

digger = kt.samples.excavator()
print(digger.joint_names, "closed by", digger.loop_names)
kt.viewer.picture(digger, "digger.png", size=(520, 380), direction=(0.4, -1, 0.3))

# %%
# Which force does the cylinder need? In this digging motion piston and stick are given, and the
# other joints follow: `coordinate_motion` computes positions, velocities and accelerations of all
# joints from those of the two.

t = np.linspace(0, 2, 81)[:, None]
ease = 10 * (t / 2) ** 3 - 15 * (t / 2) ** 4 + 6 * (t / 2) ** 5
speed = (30 * (t / 2) ** 2 - 60 * (t / 2) ** 3 + 30 * (t / 2) ** 4) / 2
gain = (60 * (t / 2) - 180 * (t / 2) ** 2 + 120 * (t / 2) ** 3) / 4
way = np.array([0.22, -0.5])  # piston [m], stick [rad]
driven = ["piston_joint", "stick_joint"]
q, qd, qdd = kt.loops.coordinate_motion(
    digger, digger.neutral(), way * ease, way * speed, way * gain, independent=driven
)
forces = kt.loops.inverse_dynamics(digger, q, qd, qdd)
print("actuation:", kt.loops.actuation(digger, q[0]).kind)
print(f"cylinder: up to {abs(forces.u['piston_joint']).max() / 1e3:.1f} kN")

fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
bucket = kt.pose(digger, q, "bucket")[:, [0, 2], 3]
left.plot(*bucket.T)
left.plot(*bucket[0], "o", color="C1")
left.set(xlabel="x [m]", ylabel="z [m]", title="path of the bucket", aspect="equal")
right.plot(t, forces.u["piston_joint"] / 1e3, label="cylinder [kN]")
right.plot(t, forces.u["stick_joint"] / 1e3, label="stick [kN m]")
right.set(xlabel="time [s]", ylim=(0, None))
right.legend()

# %%
# The motion as a page that opens offline; drag to rotate it.

kt.viewer.save_html(digger, "digging.html", q, t=t[:, 0])
