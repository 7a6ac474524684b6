"""Loop position errors against the printed table, for any axis — RBDA §8.3."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.joints import (
    AbstractJoint,
    Cylindrical,
    Euler,
    Exponential,
    Fixed,
    Helical,
    Prismatic,
    RackAndPinion,
    Revolute,
    SphereInCylinder,
    Spherical,
    Translation,
)
from kinetree.joints.axis import completed_basis
from kinetree.spatial import Motion, Plucker, exp, rot
from kinetree.spatial.rotation import rotation_exp


def printed(kind, M):
    """Table 8.1 as printed, in one-based indices of the 6x6 matrix."""
    X = {(i, j): M[i - 1, j - 1] for i in range(1, 7) for j in range(1, 7)}
    turn = [(X[2, 3] - X[3, 2]) / 2, (X[3, 1] - X[1, 3]) / 2, (X[1, 2] - X[2, 1]) / 2]
    move = [(X[5, 3] - X[6, 2]) / 2, (X[6, 1] - X[4, 3]) / 2, (X[4, 2] - X[5, 1]) / 2]
    return {
        Fixed: [*turn, *move],
        Revolute: [
            X[2, 3], -X[1, 3], X[5, 3], -X[4, 3], X[4, 1] * X[2, 1] + X[4, 2] * X[2, 2],
        ],
        Prismatic: [*turn, X[5, 3], -X[4, 3]],
        Cylindrical: [X[2, 3], -X[1, 3], X[5, 3], -X[4, 3]],
        Spherical: [
            X[5, 1] * X[3, 1] + X[5, 2] * X[3, 2] + X[5, 3] * X[3, 3],
            X[6, 1] * X[1, 1] + X[6, 2] * X[1, 2] + X[6, 3] * X[1, 3],
            X[4, 1] * X[2, 1] + X[4, 2] * X[2, 2] + X[4, 3] * X[2, 3],
        ],
    }[kind]  # fmt: skip


TABLE = [Fixed, Revolute, Prismatic, Cylindrical, Spherical]


def random_transform(rng):
    return Plucker(rotation_exp(rng.standard_normal(3)), rng.standard_normal(3))


@pytest.mark.covers("RBDA Table 8.1", "RBDA 8.3", by=AbstractJoint.loop_error)
@pytest.mark.parametrize("kind", TABLE)
def test_error_is_the_printed_formula(kind, rng):
    X = random_transform(rng)
    assert_close(kind().loop_error(X), printed(kind, X.to_matrix()), ulps=20)


@pytest.mark.covers("RBDA Example 8.1", by=AbstractJoint.loop_error)
@pytest.mark.parametrize("kind", [Revolute, Prismatic, Cylindrical, SphereInCylinder])
def test_error_about_another_axis_is_that_about_z_in_turned_frames(kind, rng):
    joint = kind((2.0, -1.0, 0.5))
    u, v = completed_basis(joint.axis)
    turn = rot(np.array([u, v, joint.axis]))  # to frames whose z axis is the joint axis
    X = random_transform(rng)
    error = joint.loop_error(X)
    turned = kind("z").loop_error(turn @ X @ turn.inverse())
    if kind is Prismatic:
        turned[:3] = turn.E.T @ turned[:3]
    assert_close(error, turned, ulps=20)


@pytest.mark.covers("RBDA 8.3", by=AbstractJoint.loop_error)
@pytest.mark.parametrize("kind", TABLE)
def test_table_and_logarithm_differ_in_second_order_only(kind, rng):
    joint, v = kind(), Motion.from_array(rng.standard_normal(6))
    X_J = joint.transform(joint.random(rng))
    errors = []
    for h in (1e-2, 1e-3):
        X = exp(v * h) @ X_J
        generic = AbstractJoint.loop_error(joint, X)
        errors.append(np.max(np.abs(joint.loop_error(X) - generic)))
    assert errors[1] <= max(0.02 * errors[0], 1e-15)


@pytest.mark.covers("RBDA 8.3", by=AbstractJoint.loop_error)
@pytest.mark.parametrize("kind", [Spherical, Euler, Exponential])
def test_error_of_a_ball_joint_is_the_gap_exactly(kind, rng):
    X = random_transform(rng)
    assert_close(kind().loop_error(X), X.E @ X.r, ulps=4)


@pytest.mark.covers("RBDA 8.10", by=SphereInCylinder.loop_error)
def test_error_of_sphere_in_cylinder_is_exact_also_far_from_closure(rng):
    joint = SphereInCylinder((1, 2, 2))
    X, v = random_transform(rng), Motion.from_array(rng.standard_normal(6))
    h = 1e-20
    rate = np.imag(joint.loop_error(exp(v * (1j * h)) @ X)) / h
    T = joint.constraint_subspace(joint.coordinates(X))
    assert_close(rate, T.T @ v, ulps=50)


@pytest.mark.covers("RBDA 8.3", by=AbstractJoint.loop_alignment)
def test_alignment_is_the_cosine_that_tells_half_a_turn_from_none(rng):
    turn = rng.standard_normal(3)
    for angle in (0.0, 0.7, 2.0, np.pi):
        X = Plucker(rotation_exp(angle * turn / np.linalg.norm(turn)), rng.standard_normal(3))
        for joint in (Fixed(), Translation(), Prismatic(rng.standard_normal(3))):
            assert_close(joint.loop_alignment(X), 2 * np.cos(angle), scale=4)
        joint = Cylindrical(rng.standard_normal(3))
        axis = np.array(joint.axis)
        assert_close(joint.loop_alignment(X), axis @ (X.E @ axis), scale=4)


@pytest.mark.parametrize("joint", [RackAndPinion(0.5), Helical("z", pitch=0.3)], ids=repr)
def test_coordinates_beside_a_joint_are_those_of_the_nearest_position(joint, rng):
    """To first order a small motion ``d`` beside the joint adds its projection onto ``S``."""
    q, d, h = np.array([0.8]), rng.standard_normal(6), 1e-6
    S = joint.motion_subspace(q).to_array()[:, 0]
    X = exp(Motion.from_array(h * d)) @ joint.transform(q)
    assert_close((joint.coordinates(X) - q) / h, [S @ d / (S @ S)], ulps=1e11, scale=1)
