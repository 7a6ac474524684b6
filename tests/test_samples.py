"""The models that ship with the package."""

import numpy as np
import pytest
from body_motions import frame_pose
from closeness import assert_close

from kinetree import samples
from kinetree.algorithms import aba, crba, rnea
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.joints import REPRESENTATIVES, Free, Prismatic, Revolute
from kinetree.model import Model
from kinetree.model.validate import joints_without_inertia

FIXED = [getattr(samples, name)() for name in samples.names()]


@pytest.mark.parametrize("model", FIXED, ids=samples.names())
def test_fixed_models_are_sound_and_the_same_every_time(model, rng):
    assert isinstance(model, Model)
    assert joints_without_inertia(model) == ()
    q, (qd, tau) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    qdd = aba.forward_dynamics(model, q, qd, tau)
    H = crba.joint_space_inertia(model, q)
    assert np.linalg.eigvalsh(H)[0] > 0
    back = rnea.inverse_dynamics(model, q, qd, qdd)
    assert_close(back, tau, condition=np.linalg.cond(H), scale=1 + np.abs(back).max())


def test_names_are_functions_of_the_module():
    assert samples.names() == tuple(model for model in samples.names() if hasattr(samples, model))
    assert samples.panda() == samples.panda()
    assert set(samples.names()) < set(samples.__all__)


def test_pendulum_swings_at_the_frequency_of_the_book():
    model = samples.pendulum()
    (H,) = crba.joint_space_inertia(model, np.zeros(1))[0]
    assert_close(H, 0.2 / 3 + 1.0 * (1 + 0.4 * 0.05**2))
    (slope,) = rnea.gravity_force(model, np.array([np.pi / 2]))
    assert_close(slope, 9.81 * (0.2 * 0.5 + 1.0))
    assert_close(frame_pose(model, np.zeros(1), "tip")[:3, 3], np.array([0.0, 0, -1]))


def test_double_pendulum_hangs_at_rest():
    model = samples.double_pendulum()
    assert_close(rnea.gravity_force(model, np.zeros(2)), np.zeros(2), scale=1)
    assert_close(frame_pose(model, np.zeros(2), "tip")[2, 3], -1.8)


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


def test_arm_stands_upright_and_scara_reaches_forward():
    tool = frame_pose(samples.arm(), np.zeros(6), "tool")
    assert_close(tool[:3, 3], np.array([0.15 + 0.42 + 0.085, 0, 0.4 + 0.44 + 0.13]))
    tool = frame_pose(samples.scara(), np.array([0, 0, 0.1, 0]), "tool")
    assert_close(tool[:3, 3], np.array([0.6, 0, 0.3 - 0.1 - 0.1]))
    assert_close(tool[:3, 2], np.array([0, 0, -1.0]), scale=1)


def test_legged_robots_float_and_stand_on_their_feet():
    dog, person = samples.quadruped(), samples.humanoid()
    assert isinstance(dog.joint[1], Free)
    assert isinstance(person.joint[1], Free)
    assert (dog.nv, person.nv) == (18, 28)
    feet = [frame_pose(dog, dog.neutral(), f)[:3, 3] for f in dog.frame_names]
    assert_close(np.mean(feet, axis=0), np.array([0, 0, -0.4]), scale=1)
    soles = [
        frame_pose(person, person.neutral(), f"{side}_sole")[:3, 3] for side in ("left", "right")
    ]
    assert_close(soles[0] * [1, -1, 1], soles[1])
    assert_close(soles[0][2], -0.08 - 0.42 - 0.42 - 0.08)
    assert sum(b.inertia.mass for b in dog.bodies) == pytest.approx(12.0)


@pytest.mark.parametrize(
    "model", [samples.four_bar(), samples.crank_slider()], ids=lambda m: m.name
)
@pytest.mark.covers("RBDA 4.2", by=(samples.four_bar, samples.crank_slider))
def test_linkages_are_assembled_at_the_neutral_position(model):
    (loop,) = model.loops
    X_0 = base_transforms(model, joint_transforms(model, model.neutral())[0])
    X = (
        loop.successor_placement
        @ X_0[loop.successor]
        @ (loop.predecessor_placement @ X_0[loop.predecessor]).inverse()
    )
    assert_close(loop.joint.loop_error(X), np.zeros(5), scale=1)


def test_four_bar_has_the_lengths_it_says():
    model = samples.four_bar()
    pins = [frame_pose(model, model.neutral(), name)[:3, 3] for name in model.body_names[1:]]
    (loop,) = model.loops
    end = (frame_pose(model, model.neutral(), "coupler") @ loop.predecessor_placement.to_pose())[
        :3, 3
    ]
    crank, coupler, rocker = pins
    distances = [
        np.linalg.norm(a - b)
        for a, b in ((crank, coupler), (coupler, end), (end, rocker), (rocker, crank))
    ]
    assert_close(np.array(distances), np.array([0.2, 0.5, 0.4, 0.6]))


def test_crank_slider_is_the_mechanism_of_figure_4_1():
    kinds = [type(j) for j in samples.crank_slider().joint[1:]]
    kinds += [type(loop.joint) for loop in samples.crank_slider().loops]
    assert sorted(kinds, key=str) == [Prismatic, Revolute, Revolute, Revolute]


def test_chain_is_unbranched_and_tree_branches_as_told():
    assert samples.chain(5).parent == (-1, 0, 1, 2, 3, 4)
    assert samples.chain(3).bodies[2].inertia.mass == samples.chain(5).bodies[2].inertia.mass
    assert samples.tree(7, 2).parent == (-1, 0, 1, 1, 2, 2, 3, 3)
    assert samples.tree(7, 1).parent == (-1, 0, 1, 2, 3, 4, 5, 6)
    assert samples.tree(7, 1.5).parent == (-1, 0, 1, 2, 2, 3, 4, 4)
    small = samples.tree(4, 1, taper=0.5)
    assert_close(np.array([b.inertia.mass for b in small.bodies]), 0.125 ** np.arange(4.0))
    flat = samples.tree(3, 1, skew=0.0)
    assert_close(frame_pose(flat, np.array([0.3, 0.4, 0.5]), "body3")[2], np.array([0, 0, 1.0, 0]))


def test_random_trees_meet_every_joint_and_obey_their_options(rng):
    kinds = {type(j) for j in samples.random_tree(300, rng).joint[1:]}
    assert kinds == {type(j) for j in REPRESENTATIVES}
    assert samples.random_tree(5, 1) == samples.random_tree(5, 1)
    assert samples.random_tree(6, rng, branching=0).parent == (-1, 0, 1, 2, 3, 4, 5)
    assert isinstance(samples.random_tree(3, rng, floating_base=True).joint[1], Free)
    only = samples.random_tree(9, rng, joints=[Prismatic("x")])
    assert {type(j) for j in only.joint[1:]} == {Prismatic}
