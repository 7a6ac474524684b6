"""Time stepping of robots: a quadruped stands and walks, two fingers hold a cube."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.ground import with_ground
from kinetree.contact.scene import Scene
from kinetree.contact.stepping.settings import TimeStepping
from kinetree.model import Limits, geometry

SLOPE = 0.2
GAINS = 100.0, 3.0


@pytest.fixture(scope="module")
def dog():
    """The quadruped on a slope: model, state in which its feet touch, contact."""
    c, s = np.cos(SLOPE), np.sin(SLOPE)
    model = with_ground(kt.samples.quadruped(), normal=(s, 0, c))
    feet = [g for g in model.geometry if isinstance(g.shape, geometry.Sphere)]
    scene = Scene(model, [(model.geometry[-1], foot) for foot in feet], friction=0.8)
    q = np.array(model.posture("home").q)
    q[:7] = *(q[2] * np.array([s, 0, c])), np.cos(SLOPE / 2), 0, np.sin(SLOPE / 2), 0
    return model, q, TimeStepping(scene)


def _held(targets):
    """A controller that holds the joints at ``targets(t)``."""

    def controller(t, q, qd):
        tau = np.zeros(18)
        tau[6:] = GAINS[0] * (targets(t) - q[7:]) - GAINS[1] * qd[6:]
        return tau

    return controller


def test_a_quadruped_stands_on_a_slope_without_creep_and_penetration(dog):
    model, q, contact = dog
    motion = kt.simulate(
        model, q, duration=10.0, contact=contact, controller=_held(lambda t: q[7:]), limits=None,
        store_every=100,
    )  # fmt: skip
    settled = motion.q[motion.t >= 8]
    assert np.abs(settled - settled[-1]).max() < 1e-9
    worst = motion.report.contact
    assert max(worst.velocity, worst.cone, worst.complementarity, worst.penetration) < 1e-9
    weight = sum(b.inertia.mass for b in model.bodies) * 9.81
    force = motion.contact.force[-1]
    assert abs(force[:, 0].sum() - weight * np.cos(SLOPE)) < 1e-6
    assert abs(np.linalg.norm(force[:, 1:].sum(axis=0)) - weight * np.sin(SLOPE)) < 1e-6


def test_a_quadruped_walks_with_a_scripted_gait(dog):
    model, q, contact = dog
    offset = np.array([0, np.pi, np.pi, 0])  # a trot: diagonal legs together

    def targets(t):
        phase = 2 * np.pi * 2.0 * t + offset
        legs = q[7:].reshape(4, 3).copy()
        legs[:, 1] -= 0.15 * np.cos(phase)
        legs[:, 2] -= 0.5 * np.maximum(0.0, -np.sin(phase))
        return legs.ravel()

    motion = kt.simulate(
        model, q, duration=2.0, contact=contact, controller=_held(targets), limits=None
    )
    downhill = motion.q[:, :3] @ [np.cos(SLOPE), 0, -np.sin(SLOPE)]
    height = motion.q[:, :3] @ [np.sin(SLOPE), 0, np.cos(SLOPE)]
    assert abs(downhill[-1] - downhill[0]) > 0.1
    assert np.all((height > 0.2) & (height < 0.4))
    lifted = motion.contact.force[..., 0] == 0
    assert np.all(lifted.any(axis=0))
    assert np.all(~lifted.all(axis=0))
    worst = motion.report.contact
    assert max(worst.velocity, worst.cone, worst.penetration) < 1e-9


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
    motion = kt.simulate(
        model, model.neutral(), duration=60.0, dt=5e-3, contact=TimeStepping(scene),
        controller=lambda t, q, qd: squeeze, limits=None, store_every=100,
    )  # fmt: skip
    assert np.abs(motion.q[1:] - motion.q[1]).max() < 1e-9
    assert abs(motion.q[-1, 4]) < 1e-9
    assert motion.report.contact.penetration < 1e-9
    assert abs(np.abs(motion.contact.force[-1, :, 0]).sum() - 8.0) < 1e-6
