"""Screw joints and products of exponentials — Lynch & Park §9.3."""

import numpy as np
import pytest
from scipy.linalg import expm
from support.closeness import assert_close

from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.errors import JointError
from kinetree.joints import Helical, Prismatic, Revolute, Screw
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Motion, Plucker, dense, exp


@pytest.mark.covers("Lynch & Park 9.3", by=Screw)
@pytest.mark.parametrize("rotating", [True, False])
def test_transform_is_the_matrix_exponential(rotating, rng):
    twist = rng.standard_normal(6) * [rotating, rotating, rotating, 1, 1, 1]
    joint, q = Screw(twist), rng.uniform(-3, 3, 1)
    S = joint.motion_subspace(q).to_array()[:, 0]
    assert_close(np.linalg.norm(S[:3] if rotating else S[3:]), 1.0, ulps=4)
    assert_close(joint.transform(q).to_matrix(), expm(-dense.crm(S) * q[0]), ulps=200)
    assert_close(
        joint.transform(q).to_matrix(), exp(Motion.from_array(S) * q[0]).to_matrix(), ulps=50
    )


@pytest.mark.covers("Lynch & Park 9.3", by=Screw)
def test_chain_of_screws_is_the_product_of_exponentials(rng):
    """Space screws and home poses against link screws and link-to-link home poses."""
    n = 5
    builder, on = ModelBuilder(), None
    M, A = [random_placement(rng) for _ in range(n)], []
    for i in range(n):
        turns = i != 2  # one of them slides
        A.append(Screw(rng.standard_normal(6) * [turns, turns, turns, 1, 1, 1]))
        builder.body(f"b{i}", on=on, joint=A[i], at=M[i], inertia=random_inertia(rng))
        on = f"b{i}"
    model, q = builder.build(), rng.standard_normal(n)
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    product, home = np.eye(4), np.eye(4)
    for i in range(n):
        home = home @ M[i].to_pose()
        S = Plucker.from_pose(home).inverse() @ Motion.from_array(np.array(A[i].twist))
        product = product @ expm(hat(S) * q[i])
    assert_close(X_0[n].to_pose(), product @ home, ulps=500)


def hat(twist):
    w, v = twist.angular, twist.linear
    out = np.zeros((4, 4))
    out[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    out[:3, 3] = v
    return out


@pytest.mark.parametrize("axis", ["x", "-z", (1, 2, 2)])
def test_about_a_line_through_the_frame_is_the_joint_of_that_name(axis, rng):
    q = rng.standard_normal(1)
    for pitch, joint in (
        (0, Revolute(axis)), (np.inf, Prismatic(axis)), (0.3, Helical(axis, pitch=0.3))
    ):  # fmt: skip
        screw = Screw.about(axis, pitch=pitch)
        assert_close(screw.transform(q).to_matrix(), joint.transform(q).to_matrix(), ulps=8)
        assert_close(
            screw.motion_subspace(q).to_array(), joint.motion_subspace(q).to_array(), ulps=4
        )


def test_points_of_the_axis_stay_on_it(rng):
    point = rng.standard_normal(3)
    joint = Screw.about((1, -1, 0.5), point)
    assert_close(joint.transform(np.array([1.1])).point(point), point, ulps=20)


@pytest.mark.parametrize("twist", [(0, 0, 0, 0, 0, 0), (0, 0, 1, np.nan, 0, 0), (0, 0, 1), "screw"])
def test_twists_that_are_not_six_finite_numbers_are_rejected(twist):
    with pytest.raises(JointError, match="screw twist must be six finite numbers, not all zero"):
        Screw(twist)
