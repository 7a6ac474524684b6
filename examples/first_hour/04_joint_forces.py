"""Forces that a motion needs: inverse dynamics, gravity, the mass matrix."""

from pathlib import Path

import numpy as np

import kinetree as kt

m = kt.load(Path(__file__).parent / "arm.urdf")
q = np.array([0.0, 0.6, 0.8, 0.3])
rest = np.zeros(m.nv)
print("to hold still:", kt.gravity_force(m, q).round(3), "N m")

t = np.linspace(0, 2, 201)[:, None]  # a motion: half a cosine of each joint
to = np.array([1.0, -0.4, 0.5, 0.2])
path = q + to * (1 - np.cos(np.pi * t / 2)) / 2
speed = to * np.pi / 4 * np.sin(np.pi * t / 2)
acceleration = to * np.pi**2 / 8 * np.cos(np.pi * t / 2)
tau = kt.inverse_dynamics(m, path, speed, acceleration)  # (201, 4)
print("largest while moving:", np.abs(tau).max(0).round(3), "N m")
print("motors can give:", m.effort_limits, "N m")

H = kt.mass_matrix(m, q)
qdd = kt.forward_dynamics(m, q, rest, kt.gravity_force(m, q) + H @ to)
print("forward dynamics returns the acceleration:", qdd.round(12))
