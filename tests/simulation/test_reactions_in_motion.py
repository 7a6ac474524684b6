"""Reactions of joints along simulated motions."""

import pickle

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import arm

import kinetree as kt
from kinetree.errors import ContactError


def swinging_rod():
    rod = kt.shapes.rod(1.0, mass=2.0, at=(0, 0, -0.5))
    return kt.ModelBuilder("rod").body("rod", joint=kt.Revolute("y"), inertia=rod).build()


def test_a_pendulum_pulls_at_its_bearing_as_energy_says():
    """Along a rod from rest at a0: m g cos a + m w² l/2, with w² = 3g/l (cos a - cos a0)."""
    model, a0 = swinging_rod(), 1.2
    motion = kt.simulate(model, [a0], duration=1.0, dt=0.01)
    a, g = motion.q[:, 0], 9.81
    along = motion.reactions("rod_joint")[:, 5]
    expected = 2 * g * np.cos(a) + 2 * 0.5 * 3 * g * (np.cos(a) - np.cos(a0))
    assert_close(along, expected, ulps=1e9)  # the integrator's error, 1e-7
    assert_close(along, 2 * g * np.cos(a) + motion.qd[:, 0] ** 2, ulps=50)


def test_springs_limits_and_controllers_act():
    model = arm(damping=0.3, stiffness=2.0, friction=0.1)
    motion = kt.simulate(
        model, [0.4, -0.2], duration=0.2, dt=0.02, controller=lambda t, q, qd: 1 - q
    )
    found = motion.reactions(part="drive")
    assert found.shape == (len(motion), 2, 6)
    smooth = motion.acted.field.joint_force(model, 0.0, motion.q, motion.qd, motion.tau)
    assert_close(found[..., 1], smooth, ulps=1e4)  # about y
    assert_close(motion.reactions("fore_joint"), motion.reactions()[:, 1], ulps=10)


def test_external_forces_push_bodies_and_not_joints():
    model, wind = arm(), np.array([3.0, 1.0, -2.0])
    motion = kt.simulate(
        model, [0.4, -0.2], duration=0.1, dt=0.02, forces=kt.ExternalForce("fore", wind)
    )
    f_ext = {"fore": kt.applied_force(model, motion.q, "fore", force=wind, frame="aligned")}
    tau = np.zeros(2)
    expected = kt.joint_reactions(model, motion.q, motion.qd, tau=tau, f_ext=f_ext, part="bearing")
    assert_close(motion.reactions(part="bearing"), expected, ulps=1e4)
    elsewhere = pickle.loads(pickle.dumps(motion))
    assert elsewhere.acted is None
    without = kt.joint_reactions(model, motion.q, motion.qd, tau=tau)
    assert_close(elsewhere.reactions(), without, ulps=1e4)
    assert_close(elsewhere.reactions(part="bearing", f_ext=f_ext), expected, ulps=1e4)


def test_a_batch_and_a_part_of_a_motion():
    model = swinging_rod()
    many = kt.simulate(model, [[0.1], [0.5]], duration=0.1, dt=0.02)
    assert many.reactions().shape == (6, 2, 1, 6)
    assert_close(many.motion(1).reactions(), many.reactions()[:, 1], ulps=100)
    assert_close(many[2:4].reactions(), many.reactions()[2:4], ulps=100)


def test_joints_that_stick_and_joints_that_are_prescribed():
    model = arm(friction=50.0)
    stuck = kt.simulate(model, [0.3, 0.1], duration=0.1, dt=0.02, friction="exact")
    at_rest = kt.joint_reactions(model, [0.3, 0.1], [0, 0], [0, 0])
    assert_close(stuck.reactions(), np.broadcast_to(at_rest, (6, 2, 6)), ulps=1e3)

    def turn(t):
        return [0.3 + t * t], [2 * t], [2.0]

    led = kt.simulate(arm(), [0.3, 0.1], duration=0.1, dt=0.02, prescribed={"upper_joint": turn})
    drive = led.reactions(part="drive")[:, 0, 1]
    assert_close(drive, led.tau[:, 0], ulps=1e4)


def test_loops_in_motion_balance():
    model = kt.samples.four_bar().replace(joint={"pin": kt.joints.SphereInCylinder("y")})
    q = kt.loops.assemble(model, [0.4, 0.0, 0.0])
    motion = kt.simulate(model, q, duration=0.1, dt=0.02)
    f = motion.reactions(frame="world")
    expected = [
        kt.joint_reactions(model, a, b, tau=np.zeros(3), frame="world")
        for a, b in zip(motion.q, motion.qd, strict=True)
    ]
    assert_close(f, expected, ulps=1e5)


def test_reactions_with_soft_contact_need_its_forces():
    ball = kt.shapes.sphere(0.1, mass=1.0)
    builder = kt.ModelBuilder("ball").body("ball", joint=kt.Prismatic("z"), inertia=ball)
    builder.geometry(kt.model.geometry.Sphere(0.1), on="ball", collision=True)
    builder.geometry(kt.model.geometry.Plane(), collision=True)
    model = builder.build()
    soft = kt.contact.SoftContact(kt.contact.Scene(model), stiffness=1e4, damping=0.1)
    motion = kt.simulate(model, [0.0999], duration=0.05, dt=0.001, forces=soft)
    with pytest.raises(ContactError, match=r"'ball' depend on where contact forces act.*f_ext"):
        motion.reactions()
    push = np.zeros((len(motion), 1, 6))
    push[..., 5] = soft(model, 0.0, motion.q, motion.qd)
    f = motion.reactions(f_ext=push)[:, 0]
    assert_close(f, np.zeros((len(motion), 6)), ulps=1e4, scale=10.0)  # the guide carries nothing
