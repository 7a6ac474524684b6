"""Euler-angle ball joint: printed vectors and singularities — RBDA (4.7)–(4.9), tutorial (52)."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba
from kinetree.errors import SingularError
from kinetree.joints import Euler, Spherical, Universal
from kinetree.joints.euler import successive_turns
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia
from kinetree.spatial import rx, ry, rz

SEQUENCES = [a + b + c for a in "xyz" for b in "xyz" for c in "xyz" if a != b != c]


@pytest.mark.covers("RBDA 4.5", by=Euler)
def test_yaw_pitch_roll_vectors_are_the_printed_ones(rng):
    q, qd = rng.standard_normal((2, 3))
    X_J, S, _, c_J = Euler("zyx").jcalc(q, qd)
    (c2, c3), (s2, s3) = np.cos(q[1:]), np.sin(q[1:])
    assert_close(X_J.E, rx(q[2]) @ ry(q[1]) @ rz(q[0]), ulps=4)
    printed = [[-s2, 0, 1], [c2 * s3, c3, 0], [c2 * c3, -s3, 0]]
    assert_close(S.angular, printed, ulps=4)
    yaw, pitch, roll = qd
    bias = [
        -c2 * yaw * pitch,
        -s2 * s3 * yaw * pitch + c2 * c3 * yaw * roll - s3 * pitch * roll,
        -s2 * c3 * yaw * pitch - c2 * s3 * yaw * roll - c3 * pitch * roll,
    ]
    assert_close(c_J.angular, bias, ulps=20)
    assert_close(np.linalg.det(S.angular), -c2, ulps=10)


@pytest.mark.covers("Tutorial 5", by=(Euler, Universal, successive_turns))
def test_parent_side_jacobian_is_that_of_the_tutorial(rng):
    q = rng.standard_normal(3)
    Rx, Ry = rx(q[0]).T, ry(q[1]).T  # active matrices
    J = np.column_stack([[1, 0, 0], Rx @ [0, 1, 0], Rx @ Ry @ [0, 0, 1]])
    joint = Euler("xyz")
    X_J, S = joint.transform(q), joint.motion_subspace(q)
    assert_close(X_J.E.T @ S.angular, J, ulps=8)
    assert_close(np.linalg.det(J), np.cos(q[1]), ulps=8)
    universal = Universal("xy")
    X_J, S = universal.transform(q[:2]), universal.motion_subspace(q[:2])
    assert_close(X_J.E.T @ S.angular, J[:, :2], ulps=8)


@pytest.mark.covers("RBDA 4.5", by=Euler.singularity)
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_singularity_is_the_determinant_and_vanishes_where_documented(sequence, rng):
    joint, q = Euler(sequence), rng.standard_normal(3)
    det = np.linalg.det(joint.motion_subspace(q).angular)
    assert_close(joint.singularity(q), abs(det), ulps=20)
    for middle in (0, np.pi) if sequence[0] == sequence[2] else (np.pi / 2, -np.pi / 2):
        q[1] = middle
        assert joint.singularity(q) < 1e-15
        assert np.linalg.matrix_rank(joint.motion_subspace(q).angular, tol=1e-12) == 2


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_random_angles_stay_away_from_singularities(sequence, rng):
    joint = Euler(sequence)
    assert min(joint.singularity(joint.random(rng)) for _ in range(50)) >= np.cos(1.2)


def test_forward_dynamics_at_a_singularity_is_an_error_and_not_with_a_quaternion(rng):
    inertia = random_inertia(rng)
    euler = ModelBuilder().body("b", joint=Euler("zxz"), inertia=inertia).build()
    with pytest.raises(SingularError):
        aba.forward_dynamics(euler, np.zeros(3), np.zeros(3), np.ones(3))
    ball = ModelBuilder().body("b", joint=Spherical(), inertia=inertia).build()
    assert np.all(np.isfinite(aba.forward_dynamics(ball, ball.neutral(), np.zeros(3), np.ones(3))))
