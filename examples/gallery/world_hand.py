"""A hand holds a cube and turns it.

Four fingers with sixteen joints under position control close around a cube, lift it, and turn it
back and forth by swinging sideways together. Friction alone holds the cube.
"""

import numpy as np

import kinetree as kt
from kinetree.model.geometry import Box, Capsule, Sphere

LENGTHS, SKIN = (0.05, 0.04, 0.035), (0.8, 0.62, 0.52, 1)
hand = kt.ModelBuilder("hand")
hand.geometry(
    Box((0.15, 0.15, 0.02)), at=(0, 0, -0.01), color=(0.4, 0.42, 0.46, 1), collision=False
)
for f in range(4):
    on, at = None, kt.xlt([0.06, 0, 0]) @ kt.rotz(f * np.pi / 2)
    for k, (axis, length) in enumerate(zip("xyyy", (0.0, *LENGTHS), strict=True)):
        name = f"finger{f}_{k}"
        inertia = kt.shapes.cylinder(0.01, length + 0.02, mass=0.03, at=(0, 0, length / 2))
        dynamics = kt.JointDynamics(armature=1e-4, damping=0.01)
        joint = kt.Revolute(axis)
        hand.body(name, on=on, joint=joint, at=at, inertia=inertia, dynamics=dynamics)
        hand.actuator(name, joint=f"{name}_joint", kp=6.0, kv=0.15, effort=(-1.5, 1.5))
        if k:
            hand.geometry(Capsule(0.008, length), on=name, at=(0, 0, length / 2), color=SKIN)
        on, at = name, (0, 0, length)
    hand.geometry(Sphere(0.011), on=on, at=at, color=SKIN)

world = kt.World("hand", timestep=2e-3)
table = world.add(Box((0.1, 0.1, 0.075)), name="post", at=(0, 0, 0.0375), color=(0.6, 0.6, 0.6, 1))
fingers = world.add(hand.build(), name="hand", friction=1.0)
cube = world.add(Box((0.06, 0.06, 0.06)), mass=0.05, name="cube", at=(0, 0, 0.1051), friction=1.0)
world.exclude("hand", "post")


def grip(t, q, qd):
    """Positions that the joints are sent to: close, lift, then swing."""
    close = np.clip(t / 0.3, 0, 1)
    lift = np.clip((t - 0.4) / 0.3, 0, 1)
    swing = 0.25 * np.sin(3.0 * max(t - 0.8, 0.0))
    finger = [swing, 0.5 - 0.25 * close - 0.1 * lift, -0.45 + 0.1 * lift, -0.4 - 0.75 * close]
    return np.tile(finger, 4)


motion = kt.simulate(world, duration=3.0, controls=grip, store_every=20)
look = {"direction": (0.9, -1, 0.7), "zoom": 1.2}
kt.viewer.save_html(motion, "hand.html", **look)
kt.viewer.picture(motion, "hand.png", at=1.3, size=(420, 360), **look)
pose = kt.pose(world.model, motion.q, "cube")
turned = np.degrees(np.arctan2(pose[:, 1, 0], pose[:, 0, 0]))
print(f"the cube was lifted to {1000 * pose[:, 2, 3].max():.0f} mm and turned by "
      f"{turned.min():.0f}° to {turned.max():.0f}°")  # fmt: skip

# %%
# The same, step by step; friction at the fingertips carries the cube.

world.step(1500, control=grip)
print(world.contacts().of("cube"))
