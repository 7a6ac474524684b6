"""Reversed joints: Table 4.2 with a force transform for T, and the same physics."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba
from kinetree.algorithms.kinematics import base_transforms, body_accelerations
from kinetree.joints import REPRESENTATIVES, Free, RackAndPinion, Reversed, Revolute, check_joint
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Motion, dense

FORWARD = [j for j in REPRESENTATIVES if not isinstance(j, Reversed)]


@pytest.mark.covers("RBDA Table 4.2", by=Reversed)
@pytest.mark.parametrize("joint", FORWARD, ids=str)
def test_every_joint_keeps_the_contract_reversed_and_twice_reversed(joint, rng):
    check_joint(Reversed(joint), rng)
    check_joint(Reversed(Reversed(joint)), rng)


@pytest.mark.covers("RBDA Table 4.2", by=Reversed)
@pytest.mark.parametrize("joint", FORWARD, ids=str)
def test_quantities_are_those_of_the_table(joint, rng):
    q, qd = joint.random(rng), rng.standard_normal(joint.nv)
    X_J, S, v_J, c_J = joint.jcalc(q, qd)
    back = np.linalg.inv(X_J.to_matrix())
    got = Reversed(joint).jcalc(q, qd)
    assert_close(got[0].to_matrix(), back, ulps=100)
    for x, y in zip(got[1:], (S, v_J, c_J), strict=True):
        assert_close(x.to_array(), -back @ y.to_array(), ulps=200, scale=10.0)
    T = Reversed(joint).constraint_subspace(q).to_array()
    expected = -dense.force_transform(back) @ joint.constraint_subspace(q).to_array()
    assert_close(T, expected, ulps=100, scale=10.0)


def test_printed_motion_transform_of_the_constraint_forces_would_do_work(rng):
    joint, q = RackAndPinion(0.3), rng.uniform(1, 2, 1)
    back = np.linalg.inv(joint.transform(q).to_matrix())
    wrong = -back @ joint.constraint_subspace(q).to_array()
    S = Reversed(joint).motion_subspace(q).to_array()
    assert np.max(np.abs(wrong.T @ S)) > 0.1


@pytest.mark.covers("RBDA Table 4.2", "RBDA 4.1", by=Reversed)
@pytest.mark.parametrize("joint", [j for j in FORWARD if j.nv], ids=str)
def test_tree_built_from_the_other_end_moves_alike(joint, rng):
    """Two floating bodies, either of which may be the root."""
    at, I_a, I_b = random_placement(rng), random_inertia(rng), random_inertia(rng)
    forward = ModelBuilder().body("a", joint=Free(), inertia=I_a)
    forward = forward.body("b", on="a", joint=joint, at=at, inertia=I_b).build()
    # Rooted at b; the frame of body a is now the joint's predecessor frame.
    backward = ModelBuilder().body("b", joint=Free(), inertia=I_b)
    backward = backward.body("a", on="b", joint=Reversed(joint), inertia=I_a.transformed(at))
    backward = backward.build()

    q, qd = forward.random_configuration(rng), rng.standard_normal(forward.nv)
    tau = np.concatenate([np.zeros(6), rng.standard_normal(joint.nv)])
    qdd = aba.forward_dynamics(forward, q, qd, tau)
    X, v, a = body_accelerations(forward, q, qd, qdd)
    X_0 = base_transforms(forward, X)

    root = Free().coordinates(X_0[2])
    q_back = np.concatenate([root, q[7:]])
    qd_back = np.concatenate([v[2].to_array(), qd[6:]])
    qdd_back = aba.forward_dynamics(backward, q_back, qd_back, tau)
    X, v_, a_ = body_accelerations(backward, q_back, qd_back, qdd_back)
    scale = np.max(np.abs(a[1].to_array())) + np.max(np.abs(qdd)) + 10
    assert_close((at @ v[1]).to_array(), v_[2].to_array(), ulps=500, scale=10.0)
    assert_close((at @ a[1]).to_array(), a_[2].to_array(), ulps=1e5, scale=scale)
    assert_close(a[2].to_array(), a_[1].to_array(), ulps=1e5, scale=scale)
    assert_close(qdd[6:], qdd_back[6:], ulps=1e5, scale=scale)


def test_one_axis_joints_reversed_turn_the_other_way(rng):
    q, qd = rng.standard_normal((2, 1))
    X_J, S, v_J, _ = Reversed(Revolute("z")).jcalc(q, qd)
    assert_close(X_J.to_matrix(), Revolute("z").transform(-q).to_matrix(), ulps=1)
    assert Reversed(Revolute("z")).constant_subspace
    assert isinstance(S, Motion)
    assert_close(v_J.to_array(), [0, 0, -qd[0], 0, 0, 0], ulps=1)


def test_reversed_joint_passes_on_what_the_joint_says(rng):
    joint = Reversed(Free())
    assert "unit length" in joint.defect(np.zeros(7))
    assert joint.defect(joint.normalize(2 * joint.random(rng))) is None
    assert joint.singularity(joint.neutral()) == 1
    assert Reversed(Free()) == Reversed(Free()) != Free()
