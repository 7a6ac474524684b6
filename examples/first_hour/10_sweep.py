"""Try many gains, and many masses of a load that is not known."""

from pathlib import Path

import numpy as np

import kinetree as kt

m = kt.load(Path(__file__).parent / "arm.urdf")
goal = np.array([0.5, 0.6, 0.8, 0.2])
share = np.array([1.0, 1.0, 0.2, 0.01])  # of gains: joints near the hand move less


def reach(model, stiffness, damping):
    """How far the arm is from its goal after a second, and how much it overshot [rad]."""

    def controller(t, q, qd):
        return kt.gravity_force(m, q) + share * (stiffness * (goal - q) - damping * qd)

    start = np.array([0.0, 0.3, 0.3, 0.0])
    motion = kt.simulate(model, start, duration=1.0, dt=2e-3, controller=controller)
    return {
        "error": np.abs(motion.q[-1] - goal).max(),
        "overshoot": max((motion.q - goal).max(), 0.0),
    }


values = {"stiffness": [20.0, 60.0], "damping": [2.0, 8.0], "mass:hand": [0.4, 1.4]}
found = kt.sweep(m, reach, values)  # on all cores; folder= goes on where it stopped
for run in range(8):
    gains = ", ".join(f"{name} {found.values[name][run]:g}" for name in values)
    print(f"{gains}: error {found['error'][run]:.3f}, overshoot {found['overshoot'][run]:.3f} rad")
