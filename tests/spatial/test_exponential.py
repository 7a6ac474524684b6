import itertools

import mpmath
import numpy as np
import pytest
from scipy.linalg import expm
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion

from kinetree.errors import SpatialTypeError
from kinetree.samples import random_placement
from kinetree.spatial import Motion, Plucker, crm, dense, displacement_velocity, exp, log, rotz, xlt
from kinetree.spatial.lie import left_jacobian, left_jacobian_inverse
from kinetree.spatial.rotation import rotation_exp
from kinetree.spatial.vector3 import skew

EPS = np.finfo(float).eps


@pytest.mark.covers("Spencer A.1.3", "RBDA 2.9", by=exp)
@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-4, 1.0, 2.5, 6.0])
def test_exponential_is_the_matrix_exponential(size, rng):
    """The frame moves at v, so the transform to it is exp(-v×)."""
    v = Motion(size * rng.standard_normal(3) / 2, rng.standard_normal(3))
    expected = expm(-dense.crm(v.to_array()))
    assert_close(exp(v).to_matrix(), expected, ulps=300)


def test_pure_translation_and_pure_rotation():
    assert np.array_equal(
        exp(Motion(np.zeros(3), [1.0, 2, 3])).to_matrix(), xlt(1, 2, 3).to_matrix()
    )
    assert_close(exp(Motion([0, 0, 0.3], np.zeros(3))).to_matrix(), rotz(0.3).to_matrix())


@pytest.mark.covers("Spencer A.1.3", by=log)
@pytest.mark.parametrize("angle", [0.0, 1e-200, 1e-9, 1e-3, 0.25, 1.0, 2.0, 3.0, 3.14159])
def test_logarithm_inverts_the_exponential(angle, rng):
    n = rng.standard_normal(3)
    v = Motion(n / np.linalg.norm(n) * angle, rng.standard_normal(3))
    back = log(exp(v))
    assert np.abs(back.angular - v.angular).max() <= 16 * EPS * angle
    assert_close(back.linear, v.linear)


def test_logarithm_of_a_half_turn_about_a_displaced_axis():
    """The screw through (1, 0, 0) along z with pitch: half a turn and 3 m."""
    X = xlt(1, 0, 0).inverse() @ rotz(np.pi) @ xlt(0, 0, 3) @ xlt(1, 0, 0)
    v = log(X)
    back = exp(v)
    assert_close(back.to_matrix(), X.to_matrix(), scale=10)
    assert_close(abs(v.angular[2]), np.pi)


def test_velocity_of_a_moving_frame_is_invariant(rng):
    """X v = v: a screw motion keeps its own axis."""
    v = random_motion(rng)
    assert_close((exp(v) @ v).to_array(), v.to_array())
    assert_close((exp(v * 0.3) @ exp(v * 0.7)).to_matrix(), exp(v).to_matrix())
    assert_close(exp(v * -1).to_matrix(), exp(v).inverse().to_matrix())


@pytest.mark.covers("RBDA 2.7", "6-D Guide 1: Using Spatial Vectors", by=log)
def test_relative_velocity_is_the_rate_of_the_relative_displacement(rng):
    """By complex step: the logarithm of the relative transform grows at v2 - v1."""
    X1, X2, h = random_placement(rng), random_placement(rng), 1e-30
    v1, v2 = random_motion(rng), random_motion(rng)  # in base coordinates

    def at(X, v, t):
        return exp((X @ v) * t) @ X  # velocity in the coordinates of the moving frame

    start = X2 @ X1.inverse()
    later = at(X2, v2, 1j * h) @ at(X1, v1, 1j * h).inverse()
    step = log(later @ start.inverse())
    assert_close(step.to_array().imag / h, (X2 @ (v2 - v1)).to_array(), ulps=300)


@pytest.mark.covers("Tutorial 5", by=left_jacobian)
class TestJacobian:
    """The Jacobian of the rotation vector."""

    def test_published_numbers(self):
        expected = [
            [0.90217650236, 0.31331062539, 0.19587652273],
            [-0.24916406956, 0.91660947742, -0.23560148185],
            [-0.27285238972, 0.13938164811, 0.93424978028],
        ]
        J = left_jacobian(np.array([0.4, 0.5, -0.6]))
        assert np.abs(J - expected).max() < 0.6e-11  # printed with eleven digits

    @pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 1.0, 3.0, 5.0])
    def test_angular_velocity_by_complex_step(self, angle, rng):
        phi, rate = rng.standard_normal((2, 3))
        phi, h = phi / np.linalg.norm(phi) * angle, 1e-30
        E = rotation_exp(phi)
        Ed = rotation_exp(phi + rate * 1j * h).imag / h
        w_parent = left_jacobian(phi) @ rate
        assert_close(Ed.T @ E, skew(w_parent), scale=5)  # Rd Rᵀ with R = Eᵀ
        assert_close(-Ed @ E.T, skew(left_jacobian(phi).T @ rate), scale=5)

    def test_other_form_through_the_rotation(self, rng):
        phi = rng.standard_normal(3)
        assert_close(rotation_exp(phi).T @ left_jacobian(phi).T, left_jacobian(phi))

    def test_determinant_vanishes_at_full_turns(self, rng):
        n = rng.standard_normal(3)
        n = n / np.linalg.norm(n)
        for t in (0.5, 3.0, 6.0, 2 * np.pi):
            expected = 2 * (1 - np.cos(t)) / t**2
            assert_close(np.linalg.det(left_jacobian(n * t)), expected, scale=1)

    @pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 0.01, 1.0, 1.99, 2.01, 3.0, np.pi, 5.0])
    def test_inverse(self, angle, rng):
        n = rng.standard_normal(3)
        phi = n / np.linalg.norm(n) * angle
        J = left_jacobian(phi)
        k = np.linalg.cond(J)
        assert_close(left_jacobian_inverse(phi) @ J, np.eye(3), condition=k, ulps=20)

    def test_truncated_series_have_third_order_errors(self):
        """1 + [q] + [q]²/2 and 1 + [q]/2 + [q]²/6, as published for small angles."""
        errors = {0.1: (1.1e-4, 2.8e-5), 0.01: (1.1e-7, 2.8e-8), 0.001: (1.1e-10, 2.8e-11)}
        for t, (expected_R, expected_J) in errors.items():
            q = t * np.array([1, 2, 2]) / 3
            u = skew(q)
            R, J = rotation_exp(q).T, left_jacobian(q)
            assert np.abs(R - (np.eye(3) + u + u @ u / 2)).max() == pytest.approx(
                expected_R, rel=0.05
            )
            assert np.abs(J - (np.eye(3) + u / 2 + u @ u / 6)).max() == pytest.approx(
                expected_J, rel=0.05
            )

    def test_against_fifty_digits(self, rng):
        for angle in (1e-10, 1e-4, 0.3, 1.99, 2.01, 3.14):
            n = rng.standard_normal(3)
            phi = n / np.linalg.norm(n) * angle
            with mpmath.workdps(50):
                exact = np.array([mpmath.mpf(float(a)) for a in phi])
                expected = left_jacobian(exact).astype(float)
                expected_inverse = left_jacobian_inverse(exact).astype(float)
            assert_close(left_jacobian(phi), expected, ulps=4)
            assert_close(left_jacobian_inverse(phi), expected_inverse, ulps=16)


@pytest.mark.covers(
    "RBDA A.2", "RBDA Table A.2", "6-D Guide 2: Arithmetic", by=displacement_velocity
)
class TestDisplacementVelocity:
    """The book's XtoV."""

    def test_published_numbers(self):
        v = displacement_velocity(rotz(0.1) @ xlt(0, 0, 0.02)).to_array()
        assert np.abs(v - [0, 0, 0.0998334166, 0, 0, 0.0199000833]).max() < 1e-10
        assert_close(displacement_velocity(rotz(np.pi)).to_array(), np.zeros(6), scale=1)
        half_turn = displacement_velocity(rotz(np.pi) @ xlt(1, 2, 3)).to_array()
        assert_close(half_turn, np.array([0.0, 0, 0, 0, 0, -3]), scale=3)

    def test_entries_as_printed(self, rng):
        X = random_placement(rng)
        M = X.to_matrix()
        entry = lambda i, j: M[i - 1, j - 1]  # noqa: E731
        expected = [
            entry(2, 3) - entry(3, 2),
            entry(3, 1) - entry(1, 3),
            entry(1, 2) - entry(2, 1),
            entry(5, 3) - entry(6, 2),
            entry(6, 1) - entry(4, 3),
            entry(4, 2) - entry(5, 1),
        ]
        assert_close(displacement_velocity(X).to_array(), np.array(expected) / 2)

    def test_exact_for_translations(self, rng):
        r = rng.standard_normal(3)
        assert_close(displacement_velocity(xlt(r)).to_array(), np.array([0, 0, 0, *r]))

    def test_invariant_under_the_displacement(self, rng):
        X = random_placement(rng)
        v = displacement_velocity(X)
        assert_close((X @ v).to_array(), v.to_array())
        assert_close(X.inv_apply(v).to_array(), v.to_array())

    def test_angular_part_is_the_sine_of_the_angle(self, rng):
        n = rng.standard_normal(3)
        n = n / np.linalg.norm(n)
        for t in (0.1, 1.0, 2.0, 3.0):
            v = displacement_velocity(exp(Motion(n * t, rng.standard_normal(3))))
            assert_close(v.angular, np.sin(t) * n, scale=1)

    def test_approaches_the_logarithm_with_the_square_of_the_angle(self, rng):
        v = random_motion(rng)
        v = v / np.linalg.norm(v.angular)
        errors = []
        for t in (0.4, 0.2, 0.1, 0.05):
            X = exp(v * t)
            errors.append(np.abs((displacement_velocity(X) - log(X)).to_array()).max() / t)
        assert all(3.8 < a / b < 4.2 for a, b in itertools.pairwise(errors))


def test_derivative_at_zero_by_complex_step(rng):
    v, m, h = random_motion(rng), random_motion(rng), 1e-30
    X = exp(v * (1j * h))
    assert_close((X @ m).to_array().imag / h, -crm(v, m).to_array())
    assert_close(log(X).to_array().imag / h, v.to_array())


def test_only_motions_have_an_exponential(rng):
    with pytest.raises(SpatialTypeError, match="exp takes a Motion, got Force"):
        exp(random_force(rng))
    assert np.array_equal(log(Plucker.identity()).to_array(), np.zeros(6))
