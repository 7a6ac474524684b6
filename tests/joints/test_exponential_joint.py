"""Rotation-vector ball joint — tutorial (53)–(56)."""

import mpmath
import numpy as np
import pytest
from scipy.linalg import expm
from support.closeness import assert_close

from kinetree.joints import Exponential, check_joint
from kinetree.spatial import skew

JOINT = Exponential()


def jacobian(q):
    """Tutorial (54), as printed on the right: parent side, closed form."""
    t = np.linalg.norm(q)
    u = skew(q)
    return np.eye(3) + (1 - np.cos(t)) / t**2 * u + (t - np.sin(t)) / t**3 * (u @ u)


@pytest.mark.covers("Tutorial 5", by=Exponential)
def test_transform_and_jacobian_are_those_of_the_tutorial(rng):
    q = rng.standard_normal(3)
    X_J, S = JOINT.transform(q), JOINT.motion_subspace(q)
    R = expm(skew(q))
    assert_close(X_J.E.T, R, ulps=20)
    assert_close(X_J.E.T @ S.angular, jacobian(q), ulps=50)
    t, u = np.linalg.norm(q), skew(q)
    left = R @ (np.eye(3) - (1 - np.cos(t)) / t**2 * u + (t - np.sin(t)) / t**3 * (u @ u))
    assert_close(X_J.E.T @ S.angular, left, ulps=50)
    det = np.linalg.det(S.angular)
    assert_close(JOINT.singularity(q), det, ulps=20)
    assert_close(det, 2 * (1 - np.cos(t)) / t**2, ulps=20)


@pytest.mark.covers("Tutorial 5", by=Exponential)
@pytest.mark.parametrize("angle", [0.0, 1e-160, 1e-12, 1e-8, 1e-4, 0.1, 1.9999, 2.0001, 3.1, 6.0])
def test_every_angle_to_full_precision(angle):
    direction, qd = np.array([2.0, -1.0, 2.0]) / 3, np.array([0.3, 1.0, -0.7])
    q = angle * direction
    _, S, _, c_J = JOINT.jcalc(q, qd)
    with mpmath.workdps(60):
        exact = np.array([mpmath.mpf(x) for x in q], dtype=object)
        _, S_mp, _, c_mp = JOINT.jcalc(exact, np.array([mpmath.mpf(x) for x in qd]))
        S_mp, c_mp = S_mp.angular.astype(float), c_mp.angular.astype(float)
    assert_close(S.angular, S_mp, ulps=8)
    assert_close(c_J.angular, c_mp, ulps=64, scale=max(np.max(np.abs(c_mp)), 0.1 * angle, 1e-300))


@pytest.mark.covers("Tutorial 5", by=Exponential.reparameterize)
@pytest.mark.parametrize("angle", [3.2, 4.0, 6.0, 6.28])
def test_reparameterized_state_has_the_same_orientation_and_velocity(angle, rng):
    direction = rng.standard_normal(3)
    q = angle * direction / np.linalg.norm(direction)
    qd = rng.standard_normal(3)
    short, rate = JOINT.reparameterize(q, qd)
    assert_close(short, (1 - 2 * np.pi / angle) * q, ulps=8, scale=angle)
    a, b = JOINT.jcalc(q, qd), JOINT.jcalc(short, rate)
    assert_close(b[0].E, a[0].E, ulps=50)
    assert_close(b[2].angular, a[2].angular, ulps=50, scale=np.max(np.abs(qd)))
    assert JOINT.singularity(short) > JOINT.singularity(q)


def test_state_within_half_a_turn_is_left_as_it_is(rng):
    q, qd = rng.uniform(-1.5, 1.5, (2, 3))
    short, rate = JOINT.reparameterize(q, qd)
    np.testing.assert_array_equal(short, q)
    np.testing.assert_array_equal(rate, qd)
    for zero in JOINT.reparameterize(np.zeros(3), np.zeros(3)):
        np.testing.assert_array_equal(zero, np.zeros(3))


def test_contract_near_half_a_turn(rng):
    class Nearly(Exponential):
        def random(self, rng):
            q = super().random(rng)
            return q / np.linalg.norm(q) * 3.1

    check_joint(Nearly(), rng)
