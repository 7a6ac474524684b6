"""What rounding does to one body far from its frame — RBDA §10.1."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import aba, aba_absolute
from kinetree.diagnosis.health import frame_distance


def plane_body(c):
    """Unit mass and inertia, moving at unit angular velocity: (10.1) of the book, about O."""
    x, y = c
    I = np.array([[1 + x * x + y * y, -y, x], [-y, 1, 0], [x, 0, 1]])
    v = np.array([1, y, -x])
    f = np.array([1 + x + y, -1, 1])
    p = I @ v
    bias = np.array([v[1] * p[2] - v[2] * p[1], -v[0] * p[2], v[0] * p[1]])
    return I, f - bias, np.array([1, y - 1, 1 - x])


@pytest.mark.covers("RBDA 10.1", by=frame_distance)
def test_the_example_of_the_book_loses_four_digits():
    I, right, exact = plane_body((100.0, 10.0))
    np.testing.assert_array_equal(I, [[10101, -10, 100], [-10, 1, 0], [100, 0, 1]])
    np.testing.assert_array_equal(right, [111, -1, 1])
    assert abs(np.linalg.cond(I) / 1.0205e8 - 1) < 1e-3
    error = np.abs(np.linalg.solve(I, right) - exact) / np.abs(exact)
    assert np.max(error) < 1e-10


def test_the_error_grows_with_the_square_of_the_distance(rng):
    """At the mass centre; flat up to one radius of gyration, then by two digits a decade."""

    def median(distance):
        errors = []
        for angle in rng.uniform(0, 2 * np.pi, 300):
            x, y = distance * np.cos(angle), distance * np.sin(angle)
            I, right, _ = plane_body((x, y))
            a = np.linalg.solve(I, right)
            at_center = np.array([a[0], a[1] - y * a[0], a[2] + x * a[0]])
            errors.append(np.max(np.abs(at_center - np.array([1, -1, 1]))))
        return np.median(errors)

    small, near, middle, far = (median(d) for d in (0.1, 1e2, 1e4, 1e6))
    assert small < 1e-15
    assert 3.0 < np.log10(middle / near) < 5.0
    assert 3.0 < np.log10(far / middle) < 5.0


def test_body_coordinates_keep_what_base_coordinates_lose(rng):
    """A floating chain ten kilometres away; at a thousand, base coordinates see no inertia."""
    model = kt.edit.floating(kt.samples.chain(4), inertia=kt.shapes.sphere(0.3, mass=5.0))
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    tau = rng.standard_normal(model.nv)
    q[:3] = 0
    near = aba.forward_dynamics(model, q, qd, tau)
    q[:3] = 1e4, 0, 0
    in_body = aba.forward_dynamics(model, q, qd, tau)
    in_base = aba_absolute.forward_dynamics(model, q, qd, tau)
    scale = float(np.max(np.abs(near)))
    assert_close(in_body, near, scale=scale, condition=100)
    assert np.max(np.abs(in_base - near)) / scale > 1e-10


def test_ten_times_as_large_is_a_thousand_times_as_heavy():
    small, large = (kt.shapes.sphere(r, density=1000.0) for r in (0.1, 1.0))
    assert_close(large.mass / small.mass, 1e3)
    assert_close(large.rotational[0, 0] / small.rotational[0, 0], 1e5, condition=10)
    assert_close(frame_distance(large), 0.0)
    moved = kt.shapes.sphere(1.0, density=1000.0, at=(10.0, 0, 0))
    # the radius of gyration of a sphere about all axes together, sqrt(3/5) r
    assert_close(frame_distance(moved), 10 / np.sqrt(0.6), condition=10)
