"""Make the tool follow a circle."""

from pathlib import Path

import numpy as np

import kinetree as kt

m = kt.load(Path(__file__).parent / "arm.urdf")
q0 = kt.inverse_kinematics(m, "tool", [0.45, 0.0, 0.4], q0=[0, 0.5, 1.0, 0.3]).require()
still = np.zeros(m.nv)


def circle(t):
    """Where the tool should be [m], and how fast it should move [m/s]."""
    phase = np.pi * t
    place = [0.45, 0.15 * np.sin(phase), 0.4 + 0.1 * (1 - np.cos(phase))]
    return np.array(place), np.pi * np.array([0, 0.15 * np.cos(phase), 0.1 * np.sin(phase)])


def controller(t, q, qd):
    """Springs and dampers at the tool, the weight of the arm, a little damping of the rest."""
    place, velocity = circle(t)
    J = kt.jacobian(m, q, "tool", frame="aligned")[3:]
    force = 900 * (place - kt.pose(m, q, "tool")[:3, 3]) + 60 * (velocity - J @ qd)
    return J.T @ force + kt.gravity_force(m, q) - 0.2 * qd


motion = kt.simulate(m, q0, duration=4.0, controller=controller)
there = kt.pose(m, motion.q, "tool")[:, :3, 3]
wanted = np.array([circle(t)[0] for t in motion.t])
error = 1000 * np.linalg.norm(there - wanted, axis=1)
print(f"largest error {error.max():.1f} mm, in the last second {error[motion.t > 3].max():.1f} mm")
print("largest forces", np.abs(motion.tau).max(0).round(1), "of", m.effort_limits, "N m")
