"""Pendulums and arms: dimensions, frequencies, places that were published or follow at once."""

import numpy as np
from support.closeness import assert_close
from support.motions import frame_pose

from kinetree import samples
from kinetree.algorithms import crba, rnea


def test_pendulum_swings_at_the_frequency_of_the_book():
    model = samples.pendulum()
    (H,) = crba.joint_space_inertia(model, np.zeros(1))[0]
    assert_close(H, 0.2 / 3 + 1.0 * (1 + 0.4 * 0.05**2))
    (torque,) = rnea.gravity_force(model, np.array([np.pi / 2]))
    assert_close(torque, 9.81 * (0.2 * 0.5 + 1.0))
    assert_close(frame_pose(model, np.zeros(1), "tip")[:3, 3], np.array([0.0, 0, -1]))


def test_pendulums_are_in_balance_hanging_and_upright():
    for name in ("pendulum", "double_pendulum", "cart_pole"):
        model = samples.load(name)
        for posture in model.postures:
            force = rnea.gravity_force(model, np.array(posture.q))
            assert_close(force, np.zeros(model.nv), scale=20)


def test_double_pendulum_hangs_down():
    assert_close(frame_pose(samples.double_pendulum(), np.zeros(2), "tip")[2, 3], -1.8)


def test_cart_and_pole_attract_each_other():
    H = crba.joint_space_inertia(samples.cart_pole(), np.zeros(2))
    assert_close(H[0], np.array([1.1, -0.1 * 0.3]))


def test_panda_reaches_where_the_published_dimensions_say():
    model = samples.panda()
    assert (model.nq, model.nv, model.body_count) == (9, 9, 10)
    q = np.zeros(9)
    tool = frame_pose(model, q, "tool")
    assert_close(tool[:3, 3], np.array([0.088, 0, 0.333 + 0.316 + 0.384 - 0.107]))
    assert_close(tool[:3, 2], np.array([0, 0, -1.0]), scale=1)
    q[7:] = 0.04
    left, right = (frame_pose(model, q, f"{side}_finger")[:3, 3] for side in ("left", "right"))
    assert_close(np.linalg.norm(left - right), 0.08)
    assert model.bodies[3].limits.upper == (-0.0698,)


def test_panda_is_at_home_with_its_tool_pointing_down():
    model = samples.panda()
    pose = frame_pose(model, np.array(model.postures[0].q), "grasp")
    assert_close(pose[:3, 2], np.array([0, 0, -1.0]), scale=1)
    assert_close(np.abs(pose[:3, 0]), np.array([1.0, 0, 0]), scale=1)


def test_ur5_reaches_where_the_published_dimensions_say():
    model = samples.ur5()
    tool = frame_pose(model, np.zeros(6), "tool")
    assert_close(tool[:3, 3], np.array([-0.81725, -0.10915 - 0.0823, 0.089159 - 0.09465]))
    upright = np.array(next(p.q for p in model.postures if p.name == "upright"))
    height = 0.089159 + 0.425 + 0.39225 + 0.09465
    assert_close(frame_pose(model, upright, "tool")[:3, 3], np.array([0, -0.19145, height]))
    assert_close(sum(b.inertia.mass for b in model.bodies), 17.0489)


def test_ur5_has_the_published_mass_centres():
    model = samples.ur5()
    upper_arm = model.bodies[1].inertia.center_of_mass - model.frame("dh2").placement.r
    assert_close(upper_arm, np.array([0.2125, 0, 0.11336]))
    home = np.array(model.postures[0].q)
    assert_close(frame_pose(model, home, "tool")[:3, 2], np.array([0, 0, -1.0]), scale=1)


def test_arm_stands_upright_and_scara_reaches_forward():
    tool = frame_pose(samples.arm(), np.zeros(6), "tool")
    assert_close(tool[:3, 3], np.array([0.15 + 0.42 + 0.085, 0, 0.4 + 0.44 + 0.13]))
    tool = frame_pose(samples.scara(), np.array([0, 0, 0.1, 0]), "tool")
    assert_close(tool[:3, 3], np.array([0.6, 0, 0.3 - 0.1 - 0.1]))
    assert_close(tool[:3, 2], np.array([0, 0, -1.0]), scale=1)
