"""Derivatives by complex step: a motion is followed for an imaginary time of 1e-30 s."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import (
    random_articulated,
    random_force,
    random_motion,
    random_rotation,
)

from kinetree.errors import SpatialTypeError
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import (
    Dyadic,
    Force,
    InverseInertia,
    Motion,
    Plucker,
    apparent_derivative,
    carried_rate,
    cross,
    dense,
    exp,
    transform_rate,
    true_derivative,
)
from kinetree.spatial.rotation import rotation_exp

H = 1e-30


def coordinates(x):
    if isinstance(x, (Motion, Force)):
        return x.to_array()
    return x.to_matrix() if hasattr(x, "to_matrix") else np.asarray(x)


def rate(x):
    """Derivative with respect to time of coordinates at time i H."""
    return coordinates(x).imag / H


@pytest.mark.covers("RBDA 2.10", "6-D Guide 1: Differentiation", by=true_derivative)
@pytest.mark.parametrize("make", [random_motion, random_force])
def test_true_and_apparent_derivative_in_a_moving_frame(make, rng):
    """x(t) = x + t xd in base coordinates, relative to a frame that moves at v_A."""
    x, xd = make(rng), make(rng)
    X0, v_A = random_placement(rng), random_motion(rng)  # v_A in A coordinates
    X = exp(v_A * (1j * H)) @ X0
    ring = type(x).from_array(rate(X.apply(x + xd * (1j * H))))
    dot = X0.apply(xd)
    seen = X0.apply(x)
    assert_close(true_derivative(ring, seen, v_A).to_array(), dot.to_array(), scale=30)
    assert_close(apparent_derivative(dot, seen, v_A).to_array(), ring.to_array(), scale=30)


@pytest.mark.covers("RBDA 2.10", "Lynch & Park 9.2", by=true_derivative)
def test_three_dimensional_vector_in_a_rotating_frame(rng):
    u, ud, w = rng.standard_normal((3, 3))
    E0 = random_rotation(rng)
    ring = rate(rotation_exp(w * 1j * H) @ E0 @ (u + ud * 1j * H))
    assert_close(true_derivative(ring, E0 @ u, w), E0 @ ud, scale=10)
    assert_close(apparent_derivative(E0 @ ud, E0 @ u, w), ring, scale=10)


@pytest.mark.covers("RBDA 2.10", "RBDA 2.13", "6-D Guide 1: Inertia", by=carried_rate)
@pytest.mark.parametrize(
    "make",
    [
        random_motion,
        random_force,
        random_inertia,
        random_articulated,
        lambda rng: InverseInertia.from_inertia(random_inertia(rng)),
        *(
            lambda rng, a=a, b=b: Dyadic(rng.standard_normal((6, 6)), a, b)
            for a in (Motion, Force)
            for b in (Motion, Force)
        ),
    ],
)
def test_rate_of_something_fixed_in_a_moving_body(make, rng):
    x, v = make(rng), random_motion(rng)
    moved = exp(v * (1j * H)).inv_apply(x)
    change = carried_rate(x, v)
    assert type(change) is type(x)
    assert_close(coordinates(change), rate(moved), ulps=500)


@pytest.mark.covers("RBDA 2.13", by=carried_rate)
def test_rate_of_an_inertia_is_the_printed_formula(rng):
    I, v = random_inertia(rng), random_motion(rng)
    v_, I_ = v.to_array(), I.to_matrix()
    expected = dense.crf(v_) @ I_ - I_ @ dense.crm(v_)
    assert_close(carried_rate(I, v).to_matrix(), expected)


@pytest.mark.covers("Tutorial 3", by=carried_rate)
def test_rate_of_the_rotational_inertia_about_the_mass_center(rng):
    """For a body that turns about its mass centre: ω× I - I ω×."""
    I = random_inertia(rng)
    I = type(I).from_mass_center(I.mass, np.zeros(3), I.rotational_at_center)
    w = rng.standard_normal(3)
    W = np.array([cross(w, e) for e in np.eye(3)]).T
    change = carried_rate(I, Motion(w, np.zeros(3)))
    assert_close(change.rotational, W @ I.rotational - I.rotational @ W)
    assert np.array_equal(change.first_moment, np.zeros(3))


@pytest.mark.covers("RBDA Example 2.4", "RBDA 2.10", by=transform_rate)
def test_rate_of_a_transform_between_two_moving_frames(rng):
    X_A, X_B = random_placement(rng), random_placement(rng)  # from base to A and to B
    v_A, v_B = random_motion(rng), random_motion(rng)  # in their own coordinates

    def from_A_to_B(t):
        return (exp(v_B * t) @ X_B) @ (exp(v_A * t) @ X_A).inverse()

    X = from_A_to_B(0.0)
    expected = rate(from_A_to_B(1j * H))
    assert_close(transform_rate(X, X @ v_A, v_B), expected, ulps=500)


@pytest.mark.covers("RBDA 2.10", by=transform_rate)
def test_rate_of_a_joint_transform(rng):
    """d/dt(sXp) = -v_J× sXp when the predecessor is at rest."""
    X, v_J = random_placement(rng), random_motion(rng)
    expected = -dense.crm(v_J.to_array()) @ X.to_matrix()
    assert_close(transform_rate(X, Motion.zero(), v_J), expected)
    assert_close(rate(exp(v_J * (1j * H)) @ X), expected)


@pytest.mark.covers("RBDA Table 2.4", by=carried_rate)
class TestTable24:
    """Product rules, on vectors that change linearly: x(t) = x + t xd."""

    @pytest.fixture
    def uv(self, rng):
        return [random_motion(rng) for _ in range(4)]  # u, ud, v, vd

    def test_scalar_product(self, uv, rng):
        u, ud = uv[:2]
        f, fd = random_force(rng), random_force(rng)
        t = 1j * H
        assert_close(rate((u + ud * t).dot(f + fd * t)), ud.dot(f) + u.dot(fd), scale=30)

    def test_cross_products(self, uv, rng):
        u, ud, v, vd = uv
        f, fd = random_force(rng), random_force(rng)
        t = 1j * H
        expected = ud.cross(v) + u.cross(vd)
        assert_close(rate((u + ud * t).cross(v + vd * t)), expected.to_array(), scale=30)
        expected = ud.cross(f) + u.cross(fd)
        assert_close(rate((u + ud * t).cross(f + fd * t)), expected.to_array(), scale=30)

    def test_cross_operator(self, uv):
        u, ud = uv[:2]
        t = 1j * H
        assert_close(rate(dense.crm((u + ud * t).to_array())), dense.crm(ud.to_array()))

    def test_dyad(self, uv, rng):
        u, ud = uv[:2]
        f, fd = random_force(rng), random_force(rng)
        t = 1j * H
        expected = Dyadic.from_dyads(ud, f) + Dyadic.from_dyads(u, fd)
        assert_close(rate(Dyadic.from_dyads(u + ud * t, f + fd * t)), expected.to_matrix())

    def test_scalar_times_vector_and_matrix_times_vector(self, uv, rng):
        u, ud = uv[:2]
        a, ad = rng.standard_normal(2)
        t = 1j * H
        assert_close(rate((u + ud * t) * (a + ad * t)), (ad * u + a * ud).to_array(), scale=10)
        I, Id = random_inertia(rng), random_inertia(rng)
        expected = Id @ u + I @ ud
        assert_close(rate((I + Id * t) @ (u + ud * t)), expected.to_array())


def test_unknown_kinds_are_rejected():
    with pytest.raises(SpatialTypeError, match=r"3-D vectors; got Plucker and Motion"):
        carried_rate(Plucker.identity(), Motion.zero())
