"""Robots in contact for ``contact.py``: a quadruped, its gait, and a hand with a cube."""

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

import kinetree as kt
from kinetree import geometry

GAINS = 100.0, 3.0
"""Gains of position and speed of the quadruped's joints [N·m, N·m·s]."""
_GEOM = mujoco.mjtGeom


@dataclass(frozen=True)
class Case:
    """A mechanism in contact.

    Attributes:
        model: with the ground, if there is one.
        q: where it starts, (nq,).
        contact: for ``kt.simulate``.
        hold: a kernel of joint forces that hold it.
        touching: MuJoCo's types of the shapes that touch, first those that touch the second.
        friction: coefficient.
        force: constant joint forces, (nv,), or None.
        normal: of the ground, (3,), or None.
    """

    model: Any
    q: Any
    contact: Any
    hold: Any
    touching: tuple
    friction: float
    force: Any = None
    normal: Any = None

    def scattered(self, rng, count, spread):
        """States near the start, a little above the ground: positions and velocities."""
        q = np.array(
            [self.model.integrate(self.q, 0.1 * spread * rng.standard_normal(self.model.nv))
             for _ in range(count)]
        )  # fmt: skip
        gap = self.contact.scene.candidate_positions(self.model, q)[0].min(axis=-1)
        q[:, :3] += (0.03 * spread - gap)[:, None] * self.normal
        return q, spread * rng.standard_normal((count, self.model.nv))


def quadruped(slope) -> Case:
    """A dog-sized robot whose feet touch a plane, its joints held where they are."""
    normal = np.array([np.sin(slope), 0, np.cos(slope)])
    model = kt.contact.with_ground(kt.samples.quadruped(), normal=normal)
    feet = [g for g in model.geometry if isinstance(g.shape, geometry.Sphere)]
    scene = kt.contact.Scene(model, [(model.geometry[-1], foot) for foot in feet], friction=0.8)
    q = np.array(model.posture("home").q)
    q[:7] = *(q[2] * normal), np.cos(slope / 2), 0, np.sin(slope / 2), 0
    home = q[7:].copy()

    @kt.kernel
    def hold(model, t, q, qd):
        return np.concatenate([np.zeros(6), GAINS[0] * (home - q[7:]) - GAINS[1] * qd[6:]])

    touching = _GEOM.mjGEOM_SPHERE, _GEOM.mjGEOM_PLANE
    contact = kt.contact.TimeStepping(scene)
    return Case(model, q, contact, hold, touching, 0.8, normal=normal)


class Gait:
    """A trot: diagonal legs together, thighs swing back and forth, knees bend going forward."""

    def __init__(self, q, frequency=2.0, stride=0.15, lift=0.5):
        home = np.array(q[7:])
        offset = np.array([0, np.pi, np.pi, 0])

        @kt.kernel
        def force(model, t, q, qd):
            targets = home + np.zeros(12, dtype=object)
            for leg in range(4):
                phase = 2 * np.pi * frequency * t + offset[leg]
                raised = -np.sin(phase)
                targets[3 * leg + 1] = home[3 * leg + 1] - stride * np.cos(phase)
                targets[3 * leg + 2] = home[3 * leg + 2] - lift * kt.select(raised > 0, raised, 0.0)
            return np.concatenate([np.zeros(6), GAINS[0] * (targets - q[7:]) - GAINS[1] * qd[6:]])

        self.force = force


def gripper() -> Case:
    """Two fingers on rails press a cube of 0.2 kg between them with 4 N, friction 0.5."""
    builder = kt.ModelBuilder("gripper")
    for name, side in (("left", -1), ("right", 1)):
        builder.body(
            name, joint=kt.Prismatic("x"), inertia=kt.shapes.box(0.02, 0.02, 0.06, mass=0.1)
        )
        builder.geometry(geometry.Sphere(0.01), on=name, at=(0.03 * side, 0, 0), name=name)
    builder.body("cube", joint=kt.Free(), inertia=kt.shapes.box(0.04, 0.04, 0.04, mass=0.2))
    builder.geometry(geometry.Box((0.04, 0.04, 0.04)), on="cube", name="cube")
    model = builder.build()
    tips, cube = model.geometry[:2], model.geometry[2]
    scene = kt.contact.Scene(model, [(tip, cube) for tip in tips], friction=0.5)
    force = np.array([4.0, -4.0, 0, 0, 0, 0, 0, 0])

    @kt.kernel
    def hold(model, t, q, qd):
        return force + 0 * qd

    touching = _GEOM.mjGEOM_SPHERE, _GEOM.mjGEOM_BOX
    contact = kt.contact.TimeStepping(scene)
    return Case(model, model.neutral(), contact, hold, touching, 0.5, force=force)
