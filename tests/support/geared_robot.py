"""A robot with everything that couples joints, and its reduction to the leaders by hand.

A mimic finger, one that follows it by a polynomial, a cam that two joints move, a differential, a
joint that is held, and a rotor. ``G`` is written down; nothing of ``kinetree`` is used for it.
"""

import numpy as np

import kinetree as kt
from kinetree.joints import Prismatic, Revolute, Spherical
from kinetree.model import Body, Coupling, JointDynamics, Model
from kinetree.samples.trees import random_inertia, random_placement
from kinetree.spatial import ops

RATIO = 50.0


def cam(a, b):
    """Neither linear nor a polynomial."""
    return ops.sin(a) * b + ops.cos(b)


def geared_robot(rng, *, root=None, dynamics=True):
    """Followers before and after their leaders, and on other branches."""
    rows = [  # name, parent, joint
        ("root", 0, root or Revolute("z")),
        ("rotor", 1, Revolute("z")),
        ("arm", 1, Revolute("y")),
        ("left", 3, Revolute("x")),
        ("right", 3, Revolute("x")),
        ("spider", 3, Revolute("y")),
        ("finger", 6, Revolute("z")),
        ("mimic", 6, Prismatic("x")),
        ("tip", 8, Revolute("z")),
        ("cam", 7, Revolute("y")),
        ("held", 10, Revolute("x")),
    ]
    effects = ("armature", "damping", "friction", "stiffness")
    bodies = [
        Body(
            name, parent, joint, random_placement(rng), random_inertia(rng), f"{name}_joint",
            dynamics=JointDynamics(**{e: rng.uniform(0.1, 1, joint.nv) for e in effects})
            if dynamics
            else None,
        )
        for name, parent, joint in rows
    ]  # fmt: skip
    number = {name: i for i, (name, *_) in enumerate(rows, start=1)}
    couplings = (
        Coupling("bent", number["tip"], number["mimic"], (0.1, 0.7, 0.3)),
        Coupling("gear", number["rotor"], number["arm"], (0.0, RATIO)),
        Coupling("pads", number["mimic"], number["finger"], (0.5, -0.8)),
        Coupling(
            "differential", number["spider"], sources=(number["left"], number["right"]),
            weights=(0.5, -0.5), coefficients=(0.2, 1.0),
        ),
        Coupling("cam", number["cam"], sources=(number["left"], number["finger"]), function=cam),
        Coupling("hold", number["held"], 0, (0.3,)),
    )  # fmt: skip
    return Model(
        bodies, couplings=couplings, gravity=rng.normal(size=3), name="geared robot",
        frames=(kt.Frame("pad", number["tip"], random_placement(rng)),),
    )  # fmt: skip


class Reduction:
    """``γ``, ``G`` and ``dG/dt`` of the robot; ``y = (root, arm, left, right, finger)``."""

    def __init__(self, model, q, qd=None):
        n = model.bodies[0].joint.nv
        nq = model.bodies[0].joint.nq
        self.n = n
        arm, left, right, finger = (q[..., nq + k] for k in range(4))
        mimic = 0.5 - 0.8 * finger
        self.q = np.concatenate(
            [
                q[..., :nq],
                np.stack(
                    [
                        RATIO * arm, arm, left, right, 0.2 + 0.5 * left - 0.5 * right, finger,
                        mimic, 0.1 + 0.7 * mimic + 0.3 * mimic**2,
                        np.sin(left) * finger + np.cos(finger), 0.3 + 0 * arm,
                    ],
                    axis=-1,
                ),
            ],
            axis=-1,
        )  # fmt: skip
        self.G = self.matrix(left, finger)
        if qd is not None:
            self.Gd = self.rate(left, finger, qd[n + 1], qd[n + 3])
            self.qd, self.g = self.G @ qd, self.Gd @ qd

    def matrix(self, left, finger):
        """``G``, one row for each velocity variable."""
        n = self.n
        G = np.zeros((n + 10, n + 4), dtype=np.result_type(left, finger, float))
        G[:n, :n] = np.eye(n)
        G[n, n] = RATIO
        G[n + 1, n] = G[n + 2, n + 1] = G[n + 3, n + 2] = G[n + 5, n + 3] = 1
        G[n + 4, n + 1], G[n + 4, n + 2] = 0.5, -0.5
        G[n + 6, n + 3] = -0.8
        G[n + 7, n + 3] = -0.8 * (0.7 + 0.6 * (0.5 - 0.8 * finger))
        G[n + 8, n + 1] = np.cos(left) * finger
        G[n + 8, n + 3] = np.sin(left) - np.sin(finger)
        return G

    def rate(self, left, finger, left_rate, finger_rate):
        """``dG/dt``."""
        n, G = self.n, 0 * self.G * left_rate
        G[n + 7, n + 3] = 0.8 * 0.6 * 0.8 * finger_rate
        G[n + 8, n + 1] = np.cos(left) * finger_rate - np.sin(left) * finger * left_rate
        G[n + 8, n + 3] = np.cos(left) * left_rate - np.cos(finger) * finger_rate
        return G


def spherical_root():
    """A root whose positions and velocities differ in number."""
    return Spherical()
