import itertools

import mpmath
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.closeness import assert_close
from support.spatial_quantities import random_rotation

from kinetree.errors import JointError
from kinetree.spatial import rx, ry, rz, skew
from kinetree.spatial.rotation import (
    euler_angles,
    euler_rotation,
    quaternion_exp,
    quaternion_from_rotation,
    quaternion_log,
    quaternion_product,
    quaternion_rate,
    quaternion_velocity,
    rotation_about,
    rotation_exp,
    rotation_from_quaternion,
    rotation_log,
)

EPS = np.finfo(float).eps
ANGLES = [1e-200, 1e-20, 1e-8, 1e-4, 0.01, 0.2, 0.25, 0.3, 1.0, 1.9, 2.1, 3.0]
NEAR_180 = [np.pi - 10.0**-k for k in (2, 4, 6, 8, 10, 12, 14)] + [np.pi]
SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]


def exact_rotation(phi):
    """``E`` of a rotation vector in 50 digits, rounded to double."""
    with mpmath.workdps(50):
        x, y, z = (mpmath.mpf(float(a)) for a in phi)
        t = mpmath.sqrt(x * x + y * y + z * z)
        K = mpmath.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        E = mpmath.eye(3) - mpmath.sin(t) / t * K + 2 * (mpmath.sin(t / 2) / t) ** 2 * K * K
        return np.array(E.tolist(), dtype=float)


def directions(rng, n=5):
    axes = [*np.eye(3), *rng.standard_normal((n, 3))]
    return [a / np.linalg.norm(a) for a in axes]


@pytest.mark.covers("Tutorial 5", "Spencer A.1.3", by=rotation_exp)
@pytest.mark.parametrize("angle", [*ANGLES, *NEAR_180, 5.0, 30.0])
def test_exponential_within_eight_ulp_of_fifty_digits(angle, rng):
    for n in directions(rng):
        error = np.abs(rotation_exp(n * angle) - exact_rotation(n * angle)).max()
        assert error <= 8 * EPS * max(1, angle)


@pytest.mark.covers("Tutorial 5", by=rotation_log)
@pytest.mark.parametrize("angle", ANGLES)
def test_logarithm_within_four_ulp(angle, rng):
    for n in directions(rng):
        phi = n * angle
        assert np.abs(rotation_log(exact_rotation(phi)) - phi).max() <= 4 * EPS * angle


@pytest.mark.parametrize("angle", NEAR_180)
def test_logarithm_close_to_and_at_180_degrees(angle, rng):
    """Either sense of rotation will do within rounding of 180 degrees."""
    for n in directions(rng):
        phi = rotation_log(exact_rotation(n * angle))
        if np.pi - angle < 1e-15:
            phi = phi * np.sign(phi @ n)
        assert np.abs(phi - n * angle).max() <= 8 * EPS * np.pi


def test_half_turns_exactly():
    for n in np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.8, 0], [0, -0.6, 0.8]]):
        phi = rotation_log(2 * np.outer(n, n) - np.eye(3))
        assert_close(np.abs(phi), np.pi * np.abs(n), ulps=4)


def test_identity_exactly():
    assert np.array_equal(rotation_log(np.eye(3)), np.zeros(3))
    assert np.array_equal(rotation_exp(np.zeros(3)), np.eye(3))


@pytest.mark.covers("Tutorial 5", by=(rotation_exp, rotation_log))
def test_more_than_half_a_turn_comes_back_as_the_rest(rng):
    """A rotation vector beyond 180 degrees is replaced by the equivalent shorter one."""
    for angle in (3.5, 5.0, 6.2, 7.0):
        n = directions(rng)[-1]
        rest = (angle + np.pi) % (2 * np.pi) - np.pi
        assert_close(rotation_log(rotation_exp(n * angle)), n * rest, ulps=200, scale=angle)


def test_derivatives_at_the_identity_by_complex_step(rng):
    phi, h = rng.standard_normal(3), 1e-30
    assert_close(rotation_exp(phi * 1j * h).imag / h, -skew(phi))
    assert_close(quaternion_exp(phi * 1j * h).imag / h, np.array([0, *phi / 2]))
    E = rotation_exp(phi * 1j * h)
    assert_close(rotation_log(E).imag / h, phi)
    assert_close(quaternion_log(quaternion_exp(phi * 1j * h)).imag / h, phi)


@pytest.mark.parametrize("angle", [1e-9, 1e-3, 0.24, 0.26, 1.0, 3.0])
def test_derivative_of_the_logarithm_by_complex_step(angle, rng):
    """log inverts exp to first order too."""
    n, d = rng.standard_normal((2, 3))
    phi, h = n / np.linalg.norm(n) * angle, 1e-30
    assert_close(rotation_log(rotation_exp(phi + d * 1j * h)).imag / h, d, ulps=2000)


@pytest.mark.covers("RBDA 4.5", by=(rotation_from_quaternion, quaternion_from_rotation))
class TestQuaternions:
    """Euler parameters."""

    @pytest.mark.parametrize("angle", [0.0, *ANGLES, *NEAR_180])
    def test_round_trip_keeps_the_rotation(self, angle, rng):
        for n in directions(rng):
            E = exact_rotation(n * angle) if angle else np.eye(3)
            p = quaternion_from_rotation(E)
            assert p[0] >= 0
            assert_close(p @ p, 1.0, ulps=8)
            assert_close(rotation_from_quaternion(p), E, ulps=16)

    def test_turn_about_z_is_rz(self):
        p = np.array([np.cos(0.35), 0, 0, np.sin(0.35)])
        assert_close(rotation_from_quaternion(p), rz(0.7))

    def test_both_signs_are_the_same_rotation(self, rng):
        p = quaternion_from_rotation(random_rotation(rng))
        assert np.array_equal(rotation_from_quaternion(p), rotation_from_quaternion(-p))
        assert_close(quaternion_log(-p), quaternion_log(p))

    def test_product_is_the_rotation_in_turn(self, rng):
        a, b = (quaternion_from_rotation(random_rotation(rng)) for _ in range(2))
        E = rotation_from_quaternion(b) @ rotation_from_quaternion(a)
        assert_close(rotation_from_quaternion(quaternion_product(a, b)), E)

    def test_exponential_and_logarithm(self, rng):
        for angle in (1e-200, 1e-9, 0.1, 0.24, 0.26, 3.1):
            phi = directions(rng)[-1] * angle
            p = quaternion_exp(phi)
            assert_close(rotation_from_quaternion(p), rotation_exp(phi))
            assert np.abs(quaternion_log(p) - phi).max() <= 4 * EPS * angle

    def test_rate_is_half_the_product_with_the_angular_velocity(self, rng):
        """dE/dt = -w x E, and the norm stays one."""
        p, w, h = quaternion_from_rotation(random_rotation(rng)), rng.standard_normal(3), 1e-30
        pd = quaternion_rate(p, w)
        assert_close(p @ pd, 0.0, scale=1)
        Ed = rotation_from_quaternion(p + pd * 1j * h).imag / h
        assert_close(Ed, -skew(w) @ rotation_from_quaternion(p), scale=5)

    def test_a_quaternion_that_is_not_unit_gives_no_rotation(self, rng):
        E = rotation_from_quaternion(1.1 * quaternion_from_rotation(random_rotation(rng)))
        assert np.abs(E @ E.T - np.eye(3)).max() > 0.1

    @pytest.mark.covers("Tutorial 5", by=quaternion_velocity)
    def test_angular_velocity_from_the_rate(self, rng):
        p, w = quaternion_from_rotation(random_rotation(rng)), rng.standard_normal(3)
        pd = quaternion_rate(p, w)
        assert_close(quaternion_velocity(p, pd), w)
        a, x, y, z = p  # in the parent frame it is 2 Q dp/dt with
        Q = np.array([[-x, a, -z, y], [-y, z, a, -x], [-z, -y, x, a]])
        assert_close(2 * Q @ pd, rotation_from_quaternion(p).T @ w)
        assert np.linalg.matrix_rank(Q) == 3


def test_rotation_about_an_axis(rng):
    for n in directions(rng):
        assert_close(rotation_about(n, np.cos(0.8), np.sin(0.8)), rotation_exp(0.8 * n))


@pytest.mark.covers("RBDA 4.5", "Tutorial 5", by=(euler_rotation, euler_angles))
class TestEulerAngles:
    """All twelve sequences, the six proper ones and the six of Tait and Bryan."""

    def test_there_are_twelve(self):
        assert len(SEQUENCES) == 12

    @pytest.mark.parametrize("sequence", SEQUENCES)
    def test_rotation_agrees_with_scipy(self, sequence, rng):
        angles = rng.uniform(-3, 3, 3)
        active = Rotation.from_euler(sequence.upper(), angles).as_matrix()
        assert_close(euler_rotation(sequence, angles), active.T)

    def test_yaw_pitch_roll(self):
        q = (0.3, -0.4, 0.5)
        assert_close(euler_rotation("zyx", q), rx(q[2]) @ ry(q[1]) @ rz(q[0]))

    @pytest.mark.parametrize("sequence", SEQUENCES)
    def test_angles_within_range_come_back(self, sequence, rng):
        proper = sequence[0] == sequence[2]
        for _ in range(10):
            middle = rng.uniform(0.1, 3.0) if proper else rng.uniform(-1.4, 1.4)
            angles = np.array([rng.uniform(-3, 3), middle, rng.uniform(-3, 3)])
            assert_close(euler_angles(sequence, euler_rotation(sequence, angles)), angles, ulps=200)

    @pytest.mark.parametrize("sequence", SEQUENCES)
    @pytest.mark.parametrize("offset", [0.0, 1e-15, 1e-9, 1e-5])
    def test_rotation_is_reproduced_at_and_near_singularities(self, sequence, offset, rng):
        ends = (0.0, np.pi) if sequence[0] == sequence[2] else (-np.pi / 2, np.pi / 2)
        for end, sign in zip(ends, (1, -1), strict=True):
            angles = np.array([rng.uniform(-3, 3), end + sign * offset, rng.uniform(-3, 3)])
            E = euler_rotation(sequence, angles)
            again = euler_rotation(sequence, euler_angles(sequence, E))
            assert_close(again, E, ulps=8)

    @pytest.mark.parametrize("sequence", SEQUENCES)
    def test_exact_quarter_turns(self, sequence):
        """Integer matrices: many are singular cases, none may fail."""
        turns = [np.rint(f(np.pi / 2)) for f in (rx, ry, rz)]
        for a, b in itertools.product(turns, turns):
            E = a @ b
            again = euler_rotation(sequence, euler_angles(sequence, E))
            assert_close(again, E, ulps=8)

    @pytest.mark.parametrize("wrong", ["zz", "xxy", "abc", "zyz ", None, "XYZ"])
    def test_bad_sequences_are_named(self, wrong):
        for call in (
            lambda: euler_rotation(wrong, (0, 0, 0)),
            lambda: euler_angles(wrong, np.eye(3)),
        ):
            with pytest.raises(JointError, match="three of the letters x, y, z with neighbours"):
                call()
