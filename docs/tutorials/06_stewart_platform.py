"""A Stewart platform with inverse dynamics.

Six legs carry a platform, as in a flight simulator. This tutorial computes the leg lengths for a
pose, the motor forces for a motion, and the share of the springs in the legs.
"""

# %%
# Each leg has a universal joint, a sliding joint and a ball joint: 25 position variables, six
# loops, six degrees of freedom in all. In this sample the platform is on a free joint, so its pose
# can be read directly.

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
m = kt.samples.stewart()
home = m.neutral()
print(kt.loops.mobility(m, home))
kt.viewer.picture(m, "platform.png", home, size=(520, 420))

# %%
# *Inverse kinematics* of a parallel robot is easy: the pose of the platform determines where the
# balls are, and the length of each leg is the distance to its foot. The model contains both ends.

legs = [f"leg{k}_stroke" for k in range(1, 7)]
feet = np.array([m.bodies[m.body_index(f"leg{k}_barrel") - 1].placement.r for k in range(1, 7)])
balls = np.array([loop.successor_placement.r for loop in m.loops])
resting = np.linalg.norm(kt.pose(m, home, "platform")[:3, 3] + balls - feet, axis=-1)


def strokes(pose):
    """How far each leg is out, (..., 6), for poses (..., 4, 4)."""
    ends = pose[..., None, :3, 3] + balls @ pose[..., :3, :3].swapaxes(-1, -2)
    return np.linalg.norm(ends - feet, axis=-1) - resting


# %%
# How far can it tilt before a leg reaches its limit? A hundred thousand poses at once, in plain
# NumPy.

tilt, about = np.meshgrid(np.linspace(0, 0.7, 200), np.linspace(0, 2 * np.pi, 361))
x, y = tilt * np.cos(about), tilt * np.sin(about)
axis = np.stack([np.cos(about), np.sin(about), 0 * about], axis=-1)
cross = np.zeros((*tilt.shape, 3, 3))
cross[..., 0, 2], cross[..., 2, 0] = axis[..., 1], -axis[..., 1]
cross[..., 1, 2], cross[..., 2, 1] = -axis[..., 0], axis[..., 0]
pose = np.zeros((*tilt.shape, 4, 4))
pose[..., :3, :3] = (
    np.eye(3)
    + np.sin(tilt)[..., None, None] * cross
    + (1 - np.cos(tilt))[..., None, None] * (cross @ cross)
)
pose[..., :3, 3] = kt.pose(m, home, "platform")[:3, 3]
longest = np.max(abs(strokes(pose)), axis=-1)

fig, ax = plt.subplots(figsize=(4.8, 3.8))
shown = ax.contourf(np.degrees(x), np.degrees(y), longest, levels=12, cmap="Blues")
ax.contour(np.degrees(x), np.degrees(y), longest, levels=[0.2], colors="C1")
fig.colorbar(shown, ax=ax, label="longest stroke [m]")
ax.set(xlabel="tilt about x [°]", ylabel="tilt about y [°]", aspect="equal")
ax.set_title("inside the line the strokes are enough", loc="left")

# %%
# *Inverse dynamics* needs a motion of all joints. We choose the motion of the platform, compute the
# strokes of the legs, and `coordinate_motion` returns the motion of all 24 velocities with the
# loops closed. The platform heaves and pitches:


def moving(t):
    """Strokes of the legs at times (...)."""
    pitch, up = 0.12 * np.sin(2 * np.pi * t), 0.1 * np.sin(2 * np.pi * t)
    pose = np.zeros((*t.shape, 4, 4))
    pose[..., 0, 0], pose[..., 0, 2] = np.cos(pitch), np.sin(pitch)
    pose[..., 2, 0], pose[..., 2, 2] = -np.sin(pitch), np.cos(pitch)
    pose[..., 1, 1] = 1
    pose[..., :3, 3] = kt.pose(m, home, "platform")[:3, 3]
    pose[..., 2, 3] += up
    return strokes(pose)


t, h = np.linspace(0, 2, 61), 1e-4
before, y, after = moving(t - h), moving(t), moving(t + h)
yd, ydd = (after - before) / (2 * h), (after - 2 * y + before) / h**2
q, qd, qdd = kt.loops.coordinate_motion(m, home, y, yd, ydd, independent=legs)
assert np.allclose(
    kt.pose(m, q, "platform")[..., 2, 3] - kt.pose(m, home, "platform")[2, 3],
    0.1 * np.sin(2 * np.pi * t),
)
forces = kt.loops.inverse_dynamics(m, q, qd, qdd, actuated=legs)
print("actuation:", kt.loops.actuation(m, home, legs).kind)

# %%
# The forces are large because each leg of this sample contains a stiff spring that carries the
# platform at rest, and the motors push against it. Without springs, the motors carry the weight and
# accelerate the mass.

bare = m.replace(dynamics=dict.fromkeys(legs, kt.JointDynamics()))
without = kt.loops.inverse_dynamics(bare, q, qd, qdd, actuated=legs)

fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), sharex=True)
for ax, found, title in zip(axes, (forces, without), ("with springs", "without"), strict=True):
    for k, leg in enumerate(legs):
        ax.plot(t, found.u[leg], "-" if k % 2 else "--", lw=1.2, label=leg)
    ax.set(xlabel="time [s]", title=title)
axes[0].set_ylabel("force of the motor [N]")
axes[1].set_ylim(50, 450)
axes[1].legend(ncols=2, fontsize=7)
