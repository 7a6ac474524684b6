"""Time stepping of robots: a quadruped stands and walks, two fingers hold a cube."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.settings import TimeStepping
from kinetree.model import Limits, geometry

pytestmark = pytest.mark.usefixtures("specialised")  # the step that is unrolled for a scene

SLOPE = 0.2
GAINS = 100.0, 3.0
STANDS = 100.0
"""Time [s] from which the quadruped stands; before, it trots."""


@pytest.fixture(scope="module")
def dog():
    """The quadruped on a slope: model, state in which its feet touch, and what ``simulate`` takes.

    Diagonal legs go together: thighs swing to and fro, knees bend on the way forward.
    """
    c, s = np.cos(SLOPE), np.sin(SLOPE)
    model = with_ground(kt.samples.quadruped(), normal=(s, 0, c))
    feet = [g for g in model.geometry if isinstance(g.shape, geometry.Sphere)]
    scene = Scene(model, [(model.geometry[-1], foot) for foot in feet], friction=0.8)
    q = np.array(model.posture("home").q)
    q[:7] = *(q[2] * np.array([s, 0, c])), np.cos(SLOPE / 2), 0, np.sin(SLOPE / 2), 0
    home = q[7:].reshape(4, 3)

    @kt.kernel
    def force(model, t, q, qd):
        targets = home + np.zeros((4, 3), dtype=object)
        for leg, offset in enumerate((0, np.pi, np.pi, 0)):
            phase = 4 * np.pi * t + offset
            up = -np.sin(phase)
            targets[leg, 1] = home[leg, 1] - kt.select(t < STANDS, 0.15 * np.cos(phase), 0.0)
            lift = kt.select(up > 0, 0.5 * up, 0.0)
            targets[leg, 2] = home[leg, 2] - kt.select(t < STANDS, lift, 0.0)
        tau = GAINS[0] * (targets.ravel() - q[7:]) - GAINS[1] * qd[6:]
        return np.concatenate([np.zeros(6), tau])

    return (
        model,
        q,
        {"contact": TimeStepping(scene, tolerance=1e-12), "forces": force, "limits": None},
    )


def test_a_quadruped_stands_on_a_slope_for_a_minute_without_creep_and_penetration(dog):
    model, q, how = dog
    motion = kt.simulate(model, q, t0=STANDS, duration=70.0, store_every=1000, **how)
    settled = motion.q[motion.t > STANDS + 9.5]
    assert len(settled) == 61
    assert np.abs(settled - settled[0]).max() < 1e-12
    worst = motion.report.contact
    assert max(worst.velocity, worst.cone, worst.complementarity, worst.penetration) < 1e-12
    assert motion.report.warnings == ()
    weight = sum(b.inertia.mass for b in model.bodies) * 9.81
    force = motion.contact.force[-1]
    assert abs(force[:, 0].sum() - weight * np.cos(SLOPE)) < 1e-9
    assert abs(np.linalg.norm(force[:, 1:].sum(axis=0)) - weight * np.sin(SLOPE)) < 1e-9


def test_a_quadruped_walks_with_a_scripted_gait(dog):
    model, q, how = dog
    motion = kt.simulate(model, q, duration=2.0, **how)
    downhill = motion.q[:, :3] @ [np.cos(SLOPE), 0, -np.sin(SLOPE)]
    height = motion.q[:, :3] @ [np.sin(SLOPE), 0, np.cos(SLOPE)]
    assert abs(downhill[-1] - downhill[0]) > 0.1
    assert np.all((height > 0.2) & (height < 0.4))
    lifted = motion.contact.force[..., 0] == 0
    assert np.all(lifted.any(axis=0))
    assert np.all(~lifted.all(axis=0))
    worst = motion.report.contact
    assert max(worst.velocity, worst.cone, worst.complementarity, worst.penetration) < 1e-9


def test_two_fingers_hold_a_cube_for_a_minute():
    builder = kt.ModelBuilder("gripper")
    for name, side in (("left", -1), ("right", 1)):
        builder.body(
            name, joint=kt.Prismatic("x"), inertia=kt.shapes.box(0.02, 0.02, 0.06, mass=0.1),
            limits=Limits(-0.1, 0.1),
        )  # fmt: skip
        builder.geometry(geometry.Sphere(0.01), on=name, at=(0.03 * side, 0, 0), name=name)
    builder.body("cube", joint=kt.Free(), inertia=kt.shapes.box(0.04, 0.04, 0.04, mass=0.2))
    builder.geometry(geometry.Box((0.04, 0.04, 0.04)), on="cube", name="cube")
    model = builder.build()
    tips = [g for g in model.geometry if isinstance(g.shape, geometry.Sphere)]
    scene = Scene(model, [(tip, model.geometry[-1]) for tip in tips], friction=0.5)
    squeeze = np.array([4.0, -4.0, 0, 0, 0, 0, 0, 0])  # 2 μ F = 4 N for 2 N of weight

    @kt.kernel
    def force(model, t, q, qd):
        return squeeze + 0 * qd

    motion = kt.simulate(
        model, model.neutral(), duration=60.0, contact=TimeStepping(scene, tolerance=1e-12),
        forces=force, limits=None, store_every=1000,
    )  # fmt: skip
    assert np.abs(motion.q - motion.q[0]).max() < 1e-12
    worst = motion.report.contact
    assert max(worst.velocity, worst.cone, worst.complementarity, worst.penetration) < 1e-12
    assert abs(np.abs(motion.contact.force[-1, :, 0]).sum() - 8.0) < 1e-9
