"""What rounding does to one body far from its frame — RBDA §10.1."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import aba, aba_absolute
from kinetree.diagnosis.health import frame_distance
from kinetree.spatial.planar import PlanarForce, PlanarMotion, Xpln
from kinetree.spatial.planar_inertia import PlanarInertia
from kinetree.textbook.constrained_body import bias_force

EXACT_AT_C = np.array([1.0, -1.0, 1.0])


def plane_body(c):
    """Unit mass and inertia about C, turning about C at unit velocity: (10.1) of the book, at O.

    Returns ``I_O``, the right-hand side ``f_O - v_O ×* I_O v_O``, and the transform from O to C.
    """
    I, X = PlanarInertia.from_mass_center(1.0, np.array(c), 1.0), Xpln(0, c)
    v = X.inv_apply(PlanarMotion.from_array(np.array([1.0, 0.0, 0.0])))
    f = X.inv_apply(PlanarForce.from_array(EXACT_AT_C))
    return I, f - bias_force(I, v), X


@pytest.mark.covers("RBDA 10.1", by=(PlanarInertia, bias_force))
def test_the_example_of_the_book_loses_four_digits():
    """A-02: c = (100, 10), the numbers of the text."""
    I, right, X = plane_body((100.0, 10.0))
    matrix, right = I.to_matrix(), right.to_array()
    np.testing.assert_array_equal(matrix, [[10101, -10, 100], [-10, 1, 0], [100, 0, 1]])
    np.testing.assert_array_equal(right, [111, -1, 1])
    np.testing.assert_allclose(np.linalg.cond(matrix), 1.0205e8, rtol=1e-4)
    exact = np.array([1.0, 9.0, -99.0])
    assert_close(X.inv_apply(PlanarMotion.from_array(EXACT_AT_C)).to_array(), exact)
    error = np.max(np.abs(np.linalg.solve(matrix, right) - exact) / np.abs(exact))
    assert 1e-14 < error < 1e-11  # about one in 1e12
    near, right, _ = plane_body((0.5, 0.1))  # next to the mass centre nothing is lost
    a = np.linalg.solve(near.to_matrix(), right.to_array())
    assert np.max(np.abs(a - [1.0, -0.9, 0.5])) < 1e-15


@pytest.mark.covers("RBDA 10.1", by=(PlanarInertia, bias_force))
def test_the_error_grows_with_the_square_of_the_distance(rng):
    """A-03: medians of the largest error at C; flat below one, then a slope of two."""

    def median(distance):
        errors = []
        for angle in rng.uniform(0, 2 * np.pi, 300):
            I, right, X = plane_body((distance * np.cos(angle), distance * np.sin(angle)))
            a = np.linalg.solve(I.to_matrix(), right.to_array())
            at_center = (X @ PlanarMotion.from_array(a)).to_array()
            errors.append(np.max(np.abs(at_center - EXACT_AT_C)))
        return np.median(errors)

    flat = [median(d) for d in (1e-3, 1e-2, 0.1, 1.0)]
    assert max(flat) < 5e-16
    distances = np.array([1e1, 1e2, 1e3, 1e4, 1e5, 1e6])
    errors = np.array([median(d) for d in distances])
    slope = np.polyfit(np.log10(distances), np.log10(errors), 1)[0]
    assert 1.9 < slope < 2.15
    expected = dict(zip((1e1, 1e2, 1e3, 1e4, 1e6), (6e-15, 8e-13, 7e-11, 7e-9, 7e-5), strict=True))
    for distance, error in zip(distances, errors, strict=True):
        if distance in expected:
            assert 1 / 4 < error / expected[distance] < 4


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


@pytest.mark.covers("RBDA 10.1", by=frame_distance)
def test_ten_times_as_large_is_a_thousand_times_as_heavy():
    small, large = (kt.shapes.sphere(r, density=1000.0) for r in (0.1, 1.0))
    assert_close(large.mass / small.mass, 1e3)
    assert_close(large.rotational[0, 0] / small.rotational[0, 0], 1e5, condition=10)
    assert_close(frame_distance(large), 0.0)
    moved = kt.shapes.sphere(1.0, density=1000.0, at=(10.0, 0, 0))
    # the radius of gyration of a sphere about all axes together, sqrt(3/5) r
    assert_close(frame_distance(moved), 10 / np.sqrt(0.6), condition=10)
