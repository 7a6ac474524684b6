"""From CAD to a controller.

Two parts exported from a CAD program become a robot: inertias from meshes, a model, a check, a
URDF file, motors that are strong enough, and a controller that works although the model is wrong.
"""

# %%
# A CAD program exports each part as a mesh, often in millimetres. Here trimesh makes two stand-ins,
# bars with round ends whose first hinge is at the origin. If you have STL files, use those instead.

import matplotlib.pyplot as plt
import numpy as np
import trimesh

import kinetree as kt
from kinetree.loaders.meshes import mesh_inertia
from kinetree.model.geometry import Mesh

plt.style.use(kt.plot.STYLE)
LENGTHS = {"upper": 0.35, "lower": 0.3}  # between hinges [m]
for name, length in LENGTHS.items():
    bar = trimesh.creation.capsule(1000 * length, 30, count=[16, 16])
    bar.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, [0, 1, 0]))
    bar.apply_translation([500 * length, 0, 0])
    bar.export(f"{name}.stl")

# %%
# The inertia of a part follows from its mesh and its density: aluminium, and millimetres, which
# `scale` converts. A mistake in the units would change the mass by a factor of a billion.

MILLIMETRES = (1e-3, 1e-3, 1e-3)
parts = {name: mesh_inertia(f"{name}.stl", density=2700, scale=MILLIMETRES) for name in LENGTHS}
for name, inertia in parts.items():
    print(f"{name}: {inertia.mass:.2f} kg, mass centre at {np.round(inertia.center_of_mass, 3)} m")

# %%
# The model: a joint for each part, with limits, and the meshes to look at. The doctor finds
# nothing wrong with it.

builder, on = kt.ModelBuilder("arm"), None
for name, speed in {"upper": 3.0, "lower": 5.0}.items():
    at = (0, 0, 0.5) if on is None else (LENGTHS[on], 0, 0)
    limits = kt.Limits(-3.0, 3.0, speed, np.inf)
    builder.body(name, on=on, at=at, joint=kt.Revolute("y"), inertia=parts[name], limits=limits)
    builder.geometry(Mesh(f"{name}.stl", MILLIMETRES), on=name, color=(0.9, 0.5, 0.2, 1))
    on = name
robot = builder.frame("tool", on="lower", at=(LENGTHS["lower"], 0, 0)).build()
print(robot.summary())
print("findings:", [str(f) for f in kt.check(robot)])

# %%
# Write a file for other programs, and read it again: it is the same robot.

kt.save(robot, "arm.urdf")
again = kt.load("arm.urdf")
q = np.array([0.3, -0.8])
print("difference:", np.abs(kt.mass_matrix(robot, q) - kt.mass_matrix(again, q)).max())

# %%
# Which motors does it need? The fastest motion that we want is there and back in 0.8 s. Its
# reference gives positions, velocities and accelerations; inverse dynamics, the torques.

SWING, RATE = np.array([0.9, -1.4]), 2 * np.pi / 0.8


def reference(t):
    s, c = np.sin(RATE * t), np.cos(RATE * t)
    return 0.5 * SWING * (1 - c), 0.5 * SWING * RATE * s, 0.5 * SWING * RATE**2 * c


t = np.linspace(0, 0.8, 200)
tau = kt.inverse_dynamics(robot, *(np.array([reference(x)[k] for x in t]) for k in range(3)))
effort = np.ceil(1.5 * np.abs(tau).max(axis=0))  # half as much again in reserve
print("largest torques [N m]:", np.abs(tau).max(axis=0).round(1), " motors:", effort)

# %%
# The controller: computed torque, limited to what the motors can do. The real robot carries 0.5 kg
# at the tool, which the model of the controller does not contain.

load = kt.shapes.point(mass=0.5, at=(LENGTHS["lower"], 0, 0))
real = robot.replace(inertia={"lower": parts["lower"] + load})
motions = {}
for gain in (50.0, 400.0):
    law = kt.control.ComputedTorque(robot, reference, kp=gain)
    cut = lambda t, q, qd, law=law: np.clip(law(t, q, qd), -effort, effort)  # noqa: E731
    motions[gain] = kt.simulate(real, [0.0, 0.0], duration=1.6, dt=1e-3, controller=cut)

fig, ax = plt.subplots(figsize=(6.4, 3))
for gain, motion in motions.items():
    wanted = np.array([reference(x)[0] for x in motion.t])
    missed = kt.pose(real, motion.q, "tool") - kt.pose(real, wanted, "tool")
    ax.plot(motion.t, 1000 * np.linalg.norm(missed[:, :3, 3], axis=1), label=f"kp = {gain:g} / s²")
ax.set(xlabel="time [s]", ylabel="error of the tool [mm]")
ax.legend()

# %%
# The result, as a page that plays.

kt.viewer.save_html(motions[400.0], "arm.html", trace="tool")
kt.viewer.picture(motions[400.0], "arm.png", at=0.3, size=(480, 360))
