import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_motion

from kinetree.samples import random_placement
from kinetree.spatial import (
    Motion,
    classical_acceleration,
    crm,
    cross,
    exp,
    point_acceleration,
    point_velocity,
    spatial_acceleration,
    xlt,
)


@pytest.mark.covers("RBDA 2.2", "RBDA Example 2.1", by=point_velocity)
def test_velocity_fields_add(rng):
    v1, v2 = random_motion(rng), random_motion(rng)
    for p in rng.standard_normal((5, 3)):
        total = point_velocity(v1, p) + point_velocity(v2, p)
        assert_close(point_velocity(v1 + v2, p), total, scale=10)


@pytest.mark.covers(
    "RBDA 2.2", "RBDA Example 2.2", "6-D Guide 1: What Is a Spatial Vector", by=point_velocity
)
def test_velocity_field_does_not_depend_on_the_origin(rng):
    v, r, p = random_motion(rng), rng.standard_normal(3), rng.standard_normal(3)
    moved = xlt(r) @ v
    assert_close(moved.linear, point_velocity(v, r))
    assert_close(point_velocity(moved, p - r), point_velocity(v, p), scale=10)
    w, u, a = v.angular, v.linear, 0.7
    by_hand = np.array([u[0], u[1] + w[2] * a, u[2] - w[1] * a])
    assert_close(point_velocity(v, [a, 0, 0]), by_hand)


@pytest.mark.covers("RBDA 2.11", "6-D Guide 1: Acceleration", by=classical_acceleration)
def test_steady_rotation_has_no_spatial_acceleration():
    """Spinning at 2 rad/s about a z axis through (1, 0, 0)."""
    v, a = Motion([0, 0, 2], [0, -2, 0]), Motion.zero()
    assert np.array_equal(classical_acceleration(a, v).angular, [0, 0, 0])
    assert np.array_equal(classical_acceleration(a, v).linear, [4, 0, 0])
    assert np.array_equal(point_acceleration(a, v, [0, 0, 0]), [4, 0, 0])
    assert np.array_equal(point_acceleration(a, v, [1, 0, 5]), [0, 0, 0])


@pytest.mark.covers("RBDA 2.11", "Tutorial 3", by=point_acceleration)
def test_points_of_a_steadily_turning_body_accelerate_towards_the_axis(rng):
    w, p = rng.standard_normal((2, 3))
    expected = cross(w, cross(w, p))
    a = point_acceleration(Motion.zero(), Motion(w, np.zeros(3)), p)
    assert_close(a, expected, scale=20)


@pytest.mark.covers("RBDA 2.11", by=(classical_acceleration, spatial_acceleration))
def test_classical_and_spatial_acceleration_round_trip(rng):
    a, v = random_motion(rng), random_motion(rng)
    back = spatial_acceleration(*classical_acceleration(a, v), v)
    assert_close(back.to_array(), a.to_array(), scale=5)
    # (2.50): a = a' + (0; r') x v
    classical = Motion(*classical_acceleration(a, v))
    assert_close(
        (classical + crm(Motion(np.zeros(3), v.linear), v)).to_array(), a.to_array(), scale=5
    )


@pytest.mark.covers("RBDA 2.11", by=point_acceleration)
def test_point_acceleration_is_the_second_derivative_of_position(rng):
    """x(t) of a body point with v(t) = v + t a in base coordinates, to second order in t."""
    v, a, p = random_motion(rng), random_motion(rng), rng.standard_normal(3)

    def velocity_of_the_same_point(t):
        x = p + t * point_velocity(v, p)  # first order suffices for the first derivative
        return point_velocity(v + a * t, x)

    h = 1e-30
    expected = velocity_of_the_same_point(1j * h).imag / h
    assert_close(point_acceleration(a, v, p), expected, scale=20)


@pytest.mark.covers("RBDA 2.11", "RBDA 2.7", "6-D Guide 1: Acceleration", by=point_acceleration)
def test_spatial_accelerations_add_and_transform_like_velocities(rng):
    """Relative acceleration is the difference, without Coriolis terms, in any frame at rest."""
    X = random_placement(rng)
    v1, a1, v_rel, a_rel = (random_motion(rng) for _ in range(4))
    v2, a2, p = v1 + v_rel, a1 + a_rel, rng.standard_normal(3)
    direct = point_acceleration(a2, v2, p)
    moved = point_acceleration(X @ a1 + X @ a_rel, X @ v2, X.point(p))
    assert_close(X.E.T @ moved, direct, scale=50)


@pytest.mark.covers("6-D Guide 1: Acceleration", "6-D Guide 1: Motion Constraints", by=crm)
def test_acceleration_across_a_joint(rng):
    """a2 = a1 + s qdd + v2 x s qd with s fixed in body 2, by complex step of v2(t)."""
    v1, a1, s = (random_motion(rng) for _ in range(3))
    qd, qdd = rng.standard_normal(2)
    v2 = v1 + s * qd
    h = 1e-30
    s_later = exp(v2 * (1j * h)).inv_apply(s)
    v2_later = v1 + a1 * (1j * h) + s_later * (qd + 1j * h * qdd)
    expected = v2_later.to_array().imag / h
    assert_close((a1 + s * qdd + crm(v2, s) * qd).to_array(), expected, scale=20)
    assert_close(crm(v2, s * qd).to_array(), crm(v1, v2).to_array(), scale=20)
