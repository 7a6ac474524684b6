"""Film a quadruped that trots, with its contact forces, for docs/images/trot.gif.

python docs/draw_trot.py [file.gif]
"""

import sys
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.model import geometry

STRIDES, SWING, LIFT = 2.0, 0.15, 0.5  # a second [Hz], of hips and knees [rad]
DIAGONAL = np.array([0.0, np.pi, np.pi, 0.0])


def trot(duration):
    """The motion, and the scene in which it happens."""
    model = kt.contact.with_ground(kt.samples.quadruped())
    feet = [g for g in model.geometry if isinstance(g.shape, geometry.Sphere)]
    scene = kt.contact.Scene(model, [(model.geometry[-1], foot) for foot in feet])
    home = model.posture("home").q

    def controller(t, q, qd):
        phase = 2 * np.pi * STRIDES * t + DIAGONAL
        legs = home[7:].reshape(4, 3).copy()
        legs[:, 1] -= SWING * np.cos(phase)
        legs[:, 2] -= LIFT * np.maximum(0.0, -np.sin(phase))
        return np.concatenate([np.zeros(6), 100.0 * (legs.ravel() - q[7:]) - 3.0 * qd[6:]])

    return kt.simulate(
        model, home, duration=duration, dt=1e-3, contact=kt.contact.TimeStepping(scene),
        controller=controller, limits=None, store_every=10,
    ), scene  # fmt: skip


def main(path):
    """Write the film."""
    motion, scene = trot(2.0)
    print(motion.report)
    shown = motion[motion.t >= 1.0]  # two strides, which repeat
    contacts = kt.viewer.contacts_of(shown, scene)
    kt.viewer.record(shown, path, contacts=contacts, size=(480, 300), rate=20, zoom=1.3)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "images" / "trot.gif"))
