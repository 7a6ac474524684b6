"""Contact, and a leg that hops.

A machine touches the ground, leaves it and lands again: which shapes can touch, when contact
happens, how much energy it takes, and Raibert's three simple rules for running.
"""

# %%
# The machine has a heavy body on one springy leg and moves in a plane, after Marc Raibert's first
# hopper. It has five degrees of freedom: pitch, height and distance of the body, the hip, and the
# length of the leg.

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
robot = kt.samples.hopping_leg()
kt.viewer.picture(robot, "hopper.png", size=(480, 400), direction=(0.4, -1, 0.2))

# %%
# Contact needs shapes. Of all visible shapes, only the ball at the foot should touch the ground
# here. A `Scene` is the list of what can touch what, with coefficients of friction and restitution.

rod = robot.body_index("rod")
foot = [g for g in robot.geometry if g.body == rod and isinstance(g.shape, kt.geometry.Sphere)]
m = kt.contact.with_ground(robot.replace(geometry=foot))
scene = kt.contact.Scene(m, friction=0.9)
print("can touch:", scene.candidates.names)

# %%
# Drop it. `EventDriven` simulates rigid contact from event to event: the foot lands (an impact,
# which dissipates the kinetic energy of the foot), stays on the ground while the spring is
# compressed, and lifts off.

contact = kt.contact.EventDriven(scene)
start = np.array([0.0, 1.25, 0.0, 0.0, 0.0])
drop = kt.simulate(m, start, duration=2.5, dt=5e-3, contact=contact)
for event in drop.events[:4]:
    print(f"{event.t:.6f} s  {event.name}")
print(f"lost in impacts: {drop.contact.worst.loss:.2f} J")
print(f"largest force on the foot: {drop.contact.force[:, 0, 0].max():.0f} N")
print("first landing in theory:", np.sqrt(2 * 0.25 / 9.81).round(6), "s")

fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(drop.t, drop.q[:, 1], label="height of the hip [m]")
ax.plot(drop.t, -drop.q[:, 4], label="spring compressed [m]")
ax.set_xlabel("time [s]")
ax.legend(ncols=2, loc="upper right")
ax.set_ylim(-0.1, 1.6)

# %%
# Each hop is lower than the last. Raibert's rules, one for each thing that matters:
#
# 1. *Height*: push with the leg while it extends.
# 2. *Attitude*: on the ground, use the hip to hold the body level.
# 3. *Speed*: in the air, put the foot where the body will be half-way through the next stance, and
#    a little farther if it is too fast.
#
# A controller is any function of time and state. It may compute from the model where the foot is.
# Since it switches, we use equal time steps this time: `TimeStepping` finds the velocities and
# impulses of a step together, however often contacts change.

STANCE, SPEED = 0.35, 0.8  # duration of a stance [s], wanted speed [m/s]


def raibert(t, q, qd):
    pitch, hip = q[0], q[3]
    forward = np.cos(pitch) * qd[2] + np.sin(pitch) * qd[1]
    if kt.pose(m, q, "foot")[2, 3] < 1e-3:  # on the ground
        push = 60.0 if qd[4] > 0 else 0.0
        return np.array([0, 0, 0, 300.0 * pitch + 60.0 * qd[0], push])
    ahead = forward * STANCE / 2 + 0.06 * (forward - SPEED)
    wanted = -np.arcsin(np.clip(ahead, -0.5, 0.5)) - pitch
    return np.array([0, 0, 0, 60.0 * (wanted - hip) - 6.0 * qd[3], 0])


steps = kt.contact.TimeStepping(scene)
run = kt.simulate(m, start, duration=5.0, dt=4e-3, contact=steps, controller=raibert)
tip = kt.pose(m, run.q, "foot")[:, [0, 2], 3]
landings = np.flatnonzero((tip[:-1, 1] > 1e-3) & (tip[1:, 1] <= 1e-3))
print(f"{len(landings)} hops, {run.q[-1, 2]:.2f} m, pitch within {abs(run.q[:, 0]).max():.2f} rad")

# %%
# The path of hip and foot. Where the path of the foot has a corner, the foot stands on the ground.

fig, ax = plt.subplots(figsize=(7.4, 2.8))
ax.plot(run.q[:, 2], run.q[:, 1], label="hip")
ax.plot(*tip.T, lw=1, label="foot")
for k in range(0, len(run.t), 25):
    ax.plot([run.q[k, 2], tip[k, 0]], [run.q[k, 1], tip[k, 1]], "0.8", lw=1, zorder=0)
ax.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
ax.legend(ncols=2)

# %%
# The motion, with all visible shapes, as a page that plays.

kt.viewer.save_html(robot, "hopping.html", run.q, t=run.t)
